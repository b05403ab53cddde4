//! Requests for live streams.

use super::{Desk, Reporter, ShiftOptions};
use crate::{
    graph::Module,
    reception::{
        ADDRESS, Connector, PublishedReception, RtspReception, RtspSource, TransportReception, TransportSource, Turns,
    },
};
use std::{fmt, sync::Arc, time::Duration};

/// Where the frames of a stream come from.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// An RTSP server.
    Rtsp(RtspSource),
    /// Whoever publishes under the name of the stream. It exists while it is published; viewers that come before wait.
    Published,
    /// A programme of an MPEG transport stream.
    Transport(TransportSource),
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
    /// How long it stays open without viewers.
    pub linger: Linger,
    /// Where its past is kept. A stream with a past is never closed once it was opened.
    pub shift: Option<Arc<ShiftOptions>>,
}

impl Source {
    /// Returns a module without inputs that receives the source. Publishers meet it at `desk`.
    pub(super) fn module(
        &self,
        (connector, turns): (&Arc<dyn Connector>, &Turns),
        reporter: Reporter,
        desk: &Arc<Desk>,
    ) -> Box<dyn Module> {
        match self {
            Self::Rtsp(source) => {
                let reception = RtspReception::new(source.clone(), connector.clone(), reporter);
                Box::new(reception.with_turns(turns.clone()))
            }
            Self::Published => Box::new(PublishedReception::new(desk.clone(), reporter)),
            Self::Transport(source) => Box::new(TransportReception::new(source.clone(), reporter)),
            #[cfg(test)]
            Self::Fake(fake) => fake.module(reporter),
        }
    }
}

/// The address of the source, without passwords.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rtsp(source) => source.fmt(f),
            Self::Published => f.write_str(ADDRESS),
            Self::Transport(source) => source.fmt(f),
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
