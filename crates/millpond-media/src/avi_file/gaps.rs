//! Missing chunks of a stream: those in damaged places, and those that are too large. Time passes for them too.

use crate::{
    movie::sample_table::{Sample, SampleTable},
    units::ByteRange,
};

/// Most gaps of a stream.
const MOST_GAPS: usize = 4096;
/// Bytes of heap for each byte of a table: the table, and its copy with other times, which grows by doubling.
pub(super) const COPIES: usize = 4;

/// Gaps in a stream, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    gaps: Vec<Gap>,
}

/// Missing chunks that follow each other.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// Time of the first sample behind the gap, without gaps, in ticks of the track.
    at: i64,
    /// Offsets of the chunks before the gap and behind it; 0 where the stream begins with the gap.
    before: u64,
    behind: u64,
    /// Whether the current index lists these two chunks.
    has_before: bool,
    has_behind: bool,
    /// Chunks between these two chunks that the current index lists.
    listed: Missing,
    /// Offset of the last listed chunk: an index may list a chunk twice.
    last: u64,
    /// Missing chunks, once they are known.
    missing: Option<Missing>,
}

/// Number and size of missing chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) chunks: u64,
    /// Chunks that are not empty.
    pub(super) filled: u64,
    pub(super) bytes: u64,
}

impl Gap {
    /// Creates a gap before an index is read. The beginning of a stream counts as listed.
    fn new(at: i64, before: u64, behind: u64, missing: Option<Missing>) -> Self {
        let (has_before, has_behind, listed) = (before == 0, false, Missing::default());
        Self { at, before, behind, has_before, has_behind, listed, last: 0, missing }
    }
}

impl Missing {
    fn add(&mut self, place: ByteRange) {
        self.chunks += 1;
        self.filled += u64::from(!place.is_empty());
        self.bytes = self.bytes.saturating_add(place.len());
    }
}

impl Gaps {
    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.gaps.capacity() * size_of::<Gap>()
    }

    /// Notes a gap of unknown length between the chunks at the offsets `before` and `behind`. `at` is the time behind it.
    pub(super) fn note(&mut self, at: i64, before: Option<u64>, behind: u64) {
        self.push(Gap::new(at, before.unwrap_or(0), behind, None));
    }

    /// Notes a chunk that is left out. `at` is the time behind it.
    pub(super) fn add(&mut self, at: i64, place: ByteRange) {
        let (before, mut missing) = (place.start, Missing::default());
        missing.add(place);
        self.push(Gap::new(at, before, before, Some(missing)));
    }

    fn push(&mut self, gap: Gap) {
        if self.gaps.len() < MOST_GAPS {
            self.gaps.push(gap);
        }
    }

    /// Whether an index could tell the length of a gap.
    pub(super) fn are_unknown(&self) -> bool {
        self.gaps.iter().any(|gap| gap.missing.is_none())
    }

    /// Takes a chunk of the stream that an index lists.
    pub(super) fn list(&mut self, place: ByteRange) {
        let first = self.gaps.partition_point(|gap| gap.behind < place.start);
        let gaps = self.gaps.iter_mut().skip(first).take_while(|gap| gap.before <= place.start);
        for gap in gaps.filter(|gap| gap.missing.is_none()) {
            if place.start == gap.before {
                gap.has_before = true;
            } else if place.start == gap.behind {
                gap.has_behind = true;
            } else if place.start != gap.last {
                gap.last = place.start;
                gap.listed.add(place);
            }
        }
    }

    /// Ends an index. It tells the length of the gaps of which it has listed both ends.
    pub(super) fn end_index(&mut self) {
        for gap in self.gaps.iter_mut().filter(|gap| gap.missing.is_none()) {
            let missing = (gap.has_before && gap.has_behind).then_some(gap.listed);
            *gap = Gap::new(gap.at, gap.before, gap.behind, missing);
        }
    }

    /// Returns the times with all gaps. `ticks` gives the duration of missing chunks.
    pub(super) fn shifts(self, ticks: impl Fn(Missing) -> i64) -> Shifts {
        let mut sum = 0_i64;
        let known = self.gaps.into_iter().filter_map(|gap| Some((gap.at, ticks(gap.missing?).max(0))));
        let shifts = known.filter(|(_, ticks)| *ticks > 0).map(|(at, ticks)| {
            sum = sum.saturating_add(ticks);
            (at, sum)
        });
        Shifts(shifts.collect())
    }
}

/// Times from which on samples are later, and by how many ticks, in rising order.
#[derive(Debug, Default)]
pub(super) struct Shifts(Vec<(i64, i64)>);

impl Shifts {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a time with the gaps before it.
    pub(super) fn time(&self, time: i64) -> i64 {
        time.saturating_add(self.shift(time))
    }

    /// Returns the time of presentation of a sample. It is behind the gaps before both of the sample's times.
    pub(super) fn shown(&self, sample: &Sample) -> i64 {
        sample.pts().saturating_add(self.shift(sample.dts.max(sample.pts())))
    }

    /// Ticks of the gaps before a time.
    fn shift(&self, time: i64) -> i64 {
        let passed = self.0.partition_point(|(at, _)| *at <= time);
        passed.checked_sub(1).and_then(|last| self.0.get(last)).map_or(0, |(_, shift)| *shift)
    }

    /// Returns frames of sound with their gaps.
    pub(super) fn of_sound(&self, samples: SampleTable) -> SampleTable {
        if self.is_empty() { samples } else { self.applied(&samples, 0) }
    }

    /// Returns the samples with their gaps. They are shown `delay` ticks later.
    pub(super) fn applied(&self, samples: &SampleTable, delay: i64) -> SampleTable {
        let mut table = SampleTable::builder();
        for sample in samples {
            let dts = self.time(sample.dts);
            let later = self.shown(&sample).saturating_sub(dts).saturating_add(delay);
            table.set_start_dts(dts);
            let size = u32::try_from(sample.range.len()).unwrap_or(u32::MAX);
            table.push(sample.range.start, size, sample.duration, offset(later), sample.sync);
        }
        table.finish()
    }
}

/// Returns a composition offset.
pub(super) fn offset(ticks: i64) -> i32 {
    ticks.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(gaps: &mut Gaps, places: &[u64]) {
        places.iter().for_each(|start| gaps.list(ByteRange::at(*start, 5)));
        gaps.end_index();
    }

    fn shifted(gaps: Gaps, times: [i64; 4]) -> [i64; 4] {
        let shifts = gaps.shifts(|missing| missing.chunks as i64 * 10);
        times.map(|time| shifts.time(time))
    }

    #[test]
    fn an_index_tells_the_length_of_gaps() {
        let gaps = || {
            let mut gaps = Gaps::default();
            gaps.note(0, None, 200);
            gaps.note(20, Some(300), 500);
            gaps.add(30, ByteRange::at(600, 9));
            gaps
        };
        let times = [0, 10, 20, 30];
        let mut whole = gaps();
        listed(&mut whole, &[100, 200, 300, 350, 400, 500, 600, 700]);
        assert!(!whole.are_unknown());
        assert_eq!(shifted(whole, times), [10, 20, 50, 70]);
        let mut parts = gaps();
        listed(&mut parts, &[100, 200, 300]);
        listed(&mut parts, &[350, 400, 500]);
        assert!(parts.are_unknown(), "no index lists both ends of a gap");
        assert_eq!(shifted(parts, times), [10, 20, 30, 50]);
        let mut twice = gaps();
        listed(&mut twice, &[100, 200, 200, 300, 300, 350, 350, 400, 500, 500]);
        assert_eq!(shifted(twice, times), [10, 20, 50, 70], "chunks that are listed twice");
        let mut other = gaps();
        listed(&mut other, &[101, 201, 301, 501]);
        assert_eq!(shifted(other, times), [0, 10, 20, 40], "the index of another file");
    }

    #[test]
    fn a_chunk_can_lie_between_two_gaps() {
        let mut gaps = Gaps::default();
        gaps.note(10, Some(100), 300);
        gaps.note(20, Some(300), 500);
        listed(&mut gaps, &[100, 200, 300, 400, 500]);
        assert_eq!(shifted(gaps, [0, 10, 20, 30]), [0, 20, 40, 50]);
    }
}
