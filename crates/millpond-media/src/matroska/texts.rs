//! Blocks of a track of text: where they are, and when each is shown.

use super::{clusters::Block, cues::Cue, head::Found, samples::Clock, track_entry::TrackEntry};
use crate::{
    movie::sample_table::{MAX_SAMPLES, SampleTable},
    units::ByteRange,
};

/// Shortest and longest header of a cluster. The place that a cue states begins behind it.
const CLUSTER_HEADERS: (u64, u64) = (5, 12);
/// Bytes that are read of a block whose size is not known.
const READ: u64 = 2048;
/// Milliseconds for which the last text is shown if its duration is not stated.
const LAST_MS: i64 = 5000;

/// The blocks of a track of text.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    clock: Clock,
    shown: Vec<Shown>,
}

/// A block of text.
#[derive(Clone, Copy, Debug)]
struct Shown {
    /// Times in ticks of the track.
    start: i64,
    /// `None` where it is shown until the next one.
    end: Option<i64>,
    /// Bytes in which the block lies.
    range: ByteRange,
}

impl Texts {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, shown: Vec::new() }
    }

    /// Makes the texts of a track of its cues alone; `None` where they don't tell place and duration of each.
    pub(super) fn of_cues(found: &Found, entry: &TrackEntry, clock: Clock) -> Option<Self> {
        let cues = found.cues.iter().flatten().filter(|cue| cue.track == entry.number);
        let (start, end) = found.segment;
        let shown = |cue: &Cue| {
            let place = start.checked_add(cue.cluster)?.checked_add(cue.place?)?;
            let from = place.checked_add(CLUSTER_HEADERS.0)?;
            let until = place.checked_add(CLUSTER_HEADERS.1 + READ)?.min(end);
            let duration = i64::try_from(cue.duration?).ok()?;
            (from < until).then(|| Shown {
                start: clock.ticks(cue.time),
                end: Some(clock.ticks(cue.time.saturating_add(duration))),
                range: ByteRange::new(from, until),
            })
        };
        Some(Self { clock, shown: cues.map(shown).collect::<Option<Vec<_>>>()? })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Bytes of heap held, and those of the table that is made of them.
    pub(super) fn heap_bytes(&self) -> usize {
        2 * self.shown.capacity() * size_of::<Shown>()
    }

    /// Adds a block.
    pub(super) fn push(&mut self, block: &Block) {
        if self.shown.len() >= MAX_SAMPLES as usize {
            return;
        }
        let duration = block.duration.and_then(|ticks| i64::try_from(ticks).ok());
        self.shown.push(Shown {
            start: self.clock.ticks(block.time),
            end: duration.map(|ticks| self.clock.ticks(block.time.saturating_add(ticks))),
            range: block.element,
        });
    }

    /// Returns a table of all texts that are shown from `base` ticks of the segment on, by time. Texts that began before begin there.
    pub(super) fn finish(self, base: i64) -> SampleTable {
        let Self { clock, mut shown } = self;
        shown.sort_by_key(|text| text.start);
        let last = i64::from(clock.timescale.get()) * LAST_MS / 1000;
        let nexts: Vec<Option<i64>> = shown.iter().skip(1).map(|text| Some(text.start)).chain([None]).collect();
        for (text, next) in shown.iter_mut().zip(nexts) {
            text.end = text.end.or(next).or(Some(text.start.saturating_add(last)));
            text.start = text.start.max(clock.ticks(base));
        }
        shown.retain(|text| text.end.is_some_and(|end| end > text.start));
        let duration =
            |text: &Shown| u32::try_from(text.end.unwrap_or(0).saturating_sub(text.start)).unwrap_or(u32::MAX);
        let durations: Vec<u32> = shown.iter().map(duration).collect();
        let mut table = SampleTable::builder();
        for (text, duration) in shown.iter().zip(&durations) {
            table.set_start_dts(text.start);
            table.push(text.range.start, u32::try_from(text.range.len()).unwrap_or(u32::MAX), *duration, 0, true);
        }
        table.finish().with_durations(durations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Timescale;

    fn clock() -> Clock {
        Clock { scale: 1_000_000, timescale: Timescale::MILLIS }
    }

    fn block(time: i64, duration: Option<u64>) -> Block {
        let element = ByteRange::at(time.unsigned_abs(), 10);
        Block { track: 3, element, time, is_key: true, duration, padding: 0, opening: [0; 2], first: None }
    }

    /// Time, duration and place of each text that is shown from `base` on.
    fn shown(texts: &[(i64, Option<u64>)], base: i64) -> Vec<(i64, u32, u64)> {
        let mut all = Texts::new(clock());
        texts.iter().for_each(|(time, duration)| all.push(&block(*time, *duration)));
        all.finish(base).iter().map(|text| (text.dts, text.duration, text.range.start)).collect()
    }

    #[test]
    fn texts_may_overlap_and_are_sorted() {
        let texts = [(1000, Some(5000)), (4000, Some(500)), (2000, Some(1000)), (4000, None), (9000, None)];
        let expected =
            [(1000, 5000, 1000), (2000, 1000, 2000), (4000, 500, 4000), (4000, 5000, 4000), (9000, 5000, 9000)];
        assert_eq!(shown(&texts, 0), expected);
    }

    #[test]
    fn texts_of_before_the_first_picture_begin_with_it() {
        let texts = [(0, Some(60_000)), (1000, Some(1500)), (2000, Some(5000)), (7000, Some(0)), (12_000, Some(500))];
        assert_eq!(shown(&texts, 5000), [(5000, 55_000, 0), (5000, 2000, 2000), (12_000, 500, 12_000)]);
    }
}
