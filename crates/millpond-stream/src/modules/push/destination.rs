//! Where frames are pushed to.

use crate::{
    calling_webrtc::WebRtcEndpoint,
    pushing::{RtmpUrl, RtmpUrlError},
    reception::{RtspSource, SrtSource, SrtUrlError},
};
use std::{fmt, net::SocketAddr};

/// Hop limit of packets for a multicast group where none is given: anywhere in a site.
const HOPS: u8 = 16;

/// Where frames are pushed to. `Debug` and `Display` show no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushDestination {
    /// An SRT listener that is called.
    Srt(SrtSource),
    /// An address that gets a transport stream in datagrams.
    Datagrams(DatagramTarget),
    /// An RTSP server that tracks are announced to.
    Rtsp(RtspSource),
    /// An RTMP server that is published to, as encoders do.
    Rtmp(RtmpUrl),
    /// A WHIP endpoint (RFC 9725) that gets the stream by WebRTC.
    Whip(WebRtcEndpoint),
}

/// An address that gets a transport stream in datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatagramTarget {
    /// Whether datagrams have a header of RTP (RFC 2250).
    pub(super) is_rtp: bool,
    /// A host's address, or a multicast group.
    pub(super) at: SocketAddr,
    /// Name or IPv4 address of the interface that packets of a group leave by.
    pub(super) interface: Option<String>,
    /// Hop limit of packets for a group.
    pub(super) hops: u8,
}

/// Why a text is no destination. The words contain no secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// The scheme is unknown.
    #[error(
        "expected a URL that begins with rtmp://, rtmps://, rtsp://, rtsps://, srt://, http:// or https:// (WHIP), udp:// or rtp://"
    )]
    Scheme,
    /// It is no SRT listener.
    #[error(transparent)]
    Srt(#[from] SrtUrlError),
    /// It is no RTMP server.
    #[error(transparent)]
    Rtmp(#[from] RtmpUrlError),
    /// It is no RTSP server. A password may be anywhere in it.
    #[error("expected a host behind rtsp:// or rtsps://, and special characters of a password as %2F")]
    Rtsp,
    /// It is no WHIP endpoint. A token may be anywhere in it.
    #[error("expected a host behind http:// or https://, no #, and special characters of a token as %2F")]
    Whip,
    /// Host and port are no IP address and port.
    #[error("expected an IP address and a port, such as udp://239.1.1.1:5000")]
    Address,
    /// The query has another parameter, or a bad value.
    #[error("an unknown parameter or value: known are ttl=1 to 255 and interface=NAME of a multicast group")]
    Parameter,
}

impl PushDestination {
    /// Reads a URL: `srt://HOST:PORT?streamid=...`, `udp://ADDRESS:PORT?ttl=4&interface=eth0`, `rtp://...`,
    /// `https://TOKEN@HOST/PATH`, and so on.
    ///
    /// # Errors
    /// Any other form.
    pub fn parse(url: &str) -> Result<Self, DestinationError> {
        let url = url.trim();
        let (scheme, rest) = url.split_once("://").ok_or(DestinationError::Scheme)?;
        match scheme.to_ascii_lowercase().as_str() {
            "srt" => Ok(Self::Srt(SrtSource::new(url)?)),
            "rtmp" | "rtmps" => {
                let server = RtmpUrl::parse(url)?;
                // Without a stream, what is shown as the application may be the key.
                let has_stream = !server.stream_name().is_empty();
                has_stream.then_some(Self::Rtmp(server)).ok_or(RtmpUrlError::Application.into())
            }
            "rtsp" | "rtsps" => Ok(Self::Rtsp(RtspSource::new(url).map_err(|_| DestinationError::Rtsp)?)),
            "http" | "https" => Ok(Self::Whip(WebRtcEndpoint::parse(url).ok_or(DestinationError::Whip)?)),
            "udp" => Ok(Self::Datagrams(DatagramTarget::parse(rest, false)?)),
            "rtp" => Ok(Self::Datagrams(DatagramTarget::parse(rest, true)?)),
            _ => Err(DestinationError::Scheme),
        }
    }
}

impl DatagramTarget {
    fn parse(rest: &str, is_rtp: bool) -> Result<Self, DestinationError> {
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let at: Option<SocketAddr> = address.trim_end_matches('/').parse().ok();
        let is_sendable = |at: &SocketAddr| at.port() != 0 && !at.ip().is_unspecified();
        let at = at.filter(is_sendable).ok_or(DestinationError::Address)?;
        let mut target = Self { is_rtp, at, interface: None, hops: HOPS };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=').filter(|_| at.ip().is_multicast()) {
                Some(("interface", name)) if !name.is_empty() => target.interface = Some(name.to_owned()),
                Some(("ttl", hops)) => {
                    let hops = hops.parse().ok().filter(|hops| *hops > 0);
                    target.hops = hops.ok_or(DestinationError::Parameter)?;
                }
                _ => return Err(DestinationError::Parameter),
            }
        }
        Ok(target)
    }
}

impl fmt::Display for PushDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Srt(listener) => listener.fmt(f),
            Self::Rtsp(server) => server.fmt(f),
            Self::Rtmp(server) => server.fmt(f),
            Self::Whip(endpoint) => endpoint.fmt(f),
            Self::Datagrams(DatagramTarget { is_rtp, at, .. }) => {
                write!(f, "{}://{at}", if *is_rtp { "rtp" } else { "udp" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_read_and_shown_without_secrets() {
        for (url, shown) in [
            ("srt://h.example:9000?streamid=publish:live/cam&passphrase=0123456789", "srt://h.example:9000"),
            ("UDP://239.1.1.1:5000?ttl=4&interface=eth0", "udp://239.1.1.1:5000"),
            ("rtp://[ff15::1]:5000/", "rtp://[ff15::1]:5000"),
            (" udp://10.0.0.7:5000 ", "udp://10.0.0.7:5000"),
            ("rtmps://a.example/live2/HUSH?b=c", "rtmps://a.example/live2"),
            ("rtsp://u:hush@h/live/cam?token=hush", "rtsp://***@h/live/cam?***"),
            ("https://u:hush@h:8443/live/cam/whip?token=hush", "https://h:8443/live/cam/whip"),
            ("HTTP://h/0123456789hush0123456789/publish", "http://h/***/publish"),
        ] {
            assert_eq!(PushDestination::parse(url).unwrap().to_string(), shown, "{url}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (url, error) in [
            ("", DestinationError::Scheme),
            ("h:1", DestinationError::Scheme),
            ("ftp://h/", DestinationError::Scheme),
            ("srt://h", DestinationError::Srt(SrtUrlError::Address)),
            ("udp://h:5000", DestinationError::Address),
            ("rtsp://a:HUSH/PW@h:1/x", DestinationError::Rtsp),
            ("https://HUSH/PW@h/x", DestinationError::Whip),
            ("http://", DestinationError::Whip),
            ("rtmp://h:1/HUSH", DestinationError::Rtmp(RtmpUrlError::Application)),
            ("udp://0.0.0.0:5000", DestinationError::Address),
            ("udp://10.0.0.7:0", DestinationError::Address),
            ("udp://10.0.0.7:5000?ttl=4", DestinationError::Parameter),
            ("udp://239.1.1.1:5000?ttl=0", DestinationError::Parameter),
            ("udp://239.1.1.1:5000?ttl=256", DestinationError::Parameter),
            ("udp://239.1.1.1:5000?pkt_size=1316", DestinationError::Parameter),
        ] {
            assert_eq!(PushDestination::parse(url), Err(error), "{url}");
        }
    }
}
