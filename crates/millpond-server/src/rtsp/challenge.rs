//! Digest authentication in the words of RTSP: challenges, and answers for a URL (RFC 2326 section 14.12, RFC 7616).

use super::reply::Reply;
use millpond_access::{Passwords, Unproved};
use millpond_rtp::{
    digest::{Authorization, AuthorizationError, DigestRefusal, DigestRequest},
    message::{
        Method, Request, StatusCode, Url,
        headers::{AUTHORIZATION, RETRY_AFTER},
    },
};
use std::{net::IpAddr, time::Duration};

/// A refused request.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) why: Unproved,
    pub(super) reply: Reply,
}

/// Checks a request of a client at a time of the server's clock. OPTIONS needs no credentials.
///
/// # Errors
/// The reason of the refusal, and the reply.
pub(super) fn check(
    passwords: &Passwords,
    request: &Request<Vec<u8>>,
    client: IpAddr,
    now: Duration,
) -> Result<(), Box<Refused>> {
    if matches!(request.method(), Method::Options) {
        return Ok(());
    }
    let authorization = request.header(&AUTHORIZATION).map(|value| value.as_str());
    let url = request.request_uri();
    let same = authorization.and_then(|header| answered(header, url?));
    let uri = same.as_deref().or(url.map(Url::as_str)).unwrap_or("*");
    let asked = DigestRequest { method: request.method().into(), uri, authorization };
    let Err(why) = passwords.check_digest(&asked, client, now) else { return Ok(()) };
    let reply = match &why {
        Unproved::Guesses(many) => {
            Reply::refusal(StatusCode::ServiceUnavailable, many).with(RETRY_AFTER, many.retry_after().to_string())
        }
        // A client that tries another scheme gets a challenge, which names the supported one.
        Unproved::Digest(digest @ DigestRefusal::Malformed(error))
            if !matches!(error, AuthorizationError::Scheme(_)) =>
        {
            Reply::refusal(StatusCode::BadRequest, digest)
        }
        Unproved::Digest(why) => Reply::challenge(passwords.challenges(now, why.is_stale())),
    };
    Err(Box::new(Refused { why, reply }))
}

/// Returns the URL of the `Authorization` header as the client wrote it, if it equals the request's URL after
/// normalization. Requests hold normalized URLs.
fn answered(header: &str, url: &Url) -> Option<String> {
    let answer: Authorization = header.parse().ok()?;
    (Url::parse(&answer.uri).ok()? == *url).then_some(answer.uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_access::{LIFETIME, REALM, UserFile, Users};
    use millpond_rtp::{
        digest::{Algorithm, Qop, Secret},
        message::Version,
    };

    const URL: &str = "rtsp://127.0.0.1/a.mp4";

    fn passwords() -> Passwords {
        Passwords::new(UserFile { path: "users".into(), users: Users::parse(b"ann:pass").unwrap() }, &[7; 32])
    }

    /// The client of all requests.
    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn request(method: Method, url: &str, authorization: Option<&str>) -> Request<Vec<u8>> {
        let builder = Request::builder(method, Version::V1_0).request_uri(Url::parse(url).unwrap());
        let builder = match authorization {
            Some(header) => builder.header(AUTHORIZATION, header),
            None => builder,
        };
        builder.build(Vec::new())
    }

    /// Returns the nonce of the first challenge.
    fn nonce(refused: &Refused) -> String {
        refused.reply.challenges[0].split("nonce=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    }

    fn answer(nonce: &str, algorithm: Algorithm, url: &str, password: &str) -> String {
        let qop = Qop { count: 1, cnonce: "x".into() };
        let response = Secret::of(algorithm, "ann", REALM, password).response("DESCRIBE", url, nonce, Some(&qop));
        format!(
            r#"Digest username="ann", realm="{REALM}", nonce="{nonce}", uri="{url}", response="{response}", algorithm={}, qop=auth, nc=00000001, cnonce="x""#,
            algorithm.name()
        )
    }

    #[test]
    fn who_knows_a_password_is_let_in() {
        let passwords = passwords();
        let now = Duration::from_secs(5);
        assert!(check(&passwords, &request(Method::Options, URL, None), CLIENT, now).is_ok());
        let refused = check(&passwords, &request(Method::Describe, URL, None), CLIENT, now).unwrap_err();
        assert_eq!(
            (refused.reply.status, &refused.why),
            (StatusCode::Unauthorized, &Unproved::Digest(DigestRefusal::Anonymous))
        );
        let challenges = &refused.reply.challenges;
        assert!(
            challenges[0].contains("algorithm=SHA-256") && challenges[1].contains("algorithm=MD5"),
            "{challenges:?}"
        );
        assert_eq!(challenges.len(), 2);
        for algorithm in [Algorithm::Sha256, Algorithm::Md5] {
            let refused = check(&passwords, &request(Method::Describe, URL, None), CLIENT, now).unwrap_err();
            let right = answer(&nonce(&refused), algorithm, URL, "pass");
            assert!(check(&passwords, &request(Method::Describe, URL, Some(&right)), CLIENT, now).is_ok());
            let replayed = check(&passwords, &request(Method::Describe, URL, Some(&right)), CLIENT, now).unwrap_err();
            assert!(
                matches!(replayed.why, Unproved::Digest(DigestRefusal::Replayed { count: 1, .. })),
                "{:?}",
                replayed.why
            );
            assert!(replayed.reply.challenges[0].contains("stale=true"), "who knows the password may answer anew");
            let other = check(&passwords, &request(Method::Setup, URL, Some(&right)), CLIENT, now).unwrap_err();
            assert!(matches!(other.why, Unproved::Digest(DigestRefusal::Wrong { .. })), "an answer to another method");
            let wrong = answer(&nonce(&refused), algorithm, URL, "guess");
            let refused = check(&passwords, &request(Method::Describe, URL, Some(&wrong)), CLIENT, now).unwrap_err();
            assert_eq!(refused.reply.status, StatusCode::Unauthorized);
            assert!(!refused.reply.challenges[0].contains("stale"));
        }
    }

    #[test]
    fn an_old_nonce_is_stale() {
        let passwords = passwords();
        let refused = check(&passwords, &request(Method::Describe, URL, None), CLIENT, Duration::ZERO).unwrap_err();
        let right = request(Method::Describe, URL, Some(&answer(&nonce(&refused), Algorithm::Md5, URL, "pass")));
        assert!(check(&passwords, &right, CLIENT, LIFETIME).is_ok());
        let refused = check(&passwords, &right, CLIENT, LIFETIME + Duration::from_secs(1)).unwrap_err();
        assert_eq!(
            (refused.reply.status, &refused.why),
            (StatusCode::Unauthorized, &Unproved::Digest(DigestRefusal::Stale))
        );
        assert!(refused.reply.challenges.iter().all(|challenge| challenge.contains("stale=true")));
    }

    #[test]
    fn urls_may_be_written_in_another_way() {
        let passwords = passwords();
        let url = "rtsp://127.0.0.1/фильм.mp4";
        let refused = check(&passwords, &request(Method::Describe, url, None), CLIENT, Duration::ZERO).unwrap_err();
        let right = answer(&nonce(&refused), Algorithm::Sha256, url, "pass");
        assert!(check(&passwords, &request(Method::Describe, url, Some(&right)), CLIENT, Duration::ZERO).is_ok());
        assert!(
            check(&passwords, &request(Method::Describe, URL, Some(&right)), CLIENT, Duration::ZERO).is_err(),
            "another URL"
        );
    }

    #[test]
    fn other_schemes_are_told_which_to_take() {
        let passwords = passwords();
        let basic =
            check(&passwords, &request(Method::Describe, URL, Some("Basic YW5uOnBhc3M=")), CLIENT, Duration::ZERO);
        assert_eq!(basic.unwrap_err().reply.status, StatusCode::Unauthorized);
        let broken =
            check(&passwords, &request(Method::Describe, URL, Some("Digest nonsense")), CLIENT, Duration::ZERO);
        assert_eq!(broken.unwrap_err().reply.status, StatusCode::BadRequest);
    }
}
