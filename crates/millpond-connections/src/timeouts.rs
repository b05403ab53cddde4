//! Timeouts of connections, which all protocols share.

use std::time::Duration;

/// Longest inactivity of a connection, in each of its states: plain, over TLS and through tunnels.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionTimeouts {
    /// Time without a request, while nothing plays.
    pub idle: Duration,
    /// Time from the first byte of a request to the last of its head, and of a TLS handshake.
    pub head: Duration,
    /// Time in which the client takes next to nothing of what is sent to it.
    pub write: Duration,
}
