//! Clients of HTTP that show a name and a password.

use super::{Passwords, REALM, TooManyGuesses, Unproved};
use base64::Engine as _;
use millpond_rtp::digest::{Authorization, AuthorizationError, DigestRefusal, DigestRequest};
use std::{net::IpAddr, time::Duration};

/// A client of HTTP that shows credentials.
#[derive(Clone, Copy, Debug)]
pub struct HttpClient<'a> {
    /// Address of the client.
    pub address: IpAddr,
    /// Whether it is connected over TLS.
    pub is_secure: bool,
    /// Method of the request.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// Whether a trusted proxy forwarded the request, which may have removed a prefix of the path.
    pub is_forwarded: bool,
    /// Value of `Authorization`.
    pub authorization: Option<&'a str>,
}

/// Why a client of HTTP is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpRefusal {
    /// Only clients of this machine may publish.
    Forbidden,
    /// The credentials can't be read.
    Malformed(String),
    /// Other credentials are needed. The values of `WWW-Authenticate` follow.
    Challenge(Vec<String>),
    /// The client has stated too many wrong passwords for the user.
    Guesses(TooManyGuesses),
}

impl Passwords {
    /// Checks the credentials of a client of HTTP at a time of the server's clock: Digest, or Basic where nobody can
    /// overhear it, which is over TLS and from the same machine. Encoders with a field for a token alone state them as
    /// `Bearer NAME:PASSWORD`, which counts as Basic.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn admit_http(&self, asked: &HttpClient<'_>, now: Duration) -> Result<(), HttpRefusal> {
        let takes_basic = asked.is_secure || asked.address.to_canonical().is_loopback();
        let stated = asked.authorization.and_then(stated);
        let proved = match stated {
            Some(text) if takes_basic => self.check_stated(&text, asked.address, now),
            Some(_) => Err(Unproved::Digest(DigestRefusal::Anonymous)),
            None => {
                let HttpClient { address, method, target, authorization, is_forwarded, .. } = *asked;
                let longer = authorization.filter(|_| is_forwarded).and_then(|header| with_prefix(header, target));
                let uri = longer.as_deref().unwrap_or(target);
                self.check_digest(&DigestRequest { method, uri, authorization }, address, now)
            }
        };
        let why = match proved {
            Ok(()) => return Ok(()),
            Err(Unproved::Guesses(many)) => return Err(HttpRefusal::Guesses(many)),
            Err(Unproved::Digest(why)) => why,
        };
        if let DigestRefusal::Malformed(error) = &why
            && !matches!(error, AuthorizationError::Scheme(_))
        {
            return Err(HttpRefusal::Malformed(error.to_string()));
        }
        let mut challenges = self.challenges(now, why.is_stale());
        if takes_basic {
            challenges.push(format!("Basic realm=\"{REALM}\", charset=\"UTF-8\""));
        }
        Err(HttpRefusal::Challenge(challenges))
    }
}

/// Returns the text `NAME:PASSWORD` of Basic authentication (RFC 7617), or of a bearer token (RFC 6750) that is such a text. Of Basic
/// without a text it is empty.
fn stated(authorization: &str) -> Option<String> {
    let (scheme, value) = authorization.split_once(' ')?;
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("basic") {
        let decoded = base64::engine::general_purpose::STANDARD.decode(value).ok();
        return Some(decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default());
    }
    // Characters of tokens do not include the colon.
    (scheme.eq_ignore_ascii_case("bearer") && value.contains(':')).then(|| value.to_owned())
}

/// Returns the URI of an answer to a challenge by HTTP, where it is `target` behind a prefix of the path, as the client wrote it to a
/// proxy (RFC 7616 3.4.6). Proxies may write characters of it in another way.
fn with_prefix(header: &str, target: &str) -> Option<String> {
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let answer: Authorization = header.parse().ok()?;
    let (uri, target) = (decoded(&answer.uri), decoded(target));
    let prefix = uri.strip_suffix(&*target)?;
    let is_path = prefix.is_empty() || prefix.starts_with(b"/");
    (is_path && target.starts_with(b"/") && !prefix.contains(&b'?')).then_some(answer.uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trusted_proxy_may_have_removed_a_prefix() {
        let header = |uri: &str| format!(r#"Digest username="ann", realm="r", nonce="n", uri="{uri}", response="e""#);
        for (uri, target, is_covered) in [
            ("/video/films/a.mp4?x=1", "/films/a.mp4?x=1", true),
            ("/films/a.mp4", "/films/a.mp4", true),
            ("/video/a%5Bb%5D.mp4", "/a[b].mp4", true),
            ("/video/films/a.mp4", "/films/b.mp4", false),
            ("/video?x=/films/a.mp4", "/films/a.mp4", false),
            ("films/films/a.mp4", "/films/a.mp4", false),
            ("/video/", "*", false),
        ] {
            let found = with_prefix(&header(uri), target);
            assert_eq!(found.as_deref(), is_covered.then_some(uri), "{uri} for {target}");
        }
        assert_eq!(with_prefix("Basic YTpi", "/a"), None);
    }

    #[test]
    fn names_and_passwords_are_stated_by_basic_and_by_tokens_with_a_colon() {
        for (header, expected) in [
            ("Basic YW5uOnA6cw==", Some("ann:p:s")),
            ("basic  YW5uOnA6cw== ", Some("ann:p:s")),
            ("Basic ann:p", Some("")),
            ("Bearer ann:p:s", Some("ann:p:s")),
            ("bearer eyJhbGciOi.eyJzdWIi.x_y-z", None),
            ("Digest username=\"ann\"", None),
            ("Bearer", None),
        ] {
            assert_eq!(stated(header).as_deref(), expected, "{header}");
        }
    }
}
