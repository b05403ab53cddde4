//! Times of a stream's chunks.

use super::header::Stream;
use crate::{error::MediaError, movie::sample_table::SampleTable, units::Timescale};

/// Longest plausible time before the first chunk, in seconds.
const MOST_START: u64 = 3600;

/// The clock of pictures: chunk `n` is decoded `n` steps after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) clock: Timescale,
    /// Duration of a chunk in ticks.
    pub(super) step: u32,
    /// Ticks before the first chunk.
    start: i64,
}

impl Pace {
    /// Reads the clock of a stream of pictures.
    ///
    /// # Errors
    /// The stream states no rate.
    pub(super) fn of(stream: &Stream) -> Result<Self, MediaError> {
        let (scale, rate) = reduced(stream)?;
        let clock = Timescale::new(rate).ok_or_else(|| no_rate(stream))?;
        let start = i64::from(believed(stream)).saturating_mul(i64::from(scale));
        Ok(Self { clock, step: scale, start })
    }

    /// Decoding time of chunk `number` in ticks.
    pub(super) fn time(self, number: u64) -> i64 {
        self.start.saturating_add(self.duration(number))
    }

    /// Duration of chunks in ticks.
    pub(super) fn duration(self, chunks: u64) -> i64 {
        i64::try_from(chunks).unwrap_or(i64::MAX).saturating_mul(i64::from(self.step))
    }
}

/// Returns the media time of the first frame of sound, and its time of presentation since the beginning of the file, in ticks of `clock`.
pub(super) fn sound_times(stream: &Stream, clock: Timescale, samples: &SampleTable) -> (i64, i64) {
    let first = samples.start_dts();
    (first, first.saturating_add(start(stream, clock)))
}

/// Returns the time before the first chunk of a stream of sound, in ticks of `clock`. The time is 0 if the stream states no rate.
fn start(stream: &Stream, clock: Timescale) -> i64 {
    let Ok((scale, rate)) = reduced(stream) else { return 0 };
    let ticks = i64::from(believed(stream)).saturating_mul(i64::from(scale));
    Timescale::new(rate).map_or(0, |rate| rate.convert(ticks, clock))
}

/// Units before the first chunk; 0 if their time exceeds [`MOST_START`].
fn believed(stream: &Stream) -> u32 {
    let seconds = u64::from(stream.start) * u64::from(stream.scale) / u64::from(stream.rate.max(1));
    if seconds > MOST_START { 0 } else { stream.start }
}

/// Returns the duration of a unit in seconds, as numerator and denominator in lowest terms.
fn reduced(stream: &Stream) -> Result<(u32, u32), MediaError> {
    let (scale, rate) = (stream.scale, stream.rate);
    if scale == 0 || rate == 0 {
        return Err(no_rate(stream));
    }
    let (mut divisor, mut rest) = (rate, scale);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    Ok((scale / divisor, rate / divisor))
}

fn no_rate(stream: &Stream) -> MediaError {
    let found = format!("a rate of {} / {} in stream {}", stream.rate, stream.scale, stream.number);
    MediaError::invalid("strh", stream.format.0, found, "both above 0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn stream(scale: u32, rate: u32, start: u32) -> Stream {
        let (number, kind, handler, name) = (0, *b"vids", [0; 4], None);
        let (format, super_index) = ((0, Bytes::new()), Bytes::new());
        Stream { number, kind, handler, scale, rate, start, format, name, super_index }
    }

    #[test]
    fn rates_are_fractions() {
        let pace = Pace::of(&stream(1001, 24_000, 2)).unwrap();
        assert_eq!((pace.clock.get(), pace.time(0), pace.time(3)), (24_000, 2002, 5005));
        let pace = Pace::of(&stream(40_000, 1_000_000, 0)).unwrap();
        assert_eq!((pace.clock.get(), pace.step), (25, 1));
        assert!(Pace::of(&stream(0, 25, 0)).is_err() && Pace::of(&stream(1, 0, 0)).is_err());
        assert_eq!(Pace::of(&stream(1, 25, u32::MAX)).unwrap().time(0), 0, "136 years before the first picture");
        assert_eq!(start(&stream(1, 25, 5), Timescale::new(48_000).unwrap()), 9600);
    }
}
