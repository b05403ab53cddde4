//! The times that recorded files hold of a stream.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use std::time::Duration;

/// Longest distance of two files that follow each other without a gap.
const SLACK: Duration = Duration::from_secs(1);

/// A time without a longer gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Covered {
    /// Wall time of its beginning, since the Unix epoch.
    pub(crate) from: Duration,
    /// Wall time of its end.
    pub(crate) to: Duration,
}

/// Returns the times that files hold, in order. Each file has its beginning, its duration, and its gaps as time from the beginning and
/// length.
pub(crate) fn timeline<'a>(
    files: impl IntoIterator<Item = (Duration, Duration, &'a [(Duration, Duration)])>,
) -> Vec<Covered> {
    let mut all = Vec::new();
    for (began, duration, gaps) in files {
        let mut from = began;
        for (at, length) in gaps {
            let to = began.saturating_add(*at);
            all.push(Covered { from, to: to.max(from) });
            from = to.saturating_add(*length);
        }
        all.push(Covered { from, to: began.saturating_add(duration).max(from) });
    }
    all.sort_by_key(|covered| covered.from);
    let mut merged: Vec<Covered> = Vec::new();
    for next in all {
        match merged.last_mut() {
            Some(last) if next.from <= last.to.saturating_add(SLACK) => last.to = last.to.max(next.to),
            _ => merged.push(next),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn files_that_follow_each_other_are_one_time() {
        let gap = [(seconds(20), seconds(10))];
        let files = [
            (seconds(1000), seconds(60), &[][..]),
            (Duration::from_millis(1_060_040), seconds(60), &gap[..]),
            (seconds(2000), seconds(60), &[]),
            // A clock that was set back.
            (seconds(2030), seconds(10), &[]),
        ];
        let covered = timeline(files);
        let times: Vec<_> = covered.iter().map(|covered| (covered.from.as_secs(), covered.to.as_secs())).collect();
        assert_eq!(times, [(1000, 1080), (1090, 1120), (2000, 2060)]);
        assert_eq!(timeline([]), []);
    }

    #[test]
    fn impossible_files_do_no_harm() {
        let gap = [(Duration::MAX, Duration::MAX), (seconds(1), seconds(1))];
        let covered = timeline([(seconds(5), Duration::MAX, &gap[..]), (Duration::MAX, seconds(9), &[])]);
        assert!(covered.iter().all(|covered| covered.from <= covered.to), "{covered:?}");
    }
}
