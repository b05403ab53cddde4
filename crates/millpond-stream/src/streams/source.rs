//! Requests for live streams.

use super::Means;
use crate::{
    graph::{Module, SourceModules},
    live::{ChannelSource, Schedule, ShiftOptions},
    modules::{Channel, Laps},
    reception::{
        ADDRESS, Alternatives, Desk, PublishedReception, PulledReception, PulledSource, RtmpReception, RtmpSource,
        RtspReception, SrtReception, SrtSource, StoredPolicy, TransportReception, TransportSource, Upstream,
        WebTransportReception, WebTransportSource, WhepReception, WhepSource,
    },
    report::Reporter,
};
use std::{fmt, sync::Arc, time::Duration};

/// Where the frames of a stream come from.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// An RTSP server, or several with the same streams.
    Rtsp(Alternatives),
    /// Whoever publishes under the name of the stream. It exists while it is published; viewers that come before wait.
    Published,
    /// A programme of an MPEG transport stream.
    Transport(TransportSource),
    /// A programme of an MPEG transport stream from an SRT listener.
    Srt(SrtSource),
    /// A stream of an RTMP server.
    Rtmp(RtmpSource),
    /// An HLS or DASH stream of a web server.
    Pulled(PulledSource),
    /// A programme of an MPEG transport stream that a web server sends.
    WebTransport(WebTransportSource),
    /// A stream of a WHEP endpoint.
    Whep(WhepSource),
    /// Stored titles, round and round.
    Channel(ChannelSource),
    /// A module that tests make.
    #[cfg(test)]
    Fake(super::tests::Fake),
}

/// Time that a stream stays open after its last viewer has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linger {
    /// This long.
    For(Duration),
    /// Once opened it is never closed.
    Always,
}

/// A stream as it is asked for.
#[derive(Clone, Debug)]
pub struct LiveRequest {
    /// Path in URLs: the name of the stream.
    pub path: Arc<str>,
    /// Where its frames come from.
    pub source: Source,
    /// The source that this server would have itself, where the frames come from another server that has it.
    pub relayed: Option<Source>,
    /// How long it stays open without viewers.
    pub linger: Linger,
    /// Where its past is kept. A stream with a past is never closed once it was opened.
    pub shift: Option<Arc<ShiftOptions>>,
}

impl Source {
    /// Returns the source as one that gives live streams only: a stored title of an RTSP server fails with
    /// [`StoredTitle`](crate::SourceErrorKind::StoredTitle).
    #[must_use]
    pub fn without_titles(self) -> Self {
        match self {
            Self::Rtsp(sources) => Self::Rtsp(sources.with_titles(StoredPolicy::Refuse)),
            other => other,
        }
    }

    /// Returns the source as one that gives stored titles of an RTSP server as live streams.
    #[must_use]
    pub fn with_titles(self) -> Self {
        match self {
            Self::Rtsp(sources) => Self::Rtsp(sources.with_titles(StoredPolicy::Play)),
            other => other,
        }
    }

    /// Returns the modules that receive the source of the stream at `path`. Publishers meet them at `desk`.
    pub(super) fn modules(
        &self,
        path: &Arc<str>,
        means: &Means,
        reporter: Reporter,
        desk: &Arc<Desk>,
    ) -> SourceModules {
        let Means { upstream: Upstream { connector, web, relay }, resources, turns, balance, .. } = means;
        let source: Box<dyn Module> = match self {
            Self::Rtsp(source) => {
                let reception = RtspReception::new(source.clone(), connector.clone(), reporter);
                let relay = relay.clone().map(|relay| (relay, path.clone()));
                Box::new(reception.with_turns(turns.clone(), balance.clone()).with_relay(relay))
            }
            Self::Published => Box::new(PublishedReception::new(desk.clone(), reporter)),
            Self::Transport(source) => Box::new(TransportReception::new(source.clone(), reporter)),
            Self::Srt(source) => Box::new(SrtReception::new(source.clone(), reporter)),
            Self::Rtmp(source) => Box::new(RtmpReception::new(source.clone(), connector.clone(), reporter)),
            Self::Pulled(source) => Box::new(PulledReception::new(source.clone(), web.clone(), reporter)),
            Self::WebTransport(source) => Box::new(WebTransportReception::new(source.clone(), web.clone(), reporter)),
            Self::Whep(source) => Box::new(WhepReception::new(source.clone(), web.clone(), reporter)),
            Self::Channel(source) => {
                let schedule = Arc::<Schedule>::default();
                let loader = Laps::new(source.clone(), resources, (schedule.clone(), reporter.clone()));
                let source = Channel::new(schedule, reporter, resources.counters.clone());
                return SourceModules { loader: Some(Box::new(loader)), source: Box::new(source) };
            }
            #[cfg(test)]
            Self::Fake(fake) => fake.module(reporter),
        };
        SourceModules { loader: None, source }
    }
}

/// The address of the source, without passwords.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rtsp(source) => source.fmt(f),
            Self::Published => f.write_str(ADDRESS),
            Self::Transport(source) => source.fmt(f),
            Self::Srt(source) => source.fmt(f),
            Self::Rtmp(source) => source.fmt(f),
            Self::Pulled(source) => source.fmt(f),
            Self::WebTransport(source) => source.fmt(f),
            Self::Whep(source) => source.fmt(f),
            Self::Channel(source) => source.fmt(f),
            #[cfg(test)]
            Self::Fake(_) => f.write_str("fake"),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({self})")
    }
}
