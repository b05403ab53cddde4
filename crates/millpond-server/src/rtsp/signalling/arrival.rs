//! The beginning of a connection: RTSP, or one half of a tunnel through HTTP.

use bytes::BytesMut;
use millpond_connections::ConnectionTimeouts;
use millpond_rtp::tunnel::{Half, Opening, recognize};
use std::time::Duration;

/// The beginning of a connection.
///
/// Bytes are added to [`input`](Self::input), then [`next`](Self::next) is called. The connection is closed
/// where no bytes came before [`until`](Self::until).
#[derive(Debug)]
pub(in crate::rtsp) struct Arrival {
    timeouts: ConnectionTimeouts,
    input: BytesMut,
    /// The head of a tunnel's half.
    head: BytesMut,
    has_begun: bool,
    until: Duration,
}

/// Type of a connection, by its first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::rtsp) enum Kind {
    /// RTSP.
    Rtsp,
    /// A half of a tunnel: packets and replies for the client. Bytes of the other half have to come in time.
    Get { cookie: String },
    /// A half of a tunnel: requests of the client.
    Post { cookie: String },
    /// HTTP that is no tunnel: the status to reply with.
    Refused(&'static str),
}

impl Arrival {
    /// A connection that was accepted at a time.
    pub(in crate::rtsp) fn new(timeouts: ConnectionTimeouts, now: Duration) -> Self {
        Self { timeouts, input: BytesMut::new(), head: BytesMut::new(), has_begun: false, until: now + timeouts.idle }
    }

    /// Bytes that came and belong to what follows the opening.
    pub(in crate::rtsp) fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Time by which more has to come.
    pub(in crate::rtsp) fn until(&self) -> Duration {
        self.until
    }

    /// The type of the connection; `None` while too few bytes came. A half of a tunnel leaves the input without its head.
    pub(in crate::rtsp) fn next(&mut self, now: Duration) -> Option<Kind> {
        if !self.has_begun && !self.input.is_empty() {
            self.has_begun = true;
            self.until = now + self.timeouts.head;
        }
        Some(match recognize(&self.input)? {
            Opening::Rtsp => Kind::Rtsp,
            Opening::Tunnel { half: Half::Get, cookie, length } => {
                self.head = self.input.split_to(length);
                self.input.clear();
                self.until = now + self.timeouts.head;
                Kind::Get { cookie }
            }
            Opening::Tunnel { half: Half::Post, cookie, length } => {
                self.head = self.input.split_to(length);
                Kind::Post { cookie }
            }
            Opening::Refused(status) => Kind::Refused(status),
        })
    }

    /// The head of a tunnel's half, with its header fields; empty for all else.
    pub(in crate::rtsp) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The input, for what follows.
    pub(in crate::rtsp) fn into_input(self) -> BytesMut {
        self.input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const TIMEOUTS: ConnectionTimeouts = ConnectionTimeouts {
        idle: Duration::from_secs(30),
        head: Duration::from_secs(10),
        write: Duration::from_secs(20),
    };

    fn head(method: &str) -> String {
        let media = "application/x-rtsp-tunnelled";
        format!("{method} /a.mp4 HTTP/1.0\r\nx-sessioncookie: abc\r\nAccept: {media}\r\nContent-Type: {media}\r\n\r\n")
    }

    /// Bytes that come one in `step`: what they are, when the last one came, and the arrival.
    fn arrive(bytes: &[u8], step: Duration) -> (Option<Kind>, Duration, Arrival) {
        let mut arrival = Arrival::new(TIMEOUTS, Duration::ZERO);
        let mut now = Duration::ZERO;
        assert_eq!(arrival.next(now), None);
        for byte in bytes {
            now += step;
            if now >= arrival.until() {
                break;
            }
            arrival.input().extend_from_slice(&[*byte]);
            if let Some(kind) = arrival.next(now) {
                return (Some(kind), now, arrival);
            }
        }
        (None, now, arrival)
    }

    #[test]
    fn a_client_that_says_nothing_has_the_idle_timeout() {
        let mut arrival = Arrival::new(TIMEOUTS, 5 * SECOND);
        assert_eq!((arrival.next(34 * SECOND), arrival.until()), (None, 35 * SECOND));
    }

    #[test]
    fn a_head_that_trickles_in_has_the_time_of_a_head() {
        let text = head("GET");
        let (kind, _, arrival) = arrive(text.as_bytes(), SECOND);
        assert_eq!((kind, arrival.until()), (None, 11 * SECOND), "from its first byte");
        let (kind, ..) = arrive(text.as_bytes(), SECOND / 20);
        assert_eq!(kind, Some(Kind::Get { cookie: "abc".into() }));
    }

    #[test]
    fn the_other_half_of_a_tunnel_has_to_come_in_time() {
        let text = head("GET");
        let (kind, now, arrival) = arrive(text.as_bytes(), SECOND / 20);
        assert_eq!(kind, Some(Kind::Get { cookie: "abc".into() }));
        assert_eq!(arrival.until(), now + TIMEOUTS.head, "anew from the end of the head");
        assert!(arrival.into_input().is_empty());
    }

    #[test]
    fn bytes_behind_a_post_are_requests() {
        let mut arrival = Arrival::new(TIMEOUTS, Duration::ZERO);
        arrival.input().extend_from_slice(format!("{}T1BUSU9OUw==", head("POST")).as_bytes());
        assert_eq!(arrival.next(SECOND), Some(Kind::Post { cookie: "abc".into() }));
        assert_eq!(arrival.into_input(), "T1BUSU9OUw==");
    }

    #[test]
    fn rtsp_keeps_its_first_bytes() {
        let (kind, now, arrival) = arrive(b"OPTIONS", SECOND);
        assert_eq!((kind, now), (Some(Kind::Rtsp), SECOND), "one byte shows it");
        assert_eq!(arrival.into_input(), "O");
        let (kind, ..) = arrive(b"GET / HTTP/1.1\r\n\r\n", SECOND / 20);
        assert_eq!(kind, Some(Kind::Refused("400 Bad Request")));
    }
}
