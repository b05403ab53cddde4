//! A client's answer to a challenge (RFC 7616 3.4).

use super::{Algorithm, challenge::SESSION};
use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    str::FromStr,
};

/// Longest header in bytes.
const MOST_BYTES: usize = 4096;
/// Characters of a token (RFC 9110 5.6.2) besides letters and digits.
const TOKEN: &[u8] = b"!#$%&'*+-.^_`|~";

/// Content of an `Authorization: Digest` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    /// User name.
    pub user: String,
    /// Realm.
    pub realm: String,
    /// Nonce of the challenge.
    pub nonce: String,
    /// URL of the request.
    pub uri: String,
    /// Response, in lower case.
    pub response: String,
    /// Algorithm; MD5 by default (RFC 7616 3.4).
    pub algorithm: Algorithm,
    /// Whether the secret is for one session, as servers may require. It is offered to no client here.
    pub is_session: bool,
    /// Parameters of `qop=auth`; `None` in answers as in RFC 2069.
    pub qop: Option<Qop>,
    /// Value of the challenge that answers repeat.
    pub opaque: Option<String>,
}

/// Further parameters of an answer with `qop=auth`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qop {
    /// Number of answers that the client gave to this nonce (`nc`).
    pub count: u32,
    /// Client nonce.
    pub cnonce: String,
}

/// The reason why a header is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationError {
    /// The header is too long.
    #[error("{found} bytes, expected at most {MOST_BYTES}")]
    TooLong {
        /// Number of bytes.
        found: usize,
    },
    /// The scheme is not Digest.
    #[error("scheme {0:?}, expected Digest")]
    Scheme(String),
    /// The header is not a list of name=value or name="value".
    #[error("byte {at}: expected {expected}")]
    Form {
        /// Offset in the header.
        at: usize,
        /// Expected syntax.
        expected: &'static str,
    },
    /// A parameter is missing, repeated, or has an invalid value.
    #[error("{name} is {found:?}, expected {expected}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// Value found; `None` where the parameter is missing.
        found: Option<String>,
        /// Value expected.
        expected: &'static str,
    },
}

impl FromStr for Authorization {
    type Err = AuthorizationError;

    fn from_str(header: &str) -> Result<Self, AuthorizationError> {
        if header.len() > MOST_BYTES {
            return Err(AuthorizationError::TooLong { found: header.len() });
        }
        let mut parameters = Parameters(parameters(header)?);
        Ok(Self {
            user: parameters.user()?,
            realm: parameters.must("realm")?,
            nonce: parameters.must("nonce")?,
            uri: parameters.must("uri")?,
            response: parameters.must("response")?.to_ascii_lowercase(),
            algorithm: parameters.algorithm()?,
            is_session: false,
            qop: parameters.qop()?,
            opaque: parameters.0.remove("opaque"),
        })
    }
}

/// Writes the header. Names that a quoted string can't carry are percent-encoded (RFC 7616 3.4).
impl fmt::Display for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.user.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            write!(f, "Digest username={}", Quoted(&self.user))?;
        } else {
            write!(f, "Digest username*=UTF-8''{}", Encoded(&self.user))?;
        }
        let (realm, nonce, uri) = (Quoted(&self.realm), Quoted(&self.nonce), Quoted(&self.uri));
        write!(f, ", realm={realm}, nonce={nonce}, uri={uri}, response={}", Quoted(&self.response))?;
        let session = if self.is_session { SESSION } else { "" };
        write!(f, ", algorithm={}{session}", self.algorithm.name())?;
        if let Some(Qop { count, cnonce }) = &self.qop {
            write!(f, ", qop=auth, nc={count:08x}, cnonce={}", Quoted(cnonce))?;
        }
        if let Some(opaque) = &self.opaque {
            write!(f, ", opaque={}", Quoted(opaque))?;
        }
        Ok(())
    }
}

/// A quoted string (RFC 9110 5.6.4).
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            if matches!(character, '"' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(character)?;
        }
        f.write_char('"')
    }
}

/// Percent-encoded bytes (RFC 8187 3.2).
struct Encoded<'a>(&'a str);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.bytes().try_for_each(|byte| match byte {
            plain if plain.is_ascii_alphanumeric() => f.write_char(char::from(plain)),
            other => write!(f, "%{other:02X}"),
        })
    }
}

struct Parameters(BTreeMap<String, String>);

impl Parameters {
    fn must(&mut self, name: &'static str) -> Result<String, AuthorizationError> {
        self.0.remove(name).ok_or(AuthorizationError::Parameter { name, found: None, expected: "a value" })
    }

    fn user(&mut self) -> Result<String, AuthorizationError> {
        let wrong = |name, found, expected| Err(AuthorizationError::Parameter { name, found: Some(found), expected });
        match self.0.remove("userhash") {
            Some(hashed) if !hashed.eq_ignore_ascii_case("false") => {
                wrong("userhash", hashed, "false, as it was offered")
            }
            _ => match self.0.remove("username*") {
                Some(_) if self.0.contains_key("username") => {
                    wrong("username", self.must("username")?, "no second one")
                }
                Some(extended) => match decode(&extended) {
                    Some(user) => Ok(user),
                    None => wrong("username*", extended, "UTF-8'' and percent-encoded bytes (RFC 8187 3.2)"),
                },
                None => self.must("username"),
            },
        }
    }

    fn algorithm(&mut self) -> Result<Algorithm, AuthorizationError> {
        let Some(name) = self.0.remove("algorithm") else { return Ok(Algorithm::Md5) };
        let known = [Algorithm::Sha256, Algorithm::Md5];
        let algorithm = known.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(&name));
        algorithm.ok_or(AuthorizationError::Parameter {
            name: "algorithm",
            found: Some(name),
            expected: "SHA-256 or MD5, as it was offered",
        })
    }

    fn qop(&mut self) -> Result<Option<Qop>, AuthorizationError> {
        let Some(qop) = self.0.remove("qop") else { return Ok(None) };
        let wrong = |name, found, expected| AuthorizationError::Parameter { name, found: Some(found), expected };
        if qop != "auth" {
            return Err(wrong("qop", qop, "auth, as it was offered"));
        }
        let count = self.must("nc")?;
        let digits = count.len() == 8 && count.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(&count, 16).ok().filter(|_| digits);
        let number = number.ok_or_else(|| wrong("nc", count, "eight hexadecimal digits"))?;
        Ok(Some(Qop { count: number, cnonce: self.must("cnonce")? }))
    }
}

/// Decodes a value with its character set and percent-encoding (RFC 8187 3.2).
fn decode(text: &str) -> Option<String> {
    let (set, rest) = text.split_once('\'')?;
    let (_language, encoded) = rest.split_once('\'')?;
    if !set.eq_ignore_ascii_case("UTF-8") {
        return None;
    }
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push(if byte == b'%' { (digit()? << 4 | digit()?) as u8 } else { byte });
    }
    String::from_utf8(bytes).ok()
}

/// Returns the parameters after the scheme, with names in lower case.
fn parameters(header: &str) -> Result<BTreeMap<String, String>, AuthorizationError> {
    let mut reader = Reader { header, at: 0 };
    reader.skip(b" \t");
    let scheme = reader.token();
    if !scheme.eq_ignore_ascii_case("Digest") {
        return Err(AuthorizationError::Scheme(scheme.to_owned()));
    }
    let mut all = BTreeMap::new();
    loop {
        reader.skip(b" \t,");
        if reader.at == header.len() {
            return Ok(all);
        }
        let at = reader.at;
        let name = reader.token().to_ascii_lowercase();
        reader.skip(b" \t");
        if name.is_empty() || !reader.take(b'=') {
            return Err(AuthorizationError::Form { at: reader.at, expected: "the name of a parameter and =" });
        }
        reader.skip(b" \t");
        let value = reader.value()?;
        // A repeated parameter is ambiguous: the client may have hashed the other value.
        if all.insert(name, value).is_some() {
            return Err(AuthorizationError::Form { at, expected: "each parameter once" });
        }
        reader.skip(b" \t");
        if reader.at < header.len() && !reader.take(b',') {
            return Err(AuthorizationError::Form { at: reader.at, expected: "a comma" });
        }
    }
}

/// Reads tokens and values of a header.
pub(super) struct Reader<'a> {
    pub(super) header: &'a str,
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.header.as_bytes().get(self.at).copied()
    }

    pub(super) fn skip(&mut self, all: &[u8]) {
        while self.peek().is_some_and(|byte| all.contains(&byte)) {
            self.at += 1;
        }
    }

    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    pub(super) fn token(&mut self) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || TOKEN.contains(&byte)) {
            self.at += 1;
        }
        &self.header[start..self.at]
    }

    /// Reads a token or a quoted string (RFC 9110 5.6.4).
    pub(super) fn value(&mut self) -> Result<String, AuthorizationError> {
        let form = |at| AuthorizationError::Form { at, expected: "a value, and a quote at both ends or none" };
        if !self.take(b'"') {
            let token = self.token();
            return if token.is_empty() { Err(form(self.at)) } else { Ok(token.to_owned()) };
        }
        let (mut value, mut rest) = (String::new(), self.header[self.at..].char_indices());
        while let Some((place, next)) = rest.next() {
            match next {
                '"' => {
                    self.at += place + 1;
                    return Ok(value);
                }
                '\\' => value.extend(rest.next().map(|(_, escaped)| escaped)),
                other => value.push(other),
            }
        }
        Err(form(self.header.len()))
    }
}
