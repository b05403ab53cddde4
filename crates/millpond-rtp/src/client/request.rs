//! Requests of a client, and their numbers.

use std::{fmt, time::Duration};

/// A request, by its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    /// The connection itself.
    Connect,
    /// OPTIONS.
    Options,
    /// DESCRIBE.
    Describe,
    /// ANNOUNCE of a publisher.
    Announce,
    /// SETUP of a track.
    Setup,
    /// PLAY.
    Play,
    /// RECORD of a publisher.
    Record,
    /// PAUSE.
    Pause,
    /// GET_PARAMETER or OPTIONS, to keep a session.
    KeepAlive,
    /// TEARDOWN.
    Teardown,
}

impl RequestKind {
    /// All kinds, in the order of a session.
    pub const ALL: [Self; 10] = [
        Self::Connect,
        Self::Options,
        Self::Describe,
        Self::Announce,
        Self::Setup,
        Self::Play,
        Self::Record,
        Self::Pause,
        Self::KeepAlive,
        Self::Teardown,
    ];

    /// Method of the request; `connect` and `keep-alive`, which are no methods, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Options => "OPTIONS",
            Self::Describe => "DESCRIBE",
            Self::Announce => "ANNOUNCE",
            Self::Setup => "SETUP",
            Self::Play => "PLAY",
            Self::Record => "RECORD",
            Self::Pause => "PAUSE",
            Self::KeepAlive => "keep-alive",
            Self::Teardown => "TEARDOWN",
        }
    }
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A request before it is sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) kind: RequestKind,
    pub(super) method: &'static str,
    pub(super) url: String,
    /// Headers that only this kind of request has.
    pub(super) headers: Vec<(&'static str, String)>,
    /// The session description of an announcement.
    pub(super) body: Option<String>,
}

impl Request {
    pub(super) fn new(kind: RequestKind, method: &'static str, url: &str) -> Self {
        Self { kind, method, url: super::target::request_url(url), headers: Vec::new(), body: None }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// Adds a session description.
    pub(super) fn with_description(self, description: &str) -> Self {
        let request = self.with("Content-Type", "application/sdp").with("Content-Length", description.len());
        Self { body: Some(description.to_owned()), ..request }
    }

    /// Returns the bytes of the request. Values contain no line ends.
    pub(super) fn to_bytes(&self, number: u32, others: &[(&str, Option<&str>)]) -> Vec<u8> {
        let mut text = format!("{} {} RTSP/1.0\r\nCSeq: {number}\r\n", self.method, self.url);
        let own = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let others = others.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
        for (name, value) in own.chain(others) {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        text.push_str(self.body.as_deref().unwrap_or_default());
        text.into_bytes()
    }
}

/// A request that was sent and waits for its reply.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) request: Request,
    pub(super) number: u32,
    /// Time of the first attempt.
    pub(super) sent: Duration,
    pub(super) until: Duration,
    /// Number of challenges that were answered for this request.
    pub(super) answers: u8,
}

/// Most numbers of abandoned requests that are remembered.
const MOST_ABANDONED: usize = 8;

/// Numbers of requests (`CSeq`). Some servers repeat a number, or send none.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    last: u32,
    /// Requests whose replies nobody waits for.
    abandoned: Vec<u32>,
    /// Whether the server has repeated a number that it could not have guessed.
    is_reliable: bool,
}

impl Numbers {
    pub(super) fn next(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    /// Records that no caller waits for the reply to a request.
    pub(super) fn abandon(&mut self, number: u32) {
        if self.abandoned.len() == MOST_ABANDONED {
            self.abandoned.remove(0);
        }
        self.abandoned.push(number);
    }

    /// Whether a reply with this `CSeq` belongs to the request `number`. There is only one at a time, so a wrong number
    /// is accepted from a server that never sent a right one.
    pub(super) fn is_reply(&mut self, number: u32, found: Option<&str>) -> bool {
        let found = found.and_then(|found| found.trim().parse::<u32>().ok());
        match found {
            None => true,
            Some(found) if found == number => {
                // A server that always sends 1 is right once.
                self.is_reliable |= number > 1;
                true
            }
            Some(found) => !self.is_reliable && !self.abandoned.contains(&found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_their_order() {
        assert!(RequestKind::ALL.iter().enumerate().all(|(place, kind)| *kind as usize == place));
    }

    #[test]
    fn requests_have_all_their_headers() {
        let request = Request::new(RequestKind::Setup, "SETUP", "rtsp://u:p@h/a b").with("Transport", "RTP/AVP/TCP");
        let bytes = request.to_bytes(7, &[("Session", None), ("User-Agent", Some("millpond"))]);
        let expected =
            "SETUP rtsp://h/a%20b RTSP/1.0\r\nCSeq: 7\r\nTransport: RTP/AVP/TCP\r\nUser-Agent: millpond\r\n\r\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[test]
    fn wrong_numbers_are_accepted_from_servers_that_send_no_right_ones() {
        let mut numbers = Numbers::default();
        let (first, second) = (numbers.next(), numbers.next());
        assert!(numbers.is_reply(first, Some("1")) && numbers.is_reply(second, Some("1")));
        assert!(numbers.is_reply(second, None) && numbers.is_reply(second, Some("x")));
        numbers.abandon(second);
        let third = numbers.next();
        assert!(!numbers.is_reply(third, Some("2")) && numbers.is_reply(third, Some(" 3 ")));
        assert!(!numbers.is_reply(numbers.last + 1, Some("1")), "it can send the right ones");
    }
}
