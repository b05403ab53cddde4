//! Why a listener refuses a connection.

use std::fmt;

/// Why a listener refuses a connection: the reasons of libsrt, and codes of 1000 and more that begin like those of HTTP
/// (libsrt's `access_control.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection(u32);

impl Rejection {
    /// No reason is told.
    pub const UNKNOWN: Self = Self(0);
    /// The peer refuses.
    pub const PEER: Self = Self(2);
    /// No room for another connection.
    pub const RESOURCE: Self = Self(3);
    /// The handshake is malformed.
    pub const ROGUE: Self = Self(4);
    /// The listener ends.
    pub const CLOSE: Self = Self(7);
    /// The peer speaks too old a version.
    pub const VERSION: Self = Self(8);
    /// The passphrases differ.
    pub const BAD_SECRET: Self = Self(10);
    /// Only one side has a passphrase.
    pub const UNSECURE: Self = Self(11);
    /// One side sends messages, the other one a stream of bytes.
    pub const MESSAGE_API: Self = Self(12);
    /// Another congestion control than that of live streams.
    pub const CONGESTION: Self = Self(13);
    /// A packet filter, such as error correction.
    pub const FILTER: Self = Self(14);
    /// A group of connections.
    pub const GROUP: Self = Self(15);
    /// The stream id can't be read.
    pub const BAD_REQUEST: Self = Self(1400);
    /// The user or the password is wrong or missing.
    pub const UNAUTHORIZED: Self = Self(1401);
    /// Too many sessions, or too many requests.
    pub const OVERLOAD: Self = Self(1402);
    /// The client has no right.
    pub const FORBIDDEN: Self = Self(1403);
    /// There is no such stream.
    pub const NOT_FOUND: Self = Self(1404);
    /// The stream can't be published, or not be played.
    pub const BAD_MODE: Self = Self(1405);
    /// The stream can't be sent this way.
    pub const UNACCEPTABLE: Self = Self(1406);
    /// The stream has another publisher.
    pub const CONFLICT: Self = Self(1409);
    /// The media can't be received or sent.
    pub const UNSUPPORTED_MEDIA: Self = Self(1415);
    /// An error of the server.
    pub const INTERNAL: Self = Self(1500);
    /// The source of the stream fails.
    pub const GATEWAY: Self = Self(1502);
    /// The server takes no connection now.
    pub const UNAVAILABLE: Self = Self(1503);

    /// Makes that of a code.
    #[must_use]
    pub fn from_code(code: u32) -> Self {
        Self(code)
    }

    /// Its code. Handshakes have it with 1000 added.
    #[must_use]
    pub fn code(self) -> u32 {
        self.0
    }

    fn words(self) -> Option<&'static str> {
        Some(match self {
            Self::PEER => "the peer refuses",
            Self::RESOURCE => "no room for another connection",
            Self::ROGUE => "malformed handshake",
            Self(5) => "too many connections wait",
            Self::CLOSE => "the peer ends",
            Self::VERSION => "the peer speaks too old a version",
            Self::BAD_SECRET => "wrong passphrase",
            Self::UNSECURE => "a passphrase is needed on both sides, or on none",
            Self::MESSAGE_API => "bytes instead of messages",
            Self::CONGESTION => "not the congestion control of live streams",
            Self::FILTER => "a packet filter",
            Self::GROUP => "a group of connections",
            Self::BAD_REQUEST => "malformed stream id",
            Self::UNAUTHORIZED => "user or password missing or wrong",
            Self::OVERLOAD => "overloaded",
            Self::FORBIDDEN => "forbidden",
            Self::NOT_FOUND => "no such stream",
            Self::BAD_MODE => "wrong mode",
            Self::UNACCEPTABLE => "unacceptable",
            Self::CONFLICT => "another publisher",
            Self::UNSUPPORTED_MEDIA => "unsupported media",
            Self::INTERNAL => "error of the server",
            Self::GATEWAY => "error of the source",
            Self::UNAVAILABLE => "unavailable",
            _ => return None,
        })
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            Some(words) => write!(f, "{} ({words})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}
