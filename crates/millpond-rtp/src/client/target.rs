//! URLs of requests, and the servers to connect to.

use super::error::ClientError;
use crate::message::Url;

/// Ports by default (RFC 2326 3.2, RFC 7826 4.2).
const RTSP: u16 = 554;
const RTSPS: u16 = 322;

/// A server to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Name or address; IPv6 addresses have brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Whether the connection uses TLS (`rtsps`).
    pub is_tls: bool,
}

/// URL of a presentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// URL in requests: without credentials and fragment.
    pub(super) url: String,
    pub(super) endpoint: Endpoint,
}

impl Target {
    pub(super) fn new(url: &str) -> Result<Self, ClientError> {
        let plain = request_url(url);
        let Some(endpoint) = endpoint(&plain) else { return Err(ClientError::Url { url: plain }) };
        Ok(Self { url: plain, endpoint })
    }
}

fn endpoint(url: &str) -> Option<Endpoint> {
    let parsed = Url::parse(url).ok()?;
    let is_tls = match parsed.scheme() {
        "rtsp" => false,
        "rtsps" => true,
        _ => return None,
    };
    let host = parsed.host_str().filter(|host| !host.is_empty())?;
    let port = parsed.port().unwrap_or(if is_tls { RTSPS } else { RTSP });
    Some(Endpoint { host: host.to_ascii_lowercase(), port, is_tls })
}

/// Returns a URL for a request line, without credentials and fragment. Characters that would end the line or one of its parts are
/// percent-encoded. The rest stays as the server wrote it.
pub(super) fn request_url(url: &str) -> String {
    let url = url.trim();
    let url = url.split('#').next().unwrap_or(url);
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?']).map_or(url.len(), |at| start + at);
    let host = url[start..end].rfind('@').map_or(start, |at| start + at + 1);
    let mut plain = String::with_capacity(url.len());
    for byte in url[..start].bytes().chain(url[host..].bytes()) {
        match byte {
            b'!'..=b'~' => plain.push(char::from(byte)),
            other => plain.push_str(&format!("%{other:02X}")),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_requests_have_no_credentials() {
        for (text, url, host, port, is_tls) in [
            ("rtsp://h/a", "rtsp://h/a", "h", 554, false),
            ("rtsp://user:p@ss@10.0.0.7:8554/a?b=c@d#e", "rtsp://10.0.0.7:8554/a?b=c@d", "10.0.0.7", 8554, false),
            ("rtsps://H.example", "rtsps://H.example", "h.example", 322, true),
            ("rtsp://[::1]:1/a b\r\nX: y", "rtsp://[::1]:1/a%20b%0D%0AX:%20y", "[::1]", 1, false),
        ] {
            let expected = Endpoint { host: host.into(), port, is_tls };
            assert_eq!(Target::new(text), Ok(Target { url: url.into(), endpoint: expected }), "{text}");
        }
    }

    #[test]
    fn other_urls_are_errors_without_their_password() {
        for text in ["http://u:secret@h/", "rtsp://u:secret@", "rtsp:///a", "rtsp://u:secret@h:99999/", "", "h/a"] {
            let error = Target::new(text).unwrap_err().to_string();
            assert!(!error.contains("secret") && error.contains("rtsp"), "{error}");
        }
    }
}
