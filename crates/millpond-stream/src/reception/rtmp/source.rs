//! A source by RTMP: the server that is connected to, and the stream there.

use crate::reception::Endpoint;
use millpond_rtmp::{RtmpUrl, RtmpUrlError};
use std::{fmt, time::Duration};

/// A stream of an RTMP server. `Debug` and `Display` show no query, which may have a password.
#[derive(Clone, PartialEq, Eq)]
pub struct RtmpSource {
    pub(super) url: RtmpUrl,
    /// Time limit of a connection, of each answer, and of the first frame. Default: 10 s.
    pub timeout: Duration,
}

impl RtmpSource {
    /// Creates the source of a URL with the scheme `rtmp` or `rtmps`.
    ///
    /// # Errors
    /// Any other URL, and one without an application.
    pub fn new(url: &str) -> Result<Self, RtmpUrlError> {
        Ok(Self { url: RtmpUrl::parse(url)?, timeout: Duration::from_secs(10) })
    }

    /// Returns the source of a name below this URL, with the same query.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        Self { url: self.url.join(name), ..self.clone() }
    }
}

/// The server of a URL.
pub(crate) fn endpoint(url: &RtmpUrl) -> Endpoint {
    Endpoint { host: url.host().to_owned(), port: url.port(), is_tls: url.is_tls() }
}

impl fmt::Display for RtmpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.url)?;
        let name = self.url.stream_name();
        if name.is_empty() { Ok(()) } else { write!(f, "/{name}") }
    }
}

impl fmt::Debug for RtmpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RtmpSource({self}, timeout {:?})", self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_and_queries_are_not() {
        let source = RtmpSource::new("rtmps://tv.example/live?token=secret").unwrap();
        assert_eq!(source.to_string(), "rtmps://tv.example/live");
        let door = source.join("door/hi");
        let shown = format!("{door} {door:?}");
        assert!(shown.starts_with("rtmps://tv.example/live/door/hi ") && !shown.contains("secret"), "{shown}");
        assert_eq!(endpoint(&door.url), Endpoint { host: "tv.example".to_owned(), port: 443, is_tls: true });
        assert!(RtmpSource::new("rtmp://u:secret@tv.example/live/a").is_err());
    }
}
