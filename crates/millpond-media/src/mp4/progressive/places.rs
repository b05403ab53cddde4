//! Places of samples, whatever their sample entry is.

use super::{MAX_CONSTANT_ELSEWHERE, RunCursor, Runs, Tables};
use crate::units::ByteRange;

impl Tables<'_> {
    /// Returns the decode times and places of the first `most` samples that lie before `object_len`.
    pub(crate) fn places(&self, object_len: u64, most: usize) -> Vec<(i64, ByteRange)> {
        let count = self.sizes.count_within(Some(object_len), MAX_CONSTANT_ELSEWHERE);
        let (mut times, mut run) = (Runs::new(self.times), RunCursor::new(&self.runs));
        let (mut index, mut time, mut places) = (0, 0_i64, Vec::new());
        for chunk in 0..self.chunks.len() {
            let mut offset = self.chunks.get(chunk);
            for _ in 0..run.samples_in(chunk) {
                let end = offset.checked_add(u64::from(self.sizes.get(index))).filter(|end| *end <= object_len);
                let Some(end) = end.filter(|_| index < count && places.len() < most) else { return places };
                places.push((time, ByteRange::new(offset, end)));
                let (_, duration) = times.next_or_last(1);
                time = time.saturating_add(i64::from(duration));
                (offset, index) = (end, index + 1);
            }
        }
        places
    }
}
