//! Sample tables of a PCM track: most samples are single frames, too many to visit one by one.

use super::{Cut, MAX_CONSTANT_ELSEWHERE, RunCursor, Runs, Sizes, Tables};
use crate::{budget::Budget, error::MediaError, movie::sample_table::SampleTableBuilder, mp4::pcm_units::PcmUnits};

impl Tables<'_> {
    /// Like [`fill`](Self::fill), but appends access units that never extend past the end of a chunk. Composition times
    /// and sync samples mean nothing here.
    pub(crate) fn fill_pcm(
        &self,
        units: &mut PcmUnits,
        out: &mut SampleTableBuilder,
        object_len: Option<u64>,
        budget: &mut Budget,
    ) -> Result<Option<Cut>, MediaError> {
        let frame = units.frame();
        let (sizes, elsewhere) = match self.sizes {
            // QuickTime states a size of 1 for frames of any size.
            Sizes::Constant { size, count } if size <= frame => {
                (Sizes::Constant { size: frame, count }, MAX_CONSTANT_ELSEWHERE.saturating_mul(units.most()))
            }
            sizes => (sizes, MAX_CONSTANT_ELSEWHERE),
        };
        let is_single = matches!(sizes, Sizes::Constant { size, .. } if size == frame);
        let count = sizes.count_within(object_len, elsewhere);
        let limit = object_len.unwrap_or(u64::MAX);
        let mut times = Runs::new(self.times);
        let mut run = RunCursor::new(&self.runs);
        let mut index = 0;
        for chunk in 0..self.chunks.len() {
            budget.step(self.stbl, 1)?;
            let mut offset = self.chunks.get(chunk);
            let in_chunk = run.samples_in(chunk);
            let mut left = in_chunk.min(count - index);
            if is_single {
                let room = limit.saturating_sub(offset) / u64::from(frame);
                let fit = left.min(u32::try_from(room).unwrap_or(u32::MAX));
                budget.samples(self.stbl, units.needed(fit))?;
                units.begin(fit);
                let mut here = fit;
                while here > 0 {
                    budget.step(self.stbl, 1)?;
                    let (alike, duration) = times.next_or_last(here);
                    units.frames(out, offset, alike, duration);
                    offset += u64::from(alike) * u64::from(frame);
                    here -= alike;
                }
                index += fit;
                left -= fit;
            }
            while left > 0 {
                let size = sizes.get(index);
                let Some(end) = offset.checked_add(u64::from(size)).filter(|&end| end <= limit) else {
                    units.end(out);
                    let why = format!("{size} bytes at {offset} pass the end of the object");
                    return Ok(self.cut(index, &why, true));
                };
                if !size.is_multiple_of(frame) {
                    units.end(out);
                    let why = format!("a sample of {size} bytes, expected whole frames of {frame}");
                    return Ok(self.cut(index, &why, false));
                }
                budget.samples(self.stbl, units.needed(size / frame).max(1))?;
                let (_, duration) = times.next_or_last(1);
                units.sample(out, offset, size, duration);
                (offset, index, left) = (end, index + 1, left - 1);
            }
            units.end(out);
            if index >= count {
                return Ok(self.cut(index, "the object holds no more", true));
            }
        }
        Ok(self.cut(index, "no chunk holds them", false))
    }
}
