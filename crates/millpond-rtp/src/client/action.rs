//! Actions and events that a client gives its caller.

use super::{
    error::ClientError, request::RequestKind, rtp_info::RtpStart, target::Endpoint, transport::TrackTransport,
};
use crate::{play::NptRange, sdp_reader::SessionDescription, setup::RtpProfile};
use bytes::Bytes;
use std::time::Duration;

/// An action to perform, or an event.
#[derive(Debug, PartialEq)]
pub enum ClientAction {
    /// Close the connection if there is one, discard its bytes, and connect. Then call
    /// [`connected`](super::RtspClient::connected).
    Connect(Endpoint),
    /// Send these bytes.
    Send(Bytes),
    /// The server's description: call [`set_up`](super::RtspClient::set_up). Comes again after a redirect.
    Described(SessionDescription),
    /// The tracks are set up, in the order of the call. One that the server refused behind another one is missing.
    Opened(Vec<ClientTrack>),
    /// The server plays.
    Playing(ClientPlayback),
    /// The server takes packets of the announced tracks, on the channels that are stated for each.
    Recording(Vec<ClientTrack>),
    /// The server has paused.
    Paused,
    /// The server accepted a request.
    Accepted {
        /// Request.
        request: RequestKind,
        /// Time from the request to the reply, all authentication included.
        took: Duration,
    },
    /// The session is over, after [`tear_down`](super::RtspClient::tear_down). Nothing follows.
    Closed,
    /// The session failed. Only [`tear_down`](super::RtspClient::tear_down) has an effect after this.
    Failed(ClientError),
}

/// A track that is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTrack {
    /// Index of the stream in the description.
    pub stream: usize,
    /// Transport on which the server sends.
    pub transport: TrackTransport,
    /// SSRC of its packets, if stated. Some servers state another one than they use.
    pub ssrc: Option<u32>,
    /// Profile that the server chose.
    pub profile: RtpProfile,
}

/// Content of the reply to PLAY.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientPlayback {
    /// Time range that is played; `None` unless stated in npt.
    pub range: Option<NptRange>,
    /// Pace at which media is sent, as a multiple of the usual one; `None` unless stated.
    pub speed: Option<f64>,
    /// First packet of each track, in the order of the tracks.
    pub starts: Vec<RtpStart>,
}

/// A message that the client took from its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A packet of an interleaved channel.
    Media {
        /// Channel, as in [`TrackTransport::Interleaved`].
        channel: u8,
        /// RTP or RTCP packet.
        bytes: Bytes,
    },
    /// A reply or a request of the server: there may be actions.
    Control,
    /// Some bytes between packets were no message, and were skipped.
    Skipped(usize),
}
