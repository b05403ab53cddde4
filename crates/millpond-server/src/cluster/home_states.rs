//! Whether this node can use the homes of slices of other nodes. Where it can't, it reads from the origin, which then sends more.

use super::ClusterMetrics;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use utoipa::ToSchema;

/// Most homes that are kept. Failures of others are not shown.
const MOST: usize = 1024;

/// A home that fails.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct FailingHome {
    /// Name of the place.
    place: String,
    /// Address of the home.
    home: String,
    /// The last failure.
    error: String,
    /// Seconds since the first failure after the last reply.
    seconds: u64,
}

#[derive(Debug)]
struct Failing {
    since: Instant,
    error: String,
}

/// By place and address of the home.
type Homes = BTreeMap<(Arc<str>, Arc<str>), Failing>;

/// The homes that fail. Each of them works until its first failure, and fails until it answers again.
#[derive(Debug, Default)]
pub(super) struct HomeStates(Mutex<Homes>);

impl HomeStates {
    /// Notes the end of a request to a home, and why it failed.
    pub(super) fn note(&self, place: &str, home: &str, failure: Option<&str>, metrics: &ClusterMetrics) {
        let mut all = self.all();
        let key = (place.into(), home.into());
        match failure {
            None => {
                let Some(failing) = all.remove(&key) else { return };
                tracing::info!(place, home, after = ?failing.since.elapsed(), "a home of slices answers again");
            }
            Some(error) if all.contains_key(&key) || all.len() < MOST => {
                let since = all.get(&key).map(|known| known.since);
                if since.is_none() {
                    tracing::warn!(place, home, error, "a home of slices fails: this node reads from the origin");
                }
                all.insert(key, Failing { since: since.unwrap_or_else(Instant::now), error: error.to_owned() });
            }
            Some(_) => return,
        }
        metrics.homes(all.len());
    }

    /// Forgets homes at addresses that no node has.
    pub(super) fn keep(&self, is_kept: impl Fn(&str) -> bool, metrics: &ClusterMetrics) {
        let mut all = self.all();
        all.retain(|(_, home), _| is_kept(home));
        metrics.homes(all.len());
    }

    /// The homes that fail.
    pub(super) fn failing(&self) -> Vec<FailingHome> {
        let shown = |((place, home), Failing { since, error }): (&(Arc<str>, Arc<str>), &Failing)| FailingHome {
            place: place.to_string(),
            home: home.to_string(),
            error: error.clone(),
            seconds: since.elapsed().as_secs(),
        };
        self.all().iter().map(shown).collect()
    }

    fn all(&self) -> MutexGuard<'_, Homes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::registry::Registry;

    #[test]
    fn a_home_fails_until_it_answers_or_is_gone() {
        let (states, metrics) = (HomeStates::default(), ClusterMetrics::register(&mut Registry::default()));
        let failing = || {
            states.failing().iter().map(|one| format!("{} {} {}", one.place, one.home, one.error)).collect::<Vec<_>>()
        };
        states.note("films", "http://a", None, &metrics);
        assert!(failing().is_empty());
        for error in ["HTTP 429", "HTTP 401"] {
            states.note("films", "http://a", Some(error), &metrics);
        }
        states.note("films", "http://b", Some("no sign of life"), &metrics);
        assert_eq!(failing(), ["films http://a HTTP 401", "films http://b no sign of life"]);
        // Another place of the same node may work.
        states.note("more", "http://a", None, &metrics);
        assert_eq!(failing().len(), 2);
        states.note("films", "http://a", None, &metrics);
        states.keep(|home| home != "http://b", &metrics);
        assert!(failing().is_empty());
    }
}
