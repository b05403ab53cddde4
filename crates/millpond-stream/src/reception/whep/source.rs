//! A source by WHEP: the URL of its endpoint.

use crate::{calling_webrtc::WebRtcEndpoint, web::WebUrlError};
use millpond_store::without_secrets;
use std::{fmt, time::Duration};

/// Prefix of the scheme.
const PREFIX: &str = "whep+";

/// A stream of a WHEP endpoint. `Debug` and `Display` show neither the token nor the query.
#[derive(Clone, PartialEq, Eq)]
pub struct WhepSource {
    pub(super) endpoint: WebRtcEndpoint,
    /// Time limit of the answer with the connection, and of the first frame. Default: 10 s.
    pub timeout: Duration,
}

impl WhepSource {
    /// Creates the source of a URL with the scheme `whep+http` or `whep+https`. What stands before the host is the token of
    /// `Authorization: Bearer`: of Millpond it is `NAME:PASSWORD`.
    ///
    /// # Errors
    /// Any other URL.
    pub fn new(url: &str) -> Result<Self, WebUrlError> {
        let rest =
            url.get(..PREFIX.len()).filter(|start| start.eq_ignore_ascii_case(PREFIX)).map(|start| &url[start.len()..]);
        let endpoint = rest.and_then(WebRtcEndpoint::parse).ok_or(WebUrlError { expected: "whep+https" })?;
        Ok(Self { endpoint, timeout: Duration::from_secs(10) })
    }
}

impl fmt::Display for WhepSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", without_secrets(self.endpoint.url()))
    }
}

impl fmt::Debug for WhepSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WhepSource({self}, timeout {:?})", self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_show_no_secrets() {
        for url in
            ["whep+https://HUSH@tv.example:8443/cam/whep?key=HUSH", "WHEP+HTTPS://ann:HUSH@tv.example:8443/cam/whep"]
        {
            let source = WhepSource::new(url).unwrap();
            assert_eq!(source.to_string(), "whep+https://tv.example:8443/cam/whep");
            assert!(!format!("{source:?}").contains("HUSH"));
        }
        for url in ["https://h/whep", "whep+ftp://h/", "whep+https:", "whep+http://a/b@h/", "whep", "whép+", ""] {
            assert_eq!(WhepSource::new(url), Err(WebUrlError { expected: "whep+https" }), "{url}");
        }
    }
}
