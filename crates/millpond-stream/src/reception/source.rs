//! An RTSP source: its URL, credentials, transport and policies.

use millpond_rtp::client::{ClientError, ClientOptions, Credentials, RtspClient};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use std::{fmt, time::Duration};

/// Characters of a name that have a meaning in a URL, except the slash between its components (RFC 3986 3.3).
const RESERVED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}');

/// An RTSP source. `Debug` and `Display` show neither credentials nor the query, which contains passwords with some cameras.
#[derive(Clone, PartialEq, Eq)]
pub struct RtspSource {
    /// URL without credentials and fragment.
    url: String,
    credentials: Option<Credentials>,
    /// Transport of its media. Default: [`SourceTransport::Auto`].
    pub transport: SourceTransport,
    /// Treatment of sources that deviate from the standards.
    pub policies: SourcePolicies,
    /// Whether lost packets are asked for where the source offers that. Default: true.
    pub retransmission: bool,
    /// Time limit of a connection, of each request, and of the first frame. Default: 10 s.
    pub timeout: Duration,
}

/// Transport on which a source sends its media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceTransport {
    /// UDP, then the RTSP connection where the server refuses UDP or no packet arrives. The connection at once with `rtsps`,
    /// because UDP would not be encrypted.
    #[default]
    Auto,
    /// Only UDP.
    Udp,
    /// The RTSP connection.
    Tcp,
    /// A multicast group of the server.
    Multicast,
}

/// Policies for sources that deviate from the standards.
///
/// These deviations need no policy: packets on unknown channels and of other sources are ignored, and a source that
/// announces another SSRC than it uses is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePolicies {
    /// Use of the first packets that `RTP-Info` announces.
    pub rtp_info: RtpInfoPolicy,
    /// Frames that pass after a loss.
    pub after_loss: AfterLoss,
    /// Whether sessions end with TEARDOWN.
    pub teardown: TeardownPolicy,
    /// Reaction to the end of the media.
    pub after_end: AfterEnd,
    /// Treatment of stored titles.
    pub stored: StoredPolicy,
}

/// Use of the first packets that the reply to PLAY announces (`RTP-Info`, RFC 2326 12.33).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RtpInfoPolicy {
    /// Sequence numbers show the loss of first packets. A number far from the first packet's is ignored.
    #[default]
    Trust,
    /// The header is ignored.
    Ignore,
}

/// Frames that pass after lost ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterLoss {
    /// Every complete frame.
    #[default]
    Pass,
    /// Pictures only from the next key frame on: decoders never see a picture whose references were lost.
    Wait,
}

/// Whether sessions end with TEARDOWN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TeardownPolicy {
    /// They do, so that the source does not wait for its timeout.
    #[default]
    Send,
    /// Only the connection is closed, for servers that stop other sessions at a TEARDOWN.
    Skip,
}

/// What follows when all tracks of a source have ended, or a source that gave frames can't be reached again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterEnd {
    /// The source is opened again, as cameras and encoders come back.
    #[default]
    Reconnect,
    /// The stream ends, as its viewers would see it without a server between.
    Close,
}

/// Treatment of stored titles: media whose description has a length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoredPolicy {
    /// They play as live streams do.
    #[default]
    Play,
    /// They are no streams: the error is [`StoredTitle`](super::SourceErrorKind::StoredTitle).
    Refuse,
}

/// Longest stored title. Descriptions with longer ones are those of recorders and cameras.
pub(crate) const LONGEST_TITLE: Duration = Duration::from_secs(24 * 3600);

impl RtspSource {
    /// Creates a source with default transport and policies. User and password of the URL may be percent-encoded.
    ///
    /// # Errors
    /// The URL has another scheme than `rtsp` or `rtsps`, or no host.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        let (plain, credentials) = split(url);
        let source = Self {
            url: plain,
            credentials,
            transport: SourceTransport::default(),
            policies: SourcePolicies::default(),
            retransmission: true,
            timeout: Duration::from_secs(10),
        };
        RtspClient::new(&source.url, source.client_options(0), Duration::ZERO)?;
        Ok(source)
    }

    /// Returns the source of a name below this URL, with the same credentials, query and policies. Characters of the name
    /// with a meaning in URLs are encoded; slashes separate its components.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let (path, query) = self.url.split_at(self.url.find('?').unwrap_or(self.url.len()));
        let name = utf8_percent_encode(name, RESERVED);
        Self { url: format!("{}/{name}{query}", path.trim_end_matches('/')), ..self.clone() }
    }

    /// URL of requests, without credentials.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Host and port of its server, as the URL has them.
    pub(super) fn server(&self) -> String {
        let after_scheme = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        let end = after_scheme.find(['/', '?']).unwrap_or(after_scheme.len());
        after_scheme[..end].to_ascii_lowercase()
    }

    /// Transport of the first attempt. [`SourceTransport::Auto`] keeps the media of `rtsps` inside the encrypted connection.
    pub(super) fn first_transport(&self) -> SourceTransport {
        let is_encrypted = self.url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("rtsps:"));
        match self.transport {
            SourceTransport::Auto if is_encrypted => SourceTransport::Tcp,
            other => other,
        }
    }

    /// Options of a client. `random` makes the nonces of clients differ.
    pub(crate) fn client_options(&self, random: u64) -> ClientOptions {
        ClientOptions {
            credentials: self.credentials.clone(),
            patience: self.timeout,
            uses_feedback: self.retransmission,
            falls_back: self.transport == SourceTransport::Auto,
            random,
            ..ClientOptions::new(concat!("millpond/", env!("CARGO_PKG_VERSION")))
        }
    }
}

/// Splits a URL into the URL without credentials and fragment, and the credentials.
fn split(url: &str) -> (String, Option<Credentials>) {
    let url = url.trim();
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    // A password may contain the sign before the host.
    let Some(at) = url[start..end].rfind('@').map(|at| start + at) else {
        return (without_fragment(url).to_owned(), None);
    };
    let (user, password) = url[start..at].split_once(':').unwrap_or((&url[start..at], ""));
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let credentials = Credentials { user: decoded(user), password: decoded(password) };
    (format!("{}{}", &url[..start], without_fragment(&url[at + 1..])), Some(credentials))
}

fn without_fragment(url: &str) -> &str {
    url.split('#').next().unwrap_or(url)
}

impl fmt::Display for RtspSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.url.find("://").map_or(0, |at| at + 3);
        let end = self.url.find('?').unwrap_or(self.url.len());
        f.write_str(&self.url[..start])?;
        if self.credentials.is_some() {
            f.write_str("***@")?;
        }
        f.write_str(&self.url[start..end])?;
        if end < self.url.len() { f.write_str("?***") } else { Ok(()) }
    }
}

impl fmt::Debug for RtspSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transport, policies, retransmission, timeout, .. } = self;
        f.debug_struct("RtspSource")
            .field("url", &self.to_string())
            .field("transport", transport)
            .field("policies", policies)
            .field("retransmission", retransmission)
            .field("timeout", timeout)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_used_and_never_shown() {
        for (text, url, user, password) in [
            ("rtsp://u:secret@10.0.0.7/door", "rtsp://10.0.0.7/door", "u", "secret"),
            ("rtsps://u%40x:secret%2F@@h:1/a?b=c@d", "rtsps://h:1/a?b=c@d", "u@x", "secret/@"),
            ("rtsp://secret@h#f", "rtsp://h", "secret", ""),
        ] {
            let source = RtspSource::new(text).unwrap();
            let expected = Credentials { user: user.into(), password: password.into() };
            assert_eq!((source.url(), source.client_options(0).credentials), (url, Some(expected)), "{text}");
            let shown = format!("{source} {source:?}");
            assert!(!shown.contains("secret") && shown.contains("***@"), "{shown}");
        }
        assert_eq!(RtspSource::new("rtsp://h").unwrap().first_transport(), SourceTransport::Auto);
        assert_eq!(RtspSource::new("RTSPS://h").unwrap().first_transport(), SourceTransport::Tcp);
        let source = RtspSource::new(" rtsp://[::1]:554/user=a&password=b/x?password=secret ").unwrap();
        assert_eq!(source.to_string(), "rtsp://[::1]:554/user=a&password=b/x?***");
        for text in ["http://u:secret@h/", "", "rtsp://u:secret@", "h/a"] {
            assert!(!RtspSource::new(text).unwrap_err().to_string().contains("secret"), "{text}");
        }
    }

    #[test]
    fn names_are_joined_before_the_query() {
        let joined = |base: &str, name: &str| RtspSource::new(base).unwrap().join(name).url;
        assert_eq!(joined("rtsp://h", "door"), "rtsp://h/door");
        assert_eq!(joined("rtsp://u:p@h/a/?q=1", "door/hi res?"), "rtsp://h/a/door/hi%20res%3F?q=1");
        let source = RtspSource::new("rtsp://u:p@h/").unwrap();
        assert_eq!(source.join("x").client_options(0).credentials, source.client_options(0).credentials);
        assert_eq!(RtspSource::new("rtsp://u:p@Gate:8554/a?q=1").unwrap().server(), "gate:8554");
    }
}
