//! Files that are still being copied into their place.
//!
//! A file is being copied where its bytes end before its boxes do and it changed within the last minute. Without a change
//! for longer it was cut off, and is judged by what is there.

use std::time::{Duration, SystemTime};

/// Longest pause of a copy.
const PAUSE: Duration = Duration::from_secs(60);

/// Whether something changed so lately that it may be changing still.
pub(crate) fn is_recent(modified: Option<SystemTime>) -> bool {
    let Some(modified) = modified else { return false };
    let now = SystemTime::now();
    // Clocks of storages differ a little.
    let age = now.duration_since(modified).unwrap_or_else(|ahead| ahead.duration());
    age < PAUSE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_without_a_change_ends_a_copy() {
        let now = SystemTime::now();
        assert!(is_recent(Some(now)) && is_recent(Some(now + Duration::from_secs(5))));
        for long in [now - Duration::from_secs(120), now + Duration::from_secs(120)] {
            assert!(!is_recent(Some(long)));
        }
        assert!(!is_recent(None));
    }
}
