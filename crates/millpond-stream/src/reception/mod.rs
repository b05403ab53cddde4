//! Reception of live sources: modules without inputs, whose frames arrive.
//!
//! [`TransportReception`] receives a programme of an MPEG transport stream from a [`TransportSource`].
//! [`SrtReception`] receives one from an [`SrtSource`] that it calls. [`RtmpReception`] plays the stream of an [`RtmpSource`].
//! [`WhepReception`] plays a stream of a server by WebRTC.
//! [`PulledReception`] requests the segments of a [`PulledSource`]: HLS or DASH of a web server.
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
mod fetching;
mod flv;
mod format;
mod fragments;
mod module_frames;
mod publication;
mod published;
mod pulled;
mod pushed;
mod rtmp;
mod rtsp;
mod source;
mod srt;
#[cfg(test)]
pub(crate) mod tests;
mod transport;
mod udp;
mod upstream;
mod web_transport;
mod webrtc;
mod whep;

pub use crate::{
    source_health::{SourceError, SourceErrorKind},
    web::{Web, WebMessage, WebMethod, WebReply, WebRequest, WebUrlError},
};
pub use alternatives::Alternatives;
pub use announced::{AnnouncedMedia, Backchannel};
pub(crate) use balance::Balance;
pub(crate) use desk::{Desk, Entry, NoEntry};
pub use format::{FormatError, StreamFormat, Unreceivable};
pub use millpond_rtmp::RtmpUrlError;
pub use millpond_rtp::client::Endpoint;
pub use module_frames::ModuleFrames;
pub use publication::{Conflict, Publication, PublicationEnd, PublishedMedia};
pub(crate) use publication::{Piece, Presence, Queue};
pub(crate) use published::{ADDRESS, PUBLISHED, PublishedReception};
pub(crate) use pulled::{DASH, HLS};
pub use pulled::{PulledProtocol, PulledReception, PulledSource};
pub(crate) use rtmp::{KIND as RTMP, endpoint as rtmp_endpoint};
pub use rtmp::{RtmpReception, RtmpSource};
pub(crate) use rtsp::KIND;
pub use rtsp::RtspReception;
pub use rtsp::connector::{Connection, ConnectionEnds, Connector, Relay, TcpConnector};
pub(crate) use rtsp::link::Stopwatch;
pub(crate) use rtsp::playback::{Faster, Playback};
pub(crate) use rtsp::played_track::PlayedFrame;
pub(crate) use rtsp::turns::Turns;
pub(crate) use rtsp::wire::Wire;
pub(crate) use source::LONGEST_TITLE;
pub use source::{
    AfterEnd, AfterLoss, RtpInfoPolicy, RtspSource, SourcePolicies, SourceTransport, StoredPolicy, TeardownPolicy,
};
pub(crate) use srt::{KIND as SRT, Link as SrtLink, LinkError as SrtLinkError};
pub use srt::{SrtReception, SrtSource, SrtUrlError};
pub(crate) use transport::{Interface, KIND as TRANSPORT};
pub use transport::{TransportReception, TransportSource, TransportUrlError};
pub use upstream::Upstream;
pub(crate) use web_transport::KIND as WEB_TRANSPORT;
pub use web_transport::{WebTransportReception, WebTransportSource};
pub use webrtc::{ReceivedPackets, ReceivedTrack, described_section};
pub(crate) use whep::KIND as WHEP;
pub use whep::{WhepReception, WhepSource};
