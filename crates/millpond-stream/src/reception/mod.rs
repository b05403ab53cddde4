//! Reception of live sources: modules without inputs, whose frames arrive.
//!
//! [`TransportReception`] receives a programme of an MPEG transport stream from a [`TransportSource`].
//! [`RtspReception`] plays an [`RtspSource`] as a client. It connects by a [`Connector`], and makes frames of the packets with
//! the state machines of `millpond_rtp`. It gives a stream's frames their final times, and tells by a
//! [`Reporter`](crate::report::Reporter) what becomes of the source. Publishers push instead: their [`AnnouncedMedia`] is received
//! with the same state machines.

mod alternatives;
mod announced;
mod assembly;
mod attendance;
mod backoff;
mod balance;
mod desk;
mod error;
mod flv;
mod format;
mod fragments;
mod module_frames;
mod publication;
mod published;
mod pushed;
mod rtsp;
mod source;
#[cfg(test)]
pub(crate) mod tests;
mod transport;
mod udp;

pub use crate::source_health::{SourceError, SourceErrorKind};
pub use alternatives::Alternatives;
pub use announced::{AnnouncedMedia, Backchannel};
pub(crate) use balance::Balance;
pub(crate) use desk::{Desk, Entry, NoEntry};
pub use format::{FormatError, StreamFormat, Unreceivable};
pub use millpond_rtp::client::Endpoint;
pub use module_frames::ModuleFrames;
pub use publication::{Conflict, Publication, PublicationEnd, PublishedMedia};
pub(crate) use publication::{Piece, Presence, Queue};
pub(crate) use published::{ADDRESS, PUBLISHED, PublishedReception};
pub(crate) use rtsp::KIND;
pub use rtsp::RtspReception;
pub use rtsp::connector::{Connection, ConnectionEnds, Connector, Relay, TcpConnector};
pub(crate) use rtsp::playback::{Faster, Playback};
pub(crate) use rtsp::played_track::PlayedFrame;
pub(crate) use rtsp::turns::Turns;
pub(crate) use source::LONGEST_TITLE;
pub use source::{
    AfterEnd, AfterLoss, RtpInfoPolicy, RtspSource, SourcePolicies, SourceTransport, StoredPolicy, TeardownPolicy,
};
pub(crate) use transport::KIND as TRANSPORT;
pub use transport::{TransportReception, TransportSource, TransportUrlError};
