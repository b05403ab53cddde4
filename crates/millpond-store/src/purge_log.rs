//! The last purges. Bytes that were requested before a purge are not kept after it.
//!
//! A request takes a [`PurgeMark`] before it begins. Its bytes are inserted into a cache first, and then compared with the log. A purge is
//! logged first, and then removes. So one of both removes the bytes, whichever comes first.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::selection::{Candidate, Purge};

/// Number of purges that are kept. A request that is older than all of them counts as purged.
const KEPT: usize = 1024;

/// A moment between two purges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct PurgeMark(u64);

/// The last purges.
#[derive(Debug, Default)]
pub(crate) struct PurgeLog {
    /// Number of all purges.
    count: AtomicU64,
    /// A lock: taken by purges, and by requests that began before one.
    recent: RwLock<VecDeque<Purge>>,
}

impl PurgeLog {
    /// Returns the present moment.
    pub(crate) fn mark(&self) -> PurgeMark {
        PurgeMark(self.count.load(Ordering::Acquire))
    }

    /// Adds purges.
    pub(crate) fn add(&self, purges: &[Purge]) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        recent.extend(purges.iter().cloned());
        let excess = recent.len().saturating_sub(KEPT);
        recent.drain(..excess);
        self.count.fetch_add(purges.len() as u64, Ordering::Release);
    }

    /// Returns whether the bytes of an object that were requested at `mark` have been purged since.
    pub(crate) fn has_removed(&self, mark: PurgeMark, of: Candidate<'_>) -> bool {
        self.since(mark, |purge| !purge.is_soft && purge.selection.covers(of))
    }

    /// Returns whether the version of an object that the origin stated at `mark` has been doubted since.
    pub(crate) fn has_doubted(&self, mark: PurgeMark, of: Candidate<'_>) -> bool {
        self.since(mark, |purge| purge.selection.covers(of))
    }

    fn since(&self, PurgeMark(mark): PurgeMark, covers: impl Fn(&Purge) -> bool) -> bool {
        if self.count.load(Ordering::Acquire) == mark {
            return false;
        }
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        let later = self.count.load(Ordering::Acquire).saturating_sub(mark);
        match usize::try_from(later).ok().and_then(|later| recent.len().checked_sub(later)) {
            Some(known) => recent.range(known..).any(covers),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;
    use crate::tags::ObjectTags;

    fn purge(path: &str, is_soft: bool) -> Purge {
        Purge { selection: Selection::Below { place: "p".into(), path: path.into() }, is_soft }
    }

    fn of(path: &str) -> Candidate<'_> {
        static NONE: std::sync::LazyLock<ObjectTags> = std::sync::LazyLock::new(ObjectTags::default);
        Candidate { place: "p", path, tags: &NONE }
    }

    #[test]
    fn only_later_purges_count() {
        let log = PurgeLog::default();
        let first = log.mark();
        assert!(!log.has_removed(first, of("a")));
        log.add(&[purge("a", false), purge("b", true)]);
        assert!(log.has_removed(first, of("a")) && !log.has_removed(first, of("c")));
        assert!(!log.has_removed(first, of("b")) && log.has_doubted(first, of("b")));
        assert!(log.has_doubted(first, of("a")));
        let second = log.mark();
        assert!(second != first && !log.has_doubted(second, of("a")));
        log.add(&[purge("c", false)]);
        assert!(log.has_removed(first, of("c")) && log.has_removed(second, of("c")));
        assert!(!log.has_removed(second, of("a")));
    }

    #[test]
    fn requests_older_than_the_log_count_as_purged() {
        let log = PurgeLog::default();
        let first = log.mark();
        log.add(&vec![purge("a", false); KEPT]);
        assert!(!log.has_removed(first, of("b")));
        let second = log.mark();
        log.add(&[purge("a", false)]);
        assert!(log.has_removed(first, of("b")) && !log.has_removed(second, of("b")));
    }
}
