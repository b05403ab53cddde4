//! An SRT source: the listener that is called, and how.

use millpond_srt::{KeyLength, Passphrase};
use percent_encoding::percent_decode_str;
use std::{fmt, time::Duration};

/// Latency without `latency=`: that of libsrt.
const LATENCY: Duration = Duration::from_millis(120);
/// Bounds of the latency, in milliseconds.
const LATENCIES: std::ops::RangeInclusive<u64> = 20..=60_000;

/// A listener that sends a transport stream by SRT. `Debug` and `Display` show no query, which has the passphrase.
#[derive(Clone, PartialEq, Eq)]
pub struct SrtSource {
    /// Host and port, as the URL has them.
    pub(super) address: String,
    pub(super) stream_id: String,
    pub(super) encryption: Option<(Passphrase, KeyLength)>,
    pub(super) latency: Duration,
    programme: Option<u16>,
    /// Time limit of a connection, and of the first frame. Default: 10 s.
    pub timeout: Duration,
}

/// Why a URL is no SRT source. The words contain no value of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SrtUrlError {
    /// The scheme is not `srt`.
    #[error("expected srt://")]
    Scheme,
    /// There is no port.
    #[error("expected a host and a port, such as srt://10.0.0.7:9000")]
    Address,
    /// There is a path.
    #[error("expected nothing after the port but a query: the name of a stream is in streamid=")]
    Path,
    /// The query has another parameter.
    #[error("an unknown parameter: known are latency=, passphrase=, pbkeylen=, streamid= and mode=caller")]
    Parameter,
    /// The latency has no unit, or is out of bounds.
    #[error("latency=: expected 20ms to 60s with its unit, such as 200ms")]
    Latency,
    /// The passphrase is too short or too long.
    #[error("passphrase=: expected 10 to 79 characters")]
    Passphrase,
    /// There is no such length of keys.
    #[error("pbkeylen=: expected 16, 24 or 32")]
    KeyLength,
    /// Another mode than that of a caller.
    #[error("mode=: expected caller; the setting srt is the listener")]
    Mode,
}

impl SrtSource {
    /// Creates the source of a URL: `srt://HOST:PORT?latency=200ms&passphrase=...&pbkeylen=16&streamid=...`.
    ///
    /// # Errors
    /// Any other form.
    pub fn new(url: &str) -> Result<Self, SrtUrlError> {
        let (scheme, rest) = url.trim().split_once("://").ok_or(SrtUrlError::Scheme)?;
        if !scheme.eq_ignore_ascii_case("srt") {
            return Err(SrtUrlError::Scheme);
        }
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (address, path) = address.split_once('/').unwrap_or((address, ""));
        if !path.is_empty() {
            return Err(SrtUrlError::Path);
        }
        let (host, port) = address.rsplit_once(':').ok_or(SrtUrlError::Address)?;
        if host.is_empty() || !port.parse().is_ok_and(|port: u16| port > 0) {
            return Err(SrtUrlError::Address);
        }
        let mut source = Self {
            address: address.to_owned(),
            stream_id: String::new(),
            encryption: None,
            latency: LATENCY,
            programme: None,
            timeout: Duration::from_secs(10),
        };
        let (mut passphrase, mut length) = (None, KeyLength::default());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or(SrtUrlError::Parameter)?;
            let value = percent_decode_str(value).decode_utf8().map_err(|_| SrtUrlError::Parameter)?;
            match key {
                "streamid" => source.stream_id = value.into_owned(),
                "passphrase" => passphrase = Some(Passphrase::new(&value).map_err(|_| SrtUrlError::Passphrase)?),
                "pbkeylen" => {
                    let bytes = value.parse().ok().and_then(KeyLength::of_bytes);
                    length = bytes.ok_or(SrtUrlError::KeyLength)?;
                }
                "latency" => source.latency = latency(&value).ok_or(SrtUrlError::Latency)?,
                "mode" if value == "caller" => {}
                "mode" => return Err(SrtUrlError::Mode),
                _ => return Err(SrtUrlError::Parameter),
            }
        }
        source.encryption = passphrase.map(|passphrase| (passphrase, length));
        Ok(source)
    }

    /// Returns the source of one programme. Without a number it is the only programme of the stream.
    #[must_use]
    pub fn programme(&self, number: u16) -> Self {
        Self { programme: Some(number), ..self.clone() }
    }

    pub(super) fn wanted(&self) -> Option<u16> {
        self.programme
    }
}

/// A latency with its unit: programs disagree about the unit of a number alone.
fn latency(text: &str) -> Option<Duration> {
    let milliseconds = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => number.parse().ok()?,
        (None, Some(number)) => number.parse::<u64>().ok()?.checked_mul(1000)?,
        (None, None) => return None,
    };
    LATENCIES.contains(&milliseconds).then(|| Duration::from_millis(milliseconds))
}

impl fmt::Display for SrtSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "srt://{}", self.address)?;
        self.programme.map_or(Ok(()), |number| write!(f, ", programme {number}"))
    }
}

impl fmt::Debug for SrtSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { latency, timeout, .. } = self;
        f.debug_struct("SrtSource")
            .field("address", &self.to_string())
            .field("latency", latency)
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_port_and_options() {
        let url = "SRT://[::1]:9000/?latency=200ms&passphrase=a%20long%20secret&pbkeylen=32&streamid=%23!::r=a,u=b&mode=caller";
        let source = SrtSource::new(url).unwrap();
        let secret = Passphrase::new("a long secret").unwrap();
        assert_eq!((source.address.as_str(), source.stream_id.as_str()), ("[::1]:9000", "#!::r=a,u=b"));
        assert_eq!(source.encryption, Some((secret, KeyLength::Aes256)));
        assert_eq!(source.latency, Duration::from_millis(200));
        let shown = format!("{source} {source:?} {}", source.programme(7));
        assert!(!shown.contains("secret") && !shown.contains("u=b") && shown.ends_with(", programme 7"), "{shown}");
        let plain = SrtSource::new("srt://tv.example:9000").unwrap();
        assert_eq!((plain.latency, plain.encryption), (LATENCY, None));
    }

    #[test]
    fn what_is_wrong_is_said_without_values() {
        for (url, error) in [
            ("udp://h:1", SrtUrlError::Scheme),
            ("srt://h", SrtUrlError::Address),
            ("srt://h:0", SrtUrlError::Address),
            ("srt://:9000", SrtUrlError::Address),
            ("srt://h:1/live", SrtUrlError::Path),
            ("srt://h:1?latency=200", SrtUrlError::Latency),
            ("srt://h:1?latency=1ms", SrtUrlError::Latency),
            ("srt://h:1?passphrase=short", SrtUrlError::Passphrase),
            ("srt://h:1?pbkeylen=20", SrtUrlError::KeyLength),
            ("srt://h:1?mode=listener", SrtUrlError::Mode),
            ("srt://h:1?secret", SrtUrlError::Parameter),
            ("srt://h:1?secret=x", SrtUrlError::Parameter),
        ] {
            assert_eq!(SrtSource::new(url).unwrap_err(), error, "{url}");
        }
    }
}
