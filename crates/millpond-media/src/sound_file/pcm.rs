//! PCM in one range of a file.

use crate::{
    codec::make::Made,
    error::MediaError,
    movie::{Movie, Track, sample_table::SampleTable},
    mp4::pcm_units::PcmUnits,
    scan::Progress,
    units::{ByteRange, Timescale},
    work::Work,
};

/// Most access units of a file: 29 hours of stereo with 16 bits at 48 kHz.
const MOST_UNITS: u64 = 1 << 24;

/// PCM that a header describes.
#[derive(Debug)]
pub(super) struct Pcm {
    /// Path of errors.
    pub(super) path: &'static str,
    pub(super) made: Made,
    pub(super) rate: Timescale,
    /// Bytes of all frames, as the header states them. They may exceed the file.
    pub(super) range: ByteRange,
}

impl Pcm {
    /// Returns the index of an object that ends at `end`.
    pub(super) fn finish(self, end: u64, work: &Work) -> Result<Progress, MediaError> {
        let Self { path, made, rate, range } = self;
        let at = range.start;
        let cut_short = range.end > end;
        let none = || super::nothing(path, at, "no whole frame of PCM", cut_short);
        let mut units = PcmUnits::of(&made.codec).ok_or_else(none)?;
        let frame = u64::from(units.frame());
        let frames = range.end.min(end).saturating_sub(at) / frame;
        let needed = frames.div_ceil(units.most().into());
        if needed > MOST_UNITS {
            return Err(MediaError::too_large(path, at, needed, MOST_UNITS, "access units of PCM"));
        }
        work.spend(needed).map_err(|error| MediaError::work(path, at, error))?;
        let (mut table, mut offset, mut left) = (SampleTable::builder(), at, frames);
        while left > 0 {
            let count = u32::try_from(left).unwrap_or(u32::MAX);
            units.begin(count);
            units.frames(&mut table, offset, count, 1);
            units.end(&mut table);
            offset = offset.saturating_add(u64::from(count) * frame);
            left -= u64::from(count);
        }
        let samples = table.finish();
        if samples.is_empty() {
            return Err(none());
        }
        let movie = super::movie(Track { samples, ..Track::live(1, made, rate, "und") }, None, Vec::new());
        Ok(Progress::Done(Box::new(Movie { cut_short, ..movie })))
    }
}
