//! Requests to play, and what becomes of them.

use super::{Group, Phases, Subscriber};
use crate::{
    Feed, StoredMedia,
    graph::{Running, Shared},
    live::{PastFeed, PastPoint, PastStart, Program, Windows, live_point},
    modules::KeyFrames,
    remote::RemoteTitle,
    transmission::{Transmission, Transmitter},
};
use std::{sync::Arc, time::Duration};

/// Request for a subscriber, independent of its protocol.
#[derive(Clone, Debug)]
pub enum Request {
    /// A part of a stored title.
    Stored {
        /// The title.
        media: Arc<StoredMedia>,
        /// Where it begins.
        from: Start,
        /// Where it ends, in seconds; `None` for the end of the title, or its beginning in rewind.
        to: Option<f64>,
        /// Seconds of the title in a second of playing: [`Subscriber::scale`] says which there are.
        scale: f64,
        /// Speed of sending, as a multiple of the pace of playing.
        speed: f64,
    },
    /// The rest of a stored title whose phases run. The viewer catches up with the nearest phase that is ahead, and joins it.
    Phased {
        /// The title.
        media: Arc<StoredMedia>,
        /// Where it begins.
        from: Start,
        /// Speed of the part before the viewer joins, as a multiple of the pace of playing. A viewer at 1 or less never joins.
        speed: f64,
        /// The phases.
        phases: Arc<Phases>,
    },
    /// A part of a stored title of an RTSP server.
    Remote {
        /// The title.
        title: Arc<RemoteTitle>,
        /// Where it begins.
        from: Start,
        /// Where it ends, in seconds; `None` for the end of the title.
        to: Option<f64>,
        /// Speed of sending, as a multiple of the pace of playing.
        speed: f64,
    },
    /// A channel, from its last key frame on.
    Channel(Program),
    /// The past of a live stream.
    Past {
        /// The stream.
        program: Program,
        /// Where it begins.
        from: PastStart,
        /// Wall time since the Unix epoch at which it ends; `None` for no end.
        to: Option<Duration>,
        /// Speed of sending, as a multiple of the pace of playing.
        speed: f64,
    },
}

/// Where playing begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// At the key frame before a time in seconds.
    At(f64),
    /// With the very next frame of each track, which are due at this time.
    Next(Duration),
}

/// Name, first sequence number and first RTP timestamp of a track.
pub type Beginning = (String, u16, u32);

/// The part that will be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// The part.
    pub part: PlayedPart,
    /// Seconds of the title in a second of playing.
    pub scale: f64,
    /// Speed of sending.
    pub speed: f64,
    /// Name, first sequence number and RTP timestamp of the beginning, track by track.
    pub tracks: Vec<Beginning>,
}

/// The part of a feed that will be played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlayedPart {
    /// It begins now and has no end.
    Now,
    /// Beginning and end in seconds of a title.
    Title(f64, f64),
    /// Beginning and end as wall times since the Unix epoch; `None` for no end.
    Wall(Duration, Option<Duration>),
}

/// A graph that is ready. Nothing is sent before [`start`](Self::start); dropping it releases the graph.
pub struct Opened {
    pub(super) played: Played,
    pub(super) transmission: Option<Transmission>,
    pub(super) playing: Playing,
}

/// A graph that sends to a subscriber. Dropping it ends the transmission, and releases the modules that no other session uses.
#[derive(Debug)]
pub struct Playing {
    pub(super) id: u64,
    pub(super) transmitter: Transmitter,
    /// `None` once it was stopped.
    pub(super) source: Option<Source>,
}

/// Where the frames come from.
#[derive(Debug)]
pub(super) enum Source {
    /// A loader of its own, which ends when this is dropped.
    Loader {
        _module: Running,
        /// The way through key frames, where it gives those only.
        keys: Option<KeyFrames>,
        /// Duration of the title.
        end: Duration,
        /// Phases of the title, where it has some.
        _phases: Option<Arc<Phases>>,
    },
    /// A graph that others use too.
    Shared {
        shared: Arc<Shared>,
        /// A feed that may have a past, and all windows.
        live: Option<(Arc<dyn Feed>, Windows)>,
    },
    /// A reader of a stream's past of its own.
    Past { _module: Running, feed: Arc<PastFeed>, begins: PastStart },
    /// The transmission of a group.
    Group(#[expect(dead_code, reason = "keeps the group")] Arc<Group>),
}

/// Where a transmission was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Before a frame of this due time. [`Start::Next`] continues with that frame.
    Before(Duration),
    /// Stopped between key frames at this time; [`Start::At`] resumes there.
    At(Duration),
    /// In a channel, which continues without the subscriber.
    Live,
    /// In a live stream whose past is kept. [`Request::Past`] continues there.
    Past(PastStart),
}

/// Keeps a shared graph running.
#[derive(Debug)]
pub struct KeepAlive(#[expect(dead_code, reason = "keeps the graph")] pub(super) Arc<Shared>);

impl Opened {
    /// The part that will be played.
    pub fn played(&self) -> &Played {
        &self.played
    }

    /// Begins to send.
    #[must_use = "the transmission ends when this is dropped"]
    pub fn start(self) -> Playing {
        let Self { transmission, playing, .. } = self;
        if let Some(transmission) = transmission {
            playing.transmitter.play(transmission);
        }
        playing
    }
}

impl Playing {
    /// Keeps a shared graph running after this handle is dropped. The next request finds it unchanged.
    pub fn keep_alive(&self) -> Option<KeepAlive> {
        match &self.source {
            Some(Source::Shared { shared, .. }) => Some(KeepAlive(shared.clone())),
            _ => None,
        }
    }

    /// Ends the transmission and gives the tracks back to their subscriber. If the future is dropped, [`Manager::open`](super::Manager::open) takes
    /// them back.
    pub async fn stop(mut self, subscriber: &mut Subscriber) -> Stopped {
        match self.source.take() {
            Some(Source::Loader { _module, keys, end, _phases }) => {
                drop(_module);
                let position = subscriber.stop(end).await;
                keys.map_or(Stopped::Before(position), |keys| Stopped::At(keys.position(position)))
            }
            Some(Source::Shared { shared: _shared, live }) => {
                subscriber.stop(Duration::ZERO).await;
                let point = live.and_then(|(feed, windows)| {
                    let window = windows.with_past(feed.path())?;
                    live_point(&subscriber.tracks, &*feed, &window)
                });
                point.map_or(Stopped::Live, |point| Stopped::Past(PastStart::Next(point)))
            }
            Some(Source::Past { _module, feed, begins }) => {
                drop(_module);
                subscriber.stop(Duration::ZERO).await;
                let stretch = |number| feed.stretch(number).map(|(epoch, first)| (epoch, Some(first)));
                let point = PastPoint::of(&subscriber.tracks, &*feed, stretch);
                Stopped::Past(point.map_or(begins, PastStart::Next))
            }
            Some(Source::Group(_)) | None => Stopped::Live,
        }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        if matches!(self.source, Some(Source::Loader { .. } | Source::Shared { .. } | Source::Past { .. })) {
            self.transmitter.forget(self.id);
        }
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("played", &self.played).finish_non_exhaustive()
    }
}
