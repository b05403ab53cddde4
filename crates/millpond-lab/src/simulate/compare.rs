//! All policies on all workloads of [`MIXES`](super::MIXES): how far the default is from the best of the others.

use super::{LinkModel, MIXES, Setting, byte_miss_ratio, mix, run};
use millpond_store::{policy::PolicyName, schedule::Mode};
use serde::Serialize;
use std::fmt;

/// Sizes of the cache, as shares of the bytes of all objects.
const SIZES: &[f64] = &[0.03, 0.1];
/// The policy that is compared with the others.
const DEFAULT: &str = PolicyName::Stream.as_str();
const SLICE: u32 = 512 << 10;

/// A workload with one size of the cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// The workload.
    pub workload: String,
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// Policies, each with the share of the bytes read that it misses.
    pub missed: Vec<(&'static str, f64)>,
    /// The least share that any policy can miss.
    pub belady: f64,
}

impl Row {
    /// Returns what the default policy misses.
    fn default(&self) -> f64 {
        self.missed.iter().find(|(name, _)| *name == DEFAULT).map_or(1.0, |(_, missed)| *missed)
    }

    /// Returns the best policy but the default, and what it misses.
    pub fn best(&self) -> (&'static str, f64) {
        let others = self.missed.iter().filter(|(name, _)| *name != DEFAULT);
        others.min_by(|a, b| a.1.total_cmp(&b.1)).copied().unwrap_or((DEFAULT, 1.0))
    }

    /// Returns the excess of the default's miss ratio over that of the best other policy, as a share of the latter. It is negative where
    /// the default leads.
    pub fn gap(&self) -> f64 {
        self.default() / self.best().1.max(1e-9) - 1.0
    }
}

/// Runs all policies on all workloads. `size` is that of [`mix`]; `each` is told every row when it is ready.
pub fn compare(size: f64, seed: u64, mut each: impl FnMut(&Row)) -> Vec<Row> {
    let mut rows = Vec::new();
    for workload in MIXES.iter().filter_map(|name| mix(name, size, seed)) {
        let unique = workload.totals().unique_bytes as f64;
        for share in SIZES {
            let cache = (unique * share) as u64;
            let link = LinkModel::constant(1e12, 0.0);
            let missed = |policy: PolicyName| {
                let setting = Setting { cache, slice: SLICE, mode: Mode::OnDemand, policy, link: link.clone() };
                (policy.as_str(), run(&workload, &setting, |_| {}).byte_miss_ratio())
            };
            let row = Row {
                workload: workload.name.clone(),
                cache_bytes: cache,
                missed: PolicyName::ALL.into_iter().map(missed).collect(),
                belady: byte_miss_ratio(&workload, Some(SLICE), cache),
            };
            each(&row);
            rows.push(row);
        }
    }
    rows
}

/// Returns the head of a table of rows.
pub fn head() -> String {
    let names: String = PolicyName::ALL.into_iter().map(|name| format!(" {name:>9}")).collect();
    format!("{:<9} {:>9}{names} {:>7}   {:<10} {:>7}", "workload", "cache MiB", "Belady", "best other", "gap")
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missed: String = self.missed.iter().map(|(_, missed)| format!(" {missed:>9.4}")).collect();
        let (mib, gap) = (self.cache_bytes as f64 / 1048576.0, 100.0 * self.gap());
        let (name, best, belady) = (&self.workload, self.best().0, self.belady);
        write!(f, "{name:<9} {mib:>9.0}{missed} {belady:>7.4}   {best:<10} {gap:>+6.1}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The promise of docs/measured/simulator.md, on small workloads: in small samples chance takes a larger part.
    #[test]
    fn the_default_is_near_the_best_other_policy_everywhere_and_leads_on_streams() {
        let rows = compare(0.1, 1, |row| println!("{row}"));
        assert_eq!(rows.len(), MIXES.len() * SIZES.len());
        for row in &rows {
            assert!(row.missed.iter().all(|(_, missed)| *missed >= row.belady * 0.99), "{row}");
            assert!(row.gap() <= 0.03, "{row}");
            assert!(row.gap() < 0.0 || !["sproxy", "early", "crowd"].contains(&row.workload.as_str()), "{row}");
        }
    }
}
