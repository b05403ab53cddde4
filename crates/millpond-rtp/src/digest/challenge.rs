//! Challenges of a server, as a client reads them (RFC 7616 3.3, RFC 7617 2).

use super::{Algorithm, authorization::Reader};
use std::collections::BTreeMap;

/// Longest header in bytes.
const MOST_BYTES: usize = 16 << 10;
/// Suffix of the names of algorithms whose secrets are for one session (RFC 7616 3.4.2).
pub(super) const SESSION: &str = "-sess";
/// Most challenges of a header that are read.
const MOST: usize = 16;

/// A challenge that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// Digest.
    Digest {
        /// Realm.
        realm: String,
        /// Nonce.
        nonce: String,
        /// Value that answers repeat.
        opaque: Option<String>,
        /// Algorithm; MD5 by default.
        algorithm: Algorithm,
        /// Whether secrets are those of one session: `MD5-sess`.
        is_session: bool,
        /// Whether answers have `qop=auth`; otherwise they are as in RFC 2069.
        has_qop: bool,
        /// Whether the last answer was correct, and only its nonce had expired.
        is_stale: bool,
    },
    /// Basic: the password itself is sent.
    Basic,
}

/// Reads `WWW-Authenticate`. Unsupported schemes, algorithms and kinds of protection are left out. Challenges after a syntax
/// error are left out too.
#[must_use]
pub fn challenges(header: &str) -> Vec<Challenge> {
    let mut all = Vec::new();
    if header.len() > MOST_BYTES {
        return all;
    }
    let mut reader = Reader { header, at: 0 };
    for _ in 0..MOST {
        reader.skip(b" \t,");
        let scheme = reader.token();
        if scheme.is_empty() {
            break;
        }
        let (parameters, is_complete) = parameters(&mut reader);
        all.extend(challenge(scheme, parameters));
        if !is_complete {
            break;
        }
    }
    all
}

/// Reads the parameters of one challenge; returns whether the reader is at the next one.
fn parameters(reader: &mut Reader<'_>) -> (BTreeMap<String, String>, bool) {
    let mut all = BTreeMap::new();
    loop {
        reader.skip(b" \t,");
        let start = reader.at;
        let name = reader.token().to_ascii_lowercase();
        reader.skip(b" \t");
        if name.is_empty() {
            return (all, start == reader.header.len());
        }
        if !reader.take(b'=') {
            // A token without a value is the next scheme.
            reader.at = start;
            return (all, true);
        }
        reader.skip(b" \t");
        let Ok(value) = reader.value() else { return (all, false) };
        all.entry(name).or_insert(value);
    }
}

fn challenge(scheme: &str, mut parameters: BTreeMap<String, String>) -> Option<Challenge> {
    if scheme.eq_ignore_ascii_case("Basic") {
        return Some(Challenge::Basic);
    }
    // A control character could not be repeated in a header.
    let is_clean = |text: &String| !text.chars().any(char::is_control);
    if !scheme.eq_ignore_ascii_case("Digest") || !parameters.values().all(is_clean) {
        return None;
    }
    let name = parameters.remove("algorithm").unwrap_or_else(|| Algorithm::Md5.name().to_owned()).to_ascii_lowercase();
    let (name, is_session) = name.strip_suffix(SESSION).map_or((&*name, false), |name| (name, true));
    let known = [Algorithm::Sha256, Algorithm::Md5];
    let algorithm = known.into_iter().find(|known| known.name().eq_ignore_ascii_case(name))?;
    let has_qop = match parameters.get("qop").map(|all| all.trim()) {
        None | Some("") => false,
        Some(all) if all.split(',').any(|one| one.trim().eq_ignore_ascii_case("auth")) => true,
        Some(_) => return None,
    };
    Some(Challenge::Digest {
        realm: parameters.remove("realm")?,
        nonce: parameters.remove("nonce")?,
        opaque: parameters.remove("opaque"),
        algorithm,
        is_session,
        has_qop,
        is_stale: parameters.get("stale").is_some_and(|stale| stale.eq_ignore_ascii_case("true")),
    })
}

#[cfg(test)]
mod tests {
    use super::{super::*, *};

    fn digest(algorithm: Algorithm, has_qop: bool, is_stale: bool) -> Challenge {
        let (realm, nonce) = ("r, x".into(), "n".into());
        Challenge::Digest { realm, nonce, opaque: None, algorithm, is_session: false, has_qop, is_stale }
    }

    #[test]
    fn algorithms_of_one_session_are_read() {
        for (name, expected) in [("MD5-sess", Algorithm::Md5), ("\"SHA-256-SESS\"", Algorithm::Sha256)] {
            let read = challenges(&format!("Digest realm=\"r\", nonce=\"n\", algorithm={name}"));
            assert!(
                matches!(read[..], [Challenge::Digest { algorithm, is_session: true, .. }] if algorithm == expected)
            );
        }
        assert!(challenges("Digest realm=\"r\", nonce=\"n\", algorithm=-sess").is_empty());
    }

    #[test]
    fn challenges_of_cameras_are_read() {
        let plain = r#"Digest realm="r, x", nonce="n""#;
        for (text, expected) in [
            (plain.to_owned(), vec![digest(Algorithm::Md5, false, false)]),
            (format!("{plain}, stale=TRUE, algorithm=\"MD5\""), vec![digest(Algorithm::Md5, false, true)]),
            (format!("{plain}, qop=\"auth-int, auth\""), vec![digest(Algorithm::Md5, true, false)]),
            (format!("{plain}, qop=\"auth-int\", Basic realm=\"r\""), vec![Challenge::Basic]),
            (format!("Basic realm=r, {plain}"), vec![Challenge::Basic, digest(Algorithm::Md5, false, false)]),
            (format!("{plain}, algorithm=SHA-512-256, basic"), vec![Challenge::Basic]),
            (format!("Negotiate, {plain},algorithm=sha-256"), vec![digest(Algorithm::Sha256, false, false)]),
            ("Digest realm=\"r\", nonce=\"a\nb\"".to_owned(), vec![]),
            ("Digest realm=\"r".to_owned(), vec![]),
            (String::new(), vec![]),
        ] {
            assert_eq!(challenges(&text), expected, "{text}");
        }
        assert_eq!(challenges(&"Basic ".repeat(100)).len(), MOST);
    }

    #[test]
    fn own_challenges_are_read() {
        let now = Duration::from_secs(1_700_000_000);
        let guard = Guard::new("r, x", &[Algorithm::Md5, Algorithm::Sha256], nonce::Nonces::new(&[1; 32], now));
        let header = guard.challenges(now, 7, true).join(", ");
        let read = challenges(&header);
        let algorithms: Vec<_> = read
            .iter()
            .map(|one| match one {
                Challenge::Digest { algorithm, has_qop: true, is_stale: true, .. } => *algorithm,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(algorithms, [Algorithm::Sha256, Algorithm::Md5]);
    }
}
