//! Keys that tokens are signed with: a secret, public keys as PEM, or a JSON Web Key Set (RFC 7517).

use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse},
};
use std::fmt;

/// Most bytes of a file or reply with keys.
pub const MOST_BYTES: usize = 256 * 1024;
/// Most keys of a set.
const MOST_KEYS: usize = 64;
/// Least bytes of a secret (RFC 7518 3.2: as many as the hash has).
const LEAST_SECRET: usize = 32;

/// A secret for `HS256`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Keys, each for one algorithm: `HS256`, `RS256`, `ES256` or `EdDSA`.
#[derive(Clone)]
pub struct Keys(Vec<Key>);

#[derive(Clone)]
struct Key {
    /// Its name (`kid`), which tokens may state.
    name: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// Why keys can't be used. The text has nothing of the file, which may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no key.
    #[error("there is no key in it")]
    None,
    /// There is too much of it.
    #[error("it has more than {MOST_BYTES} bytes or {MOST_KEYS} keys")]
    Large,
    /// Public keys or a key set where a secret is needed: what everybody knows would sign tokens.
    #[error("a secret is needed, not a PEM file or a key set")]
    NotSecret,
    /// The secret is too short to be one.
    #[error("a secret has at least {LEAST_SECRET} bytes")]
    Short,
    /// It is not text.
    #[error("it is not text")]
    NotText,
    /// A private key, which has no place on a server that only checks tokens.
    #[error("it has a private key: write the public one")]
    Private,
    /// A PEM block that is no public key for RS256, ES256 or EdDSA.
    #[error("a PEM block is no public key of RSA, P-256 or Ed25519")]
    Pem,
    /// Text that begins as JSON and is no key set.
    #[error("it is no JSON Web Key Set")]
    Set,
}

impl Secret {
    /// Parses a file with a secret: all of it, without white space at its ends.
    ///
    /// # Errors
    /// It is short, or something else than a secret.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            return Err(KeyError::None);
        }
        if is_set(bytes) || is_pem(bytes) {
            return Err(KeyError::NotSecret);
        }
        if bytes.len() > MOST_BYTES {
            return Err(KeyError::Large);
        }
        if bytes.len() < LEAST_SECRET {
            return Err(KeyError::Short);
        }
        Ok(Self(bytes.to_vec()))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Shows nothing of it.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("count", &self.0.len()).finish_non_exhaustive()
    }
}

impl Keys {
    /// Parses a file with keys. JSON is a key set, PEM are public keys, and all else is one secret.
    ///
    /// # Errors
    /// The first fault.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.len() > MOST_BYTES {
            return Err(KeyError::Large);
        }
        let text = bytes.trim_ascii();
        if is_set(text) {
            return Self::parse_set(text);
        }
        if is_pem(text) {
            return Self::parse_pem(std::str::from_utf8(text).map_err(|_| KeyError::NotText)?);
        }
        let secret = Secret::parse(text)?;
        let key = DecodingKey::from_secret(secret.as_bytes());
        Ok(Self(vec![Key { name: None, algorithm: Algorithm::HS256, key }]))
    }

    /// Parses a JSON Web Key Set. Keys of other kinds, and those for encryption, are left out.
    ///
    /// # Errors
    /// It is no set, is too large, or has no key of a known kind.
    pub fn parse_set(bytes: &[u8]) -> Result<Self, KeyError> {
        #[derive(serde::Deserialize)]
        struct Set {
            keys: Vec<serde_json::Value>,
        }
        let set: Set = serde_json::from_slice(bytes).map_err(|_| KeyError::Set)?;
        if set.keys.len() > MOST_KEYS {
            return Err(KeyError::Large);
        }
        let keys: Vec<Key> = set.keys.into_iter().filter_map(Key::of_set).collect();
        if keys.is_empty() { Err(KeyError::None) } else { Ok(Self(keys)) }
    }

    fn parse_pem(text: &str) -> Result<Self, KeyError> {
        const BEGIN: &str = "-----BEGIN ";
        let (mut keys, mut rest) = (Vec::new(), text);
        while let Some(begin) = rest.find(BEGIN) {
            let block = &rest[begin..];
            let label = block[BEGIN.len()..].split("-----").next().unwrap_or_default();
            if label.ends_with("PRIVATE KEY") {
                return Err(KeyError::Private);
            }
            if keys.len() == MOST_KEYS {
                return Err(KeyError::Large);
            }
            let close = format!("-----END {label}-----");
            let end = block.find(&close).ok_or(KeyError::Pem)? + close.len();
            keys.push(Key::of_pem(&block.as_bytes()[..end])?);
            rest = &block[end..];
        }
        if keys.is_empty() { Err(KeyError::Pem) } else { Ok(Self(keys)) }
    }

    /// The keys that may have signed a token: those of its algorithm, and of its key's name where both state one.
    pub(super) fn candidates<'a>(
        &'a self,
        algorithm: Algorithm,
        name: Option<&'a str>,
    ) -> impl Iterator<Item = &'a DecodingKey> {
        let fits = move |key: &&Key| {
            key.algorithm == algorithm && (name.is_none() || key.name.is_none() || key.name.as_deref() == name)
        };
        self.0.iter().filter(fits).map(|key| &key.key)
    }
}

impl Key {
    fn of_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let made = [
            (Algorithm::RS256, DecodingKey::from_rsa_pem(pem)),
            (Algorithm::ES256, DecodingKey::from_ec_pem(pem)),
            (Algorithm::EdDSA, DecodingKey::from_ed_pem(pem)),
        ];
        let found = made.into_iter().find_map(|(algorithm, key)| Some((algorithm, key.ok()?)));
        let (algorithm, key) = found.ok_or(KeyError::Pem)?;
        Ok(Self { name: None, algorithm, key })
    }

    fn of_set(value: serde_json::Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        if !is_to_verify(&jwk) {
            return None;
        }
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::EllipticCurve(of) if of.curve == EllipticCurve::P256 => Algorithm::ES256,
            AlgorithmParameters::OctetKeyPair(of) if of.curve == EllipticCurve::Ed25519 => Algorithm::EdDSA,
            AlgorithmParameters::OctetKey(_) => Algorithm::HS256,
            _ => return None,
        };
        let stated = match jwk.common.key_algorithm {
            None => Some(algorithm),
            Some(KeyAlgorithm::HS256) => Some(Algorithm::HS256),
            Some(KeyAlgorithm::RS256) => Some(Algorithm::RS256),
            Some(KeyAlgorithm::ES256) => Some(Algorithm::ES256),
            Some(KeyAlgorithm::EdDSA) => Some(Algorithm::EdDSA),
            Some(_) => None,
        };
        if stated != Some(algorithm) {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        if algorithm == Algorithm::HS256 && key.try_get_as_bytes().ok()?.len() < LEAST_SECRET {
            return None;
        }
        Some(Self { name: jwk.common.key_id, algorithm, key })
    }
}

/// Whether the content of a file is a key set.
fn is_set(text: &[u8]) -> bool {
    text.starts_with(b"{")
}

/// Whether the content of a file has keys in PEM.
fn is_pem(text: &[u8]) -> bool {
    text.windows(10).any(|part| part == b"-----BEGIN")
}

/// Whether a key is meant for signatures (RFC 7517 4.2, 4.3). A key that does not say so is.
fn is_to_verify(jwk: &Jwk) -> bool {
    let is_used = jwk.common.public_key_use.as_ref().is_none_or(|of| *of == PublicKeyUse::Signature);
    let operations = jwk.common.key_operations.as_ref();
    is_used && operations.is_none_or(|all| all.contains(&KeyOperations::Verify))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";

    fn count(text: &str) -> Result<usize, KeyError> {
        Keys::parse(text.as_bytes()).map(|keys| keys.0.len())
    }

    #[test]
    fn files_are_told_apart_by_their_content() {
        assert_eq!(count("a secret of thirty-two bytes....\n"), Ok(1));
        assert_eq!(count(ED), Ok(1));
        assert_eq!(count(&format!("first\n{ED}and\n{ED}")), Ok(2));
        // RFC 8037 A.2 has this key too.
        let ed = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a"}"#;
        let unknown = r#"{"kty":"OKP","crv":"X448","x":"AAAA"}"#;
        assert_eq!(count(&format!(r#"{{"keys":[{ed},{unknown},{{}}]}}"#)), Ok(1));
    }

    #[test]
    fn keys_for_other_uses_than_signatures_are_left_out() {
        let key = |more: &str| {
            let ed = r#""kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#;
            count(&format!(r#"{{"keys":[{{{ed}{more}}}]}}"#))
        };
        for more in ["", r#","use":"sig""#, r#","key_ops":["verify"]"#, r#","use":"sig","key_ops":["sign","verify"]"#] {
            assert_eq!(key(more), Ok(1), "{more}");
        }
        for more in [r#","use":"enc""#, r#","key_ops":["encrypt"]"#, r#","key_ops":[]"#, r#","use":"other""#] {
            assert_eq!(key(more), Err(KeyError::None), "{more}");
        }
    }

    #[test]
    fn faults_are_told() {
        for (text, why) in [
            ("", KeyError::None),
            ("short", KeyError::Short),
            ("{", KeyError::Set),
            (r#"{"keys":[]}"#, KeyError::None),
            // A secret of six bytes.
            (r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#, KeyError::None),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", KeyError::Private),
            ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", KeyError::Pem),
            ("-----BEGIN PUBLIC KEY-----\nAAAA", KeyError::Pem),
            ("-----BEGIN", KeyError::Pem),
        ] {
            assert_eq!(count(text), Err(why), "{text}");
        }
        assert_eq!(count(&ED.repeat(MOST_KEYS + 1)), Err(KeyError::Large));
        assert_eq!(count(&"x".repeat(MOST_BYTES + 1)), Err(KeyError::Large));
    }

    #[test]
    fn a_public_key_is_no_secret() {
        let set = br#"{"keys":[{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75"}]}"#;
        for file in [ED.as_bytes(), set] {
            assert_eq!(Secret::parse(file), Err(KeyError::NotSecret));
        }
    }

    #[test]
    fn a_key_serves_its_algorithm_only() {
        let keys = Keys::parse(ED.as_bytes()).unwrap();
        assert_eq!(keys.candidates(Algorithm::EdDSA, None).count(), 1);
        // The bytes of a public key are no secret.
        assert_eq!(keys.candidates(Algorithm::HS256, None).count(), 0);
        let set =
            r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a"}]}"#;
        let keys = Keys::parse(set.as_bytes()).unwrap();
        let of = |name| keys.candidates(Algorithm::EdDSA, name).count();
        assert_eq!((of(Some("a")), of(Some("b")), of(None)), (1, 0, 1));
    }
}
