//! Events of a rendition for the session of its stream.

use super::reader::ReadFrame;
use bytes::Bytes;
use millpond_media::Timescale;
use std::time::Duration;
use tokio::sync::mpsc;

/// An event of a rendition.
#[derive(Debug)]
pub(super) enum Event {
    /// A piece begins.
    Begin {
        /// Its stretch.
        stretch: u64,
        /// Wall time of its frames, where stated.
        dating: Option<Dating>,
        /// Media time that is zero for the stretch.
        offset: Duration,
        /// Whether pieces before it are missing.
        is_torn: bool,
        /// The init section, where it is another one.
        init: Option<Bytes>,
    },
    /// Bytes of the piece.
    Bytes(Bytes),
    /// The piece ends; whether it broke off.
    End {
        /// Whether bytes are missing.
        is_broken: bool,
    },
    /// A piece is missing, for now or for good.
    Missed {
        /// Why, in words without a URL.
        why: String,
    },
}

/// How a source states wall times, since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Dating {
    /// That of the first frame of the piece.
    First(Duration),
    /// That of the media time zero.
    Zero(Duration),
}

impl Dating {
    /// The wall time at which a frame is presented.
    pub(super) fn of(self, frame: &ReadFrame) -> Duration {
        match self {
            Self::First(wall) => wall,
            Self::Zero(wall) => {
                let ticks = frame.arrived.timestamp.value().cast_signed();
                let nanos = frame.format.clock.convert(ticks, Timescale::NANOS);
                let time = Duration::from_nanos(nanos.unsigned_abs());
                if nanos < 0 { wall.saturating_sub(time) } else { wall.saturating_add(time) }
            }
        }
    }
}

/// The session takes no events any more.
pub(super) struct Closed;

/// Gives an event, and waits while others wait.
pub(super) async fn send(events: &mpsc::Sender<Event>, event: Event) -> Result<(), Closed> {
    events.send(event).await.map_err(|_| Closed)
}
