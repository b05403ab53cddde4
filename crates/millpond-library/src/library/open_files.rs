//! The share of the process's open files that assets may keep.

use rustix::process::{Resource, getrlimit};
use std::sync::LazyLock;

/// Descriptors that are kept for listeners, logs, the cache and the admin address.
const KEPT: u64 = 256;

/// Most open files of assets: an eighth, because connections may take three quarters.
static MOST: LazyLock<u64> = LazyLock::new(|| most(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)));

fn most(limit: u64) -> u64 {
    (limit.saturating_sub(KEPT) / 8).max(16)
}

/// Returns the bytes that an asset counts in a budget: those of its heap, or its part of the open files if that is more. A budget
/// that is full of assets then keeps no more files open than assets may.
pub(crate) fn weight(heap: u64, files: u64, budget: u64) -> u64 {
    heap.max(share(files, budget, *MOST))
}

fn share(files: u64, budget: u64, most: u64) -> u64 {
    u64::try_from(u128::from(files) * u128::from(budget) / u128::from(most)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_budget_keeps_no_more_files_open_than_it_may() {
        let budget = 128 << 20;
        for limit in [256, 1024, 4096, 20_000, 524_288, u64::MAX] {
            let most = most(limit);
            let assets = budget / share(1, budget, most).max(24 << 10);
            assert!(assets <= most + 1, "{assets} of {most}, limit {limit}");
        }
        assert_eq!(share(3, 1024, most(1024)), 3 * 1024 / 96);
        assert_eq!(share(1, budget, most(u64::MAX)), 0, "without a limit only memory counts");
    }
}
