//! Places with live streams instead of objects.

use crate::{
    PlaceError, PlaceKind, dash, hls, publish, rtmp, rtsp, srt, transport,
    urls::{hosted, shown},
    web_transport, whep,
};
use millpond_rtp::client::ClientError;
use millpond_store::without_secrets;
use millpond_stream::{
    Source,
    reception::{RtmpUrlError, SourceTransport, SrtUrlError, TransportUrlError, WebUrlError},
};
use std::{fmt, sync::Arc, time::Duration};
use url::Url;

/// A scheme of live streams.
#[derive(Debug)]
pub struct LiveKind {
    /// Its words and options.
    pub place: PlaceKind,
    /// How its streams reach the server.
    pub reach: LiveReach,
    /// Most URLs of one place, with commas between them. The URLs after the first one are other servers with the same streams.
    pub most_urls: usize,
    /// Makes the source of the empty name.
    source: fn(&[Url], &SourceSettings) -> Result<Source, LiveSourceError>,
    /// Makes the source of a name from that of the empty one; `None` where no stream can have the name.
    stream: fn(&Source, &str) -> Option<Source>,
}

/// How streams reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveReach {
    /// The server connects to their source, so each node of a cluster can. The ports are those of schemes without one in the URL.
    Connects(&'static [(&'static str, u16)]),
    /// The server sends packets to their source first, so each node of a cluster can. The source has no connection to try.
    Calls,
    /// Packets arrive at an address of this machine.
    Packets,
    /// Publishers push them.
    Pushed,
}

/// Settings of sources. Those that do not apply to a kind are ignored.
#[derive(Clone, Debug)]
pub struct SourceSettings {
    /// Transport of media from RTSP servers.
    pub transport: SourceTransport,
    /// Whether lost packets of RTSP servers are asked for where the server offers that.
    pub retransmission: bool,
    /// Time limit of a connection, of each request, and of the first frame.
    pub timeout: Duration,
    /// Most bits per second of a variant of an HLS or DASH stream; `None` for the greatest one.
    pub most_bandwidth: Option<u64>,
    /// Hosts, as `host` or `host:port`, that media of a web server may come from besides itself.
    pub hosts: Arc<[String]>,
}

/// Why no source can be made of a URL.
#[derive(Debug, thiserror::Error)]
pub enum LiveSourceError {
    /// It is none of an RTSP server.
    #[error(transparent)]
    Rtsp(#[from] ClientError),
    /// It is none of a transport stream.
    #[error(transparent)]
    Transport(#[from] TransportUrlError),
    /// It is none of an SRT listener.
    #[error(transparent)]
    Srt(#[from] SrtUrlError),
    /// It is none of an RTMP server.
    #[error(transparent)]
    Rtmp(#[from] RtmpUrlError),
    /// It is none of a web server.
    #[error(transparent)]
    Web(#[from] WebUrlError),
}

/// All kinds of places with live streams.
pub(crate) static KINDS: [&LiveKind; 9] = [
    &rtsp::KIND,
    &transport::KIND,
    &srt::KIND,
    &rtmp::KIND,
    &hls::KIND,
    &dash::KIND,
    &web_transport::KIND,
    &whep::KIND,
    &publish::KIND,
];

impl LiveKind {
    /// Creates a kind.
    pub(crate) const fn new(
        place: PlaceKind,
        reach: LiveReach,
        source: fn(&[Url], &SourceSettings) -> Result<Source, LiveSourceError>,
        stream: fn(&Source, &str) -> Option<Source>,
    ) -> Self {
        Self { place, reach, most_urls: 1, source, stream }
    }

    /// Lets a place have several URLs.
    pub(crate) const fn with_urls(self, most_urls: usize) -> Self {
        Self { most_urls, ..self }
    }

    /// Returns whether its places are written as URLs.
    pub(crate) fn has_urls(&self) -> bool {
        self.reach != LiveReach::Pushed
    }

    /// Returns whether each node of a cluster can receive its streams. Other streams are at one node.
    pub fn is_pulled(&self) -> bool {
        matches!(self.reach, LiveReach::Connects(_) | LiveReach::Calls)
    }

    /// Returns the source of a name, where `source` is that of the place; `None` where no stream can have the name.
    pub fn stream(&self, source: &Source, name: &str) -> Option<Source> {
        (self.stream)(source, name)
    }
}

/// The location of live streams. `Display` shows no secrets: user, password and query of its URLs.
#[derive(Clone)]
pub struct LiveLocation {
    kind: &'static LiveKind,
    urls: Vec<Url>,
}

impl LiveLocation {
    /// Parses URLs of live streams, whose scheme is in small letters; `None` where the scheme has none.
    pub(crate) fn parse(text: &str, scheme: &str) -> Option<Result<Self, PlaceError>> {
        let mut kinds = KINDS.iter().filter(|kind| kind.has_urls());
        let kind = *kinds.find(|kind| kind.place.schemes.contains(&scheme))?;
        let parts: Vec<_> = divided(text, kind).collect();
        let urls = parts.iter().map(|text| hosted(text)).collect::<Result<Vec<_>, _>>();
        Some(urls.and_then(|urls| {
            if urls.len() > kind.most_urls {
                let detail = format!("more than {} URLs", kind.most_urls);
                return Err(PlaceError::Url { text: shown(parts.first().copied().unwrap_or_default()), detail });
            }
            Ok(Self { kind, urls })
        }))
    }

    /// Parses a location that is no URL, such as `publish:`.
    pub(crate) fn parse_word(text: &str) -> Option<Self> {
        let scheme = text.strip_suffix(':')?;
        let mut kinds = KINDS.iter().filter(|kind| !kind.has_urls());
        kinds.find(|kind| kind.place.schemes.contains(&scheme)).map(|kind| Self { kind, urls: Vec::new() })
    }

    /// Returns its kind.
    pub fn kind(&self) -> &'static LiveKind {
        self.kind
    }

    /// Makes the source of the empty name.
    ///
    /// # Errors
    /// A URL can't be that of a stream.
    pub fn source(&self, settings: &SourceSettings) -> Result<Source, LiveSourceError> {
        (self.kind.source)(&self.urls, settings)
    }

    /// Returns the hosts and ports of the servers that the server connects to.
    pub fn servers(&self) -> Vec<(String, u16)> {
        let LiveReach::Connects(ports) = self.kind.reach else { return Vec::new() };
        let server = |url: &Url| {
            let usual = ports.iter().find(|(scheme, _)| *scheme == url.scheme()).map(|(_, port)| *port);
            let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
            Some((host.to_owned(), url.port_or_known_default().or(usual)?))
        };
        self.urls.iter().filter_map(server).collect()
    }
}

/// Divides a text at commas before schemes of a kind that may have several URLs.
fn divided<'a>(text: &'a str, kind: &'static LiveKind) -> impl Iterator<Item = &'a str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let at = text.match_indices(',').map(|(at, _)| at).filter(|_| kind.most_urls > 1);
        let at = at.into_iter().find(|at| has_scheme(&text[at + 1..], kind));
        rest = at.map(|at| &text[at + 1..]);
        Some(&text[..at.unwrap_or(text.len())])
    })
}

/// Returns whether a text begins with a scheme of a kind and `://`.
fn has_scheme(text: &str, kind: &LiveKind) -> bool {
    kind.place.schemes.iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://")))
}

/// The expected form of a list of URLs of one place.
pub const SEVERAL: &str =
    "one location, several of rtsp and rtsps such as [\"rtsp://a/\", \"rtsp://b/\"], or two of rtp";

/// Joins URLs of one place, such as servers with the same streams, into one text; `None` unless all are of one kind that may have several.
pub fn several(urls: &[&str]) -> Option<String> {
    let mut kinds = KINDS.iter().filter(|kind| kind.most_urls > 1);
    let is_one = kinds.any(|kind| urls.iter().all(|url| has_scheme(url, kind)));
    (is_one && !urls.is_empty()).then(|| urls.join(","))
}

impl PartialEq for LiveLocation {
    fn eq(&self, other: &Self) -> bool {
        self.kind.place.name == other.kind.place.name && self.urls == other.urls
    }
}

impl Eq for LiveLocation {}

impl fmt::Display for LiveLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.urls.as_slice() {
            [] => write!(f, "{}:", self.kind.place.schemes.first().copied().unwrap_or_default()),
            urls => f.write_str(&urls.iter().map(without_secrets).collect::<Vec<_>>().join(",")),
        }
    }
}

impl fmt::Debug for LiveLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<LiveLocation, PlaceError> {
        LiveLocation::parse(text, "rtsp").unwrap()
    }

    #[test]
    fn urls_are_divided_at_schemes() {
        let location = parse("rtsp://u:secret@a/x,y?k=secret,rtsps://b:1/z").unwrap();
        assert_eq!(location.urls[0].as_str(), "rtsp://u:secret@a/x,y?k=secret");
        assert_eq!(location.to_string(), "rtsp://a/x,y,rtsps://b:1/z");
        assert_eq!(location.servers(), [("a".to_owned(), 554), ("b".to_owned(), 1)]);
        assert_eq!(parse("rtsp://a/").unwrap().urls.len(), 1);
        assert_eq!(parse("rtsps://[::1]/").unwrap_or_else(|e| panic!("{e}")).servers(), [("::1".to_owned(), 322)]);
        for text in ["rtsp://a/,rtsp://", "rtsp://secret@,rtsp://a/", &vec!["rtsp://a/"; 17].join(",")] {
            let error = parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        let one = LiveLocation::parse("srt://h:1?x=a,srt://b:1", "srt").unwrap().unwrap();
        assert_eq!(one.urls.len(), 1);
        let two = LiveLocation::parse("rtp://239.1.1.1:1,rtp://239.2.1.1:1", "rtp").unwrap().unwrap();
        assert_eq!(two.urls.len(), 2);
    }

    #[test]
    fn lists_are_of_one_kind_that_may_have_several() {
        assert_eq!(several(&["rtsp://a/", "rtsps://b/"]).as_deref(), Some("rtsp://a/,rtsps://b/"));
        for urls in [&["rtsp://a/", "udp://b:1"][..], &["srt://b:1"], &[], &["RTSP://a/"]] {
            assert_eq!(several(urls), None, "{urls:?}");
        }
    }
}
