//! Examples of the RFCs, and possible errors between a client and a guard.

use super::*;
use proptest::prelude::*;

const MUFASA: &str = r#"Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html",
    nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", nc=00000001,
    cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", qop=auth,
    opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#;

/// Tests the example of RFC 7616 3.9.1.
#[test]
fn the_example_of_rfc_7616() {
    for (algorithm, response) in [
        (Algorithm::Md5, "8ca523f5e9506fed4657c9700eebdbec"),
        (Algorithm::Sha256, "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ] {
        let header = format!("{MUFASA}, response=\"{response}\", algorithm={}", algorithm.name()).replace('\n', "");
        let answer: Authorization = header.parse().unwrap();
        assert_eq!((answer.algorithm, answer.response.as_str()), (algorithm, response));
        let secret = Secret::of(algorithm, "Mufasa", "http-auth@example.org", "Circle of Life");
        assert_eq!(secret.response("GET", &answer.uri, &answer.nonce, answer.qop.as_ref()), response);
    }
}

/// Tests RFC 2617 3.5, and the same example in RFC 2069 2.4 (with its erratum 749).
#[test]
fn the_examples_of_rfc_2617_and_2069() {
    let nonce = "dcd98b7102dd2f0e8b11d0f600bfb0c093";
    let secret = Secret::of(Algorithm::Md5, "Mufasa", "testrealm@host.com", "Circle Of Life");
    let qop = Qop { count: 1, cnonce: "0a4f113b".into() };
    let response = secret.response("GET", "/dir/index.html", nonce, Some(&qop));
    assert_eq!(response, "6629fae49393a05397450978507c4ef1");
    let secret = Secret::of(Algorithm::Md5, "Mufasa", "testrealm@host.com", "CircleOfLife");
    assert_eq!(secret.response("GET", "/dir/index.html", nonce, None), "1949323746fe6a43ef61f9606e7febea");
}

const NOW: Duration = Duration::from_secs(1_700_000_000);
const URL: &str = "rtsp://host/film.mp4";

fn guard() -> Guard {
    let nonces = Nonces::new(&[3; 32], Duration::from_secs(300));
    Guard::new("Millpond", &[Algorithm::Md5, Algorithm::Sha256], nonces)
}

fn secret(user: &str, algorithm: Algorithm) -> Option<Secret> {
    (user == "anna").then(|| Secret::of(algorithm, "anna", "Millpond", "pass\"word"))
}

/// Returns the value of a challenge's parameter.
fn parameter<'a>(challenge: &'a str, name: &str) -> &'a str {
    let rest = challenge.split_once(&format!("{name}=")).unwrap().1;
    rest.split(", ").next().unwrap().trim_matches('"')
}

/// Returns the answer of a client that uses this algorithm.
fn answer(algorithm: Algorithm, method: &str, uri: &str, with_qop: bool) -> String {
    let challenges = guard().challenges(NOW, 9, false);
    let challenge = challenges.iter().find(|one| parameter(one, "algorithm") == algorithm.name()).unwrap();
    let nonce = parameter(challenge, "nonce");
    let qop = with_qop.then(|| Qop { count: 0xab, cnonce: "c".into() });
    let response = secret("anna", algorithm).unwrap().response(method, uri, nonce, qop.as_ref());
    let qop = if with_qop { ", qop=auth, nc=000000ab, cnonce=\"c\"" } else { "" };
    let name = algorithm.name();
    let user = r#"username="anna", realm="Millpond""#;
    format!(r#"Digest {user}, nonce="{nonce}", uri="{uri}", response="{response}", algorithm={name}{qop}"#)
}

fn check(method: &str, uri: &str, authorization: &str, now: Duration) -> Result<Authorization, DigestRefusal> {
    guard().check(&DigestRequest { method, uri, authorization: Some(authorization) }, now, secret)
}

#[test]
fn challenges_have_the_strongest_first() {
    let challenges = guard().challenges(NOW, 9, true);
    let names: Vec<&str> = challenges.iter().map(|one| parameter(one, "algorithm")).collect();
    assert_eq!(names, ["SHA-256", "MD5"]);
    for challenge in challenges {
        assert!(challenge.starts_with("Digest realm=\"Millpond\", nonce=\""), "{challenge}");
        assert!(challenge.ends_with(", qop=\"auth\", stale=true"), "{challenge}");
    }
    assert!(!guard().challenges(NOW, 9, false)[0].contains("stale"));
    let odd = Guard::new("a\"b\\\r\nc", &[Algorithm::Md5; 2], Nonces::new(&[0; 32], NOW));
    assert_eq!((odd.realm(), odd.challenges(NOW, 0, false).len()), ("abc", 1));
}

#[test]
fn right_answers_are_let_in() {
    for algorithm in [Algorithm::Sha256, Algorithm::Md5] {
        for with_qop in [true, false] {
            let header = answer(algorithm, "DESCRIBE", URL, with_qop);
            let granted = check("DESCRIBE", URL, &header, NOW).unwrap();
            assert_eq!((granted.user.as_str(), granted.qop.map(|qop| qop.count)), ("anna", with_qop.then_some(0xab)));
        }
    }
    let without_algorithm = answer(Algorithm::Md5, "PLAY", URL, false).replace(", algorithm=MD5", "");
    assert!(check("PLAY", URL, &without_algorithm, NOW).is_ok());
    let upper = answer(Algorithm::Md5, "PLAY", URL, false);
    let response = upper.parse::<Authorization>().unwrap().response;
    assert!(check("PLAY", URL, &upper.replace(&response, &response.to_uppercase()), NOW).is_ok());
}

#[test]
fn wrong_answers_are_not() {
    let header = answer(Algorithm::Sha256, "PLAY", URL, true);
    let wrong = |header: &str, what| {
        let DigestRefusal::Wrong { what: found, .. } = check("PLAY", URL, header, NOW).unwrap_err() else {
            panic!("{header}")
        };
        assert_eq!(found, what, "{header}");
    };
    wrong(&header.replace("anna", "bert"), "user or password");
    wrong(&header.replace("000000ab", "000000ac"), "user or password");
    wrong(&header.replace("Millpond", "Mill"), "realm");
    wrong(&header.replace(URL, "rtsp://host/other.mp4"), "URL");
    wrong(&header.replace(", qop=auth, nc=000000ab, cnonce=\"c\"", ""), "user or password");
    let short = header.parse::<Authorization>().unwrap().response;
    wrong(&header.replace(&short, &short[..63]), "user or password");
    wrong(&header.replace(&short, ""), "user or password");
    assert!(matches!(check("PAUSE", URL, &header, NOW), Err(DigestRefusal::Wrong { .. })), "for another method");
    let guard = Guard::new("Millpond", &[Algorithm::Sha256], Nonces::new(&[3; 32], NOW));
    let header = answer(Algorithm::Md5, "PLAY", URL, true);
    let asked = DigestRequest { method: "PLAY", uri: URL, authorization: Some(&header) };
    assert!(matches!(guard.check(&asked, NOW, secret), Err(DigestRefusal::Wrong { what: "algorithm", .. })));
    let anonymous = DigestRequest { authorization: None, ..asked };
    assert_eq!(guard.check(&anonymous, NOW, secret), Err(DigestRefusal::Anonymous));
}

#[test]
fn old_nonces_are_stale_only_with_the_right_password() {
    let header = answer(Algorithm::Sha256, "PLAY", URL, true);
    let later = NOW + Duration::from_secs(301);
    let refusal = check("PLAY", URL, &header, later).unwrap_err();
    assert!(refusal.is_stale());
    let other = check("PLAY", URL, &header.replace("000000ab", "00000001"), later).unwrap_err();
    assert!(!other.is_stale());
}

#[test]
fn answers_for_the_whole_are_answers_for_its_streams() {
    for (answered, asked, expected) in [
        (URL, URL, true),
        (URL, "rtsp://host/film.mp4/", true),
        ("rtsp://host/film.mp4/", URL, true),
        (URL, "rtsp://host/film.mp4/v1", true),
        (URL, "rtsp://host/film.mp4.mp4", false),
        ("rtsp://host/film.mp4/v1", URL, false),
        ("*", "*", true),
        ("", URL, false),
        ("/", URL, false),
        ("rtsp:", URL, false),
    ] {
        assert_eq!(covers(answered, asked), expected, "{answered} {asked}");
    }
}

#[test]
fn headers_are_read_in_all_their_forms() {
    let header = r#" digest  Username = "a\"b\\", ,realm="", nonce=n,URI="/",response="AB" , opaque="x=,y""#;
    let answer: Authorization = header.parse().unwrap();
    assert_eq!((answer.user.as_str(), answer.realm.as_str(), answer.nonce.as_str()), ("a\"b\\", "", "n"));
    assert_eq!((answer.response.as_str(), answer.algorithm, answer.qop), ("ab", Algorithm::Md5, None));
    let rest = "realm=r, nonce=n, uri=u, response=e";
    let answer: Authorization = format!("Digest username*=UTF-8''J%C3%A4s%C3%B8n%20Doe, {rest}").parse().unwrap();
    assert_eq!(answer.user, "Jäsøn Doe", "RFC 7616 3.9.2");
}

#[test]
fn headers_that_mean_nothing_are_named() {
    let rest = "realm=r, nonce=n, uri=u, response=e";
    for (header, words) in [
        ("Basic YTpi".to_owned(), "scheme \"Basic\""),
        (String::new(), "scheme \"\""),
        (format!("Digest {rest}"), "username is None"),
        (format!("Digest username=a, {}", &rest[8..]), "realm is None"),
        (format!("Digest username=a, {rest}, algorithm=MD5-sess"), "algorithm is Some(\"MD5-sess\")"),
        (format!("Digest username=a, {rest}, qop=auth-int"), "qop is Some(\"auth-int\")"),
        (format!("Digest username=a, {rest}, qop=auth, nc=1, cnonce=c"), "nc is Some(\"1\")"),
        (format!("Digest username=a, {rest}, qop=auth, nc=+0000001, cnonce=c"), "nc is Some"),
        (format!("Digest username=a, {rest}, qop=auth, nc=00000001"), "cnonce is None"),
        (format!("Digest username=a, {rest}, userhash=true"), "userhash is Some(\"true\")"),
        (format!("Digest username=a, username*=UTF-8''a, {rest}"), "username is Some(\"a\")"),
        (format!("Digest username*=UTF-8''%4, {rest}"), "username* is"),
        (format!("Digest username=a, {rest}, realm=other"), "each parameter once"),
        ("Digest username".to_owned(), "byte 15"),
        ("Digest username=".to_owned(), "byte 16"),
        ("Digest username=\"a".to_owned(), "byte 18"),
        ("Digest username=\"a\" realm".to_owned(), "byte 20: expected a comma"),
        (format!("Digest {}", "a".repeat(5000)), "5007 bytes"),
    ] {
        let error = header.parse::<Authorization>().unwrap_err().to_string();
        assert!(error.contains(words), "{header}: {error}");
    }
    assert!(matches!(check("PLAY", URL, "Basic YTpi", NOW), Err(DigestRefusal::Malformed(_))));
}

#[test]
fn secrets_are_not_shown() {
    let secret = Secret::of(Algorithm::Md5, "anna", "Millpond", "x");
    assert_eq!(format!("{secret:?}"), "Secret { algorithm: Md5, .. }");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(Digest )?[a-z*]{0,9}=?\"?.{0,40}") {
        let _ = text.parse::<Authorization>();
    }
}
