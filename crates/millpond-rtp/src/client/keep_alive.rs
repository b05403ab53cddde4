//! Keeps a session by requests before its timeout.

use std::time::Duration;

/// Timeout of a session whose server states none (RFC 2326 12.37).
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
/// Longest session identifier in bytes.
const MOST_ID: usize = 512;

/// Identifier of a session, and the time after which the server forgets a silent client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionHeader {
    pub(super) id: String,
    pub(super) timeout: Duration,
}

impl SessionHeader {
    /// Reads a `Session` header; `None` without a usable identifier.
    pub(super) fn read(header: &str) -> Option<Self> {
        let mut fields = header.split([';', ',']).map(str::trim);
        let id = fields.next().filter(|id| (1..=MOST_ID).contains(&id.len()))?;
        if !id.bytes().all(|byte| matches!(byte, b'!'..=b'~')) {
            return None;
        }
        let seconds = fields.find_map(|field| {
            let (name, value) = field.split_once('=')?;
            name.trim().eq_ignore_ascii_case("timeout").then(|| value.trim().parse::<u32>().ok())?
        });
        let timeout = seconds.filter(|seconds| *seconds > 0).map_or(TIMEOUT, |s| Duration::from_secs(s.into()));
        Some(Self { id: id.to_owned(), timeout })
    }
}

/// Time and method of the next keep-alive. Any request counts as one.
#[derive(Clone, Debug)]
pub(super) struct KeepAlive {
    most: Duration,
    every: Duration,
    /// `None` while there is no session.
    next: Option<Duration>,
    uses_get_parameter: bool,
    /// Number of keep-alives that failed since media or a reply arrived.
    failed: u32,
}

impl KeepAlive {
    pub(super) fn new(most: Duration) -> Self {
        Self { most, every: most, next: None, uses_get_parameter: false, failed: 0 }
    }

    /// Chooses the method by the server's `Public` header. OPTIONS exists everywhere.
    pub(super) fn choose(&mut self, public: &str) {
        let mut methods = public.split([',', ' ']).map(str::trim);
        self.uses_get_parameter = methods.any(|method| method.eq_ignore_ascii_case("GET_PARAMETER"));
    }

    pub(super) fn method(&self) -> &'static str {
        if self.uses_get_parameter { "GET_PARAMETER" } else { "OPTIONS" }
    }

    /// Starts for a session.
    pub(super) fn start(&mut self, timeout: Duration, now: Duration) {
        self.every = self.most.min(timeout / 2);
        self.accepted(now);
    }

    pub(super) fn stop(&mut self) {
        self.next = None;
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.next
    }

    /// Records that a keep-alive was sent.
    pub(super) fn sent(&mut self, now: Duration) {
        self.next = Some(now.saturating_add(self.every));
    }

    /// Records that the server accepted a request of the session.
    pub(super) fn accepted(&mut self, now: Duration) {
        self.failed = 0;
        self.next = Some(now.saturating_add(self.every));
    }

    /// Records that the server is alive because media arrived.
    pub(super) fn heard(&mut self) {
        self.failed = 0;
    }

    /// Records a keep-alive without a good reply; returns the number of consecutive ones. The next one uses the other
    /// method: some servers announce GET_PARAMETER and ignore it, others need it unannounced.
    pub(super) fn failed(&mut self) -> u32 {
        self.uses_get_parameter = !self.uses_get_parameter;
        self.failed += 1;
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_have_a_timeout() {
        let read = |header: &str| SessionHeader::read(header).map(|read| (read.id, read.timeout.as_secs()));
        for (header, id, seconds) in [
            ("ab12;timeout=30", "ab12", 30),
            ("ab12", "ab12", 60),
            (" ab12 ; Timeout = 0", "ab12", 60),
            ("ab12;timeout=99999999999", "ab12", 60),
            ("ab12;x;timeout=5, ab12;timeout=5", "ab12", 5),
        ] {
            assert_eq!(read(header), Some((id.to_owned(), seconds)), "{header}");
        }
        for header in ["", ";timeout=5", "a b", "a\u{e9}", &"a".repeat(MOST_ID + 1)] {
            assert_eq!(read(header), None, "{header}");
        }
    }

    #[test]
    fn the_method_is_one_that_the_server_has() {
        let mut keep_alive = KeepAlive::new(Duration::from_secs(30));
        keep_alive.choose("OPTIONS, DESCRIBE, SETUP,PLAY,GET_PARAMETER");
        assert_eq!(keep_alive.method(), "GET_PARAMETER");
        assert_eq!((keep_alive.failed(), keep_alive.method()), (1, "OPTIONS"));
        assert_eq!((keep_alive.failed(), keep_alive.method()), (2, "GET_PARAMETER"));
        keep_alive.heard();
        assert_eq!(keep_alive.failed(), 1);
        keep_alive.start(Duration::from_secs(10), Duration::from_secs(7));
        assert_eq!(keep_alive.next(), Some(Duration::from_secs(12)));
    }
}
