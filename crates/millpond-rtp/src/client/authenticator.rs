//! Answers challenges of a server (RFC 7616, RFC 7617).

use super::options::ClientOptions;
use crate::digest::{Algorithm, Authorization, Challenge, Qop, Secret, challenges};
use base64::{Engine as _, prelude::BASE64_STANDARD};

/// Knows the credentials, and the challenge that requests answer.
#[derive(Clone, Debug)]
pub(super) struct Authenticator {
    answer: Answer,
    cnonce: String,
}

#[derive(Clone, Debug)]
enum Answer {
    /// The server has demanded nothing yet.
    None,
    Basic,
    Digest(Box<Digest>),
}

#[derive(Clone, Debug)]
struct Digest {
    secret: Secret,
    /// Answer with the parameters of the challenge; URL and response are those of a request.
    answer: Authorization,
}

/// Effect of a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Challenged {
    /// The answer to the last challenge was correct, but its nonce has expired.
    Stale,
    /// The challenge is a new one.
    Fresh,
}

impl Authenticator {
    pub(super) fn new(random: u64) -> Self {
        Self { answer: Answer::None, cnonce: format!("{random:016x}") }
    }

    /// Takes the challenges of a 401, and chooses the strongest one.
    ///
    /// # Errors
    /// The reason why none can be answered.
    pub(super) fn challenged(&mut self, header: &str, options: &ClientOptions) -> Result<Challenged, &'static str> {
        let credentials = options.credentials.as_ref().ok_or("no credentials are configured")?;
        let all = challenges(header);
        let strength = |challenge: &Challenge| match challenge {
            Challenge::Digest { algorithm: Algorithm::Sha256, .. } => 2,
            Challenge::Digest { algorithm: Algorithm::Md5, .. } => 1,
            Challenge::Basic => 0,
        };
        // The first of equal ones, as the server prefers it.
        let best = all.into_iter().rev().max_by_key(strength).ok_or("no supported challenge")?;
        match best {
            Challenge::Basic if !options.allows_basic => Err("only Basic is offered, which is not allowed"),
            Challenge::Basic if credentials.user.contains(':') => Err("Basic allows no colon in a user name"),
            Challenge::Basic => {
                self.answer = Answer::Basic;
                Ok(Challenged::Fresh)
            }
            Challenge::Digest { realm, nonce, opaque, algorithm, is_session, has_qop, is_stale } => {
                let secret = Secret::of(algorithm, &credentials.user, &realm, &credentials.password);
                let secret = if is_session { secret.of_session(&nonce, &self.cnonce) } else { secret };
                // The server needs the client nonce, which only answers with `qop` have.
                let has_qop = has_qop || is_session;
                let answer = Authorization {
                    user: credentials.user.clone(),
                    realm,
                    nonce,
                    uri: String::new(),
                    response: String::new(),
                    algorithm,
                    is_session,
                    qop: has_qop.then(|| Qop { count: 0, cnonce: self.cnonce.clone() }),
                    opaque,
                };
                self.answer = Answer::Digest(Box::new(Digest { secret, answer }));
                Ok(if is_stale { Challenged::Stale } else { Challenged::Fresh })
            }
        }
    }

    /// Returns the `Authorization` of a request, if the server demands one.
    pub(super) fn authorization(&mut self, method: &str, url: &str, options: &ClientOptions) -> Option<String> {
        match &mut self.answer {
            Answer::None => None,
            Answer::Basic => {
                let credentials = options.credentials.as_ref()?;
                let pair = format!("{}:{}", credentials.user, credentials.password);
                Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
            }
            Answer::Digest(digest) => {
                let Digest { secret, answer } = &mut **digest;
                if let Some(qop) = &mut answer.qop {
                    qop.count = qop.count.saturating_add(1);
                }
                answer.uri = url.to_owned();
                answer.response = secret.response(method, url, &answer.nonce, answer.qop.as_ref());
                Some(answer.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Credentials, *};
    use crate::digest::{DigestRequest, Guard, nonce::Nonces};
    use std::time::Duration;

    const URL: &str = "rtsp://host/film.mp4";
    const NOW: Duration = Duration::from_secs(1_700_000_000);

    fn options(user: &str) -> ClientOptions {
        let credentials = Credentials { user: user.into(), password: "p\u{e4}ss:word".into() };
        ClientOptions { credentials: Some(credentials), random: 7, ..ClientOptions::new("test") }
    }

    #[test]
    fn guards_accept_the_answers() {
        for user in ["admin", "a \"quoted\\ name", "J\u{e4}s\u{f8}n", "line\r\nX: y"] {
            for algorithm in [Algorithm::Md5, Algorithm::Sha256] {
                let guard = Guard::new("the realm", &[algorithm], Nonces::new(&[1; 32], NOW));
                let options = options(user);
                let mut authenticator = Authenticator::new(options.random);
                assert_eq!(authenticator.authorization("PLAY", URL, &options), None);
                let challenges = guard.challenges(NOW, 1, false).join(", ");
                assert_eq!(authenticator.challenged(&challenges, &options), Ok(Challenged::Fresh));
                for count in 1..4 {
                    let header = authenticator.authorization("PLAY", URL, &options).unwrap();
                    assert!(!header.contains(['\r', '\n']), "{header}");
                    let asked = DigestRequest { method: "PLAY", uri: URL, authorization: Some(&header) };
                    let secret =
                        |user: &str, algorithm| Some(Secret::of(algorithm, user, "the realm", "p\u{e4}ss:word"));
                    let answer = guard.check(&asked, NOW, secret).unwrap();
                    assert_eq!((answer.user.as_str(), answer.qop.unwrap().count), (user, count));
                }
            }
        }
    }

    /// The secret is defined by RFC 7616 3.4.2: H(H(user:realm:password):nonce:cnonce).
    #[test]
    fn secrets_of_one_session_are_computed() {
        let options = options("admin");
        let mut authenticator = Authenticator::new(7);
        let challenge = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5-sess";
        assert!(authenticator.challenged(challenge, &options).is_ok());
        let header = authenticator.authorization("PLAY", URL, &options).unwrap();
        assert!(header.contains("algorithm=MD5-sess") && header.contains("cnonce=\"0000000000000007\""), "{header}");
        let secret = Secret::of(Algorithm::Md5, "admin", "r", "p\u{e4}ss:word").of_session("n", "0000000000000007");
        let qop = Qop { count: 1, cnonce: "0000000000000007".into() };
        let response = secret.response("PLAY", URL, "n", Some(&qop));
        assert!(header.contains(&format!("response=\"{response}\"")), "{header}");
    }

    #[test]
    fn the_strongest_challenge_is_answered_and_basic_only_where_allowed() {
        let mut options = options("Aladdin");
        let mut authenticator = Authenticator::new(0);
        let basic = "Basic realm=\"r\"";
        let old = "Digest realm=\"r\", nonce=\"n\", opaque=\"o\"";
        let all = format!("{basic}, {old}, Digest realm=\"s\", nonce=\"m\", algorithm=SHA-256, qop=\"auth\"");
        assert!(authenticator.challenged(&all, &options).is_ok());
        let header = authenticator.authorization("PLAY", URL, &options).unwrap();
        assert!(header.contains("SHA-256") && header.contains("realm=\"s\"") && header.contains("nc=00000001"));
        assert!(authenticator.challenged(&format!("{basic}, {old}, stale=true"), &options) == Ok(Challenged::Stale));
        let header = authenticator.authorization("PLAY", URL, &options).unwrap();
        assert!(header.contains("opaque=\"o\"") && !header.contains("qop"), "{header}");
        options.credentials.as_mut().unwrap().password = "open sesame".into();
        assert!(authenticator.challenged(basic, &options).is_ok());
        let header = authenticator.authorization("PLAY", URL, &options).unwrap();
        assert_eq!(header, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        options.allows_basic = false;
        assert!(authenticator.challenged(basic, &options).is_err());
        options.credentials = None;
        assert!(authenticator.challenged(old, &options).is_err());
    }
}
