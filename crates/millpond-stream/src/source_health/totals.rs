//! Totals of all live streams since the start.

use super::SourceCounts;
use std::sync::atomic::{AtomicU64, Ordering};

/// Totals of all live streams of an engine since its start. No total falls when a stream ends.
#[derive(Debug, Default)]
pub(crate) struct LiveTotals {
    pub(crate) frames: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) epochs: AtomicU64,
    pub(crate) insertions: AtomicU64,
    pub(crate) cues: AtomicU64,
    pub(crate) reconnections: AtomicU64,
    pub(crate) lost_packets: AtomicU64,
    pub(crate) asked_packets: AtomicU64,
    pub(crate) repaired_packets: AtomicU64,
    pub(crate) too_late_packets: AtomicU64,
    pub(crate) unused_packets: AtomicU64,
    pub(crate) broken_frames: AtomicU64,
    /// Times that a stream was closed because of its bit rate.
    pub(crate) refused: AtomicU64,
}

impl LiveTotals {
    /// Adds frames of a source.
    pub(crate) fn received(&self, frames: usize, bytes: usize) {
        add(&self.frames, frames as u64);
        add(&self.bytes, bytes as u64);
    }

    /// Adds an epoch.
    pub(crate) fn epoch(&self) {
        add(&self.epochs, 1);
    }

    /// Adds a stream that was closed because of its bit rate.
    pub(crate) fn refused(&self) {
        add(&self.refused, 1);
    }

    /// Adds a clip that begins in a stream.
    pub(crate) fn inserted(&self) {
        add(&self.insertions, 1);
    }

    /// Adds a cue.
    pub(crate) fn cue(&self) {
        add(&self.cues, 1);
    }

    /// Adds the counts of a reception between `before` and `after`.
    pub(crate) fn counted(&self, before: &SourceCounts, after: &SourceCounts) {
        // The first session is no reconnection.
        let reconnections = |counts: &SourceCounts| counts.sessions.saturating_sub(1);
        add(&self.reconnections, reconnections(after).saturating_sub(reconnections(before)));
        add(&self.lost_packets, after.lost_packets.saturating_sub(before.lost_packets));
        add(&self.asked_packets, after.asked_packets.saturating_sub(before.asked_packets));
        add(&self.repaired_packets, after.repaired_packets.saturating_sub(before.repaired_packets));
        add(&self.too_late_packets, after.too_late_packets.saturating_sub(before.too_late_packets));
        add(&self.unused_packets, after.unused_packets.saturating_sub(before.unused_packets));
        add(&self.broken_frames, after.broken_frames.saturating_sub(before.broken_frames));
    }
}

fn add(total: &AtomicU64, more: u64) {
    total.fetch_add(more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_rise_by_what_is_new() {
        let totals = LiveTotals::default();
        let mut before = SourceCounts::default();
        for (sessions, lost_packets, broken_frames) in [(0, 0, 0), (1, 4, 1), (1, 3, 1), (2, 5, 2), (3, 5, 2)] {
            let after = SourceCounts { sessions, lost_packets, broken_frames, ..SourceCounts::default() };
            totals.counted(&before, &after);
            before = after;
        }
        let of = |total: &AtomicU64| total.load(Ordering::Relaxed);
        assert_eq!([&totals.reconnections, &totals.lost_packets, &totals.broken_frames].map(of), [2, 6, 2]);
    }
}
