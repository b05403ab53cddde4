//! The URL of an endpoint of WHIP or WHEP.

use millpond_store::without_secrets;
use percent_encoding::percent_decode_str;
use std::fmt;
use url::Url;

/// Characters from which on a part of a path by HTTP may be a secret: services have keys there.
const SECRET: usize = 20;

/// An endpoint of WHIP or WHEP. `Debug` and `Display` show no secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct WebRtcEndpoint {
    /// Without a user.
    url: Url,
    /// Token of `Authorization: Bearer`: what stands before the host.
    bearer: Option<String>,
}

impl WebRtcEndpoint {
    /// Reads `https://TOKEN@HOST/PATH?QUERY`. The token is what encoders call so: of Millpond it is `NAME:PASSWORD`. `None` for any
    /// other form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut url = Url::parse(text).ok()?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host() && url.fragment().is_none();
        // A token with a slash would be taken for the host.
        if !is_web || url.path().contains('@') {
            return None;
        }
        let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(String::from).ok();
        let name = decoded(url.username())?;
        let bearer = match url.password() {
            Some(password) => format!("{name}:{}", decoded(password)?),
            None => name,
        };
        if !bearer.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        // Neither call fails for a URL with a host.
        let _ = (url.set_username(""), url.set_password(None));
        Some(Self { url, bearer: (!bearer.is_empty()).then_some(bearer) })
    }

    /// Its URL, without a user.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Its token.
    pub(super) fn bearer(&self) -> Option<&String> {
        self.bearer.as_ref()
    }

    /// Returns words of a server without the secrets of the URL.
    pub(super) fn hide(&self, words: &str) -> String {
        let secrets = [self.bearer.as_deref(), self.url.query()].into_iter().flatten();
        let secrets = secrets.filter(|secret| !secret.is_empty());
        secrets.fold(words.to_owned(), |words, secret| words.replace(secret, "***"))
    }
}

/// Returns a URL without the parts of its path that may be a secret.
pub(crate) fn without_long_parts(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let part = |part: &str| if part.chars().count() < SECRET { format!("/{part}") } else { "/***".to_owned() };
    let path: String = path.into_iter().flat_map(|path| path.split('/')).map(part).collect();
    format!("{scheme}://{host}{path}")
}

impl fmt::Display for WebRtcEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_long_parts(&without_secrets(&self.url)))
    }
}

impl fmt::Debug for WebRtcEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebRtcEndpoint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_host_is_the_token() {
        for (text, url, bearer) in [
            ("https://h.example/whip?token=a", "https://h.example/whip?token=a", None),
            ("http://ann:pass@h:8080/live/cam/whip", "http://h:8080/live/cam/whip", Some("ann:pass")),
            ("https://a.b-c_d@h.example/x", "https://h.example/x", Some("a.b-c_d")),
            ("https://a%2Fb%3D:c%40@h.example/x", "https://h.example/x", Some("a/b=:c@")),
        ] {
            let endpoint = WebRtcEndpoint::parse(text).unwrap();
            assert_eq!((endpoint.url.as_str(), endpoint.bearer.as_deref()), (url, bearer));
            let shown = format!("{endpoint} {endpoint:?}");
            assert!(!shown.contains("token") && !shown.contains('@'), "{shown}");
        }
        for text in ["https://", "https://h/#a", "https://%00@h/", "https://a%20b@h/", "https://a/b@h/", "ftp://h/"] {
            assert_eq!(WebRtcEndpoint::parse(text), None, "{text}");
        }
    }

    #[test]
    fn words_of_servers_lose_secrets() {
        let endpoint = WebRtcEndpoint::parse("https://HUSH@h/x?key=PST").unwrap();
        assert_eq!(endpoint.hide("no HUSH at /x?key=PST, HUSH"), "no *** at /x?***, ***");
    }
}
