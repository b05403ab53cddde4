//! Samples of pictures, whose times of presentation follow from their picture order counts.

use super::gaps::{COPIES, Shifts, offset};
use crate::{
    codec::nal::picture_order::PicturePlace,
    movie::sample_table::{SampleTable, SampleTableBuilder},
    units::ByteRange,
};

/// Bytes of heap that a picture takes when its group ends, besides its place in the group: two numbers, and its place in the table.
const CLOSING: usize = 80;

/// Collects pictures in the order of decoding.
///
/// The number of a chunk in AVI gives the decoding time of its picture. A group of pictures begins where the order counts begin anew.
/// The pictures of a group share its decoding times: in the order of presentation, each gets the next of these times. All pictures of
/// the track are then delayed by the same number of ticks, so that none is shown before it is decoded.
#[derive(Debug)]
pub(super) struct PictureTable {
    table: SampleTableBuilder,
    /// Duration of the last picture in ticks.
    step: u32,
    /// Pictures since the order began anew.
    open: Vec<Open>,
    /// Decoding time of the last picture.
    last: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    place: ByteRange,
    dts: i64,
    count: i64,
    is_sync: bool,
}

/// The finished samples.
#[derive(Debug)]
pub(super) struct Pictures {
    pub(super) samples: SampleTable,
    /// Earliest time of presentation on the samples' timeline, and counted from the beginning of the file, in ticks. The delay of
    /// reordered pictures is in the first alone: sound counts from the beginning of the file too.
    pub(super) media_time: i64,
    pub(super) first: i64,
}

impl PictureTable {
    /// Creates a table. `step` is the frame duration in ticks.
    pub(super) fn new(step: u32) -> Self {
        Self { table: SampleTable::builder(), step, open: Vec::new(), last: None }
    }

    /// Number of pictures.
    pub(super) fn len(&self) -> u32 {
        self.table.len().saturating_add(u32::try_from(self.open.len()).unwrap_or(u32::MAX))
    }

    /// Bytes of heap held, with those that the end of the group and of the track will take.
    pub(super) fn heap_bytes(&self) -> usize {
        self.table.heap_bytes() * COPIES + self.open.capacity() * (size_of::<Open>() + CLOSING)
    }

    /// Adds a picture. `order` is its place in the order of presentation; `None` if pictures are shown in the order of decoding.
    pub(super) fn push(&mut self, dts: i64, order: Option<PicturePlace>, place: ByteRange, is_sync: bool) {
        // Decoding times must rise.
        let dts = self.last.map_or(dts, |last| dts.max(last.saturating_add(1)));
        self.last = Some(dts);
        if order.is_none_or(|order| order.begins) {
            self.close();
        }
        match order {
            Some(order) => self.open.push(Open { place, dts, count: order.count, is_sync }),
            None => self.add(place, dts, 0, is_sync),
        }
    }

    /// Adds a picture to the table. It is shown `later` ticks after it is decoded.
    fn add(&mut self, place: ByteRange, dts: i64, later: i64, is_sync: bool) {
        self.table.set_start_dts(dts);
        self.table.push(place.start, narrow(place.len()), self.step, offset(later), is_sync);
    }

    /// Gives times to the pictures since the order began anew.
    fn close(&mut self) {
        let mut shown: Vec<usize> = (0..self.open.len()).collect();
        shown.sort_by_key(|place| self.open.get(*place).map(|picture| picture.count));
        let mut times = vec![0; self.open.len()];
        for (slot, place) in self.open.iter().zip(shown) {
            if let Some(time) = times.get_mut(place) {
                *time = slot.dts;
            }
        }
        let mut open = std::mem::take(&mut self.open);
        for (Open { place, dts, is_sync, .. }, time) in open.drain(..).zip(times) {
            let later = time.saturating_sub(dts);
            self.add(place, dts, later, is_sync);
        }
        self.open = open;
    }

    /// Returns the samples with the gaps between them; `None` if there is no picture.
    ///
    /// A picture that is decoded behind a gap is shown behind it too, although its group may have left a time before the gap for it.
    pub(super) fn finish(mut self, gaps: &Shifts) -> Option<Pictures> {
        self.close();
        self.open = Vec::new();
        let samples = self.table.finish();
        let (mut first, mut delay) = (None, 0);
        for sample in &samples {
            let (decoded, shown) = (gaps.time(sample.dts), gaps.shown(&sample));
            first = Some(first.map_or(shown, |first: i64| first.min(shown)));
            delay = delay.max(decoded.saturating_sub(shown));
        }
        let first = first?;
        let media_time = first.saturating_add(delay);
        let is_final = delay == 0 && gaps.is_empty();
        let samples = if is_final { samples } else { gaps.applied(&samples, delay) };
        Some(Pictures { samples, media_time, first })
    }
}

fn narrow(length: u64) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{super::gaps::Gaps, *};

    /// Times of presentation, the earliest one, and the beginning in the file.
    fn times(pictures: &[(i64, Option<(bool, i64)>)]) -> (Vec<i64>, [i64; 2]) {
        let mut table = PictureTable::new(10);
        for (dts, order) in pictures {
            let order = order.map(|(begins, count)| PicturePlace { begins, count });
            table.push(*dts, order, ByteRange::at(0, 5), true);
        }
        let Pictures { samples, media_time, first } = table.finish(&Shifts::default()).unwrap();
        (samples.iter().map(|sample| sample.pts()).collect(), [media_time, first])
    }

    #[test]
    fn pictures_are_shown_in_their_order() {
        // I P b b, I P b.
        let order = [(true, 0), (false, 6), (false, 2), (false, 4), (true, 0), (false, 4), (false, 2)];
        let pictures: Vec<_> = (0..).map(|number| number * 10).zip(order.map(Some)).collect();
        assert_eq!(times(&pictures), (vec![10, 40, 20, 30, 50, 70, 60], [10, 0]));
        // A pyramid, and a picture that was dropped before the last one.
        let order = [(true, 0), (false, 8), (false, 4), (false, 2), (false, 6)].map(Some);
        let pictures: Vec<_> = [0, 10, 20, 30, 50].into_iter().zip(order).collect();
        assert_eq!(times(&pictures), (vec![20, 70, 40, 30, 50], [20, 0]));
    }

    #[test]
    fn pictures_that_are_decoded_behind_a_gap_are_shown_behind_it() {
        let mut table = PictureTable::new(10);
        let push = |table: &mut PictureTable, dts, begins, count| {
            table.push(dts, Some(PicturePlace { begins, count }), ByteRange::at(0, 5), begins);
        };
        push(&mut table, 0, true, 0);
        push(&mut table, 10, false, 4);
        push(&mut table, 20, false, 2);
        let mut gaps = Gaps::default();
        gaps.add(20, ByteRange::at(10, 5));
        let Pictures { samples, media_time, .. } = table.finish(&gaps.shifts(|_| 1000)).unwrap();
        let times: Vec<_> = samples.iter().map(|sample| (sample.dts, sample.pts())).collect();
        assert_eq!((times, media_time), (vec![(0, 10), (10, 1030), (1020, 1020)], 10));
    }

    #[test]
    fn other_pictures_are_shown_as_they_are_decoded() {
        assert_eq!(times(&[(0, None), (10, None), (10, None), (40, None)]), (vec![0, 10, 11, 40], [0, 0]));
        assert!(PictureTable::new(10).finish(&Shifts::default()).is_none());
    }
}
