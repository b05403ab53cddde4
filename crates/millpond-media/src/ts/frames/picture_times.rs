//! Times of pictures: the stream's times, and estimates for pictures without times.

use super::{CLOCK_MASK, anchors::Anchor};

/// Distance of pictures in 90 kHz, where the stream has not told one yet.
const USUAL_STEP: u64 = 3600;
/// Longest distance of pictures that is believed: 10 s.
const LONGEST_STEP: u64 = 900_000;

/// Times of one picture, on the 90 kHz clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PictureTime {
    /// Presentation time.
    pub(super) pts: u64,
    /// Decoding time.
    pub(super) dts: u64,
    /// Whether the stream has no timestamp for it.
    pub(super) is_estimated: bool,
}

/// Times of the last picture.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PictureTimes {
    /// Presentation and decoding time of the last picture; `None` before the first timestamp.
    last: Option<(u64, u64)>,
    /// Distance of decoding times.
    step: Option<u64>,
    /// Decoding time of the last timestamp, and the number of pictures since, that one included.
    stamped: Option<(u64, u64)>,
}

impl PictureTimes {
    /// Returns the times of the next picture; `None` before the first timestamp.
    pub(super) fn next(&mut self, anchor: Option<Anchor>) -> Option<PictureTime> {
        let Some(Anchor { pts, dts, .. }) = anchor else {
            let (pts, dts) = self.last?;
            let step = self.step.unwrap_or(USUAL_STEP);
            let (pts, dts) = ((pts + step) & CLOCK_MASK, (dts + step) & CLOCK_MASK);
            self.last = Some((pts, dts));
            self.skip();
            return Some(PictureTime { pts, dts, is_estimated: true });
        };
        if let Some((stamped, count)) = self.stamped {
            let step = (dts.wrapping_sub(stamped) & CLOCK_MASK) / count;
            self.step = Some(step).filter(|step| (1..LONGEST_STEP).contains(step)).or(self.step);
        }
        self.stamped = Some((dts, 1));
        self.last = Some((pts, dts));
        Some(PictureTime { pts, dts, is_estimated: false })
    }

    /// Counts a picture without a timestamp.
    pub(super) fn skip(&mut self) {
        if let Some((_, count)) = &mut self.stamped {
            *count += 1;
        }
    }
}
