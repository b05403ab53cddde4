//! Tokens: JSON Web Tokens (RFC 7519) with a time, paths and a network.

use super::keys::{Keys, Secret};
use jsonwebtoken::{Algorithm, EncodingKey, Header, Validation, decode, decode_header, errors::ErrorKind};
use millpond_settings::Network;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Most bytes of a token.
pub const MOST: usize = 4096;
/// Seconds that clocks may differ.
pub(super) const LEEWAY: u64 = 5;
/// Most keys with which one token is checked.
const TRIES: usize = 8;
/// Names of the query parameters that tokens may stand in.
pub(super) const PARAMETERS: [&str; 2] = ["token", "jwt"];
/// Names of the query parameters that the log does not show.
const SECRETS: [&str; 4] = ["token", "jwt", "pass", "password"];
/// Beginnings of a path component that is a token. All tokens begin with `eyJ`, the base64 of `{"`. Some clients encode the tilde.
const MARKS: [&str; 3] = ["~eyJ", "%7EeyJ", "%7eeyJ"];
/// Bytes of a mark that belong to the token.
const BEGIN: usize = 3;

/// Claims of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Its end, in seconds since 1970 (RFC 7519 4.1.4).
    pub exp: u64,
    /// Paths that it admits to, with all below them; absent: all paths of its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Network of the clients that may use it; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<String>,
    /// Name of the token, by which it can be revoked (RFC 7519 4.1.7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// Its subject (RFC 7519 4.1.2). Limits count tokens without a name by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    /// Filter of the manifests of assets, such as `max-height=720`; absent: manifests list all tracks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is longer than [`MOST`].
    #[error("the token is longer than {MOST} bytes")]
    Long,
    /// It is no token, or lacks a claim.
    #[error("the token can't be read")]
    Malformed,
    /// Its algorithm is none of those of the keys.
    #[error("no known key has the token's algorithm")]
    Algorithm,
    /// No key made its signature.
    #[error("no known key made the token's signature")]
    Signature,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet")]
    Early,
    /// It is for another audience, or of another issuer.
    #[error("the token is of another issuer or for another audience")]
    Foreign,
    /// It was revoked.
    #[error("the token was revoked")]
    Revoked,
    /// It is for other paths.
    #[error("the token is for other paths")]
    Path,
    /// It is for clients of another network.
    #[error("the token is for clients of another network")]
    Address,
}

impl TokenError {
    /// Whether the token is valid, but for other paths or clients.
    pub fn is_of_another(self) -> bool {
        matches!(self, Self::Path | Self::Address)
    }
}

/// Issuer and audience that tokens must name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parties {
    /// Issuer (`iss`).
    pub issuer: Option<String>,
    /// Audience (`aud`).
    pub audience: Option<String>,
}

/// Whether a parameter of a query, such as `token=TEXT`, is a token or a password.
pub fn is_parameter(pair: &str) -> bool {
    SECRETS.contains(&pair.split('=').next().unwrap_or_default())
}

/// Whether a component of a path is a token.
pub fn is_component(component: &str) -> bool {
    mark(component).is_some()
}

/// The mark that a path component begins with.
fn mark(component: &str) -> Option<&'static str> {
    MARKS.into_iter().find(|mark| component.starts_with(mark))
}

/// Takes the token out of a path that begins with one: `/~TOKEN/films/a.mp4` is the token and `/films/a.mp4`.
pub fn split(path: &str) -> Option<(&str, &str)> {
    let inside = path.strip_prefix('/')?;
    let begin = mark(inside)?.len() - BEGIN;
    let end = inside.find(['/', '?', '#']).unwrap_or(inside.len());
    let rest = &inside[end..];
    Some((&inside[begin..end], rest))
}

/// Reads a token and checks its signature, time, issuer and audience.
///
/// # Errors
/// The reason of a refusal.
pub fn read(token: &str, keys: &Keys, parties: &Parties) -> Result<Claims, TokenError> {
    if token.len() > MOST {
        return Err(TokenError::Long);
    }
    let header = decode_header(token).map_err(|error| reason(error.kind()))?;
    // RFC 7515 4.1.11: no extension is understood.
    if header.crit.is_some() {
        return Err(TokenError::Malformed);
    }
    let mut found = TokenError::Algorithm;
    for key in keys.candidates(header.alg, header.kid.as_deref()).take(TRIES) {
        match decode::<Claims>(token, key, &validation(header.alg, parties)) {
            Ok(data) => return Ok(data.claims),
            Err(error) => {
                found = reason(error.kind());
                // The signature was right: other keys change nothing.
                if found != TokenError::Signature {
                    break;
                }
            }
        }
    }
    Err(found)
}

/// Rules of validation. The algorithm is the one of the key, never the token's choice.
fn validation(algorithm: Algorithm, parties: &Parties) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    let mut required = vec!["exp"];
    validation.validate_aud = parties.audience.is_some();
    if let Some(audience) = &parties.audience {
        validation.set_audience(&[audience]);
        required.push("aud");
    }
    if let Some(issuer) = &parties.issuer {
        validation.set_issuer(&[issuer]);
        required.push("iss");
    }
    validation.set_required_spec_claims(&required);
    validation
}

fn reason(kind: &ErrorKind) -> TokenError {
    match kind {
        ErrorKind::InvalidSignature => TokenError::Signature,
        ErrorKind::ExpiredSignature => TokenError::Expired,
        ErrorKind::ImmatureSignature => TokenError::Early,
        ErrorKind::InvalidIssuer | ErrorKind::InvalidAudience => TokenError::Foreign,
        ErrorKind::MissingRequiredClaim(claim) if claim == "aud" || claim == "iss" => TokenError::Foreign,
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName | ErrorKind::MissingAlgorithm => {
            TokenError::Algorithm
        }
        _ => TokenError::Malformed,
    }
}

impl Claims {
    /// Checks that the token is for a path and a client. `path` is decoded and has no slashes at its ends.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub fn admit(&self, path: &str, client: IpAddr) -> Result<(), TokenError> {
        if let Some(paths) = &self.paths
            && !paths.iter().any(|prefix| is_below(path, prefix))
        {
            return Err(TokenError::Path);
        }
        match self.net.as_deref().map(Network::parse) {
            None => Ok(()),
            Some(Some(network)) if network.contains(client) => Ok(()),
            Some(_) => Err(TokenError::Address),
        }
    }
}

/// Whether a path is another one or lies below it. Prefixes end at slashes: `films/a` is not above `films/ab`.
fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_matches('/');
    if prefix.is_empty() {
        return true;
    }
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A token can't be made.
#[derive(Debug, thiserror::Error)]
#[error("the token can't be signed: {0}")]
pub struct SignError(#[from] jsonwebtoken::errors::Error);

/// Signs claims by HMAC with SHA-256 (`HS256`), for these parties.
///
/// # Errors
/// The library's, where the claims can't be written.
pub fn sign(claims: &Claims, parties: &Parties, secret: &Secret) -> Result<String, SignError> {
    #[derive(Serialize)]
    struct Signed<'a> {
        #[serde(flatten)]
        claims: &'a Claims,
        #[serde(skip_serializing_if = "Option::is_none")]
        iss: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        aud: Option<&'a str>,
    }
    let signed = Signed { claims, iss: parties.issuer.as_deref(), aud: parties.audience.as_deref() };
    Ok(jsonwebtoken::encode(&Header::new(Algorithm::HS256), &signed, &EncodingKey::from_secret(secret.as_bytes()))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SECRET: &str = "a secret of thirty-two bytes....";

    fn now() -> u64 {
        jsonwebtoken::get_current_timestamp()
    }

    fn made(claims: &serde_json::Value) -> String {
        jsonwebtoken::encode(&Header::default(), claims, &EncodingKey::from_secret(SECRET.as_bytes())).unwrap()
    }

    fn of(token: &str) -> Result<Claims, TokenError> {
        read(token, &Keys::parse(SECRET.as_bytes()).unwrap(), &Parties::default())
    }

    #[test]
    fn a_token_stands_in_a_path() {
        assert_eq!(split("/~eyJ0.a.b/films/a.mp4?x=1"), Some(("eyJ0.a.b", "/films/a.mp4?x=1")));
        assert_eq!(split("/~eyJ0.a.b"), Some(("eyJ0.a.b", "")));
        assert_eq!(split("/~eyJ0.a.b?x"), Some(("eyJ0.a.b", "?x")));
        assert_eq!(split("/%7EeyJ0.a.b/a.mp4"), Some(("eyJ0.a.b", "/a.mp4")));
        assert_eq!(split("/%7eeyJ0.a.b"), Some(("eyJ0.a.b", "")));
        for other in ["/films/~eyJ0/a", "~eyJ0/a", "/~ann/a.mp4", "/", ""] {
            assert_eq!(split(other), None, "{other}");
        }
    }

    #[test]
    fn tokens_are_told_from_other_components_and_parameters() {
        assert!(is_component("~eyJ0.a.b") && !is_component("~ann") && !is_component("eyJ0"));
        assert!(is_component("%7EeyJ0") && is_component("%7eeyJ0") && !is_component("%7Eann"));
        assert!(is_parameter("token=eyJ") && is_parameter("jwt=") && !is_parameter("tokens=1") && !is_parameter(""));
    }

    #[test]
    fn what_is_signed_is_read() {
        let claims = Claims {
            exp: now() + 60,
            paths: Some(vec!["films/a.mp4".to_owned()]),
            net: None,
            jti: Some("a1".to_owned()),
            sub: None,
            filter: Some("max-height=720&audio=en".to_owned()),
        };
        let secret = Secret::parse(SECRET.as_bytes()).unwrap();
        let token = sign(&claims, &Parties::default(), &secret).unwrap();
        assert!(token.starts_with("eyJ"));
        assert_eq!(of(&token), Ok(claims.clone()));
        let parties = Parties { issuer: Some("shop".to_owned()), audience: Some("edge".to_owned()) };
        let keys = Keys::parse(SECRET.as_bytes()).unwrap();
        assert_eq!(read(&token, &keys, &parties), Err(TokenError::Foreign));
        assert_eq!(read(&sign(&claims, &parties, &secret).unwrap(), &keys, &parties), Ok(claims));
    }

    #[test]
    fn wrong_tokens_are_refused() {
        let exp = now() + 60;
        let right = made(&json!({ "exp": exp }));
        let (head, signature) = right.rsplit_once('.').unwrap();
        let other = jsonwebtoken::encode(
            &Header::default(),
            &json!({ "exp": exp }),
            &EncodingKey::from_secret(b"another secret of 32 bytes......"),
        )
        .unwrap();
        // {"alg":"none"}
        let none = format!("eyJhbGciOiJub25lIn0.{}.", head.split('.').nth(1).unwrap());
        let stronger = jsonwebtoken::encode(
            &Header::new(Algorithm::HS512),
            &json!({ "exp": exp }),
            &EncodingKey::from_secret(SECRET.as_bytes()),
        )
        .unwrap();
        let extended = Header { crit: Some(vec!["b64".to_owned()]), ..Header::default() };
        let key = EncodingKey::from_secret(SECRET.as_bytes());
        let extended = jsonwebtoken::encode(&extended, &json!({ "exp": exp }), &key).unwrap();
        for (token, why) in [
            (extended, TokenError::Malformed),
            (made(&json!({ "exp": now() - 60 })), TokenError::Expired),
            (made(&json!({ "exp": exp, "nbf": now() + 60 })), TokenError::Early),
            (made(&json!({ "sub": "ann" })), TokenError::Malformed),
            (made(&json!({ "exp": exp, "paths": "films" })), TokenError::Malformed),
            (other.clone(), TokenError::Signature),
            (format!("{head}.{}", signature.replace(|c: char| c.is_ascii_lowercase(), "A")), TokenError::Signature),
            (format!("{head}."), TokenError::Signature),
            (head.to_owned(), TokenError::Malformed),
            (stronger, TokenError::Algorithm),
            (String::new(), TokenError::Malformed),
            ("eyJ".to_owned(), TokenError::Malformed),
            ("a".repeat(MOST + 1), TokenError::Long),
        ] {
            assert_eq!(of(&token).unwrap_err(), why, "{token:.60}");
        }
        assert!(matches!(of(&none), Err(TokenError::Algorithm | TokenError::Malformed)), "{none}");
        assert!(of(&right).is_ok());
    }

    #[test]
    fn a_token_names_its_issuer_and_audience_where_they_are_asked_for() {
        let keys = Keys::parse(SECRET.as_bytes()).unwrap();
        let parties = Parties { issuer: Some("shop".to_owned()), audience: Some("edge".to_owned()) };
        let exp = now() + 60;
        let of = |claims| read(&made(&claims), &keys, &parties).map(|_| ());
        assert_eq!(of(json!({ "exp": exp, "iss": "shop", "aud": "edge" })), Ok(()));
        assert_eq!(of(json!({ "exp": exp, "iss": "shop", "aud": ["a", "edge"] })), Ok(()));
        for claims in [
            json!({ "exp": exp, "iss": "shop" }),
            json!({ "exp": exp, "aud": "edge" }),
            json!({ "exp": exp, "iss": "shop", "aud": "core" }),
            json!({ "exp": exp, "iss": "other", "aud": "edge" }),
        ] {
            assert_eq!(of(claims.clone()), Err(TokenError::Foreign), "{claims}");
        }
        // Where no audience is asked for, tokens may name one.
        assert!(read(&made(&json!({ "exp": exp, "aud": "x" })), &keys, &Parties::default()).is_ok());
    }

    #[test]
    fn a_token_is_for_its_paths_and_clients() {
        let claims = |paths: &[&str], net: Option<&str>| Claims {
            exp: 0,
            paths: Some(paths.iter().map(|path| (*path).to_owned()).collect()),
            net: net.map(str::to_owned),
            jti: None,
            sub: None,
            filter: None,
        };
        let (here, there): (IpAddr, IpAddr) = ("10.2.0.1".parse().unwrap(), "10.3.0.1".parse().unwrap());
        let film = claims(&["films/a", "/extras/"], Some("10.2.0.0/16"));
        for path in ["films/a", "films/a/index.m3u8", "extras/b"] {
            assert_eq!(film.admit(path, here), Ok(()), "{path}");
            assert_eq!(film.admit(path, there), Err(TokenError::Address), "{path}");
        }
        for path in ["films/ab", "films", "", "other/films/a"] {
            assert_eq!(film.admit(path, here), Err(TokenError::Path), "{path}");
        }
        assert_eq!(claims(&[], None).admit("a", here), Err(TokenError::Path), "for nothing");
        assert_eq!(claims(&[""], None).admit("a", here), Ok(()), "for all");
        assert_eq!(claims(&[""], Some("nonsense")).admit("a", here), Err(TokenError::Address));
    }
}
