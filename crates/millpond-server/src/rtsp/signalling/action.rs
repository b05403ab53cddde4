//! Actions that a dialogue asks its caller for, and their outcomes.

use super::TimeRange;
use crate::rtsp::reply::Reply;
use bytes::Bytes;
use millpond_access::{Pass, Question};
use millpond_rtp::{
    framing::FramingError,
    setup::{Mode, Offer, RtpProfile},
};
use millpond_stream::{Full, Played};
use std::time::Duration;

/// The next step of a connection.
#[derive(Debug)]
pub(in crate::rtsp) enum Step<T> {
    /// More bytes are read into [`input`](super::Dialogue::input). At `until`, where none came,
    /// [`timed_out`](super::Dialogue::timed_out) is called.
    Read { until: Duration },
    /// A reply is sent; [`sent`](super::Dialogue::sent) follows.
    Send(Vec<u8>),
    /// The answer of another server is waited for, and given to [`answered`](super::Dialogue::answered).
    Ask(Question),
    /// An action is performed. [`finish`](super::Dialogue::finish) gives its reply, which is sent.
    Perform(Action<T>),
    /// A session gets a receiver's report from a channel.
    Hear { session: T, channel: u8, packet: Bytes },
    /// A last reply is sent, and the connection ends.
    Refuse { reply: String, error: FramingError },
}

/// A session and its name.
#[derive(Clone, Debug)]
pub(in crate::rtsp) struct Named<T> {
    pub(in crate::rtsp) name: String,
    pub(in crate::rtsp) session: T,
}

/// An action that needs the library or the stream engine.
#[derive(Debug)]
pub(in crate::rtsp) enum Action<T> {
    /// Describes the asset of a path.
    Describe {
        path: String,
        /// Bits a second that the client can receive (RFC 2326 12.6).
        most: Option<u64>,
        /// Query of the URL.
        query: String,
        /// URL of the same asset elsewhere, for a client without room here.
        elsewhere: Option<String>,
        /// The client's program as it calls itself.
        agent: Option<String>,
    },
    /// Sets a track up.
    SetUp(SetUp<T>),
    /// Plays a part.
    Play(Named<T>, Asked),
    /// Takes the description of a stream that is pushed.
    Announce(Announce),
    /// Begins to receive what was announced and set up.
    Record(Named<T>),
    /// Stops what plays, where it is.
    Pause(Named<T>),
    /// Ends a session.
    TearDown(Named<T>),
}

/// The action of ANNOUNCE.
#[derive(Debug)]
pub(in crate::rtsp) struct Announce {
    /// Path of the stream.
    pub(in crate::rtsp) path: String,
    /// Base of the URLs in the description.
    pub(in crate::rtsp) url: String,
    pub(in crate::rtsp) description: Vec<u8>,
}

/// The action of SETUP.
#[derive(Debug)]
pub(in crate::rtsp) struct SetUp<T> {
    /// Path of the asset.
    pub(in crate::rtsp) path: String,
    pub(in crate::rtsp) track: String,
    /// Query of the URL.
    pub(in crate::rtsp) query: String,
    /// The session that gets another track; `None` for a new session.
    pub(in crate::rtsp) session: Option<Named<T>>,
    /// Direction of the media.
    pub(in crate::rtsp) mode: Mode,
    /// Transports of that direction in the client's order.
    pub(in crate::rtsp) offers: Vec<(RtpProfile, Offer)>,
    /// The `KeyMgmt` header.
    pub(in crate::rtsp) key: Option<String>,
    /// The client's program as it calls itself.
    pub(in crate::rtsp) agent: Option<String>,
    /// The admission of the request.
    pub(in crate::rtsp) pass: Pass,
}

/// Parameters of a PLAY request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::rtsp) struct Asked {
    pub(in crate::rtsp) range: TimeRange,
    /// Speed of sending, as a multiple of the pace of playing.
    pub(in crate::rtsp) speed: f64,
    /// Seconds of the presentation in a second.
    pub(in crate::rtsp) scale: f64,
}

/// The outcome of an action.
#[derive(Debug)]
pub(in crate::rtsp) enum Outcome<'a> {
    /// The asset's description.
    Described(String),
    /// A track of the session `name` is set up, with this `Transport`.
    SetUp { name: String, transport: String },
    /// A part is ready, with this `Range`. Its first packet is sent after the reply.
    Plays(&'a Played, String),
    /// ANNOUNCE, RECORD, PAUSE or TEARDOWN is done.
    Done,
    /// Admission refuses the session.
    Full(Full),
    /// Another reply.
    Refused(Reply),
}

/// Why a connection ends, other than by its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::rtsp) enum Ended {
    /// The client is silent, and no session needs the connection.
    #[error("a client that is silent")]
    Silent,
    /// The rest of a request did not come.
    #[error("a request that did not come in completely")]
    Incomplete,
    /// [`WRONG`](super::dialogue::WRONG) answers to challenges were wrong.
    #[error("too many wrong passwords")]
    WrongPasswords,
    /// Replies wait that the client doesn't read.
    #[error("a client that reads no replies")]
    Unread,
}
