//! Measurements of media, added up over sessions and threads.

use super::schedule::{LATE, Timing};
use crate::histogram::Histogram;
use millpond_rtp::reception::Arrival;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Plain counts of media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MediaCounts {
    /// RTP packets.
    pub(crate) packets: u64,
    /// Bytes of them, from the RTP header on.
    pub(crate) bytes: u64,
    /// More than [`LATE`] behind the schedule.
    pub(crate) late: u64,
    /// Sequence numbers skipped, less those that arrived after all.
    pub(crate) lost: i64,
    pub(crate) reordered: u64,
    pub(crate) duplicates: u64,
    /// Not RTP, or not of the stream that plays.
    pub(crate) foreign: u64,
}

/// The media of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct MediaFigures {
    pub(crate) counts: MediaCounts,
    /// How far each packet was behind the schedule.
    pub(crate) behind: Histogram,
    /// From frame to frame of one track.
    pub(crate) between: Histogram,
    /// RFC 3550's, of each track at its end.
    pub(crate) jitter: Histogram,
    /// How far each track's latest packet was behind the schedule: the time that its receiver must buffer.
    pub(crate) buffer: Histogram,
}

impl MediaFigures {
    /// A packet by its place and its time.
    pub(crate) fn packet(&mut self, arrival: Arrival, timing: Timing, length: usize) {
        let counts = &mut self.counts;
        counts.packets += 1;
        counts.bytes += length as u64;
        match arrival {
            Arrival::Next { skipped } => counts.lost += i64::from(skipped),
            Arrival::Late => {
                counts.lost -= 1;
                counts.reordered += 1;
            }
            Arrival::Duplicate => counts.duplicates += 1,
            Arrival::Restart => {}
            Arrival::Refused => {
                counts.foreign += 1;
                return;
            }
        }
        counts.late += u64::from(timing.behind > LATE);
        self.behind.record(timing.behind);
        if let Some(between) = timing.since_frame {
            self.between.record(between);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let (mine, theirs) = (&mut self.counts, other.counts);
        mine.packets += theirs.packets;
        mine.bytes += theirs.bytes;
        mine.late += theirs.late;
        mine.lost += theirs.lost;
        mine.reordered += theirs.reordered;
        mine.duplicates += theirs.duplicates;
        mine.foreign += theirs.foreign;
        self.behind.merge(&other.behind);
        self.between.merge(&other.between);
        self.jitter.merge(&other.jitter);
        self.buffer.merge(&other.buffer);
    }
}

/// The figures that are shown during a run. Threads add to it each time they look, and one reads: atomics, so that no thread waits.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    active: AtomicU64,
    starts: AtomicU64,
    failures: AtomicU64,
    packets: AtomicU64,
    bytes: AtomicU64,
    late: AtomicU64,
    lost: AtomicI64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) active: u64,
    pub(crate) starts: u64,
    pub(crate) failures: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) late: u64,
    pub(crate) lost: i64,
}

impl Counters {
    /// A session plays.
    pub(crate) fn started(&self) {
        self.starts.fetch_add(1, Ordering::Relaxed);
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    /// One that played does so no more.
    pub(crate) fn stopped(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what a thread counted since `before`, which becomes what it has now.
    pub(crate) fn add(&self, before: &mut MediaCounts, now: MediaCounts) {
        if now.packets != before.packets {
            self.packets.fetch_add(now.packets - before.packets, Ordering::Relaxed);
            self.bytes.fetch_add(now.bytes - before.bytes, Ordering::Relaxed);
            self.late.fetch_add(now.late - before.late, Ordering::Relaxed);
            self.lost.fetch_add(now.lost - before.lost, Ordering::Relaxed);
        }
        *before = now;
    }

    pub(crate) fn read(&self) -> Counts {
        Counts {
            active: self.active.load(Ordering::Relaxed),
            starts: self.starts.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            packets: self.packets.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            late: self.late.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }
}

/// The counters over the run, at a bounded number of moments: when there are too many, every second one is dropped.
#[derive(Debug)]
pub(crate) struct History {
    moments: Vec<(Duration, Counts)>,
    /// One of this many is kept.
    stride: usize,
    seen: usize,
}

impl History {
    /// Moments kept at most: an hour of seconds.
    const MOST: usize = 3600;

    pub(crate) fn new() -> Self {
        Self { moments: vec![(Duration::ZERO, Counts::default())], stride: 1, seen: 0 }
    }

    pub(crate) fn note(&mut self, elapsed: Duration, counts: Counts) {
        self.seen += 1;
        if !self.seen.is_multiple_of(self.stride) {
            return;
        }
        self.moments.push((elapsed, counts));
        if self.moments.len() > Self::MOST {
            let mut place = 0;
            self.moments.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Each stretch between two moments.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = ((Duration, Counts), (Duration, Counts))> + '_ {
        self.moments.iter().copied().zip(self.moments.iter().skip(1).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_by_what_they_were() {
        let mut figures = MediaFigures::default();
        let late = Timing { behind: LATE + Duration::from_millis(1), since_frame: Some(Duration::from_millis(40)) };
        let next = |skipped| Arrival::Next { skipped };
        for (arrival, timing) in [
            (next(0), Timing::default()),
            (next(2), late),
            (Arrival::Late, Timing { behind: LATE, since_frame: None }),
            (Arrival::Duplicate, Timing::default()),
            (Arrival::Refused, late),
            (Arrival::Restart, Timing::default()),
        ] {
            figures.packet(arrival, timing, 100);
        }
        let MediaCounts { packets, bytes, late, lost, reordered, duplicates, foreign } = figures.counts;
        assert_eq!((packets, bytes, late, lost), (6, 600, 1, 1));
        assert_eq!((reordered, duplicates, foreign), (1, 1, 1));
        assert_eq!((figures.behind.count(), figures.between.count()), (5, 1));
        let mut both = MediaFigures::default();
        both.merge(&figures);
        both.merge(&figures);
        assert_eq!((both.counts.packets, both.counts.lost, both.behind.count()), (12, 2, 10));
    }

    #[test]
    fn the_history_has_a_bound_and_leaves_nothing_out() {
        let mut history = History::new();
        for second in 1..=10_000_u64 {
            let counts = Counts { packets: second * 10, ..Counts::default() };
            history.note(Duration::from_secs(second), counts);
        }
        let stretches: Vec<_> = history.stretches().collect();
        assert!((History::MOST / 2..=History::MOST).contains(&stretches.len()), "{}", stretches.len());
        let packets: u64 = stretches.iter().map(|(before, now)| now.1.packets - before.1.packets).sum();
        assert!(packets > 99_900, "{packets}");
        assert!(stretches.windows(2).all(|pair| pair[0].1 == pair[1].0), "without gaps");
    }
}
