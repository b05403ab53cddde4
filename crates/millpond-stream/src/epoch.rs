//! Stretches of a stream without a discontinuity.

use crate::{Format, ticks};
use millpond_media::units::Timescale;
use std::{sync::Arc, time::Duration};

/// A stretch of a stream without a discontinuity and without a change of formats.
///
/// Times never go back from one epoch to the next.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// Its number: [`Frame::epoch`](crate::Frame::epoch) of its frames. Numbers of a run rise.
    pub number: u32,
    /// Stream time of its first frame.
    pub from: Duration,
    /// Time since the Unix epoch of the stream time `from`.
    pub wall: Duration,
    /// Time since the Unix epoch at which a frame of the stream time `from` arrives without being held up. It is `wall`, unless the source
    /// states its wall clock.
    pub arrival: Duration,
    /// The formats of its tracks. [`Frame::track`](crate::Frame::track) is an index of it; `None` for tracks without frames.
    pub formats: Arc<[Option<Format>]>,
    /// Why it began.
    pub reason: EpochReason,
}

/// Why an epoch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochReason {
    /// It is the first one of a run.
    Start,
    /// The source was lost and came back.
    Reconnection,
    /// Timestamps or the wall clock jumped.
    Jump,
    /// The formats changed.
    Formats,
    /// A clip begins or has ended, which was [inserted](crate::Manager::insert).
    Splice,
    /// Another asset of a channel begins.
    Asset,
}

impl Epoch {
    /// The track with whose key frames viewers begin: the first video track, else the first track that has no subtitles. `None` without
    /// tracks.
    #[must_use]
    pub fn lead(&self) -> Option<u16> {
        Self::lead_of(&self.formats)
    }

    /// The same of some formats.
    pub(crate) fn lead_of(formats: &[Option<Format>]) -> Option<u16> {
        let mut all = (0..).zip(formats).filter_map(|(track, format)| Some((track, format.as_ref()?)));
        let first = all.clone().find(|(_, format)| !format.is_private_text()).or(all.clone().next());
        all.find(|(_, format)| format.is_video()).or(first).map(|(track, _)| track)
    }

    /// Whether a track has pictures.
    pub(crate) fn is_video(&self, track: u16) -> bool {
        self.formats.get(usize::from(track)).and_then(Option::as_ref).is_some_and(Format::is_video)
    }

    /// Presentation time of a frame as stream time; `None` for tracks without frames.
    pub(crate) fn shown(&self, frame: &crate::Frame) -> Option<Duration> {
        ticks::time(frame.pts, self.timescale(frame.track)?)
    }

    /// Clock of a track; `None` for tracks without frames.
    pub(crate) fn timescale(&self, track: u16) -> Option<Timescale> {
        self.formats.get(usize::from(track))?.as_ref().map(|format| format.track.timescale)
    }
}
