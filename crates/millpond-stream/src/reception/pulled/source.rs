//! A pulled source: the URL of its playlist or manifest, and what is taken of it.

use crate::web::{WebUrlError, inner_url};
use millpond_store::without_secrets;
use std::{fmt, sync::Arc, time::Duration};
use url::Url;

/// A protocol of live streams whose list of segments is read again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PulledProtocol {
    /// HLS (RFC 8216bis).
    Hls,
    /// DASH (ISO/IEC 23009-1).
    Dash,
}

impl PulledProtocol {
    /// The beginning of its schemes, before that of the web server.
    fn prefix(self) -> &'static str {
        match self {
            Self::Hls => "hls+",
            Self::Dash => "dash+",
        }
    }

    /// Its scheme over TLS.
    fn scheme(self) -> &'static str {
        match self {
            Self::Hls => "hls+https",
            Self::Dash => "dash+https",
        }
    }
}

/// A live stream of a web server: an HLS playlist or a DASH manifest that is read again and again. `Debug` and `Display` show neither
/// credentials nor the query.
#[derive(Clone, PartialEq, Eq)]
pub struct PulledSource {
    /// Its protocol.
    pub protocol: PulledProtocol,
    url: Url,
    /// Time limit of a connection, of each reply, and of the first frame. Default: 10 s.
    pub timeout: Duration,
    /// Most bits per second of the variant or Representation that is received, by its `BANDWIDTH` or `bandwidth`; `None` for the
    /// greatest. Where all have more, it is the smallest one.
    pub most_bandwidth: Option<u64>,
    /// Hosts, as `host` or `host:port` in small letters, that media may come from, besides that of the URL.
    pub hosts: Arc<[String]>,
}

impl PulledSource {
    /// Creates the source of a URL with a scheme of the protocol, such as `hls+http` or `dash+https`.
    ///
    /// # Errors
    /// Any other URL.
    pub fn new(protocol: PulledProtocol, url: &str) -> Result<Self, WebUrlError> {
        let url = inner_url(url, protocol.prefix()).ok_or(WebUrlError { expected: protocol.scheme() })?;
        Ok(Self { protocol, url, timeout: Duration::from_secs(10), most_bandwidth: None, hosts: Arc::default() })
    }

    /// The URL of the playlist or manifest, with its credentials.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }
}

impl fmt::Display for PulledSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.protocol.prefix(), without_secrets(&self.url))
    }
}

impl fmt::Debug for PulledSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { timeout, most_bandwidth, hosts, .. } = self;
        f.debug_struct("PulledSource")
            .field("url", &self.to_string())
            .field("timeout", timeout)
            .field("most_bandwidth", most_bandwidth)
            .field("hosts", hosts)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_show_no_secrets() {
        let new = |url: &str| PulledSource::new(PulledProtocol::Hls, url);
        let source = new("hls+https://u:secret@tv.example:8443/live/a.m3u8?token=secret").unwrap();
        assert_eq!(source.to_string(), "hls+https://tv.example:8443/live/a.m3u8");
        assert_eq!(source.url().password(), Some("secret"));
        assert!(!format!("{source:?}").contains("secret"));
        assert_eq!(new("HLS+HTTP://TV.example/").unwrap().to_string(), "hls+http://tv.example");
        for url in
            ["https://tv.example/a.m3u8", "hls+ftp://tv.example/", "hls+https:", "hls", "dash+https://tv.example/", ""]
        {
            assert_eq!(new(url), Err(WebUrlError { expected: "hls+https" }), "{url}");
        }
        let dash = PulledSource::new(PulledProtocol::Dash, "dash+https://u:secret@tv.example/a.mpd?x").unwrap();
        assert_eq!(dash.to_string(), "dash+https://tv.example/a.mpd");
    }
}
