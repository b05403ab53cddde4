//! Violations of the protocol.

/// Names the protocol of a server whose first byte is not the version of RTMP; empty for an unknown one.
fn hint(first: u8) -> &'static str {
    match first {
        b'H' => ": an HTTP server answers at this port",
        // A record of TLS (RFC 8446 5.1): an alert or a handshake.
        0x15 | 0x16 => ": TLS is spoken at this port, write rtmps://",
        _ => "",
    }
}

/// Why a connection can't go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RtmpError {
    /// The first byte is not that of RTMP without encryption, which is 3.
    #[error("handshake: version {0}, expected 3{hint}", hint = hint(*.0))]
    Version(u8),
    /// A chunk has no full header before it.
    #[error("chunk stream {0}: the first chunk has no full header")]
    NoHeader(u32),
    /// A message begins before the one before it has ended.
    #[error("chunk stream {0}: a message begins within another one")]
    Unfinished(u32),
    /// There are too many chunk streams.
    #[error("more than {0} chunk streams")]
    ChunkStreams(usize),
    /// A message is larger than those that a peer may send at this point.
    #[error("a message of {found} bytes, expected at most {most}")]
    TooLarge {
        /// Bytes of the message.
        found: usize,
        /// Most bytes.
        most: usize,
    },
    /// Messages that are under way have more bytes than this together.
    #[error("more than {0} bytes of messages that have not ended")]
    TooMuch(usize),
    /// A chunk size of 0.
    #[error("a chunk size of 0")]
    ChunkSize,
    /// A message has not the form of its type.
    #[error("message of type {kind}: expected {expected}")]
    Message {
        /// Type of the message.
        kind: u8,
        /// The missing value, in words, such as "the name of a stream".
        expected: &'static str,
    },
    /// The client publishes or plays a second stream.
    #[error("a second stream on one connection")]
    Second,
    /// The server refuses a command.
    #[error("the server refuses {command}: {words}")]
    Refused {
        /// Name of the command.
        command: &'static str,
        /// The server's code and description. They contain neither the name of the stream nor its query.
        words: String,
    },
}
