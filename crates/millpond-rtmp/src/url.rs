//! URLs of streams by RTMP.

use std::fmt;

/// Ports without one in the URL.
const PORT: u16 = 1935;
const TLS_PORT: u16 = 443;
/// Least length of a name that is removed from texts: shorter ones are parts of other words.
const LEAST_SECRET: usize = 4;

/// URL of a stream: `rtmp://HOST/APPLICATION/STREAM`, or `rtmps` over TLS.
///
/// The last component of the path names the stream, with the query behind it. That may be a key: `Display` and `Debug` show neither
/// it nor any query.
#[derive(Clone, PartialEq, Eq)]
pub struct RtmpUrl {
    host: String,
    port: u16,
    is_tls: bool,
    application: String,
    stream: String,
}

/// Why a text is no URL of a stream. The words contain no part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RtmpUrlError {
    /// The scheme is neither `rtmp` nor `rtmps`.
    #[error("expected rtmp:// or rtmps://")]
    Scheme,
    /// There is no host, or no valid port.
    #[error("expected a host, such as rtmp://live.example/app/stream")]
    Host,
    /// There are a user and a password before the host.
    #[error(
        "expected no user and password before the host: servers take them in the query, such as ?user=ann&pass=secret"
    )]
    Credentials,
    /// There is no application.
    #[error("expected an application and a stream, such as rtmp://live.example/app/stream")]
    Application,
}

impl RtmpUrl {
    /// Reads a URL. One with a single component in its path names no stream.
    ///
    /// # Errors
    /// Any other form.
    pub fn parse(url: &str) -> Result<Self, RtmpUrlError> {
        let (scheme, rest) = url.trim().split_once("://").ok_or(RtmpUrlError::Scheme)?;
        let is_tls = scheme.eq_ignore_ascii_case("rtmps");
        if !is_tls && !scheme.eq_ignore_ascii_case("rtmp") {
            return Err(RtmpUrlError::Scheme);
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(RtmpUrlError::Credentials);
        }
        let usual = if is_tls { TLS_PORT } else { PORT };
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an IPv6 address are inside of brackets.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| RtmpUrlError::Host)?),
            _ => (authority, usual),
        };
        if host.is_empty() || port == 0 {
            return Err(RtmpUrlError::Host);
        }
        // A query may contain slashes.
        let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
        let path = path.trim_start_matches('/');
        let (application, name) = match path.rsplit_once('/') {
            Some((application, name)) => (application.trim_end_matches('/'), name),
            None => (path, ""),
        };
        if application.is_empty() {
            return Err(RtmpUrlError::Application);
        }
        let (application, name) = (application.to_owned(), name.to_owned());
        Ok(Self { host: host.to_owned(), port, is_tls, application, stream: name + query })
    }

    /// Returns the URL of a stream below this one, with the same query. Slashes in the name are part of it.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let (stream, query) = self.stream.split_at(self.stream.find('?').unwrap_or(self.stream.len()));
        let mut application = self.application.clone();
        if !stream.is_empty() {
            application.push('/');
            application.push_str(stream);
        }
        Self { application, stream: format!("{name}{query}"), ..self.clone() }
    }

    /// Name or address of the server; IPv6 addresses have brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// TCP port of the server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the connection uses TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The name of the stream without its query. It may be a key.
    #[must_use]
    pub fn stream_name(&self) -> &str {
        self.stream.split('?').next().unwrap_or_default()
    }

    pub(crate) fn application(&self) -> &str {
        &self.application
    }

    /// The name of the stream with its query.
    pub(crate) fn stream(&self) -> &str {
        &self.stream
    }

    /// URL of the application, as `connect` states it.
    pub(crate) fn connection(&self) -> String {
        format!("{}/{}", self.server(), self.application)
    }

    fn server(&self) -> String {
        let (scheme, usual) = if self.is_tls { ("rtmps", TLS_PORT) } else { ("rtmp", PORT) };
        let port = if self.port == usual { String::new() } else { format!(":{}", self.port) };
        format!("{scheme}://{}{port}", self.host)
    }

    /// Returns the words of a server without the name of the stream, its query and control characters; at most 200 characters.
    pub(crate) fn redact(&self, words: &str) -> String {
        let (name, query) = self.stream.split_once('?').unwrap_or((&self.stream, ""));
        let mut words = words.to_owned();
        for secret in [self.stream.as_str(), name, query] {
            if secret.len() >= LEAST_SECRET {
                words = words.replace(secret, "***");
            }
        }
        words.chars().filter(|c| !c.is_control()).take(200).collect()
    }
}

impl fmt::Display for RtmpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let application = self.application.split('?').next().unwrap_or_default();
        write!(f, "{}/{application}", self.server())
    }
}

impl fmt::Debug for RtmpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RtmpUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_component_is_the_stream() {
        for (text, server, application, stream) in [
            ("rtmp://h/live/cam", "rtmp://h", "live", "cam"),
            ("RTMPS://h/a/b/key-1?x=/y&z", "rtmps://h", "a/b", "key-1?x=/y&z"),
            ("rtmp://[::1]:1936/live/", "rtmp://[::1]:1936", "live", ""),
            ("rtmp://[::1]/live", "rtmp://[::1]", "live", ""),
            (" rtmp://h:1935//live?u=1 ", "rtmp://h", "live", "?u=1"),
        ] {
            let url = RtmpUrl::parse(text).unwrap();
            assert_eq!((url.server().as_str(), url.application(), url.stream()), (server, application, stream));
        }
        let url = RtmpUrl::parse("rtmps://h/live/key-secret?pass=secret").unwrap();
        assert_eq!((url.port(), url.is_tls(), url.host(), url.stream_name()), (443, true, "h", "key-secret"));
        let shown = format!("{url} {url:?} {}", url.redact("key-secret is taken, pass=secret\nkey-secret?pass=secret"));
        assert!(!shown.contains("secret") && shown.contains("is taken"), "{shown}");
        let joined = |text: &str, name: &str| RtmpUrl::parse(text).unwrap().join(name);
        let below = joined("rtmp://h/live?u=1", "door/hi");
        assert_eq!((below.application(), below.stream()), ("live", "door/hi?u=1"));
        assert_eq!(joined("rtmp://h/live/a", "b").connection(), "rtmp://h/live/a");
    }

    #[test]
    fn other_texts_are_refused_without_their_values() {
        for (text, error) in [
            ("http://h/a/b", RtmpUrlError::Scheme),
            ("secret", RtmpUrlError::Scheme),
            ("rtmp:///live/a", RtmpUrlError::Host),
            ("rtmp://h:secret/live/a", RtmpUrlError::Host),
            ("rtmp://h:0/live/a", RtmpUrlError::Host),
            ("rtmp://u:secret@h/live/a", RtmpUrlError::Credentials),
            ("rtmp://h", RtmpUrlError::Application),
            ("rtmp://h?secret", RtmpUrlError::Application),
        ] {
            assert_eq!(RtmpUrl::parse(text), Err(error), "{text}");
            assert!(!error.to_string().contains("secret@"));
        }
    }
}
