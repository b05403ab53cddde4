//! One stream of a ladder, as it is followed for a viewer.

use super::in_band::{follows, in_band};
use crate::{Epoch, Format, Frame};
use bytes::{Bytes, BytesMut};
use millpond_media::units::Timescale;
use std::time::Duration;

/// Bounds of the pictures since the last key frame.
const MOST_FRAMES: usize = 4096;
const MOST_BYTES: usize = 16 << 20;
/// Nanoseconds of a second.
pub(super) const SECOND: i64 = 1_000_000_000;

/// The pictures of a stream since its last key frame, and the offset of its times from the viewer's times.
#[derive(Debug)]
pub(super) struct Followed {
    /// The epoch of its last frame; `None` before the first one.
    epoch: Option<u32>,
    /// Track of its pictures, and its clock.
    pub(super) track: u16,
    scale: Timescale,
    /// Parameter sets that precede each key frame.
    sets: Bytes,
    /// Wall time of its stream time 0, in nanoseconds since the Unix epoch.
    origin: i64,
    /// Nanoseconds that are added to its stream times.
    pub(super) shift: i64,
    /// Whether its pictures can replace the first stream's.
    pub(super) is_fit: bool,
    /// The pictures since the last key frame, that one included. Empty where they are too many.
    group: Vec<Frame>,
    bytes: usize,
    /// Stream time of the last key frame, and the time between the last two, in nanoseconds.
    key: Option<i64>,
    length: Option<i64>,
}

impl Followed {
    pub(super) fn new() -> Self {
        let (track, scale, sets) = (u16::MAX, Timescale::MPEG, Bytes::new());
        let (origin, shift, is_fit, bytes) = (0, 0, false, 0);
        let (epoch, key, length, group) = (None, None, None, Vec::new());
        Self { epoch, track, scale, sets, origin, shift, is_fit, group, bytes, key, length }
    }

    /// Whether a frame belongs to another epoch than the previous frame.
    pub(super) fn is_new(&self, epoch: u32) -> bool {
        self.epoch != Some(epoch)
    }

    /// Enters an epoch, whose pictures should replace those of `first`.
    pub(super) fn enter(&mut self, epoch: &Epoch, first: &Format) {
        self.epoch = Some(epoch.number);
        self.origin = nanos(epoch.wall).saturating_sub(nanos(epoch.from));
        self.clear();
        let lead = epoch.lead().and_then(|track| Some((track, epoch.formats.get(usize::from(track))?.as_ref()?)));
        let lead = lead.filter(|(_, format)| format.is_video() && follows(format, first));
        let of = lead.and_then(|(track, format)| Some((track, format.track.timescale, in_band(format)?.1)));
        self.is_fit = of.is_some();
        if let Some((track, scale, sets)) = of {
            (self.track, self.scale, self.sets) = (track, scale, sets);
        }
    }

    /// Takes a picture.
    pub(super) fn keep(&mut self, frame: &Frame) {
        if frame.is_sync {
            self.clear();
            let time = self.time(frame.pts);
            self.length = self.key.replace(time).map(|last| time.saturating_sub(last));
        } else if self.group.is_empty() {
            return;
        }
        self.bytes += frame.data.len();
        self.group.push(frame.clone());
        if self.group.len() > MOST_FRAMES || self.bytes > MOST_BYTES {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.group = Vec::new();
        self.bytes = 0;
    }

    /// Time between the last two key frames, in nanoseconds.
    pub(super) fn length(&self) -> Option<i64> {
        self.length
    }

    /// The pictures since the last key frame.
    pub(super) fn group(&self) -> &[Frame] {
        &self.group
    }

    /// Stream time of ticks, in nanoseconds.
    pub(super) fn time(&self, ticks: i64) -> i64 {
        let nanos = i128::from(ticks) * i128::from(SECOND) / i128::from(self.scale.get());
        i64::try_from(nanos).unwrap_or(i64::MAX)
    }

    /// Wall time of ticks, in nanoseconds since the Unix epoch.
    pub(super) fn wall(&self, ticks: i64) -> i64 {
        self.time(ticks).saturating_add(self.origin)
    }

    /// The shift that keeps the wall clock of another stream, whose times are not shifted.
    pub(super) fn shift_by_wall(&self, other: &Self) -> i64 {
        self.origin.saturating_sub(other.origin)
    }

    /// Returns a picture as one of a track with another clock and with shifted times, parameter sets included.
    pub(super) fn moved(&self, frame: &Frame, (track, scale, epoch): (u16, Timescale, u32)) -> Frame {
        let data = if frame.is_sync && !self.sets.is_empty() {
            let mut whole = BytesMut::with_capacity(self.sets.len() + frame.data.len());
            whole.extend_from_slice(&self.sets);
            whole.extend_from_slice(&frame.data);
            whole.freeze()
        } else {
            frame.data.clone()
        };
        let (pts, due) = match self.shift {
            0 => (self.scale.convert(frame.pts, scale), frame.due),
            shift => (ticks(self.time(frame.pts).saturating_add(shift), scale), shifted(frame.due, shift)),
        };
        Frame { track, pts, due, epoch, data, ..frame.clone() }
    }
}

/// Adds nanoseconds to a time.
fn shifted(time: Duration, shift: i64) -> Duration {
    let by = Duration::from_nanos(shift.unsigned_abs());
    if shift < 0 { time.saturating_sub(by) } else { time.saturating_add(by) }
}

/// Converts nanoseconds to the nearest tick.
fn ticks(nanos: i64, scale: Timescale) -> i64 {
    let ticks = (i128::from(nanos) * i128::from(scale.get()) + i128::from(SECOND / 2)).div_euclid(i128::from(SECOND));
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
