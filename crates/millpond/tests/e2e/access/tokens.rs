//! Who may play: tokens, users and networks, by HTTP and RTSP, with attempts of those who may not.

use crate::operations::metrics::{By, watch::Watch};
use crate::support::{self, Response, Server, clips, decode, have, rtsp::Client};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

pub(crate) const SECRET: &str = "a secret of thirty-two bytes....";
const CLIP: &str = "h264_aac.mp4";
pub(crate) const RTSP_CLIP: &str = CLIP;
pub(crate) const LIST: &str = "closed/h264_aac.mp4/index.m3u8";

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

fn signed(algorithm: Algorithm, claims: &Value, key: &EncodingKey) -> String {
    jsonwebtoken::encode(&Header::new(algorithm), claims, key).unwrap()
}

pub(crate) fn made(claims: &Value) -> String {
    signed(Algorithm::HS256, claims, &EncodingKey::from_secret(SECRET.as_bytes()))
}

/// A server with an open and a closed place of the same clips, and the rules of the closed one.
pub(crate) fn serve(rules: &str, more: &[&str]) -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("millpond.toml");
    let clips = clips::folder().display();
    let text = format!("[places.open]\nurl = \"{clips}\"\n[places.closed]\nurl = \"{clips}\"\n{rules}\n");
    std::fs::write(&config, text).unwrap();
    (Server::start(&[&["--config", config.to_str().unwrap()], more].concat()), folder)
}

/// A file in a folder of its own.
pub(crate) fn file(content: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content).unwrap();
    (folder, path.to_str().unwrap().to_owned())
}

fn with_header(server: &Server, path: &str, name: &str, value: &str) -> Response {
    support::get(server.port, &format!("/{path}"), &[(name, value)])
}

#[test]
fn attempts_without_right_are_refused() {
    let (_secret, key) = file(SECRET.as_bytes());
    let (server, _config) = serve(&format!("access-tokens = \"{key}\"\naccess-audience = \"edge\""), &[]);
    let exp = now() + 600;
    let right = made(&json!({ "exp": exp, "aud": "edge" }));
    let claims = |claims: Value| made(&claims);
    let (head, signature) = right.rsplit_once('.').unwrap();
    let none = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0";
    let payload = head.split('.').nth(1).unwrap();
    let public = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap().public_key_pem();
    let film = json!({ "exp": exp, "aud": "edge", "paths": ["closed/h264_aac.mp4"] });
    let other = json!({ "exp": exp, "aud": "edge", "paths": ["closed/other.mp4"] });
    let away = json!({ "exp": exp, "aud": "edge", "net": "192.0.2.0/24" });
    let by = |algorithm, key: &[u8]| {
        signed(algorithm, &json!({ "exp": exp, "aud": "edge" }), &EncodingKey::from_secret(key))
    };
    let wrong: Vec<(&str, String, u16)> = vec![
        ("expired", claims(json!({ "exp": now() - 60, "aud": "edge" })), 401),
        ("not yet", claims(json!({ "exp": exp, "nbf": now() + 300, "aud": "edge" })), 401),
        ("without a time", claims(json!({ "aud": "edge" })), 401),
        ("a time that is text", claims(json!({ "exp": "tomorrow", "aud": "edge" })), 401),
        ("a negative time", claims(json!({ "exp": -1, "aud": "edge" })), 401),
        ("without an audience", claims(json!({ "exp": exp })), 401),
        ("another audience", claims(json!({ "exp": exp, "aud": "core" })), 401),
        ("an audience in capitals", claims(json!({ "exp": exp, "aud": "EDGE" })), 401),
        ("another path", claims(other), 403),
        ("no path", claims(json!({ "exp": exp, "aud": "edge", "paths": [] })), 403),
        ("half a name", claims(json!({ "exp": exp, "aud": "edge", "paths": ["closed/h264"] })), 403),
        ("a path above by dots", claims(json!({ "exp": exp, "aud": "edge", "paths": ["closed/x/.."] })), 403),
        ("paths that are text", claims(json!({ "exp": exp, "aud": "edge", "paths": "closed" })), 401),
        ("another network", claims(away), 403),
        ("a network that is none", claims(json!({ "exp": exp, "aud": "edge", "net": "here" })), 403),
        ("another secret", by(Algorithm::HS256, b"another secret of 32 bytes......"), 401),
        ("a stronger algorithm", by(Algorithm::HS512, SECRET.as_bytes()), 401),
        ("a public key as a secret", by(Algorithm::HS256, public.as_bytes()), 401),
        ("alg none", format!("{none}.{payload}."), 401),
        ("alg none with the signature", format!("{none}.{payload}.{signature}"), 401),
        ("alg nOnE", format!("eyJhbGciOiJuT25FIn0.{payload}."), 401),
        ("without a signature", format!("{head}."), 401),
        ("without the last dot", head.to_owned(), 401),
        ("half a signature", format!("{head}.{}", &signature[..20]), 401),
        ("a signature more", format!("{right}.{signature}"), 401),
        (
            "another payload",
            format!("{}.{}.{signature}", head.split('.').next().unwrap(), "eyJleHAiOjk5OTk5OTk5OTl9"),
            401,
        ),
        ("nothing but its beginning", "eyJ".to_owned(), 401),
        ("no base64", "eyJ!!!.b.c".to_owned(), 401),
        ("dots", "eyJ....".to_owned(), 401),
        ("large", format!("eyJ{}", "a".repeat(5000)), 401),
    ];
    let mut attempts = 0;
    for (name, token, status) in &wrong {
        let ways = [
            ("path", server.get(&format!("~{token}/{LIST}"))),
            ("query", server.get(&format!("{LIST}?token={token}"))),
            ("Authorization", with_header(&server, LIST, "Authorization", &format!("Bearer {token}"))),
        ];
        for (way, reply) in ways {
            attempts += 1;
            assert_eq!(reply.status, *status, "{name}, {way}: {}", reply.text());
            assert!(!reply.text().contains("EXTM3U"), "{name}, {way}");
        }
    }
    // Where a token is not looked for, and paths that could lead around the rules.
    for (path, name, value, status) in [
        (LIST.to_owned(), "X", String::new(), 401),
        (LIST.to_owned(), "Referer", format!("http://localhost/~{right}/{LIST}"), 401),
        (LIST.to_owned(), "Cookie", format!("token={right}"), 401),
        (LIST.to_owned(), "Authorization", right.clone(), 401),
        (LIST.to_owned(), "Authorization", format!("Basic {right}"), 401),
        (LIST.to_owned(), "X-Forwarded-For", "127.0.0.1".to_owned(), 401),
        (LIST.to_owned(), "Millpond-Home", "1".to_owned(), 401),
        (LIST.to_owned(), "Cache-Control", "only-if-cached".to_owned(), 401),
        (LIST.to_owned(), "CDN-Loop", "millpond".to_owned(), 401),
        (format!("/{LIST}"), "X", String::new(), 401),
        (format!("open/../{LIST}"), "X", String::new(), 400),
        (format!("open/%2e%2e/{LIST}"), "X", String::new(), 400),
        (LIST.replace("closed", "%63losed"), "X", String::new(), 401),
        (LIST.replace("closed", "CLOSED"), "X", String::new(), 404),
        (format!("closed/{CLIP}"), "X", String::new(), 401),
        (format!("closed/{CLIP}/ts/index.m3u8"), "X", String::new(), 401),
        (format!("closed/{CLIP}/index.mpd"), "X", String::new(), 401),
        ("closed/nothing.mp4/index.m3u8".to_owned(), "X", String::new(), 401),
        (".millpond/assets?folder=closed".to_owned(), "X", String::new(), 401),
        (".millpond/assets?folder=//closed/".to_owned(), "X", String::new(), 401),
        (format!(".millpond/asset?path=closed/{CLIP}"), "X", String::new(), 401),
        (format!(".millpond/asset?path=%2F%2Fclosed/{CLIP}"), "X", String::new(), 401),
        (format!(".millpond/brief?path=closed/{CLIP}"), "X", String::new(), 401),
        (format!("~{}/closed/{CLIP}/../other.mp4", made(&film)), "X", String::new(), 403),
        (format!("~{}/closed/{CLIP}/%2e%2e/hevc.mp4", made(&film)), "X", String::new(), 403),
        (format!("~{right}/~{right}/{LIST}"), "X", String::new(), 404),
    ] {
        attempts += 1;
        let reply = with_header(&server, &path, name, &value);
        assert_eq!(reply.status, status, "{path} {name}: {value:.40}: {}", reply.text());
        assert!(!reply.text().contains("EXTM3U") && !reply.text().contains("duration"), "{path}: {}", reply.text());
    }
    assert!(attempts > 100, "{attempts}");
    // The right one is admitted in each of its ways, and what is made of the asset with it.
    for (path, value) in [(format!("~{right}/{LIST}"), String::new()), (LIST.to_owned(), format!("Bearer {right}"))] {
        let reply = with_header(&server, &path, "Authorization", &value);
        assert!(reply.status == 200 && reply.text().contains("EXTM3U"), "{path}: {}", reply.status);
        assert_eq!(reply.header("cache-control").unwrap().split(',').next(), Some("private"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
    }
    let moved = server.get(&format!("{LIST}?token={right}&x=1"));
    assert_eq!((moved.status, moved.header("location")), (307, Some(format!("../../~{right}/{LIST}?x=1").as_str())));
    assert_eq!(server.get(&format!("~{}/{LIST}", made(&film))).status, 200);
    let open = server.get(&LIST.replace("closed", "open"));
    assert!(open.status == 200 && open.header("cache-control").unwrap().starts_with("public"));
    assert_eq!(server.get("").status, 200, "the page itself");
    assert!(server.metric("millpond_access_refusals_total", "why=\"token\"") > 80.0);
    assert!(!server.log_text().contains(&right), "no token in the log");
}

#[test]
fn keys_of_each_kind_admit_and_are_read_again() {
    let exp = now() + 600;
    let claims = json!({ "exp": exp });
    let of = |algorithm: Algorithm, kind: &'static rcgen::SignatureAlgorithm| {
        let pair = rcgen::KeyPair::generate_for(kind).unwrap();
        let private = pair.serialize_pem();
        let key = match algorithm {
            Algorithm::RS256 => EncodingKey::from_rsa_pem(private.as_bytes()),
            Algorithm::ES256 => EncodingKey::from_ec_pem(private.as_bytes()),
            _ => EncodingKey::from_ed_pem(private.as_bytes()),
        };
        (pair.public_key_pem(), signed(algorithm, &claims, &key.unwrap()))
    };
    let pairs = [
        of(Algorithm::RS256, &rcgen::PKCS_RSA_SHA256),
        of(Algorithm::ES256, &rcgen::PKCS_ECDSA_P256_SHA256),
        of(Algorithm::EdDSA, &rcgen::PKCS_ED25519),
    ];
    let all: String = pairs.iter().map(|(public, _)| public.as_str()).collect();
    let (_folder, path) = file(all.as_bytes());
    let (mut server, _config) = serve(&format!("access-tokens = \"{path}\""), &[]);
    let status = |server: &Server, token: &str| server.get(&format!("~{token}/{LIST}")).status;
    let watch = Watch::begin(&server);
    for (number, (_, token)) in pairs.iter().enumerate() {
        assert_eq!(status(&server, token), 200, "key {number}");
    }
    let stranger = of(Algorithm::EdDSA, &rcgen::PKCS_ED25519);
    assert_eq!(status(&server, &stranger.1), 401);
    // Another key replaces them all.
    std::fs::write(&path, &stranger.0).unwrap();
    hang_up(&mut server);
    comes("the new key", &server, || status(&server, &stranger.1) == 200);
    assert_eq!(status(&server, &pairs[0].1), 401, "of a key that is gone");
    // A broken file changes nothing.
    std::fs::write(&path, "short").unwrap();
    hang_up(&mut server);
    comes("the error", &server, || server.log_text().contains("keys of tokens can't be read"));
    assert_eq!(status(&server, &stranger.1), 200);
    watch.end(By::Access, &server);
}

pub(crate) fn hang_up(server: &mut Server) {
    let pid = rustix::process::Pid::from_raw(server.process.0.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
}

pub(crate) fn comes(what: &str, server: &Server, mut is_there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}\n{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn keys_come_from_a_url_and_stay_when_it_is_down() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let is_up = Arc::new(AtomicBool::new(false));
    let up = is_up.clone();
    // "a secret of thirty-two bytes...." in base64url.
    let set = r#"{"keys":[{"kty":"oct","alg":"HS256","kid":"a","k":"YSBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXRlcy4uLi4"}]}"#;
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let (status, body) = if up.load(Ordering::Relaxed) { ("200 OK", set) } else { ("503 Busy", "") };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all((head + body).as_bytes());
        }
    });
    let (server, _config) = serve(&format!("access-tokens = \"http://{address}/keys\""), &[]);
    let token = made(&json!({ "exp": now() + 600 }));
    let status = || server.get(&format!("~{token}/{LIST}")).status;
    assert_eq!(status(), 503, "before the keys were read");
    comes("a failure", &server, || server.metric("millpond_access_key_failures_total", "") >= 1.0);
    is_up.store(true, Ordering::Relaxed);
    comes("the keys", &server, || status() == 200);
    is_up.store(false, Ordering::Relaxed);
    let unknown = signed(
        Algorithm::HS256,
        &json!({ "exp": now() + 600 }),
        &EncodingKey::from_secret(b"another secret of 32 bytes......"),
    );
    assert_eq!(server.get(&format!("~{unknown}/{LIST}")).status, 401, "which asks for the keys again");
    assert_eq!(status(), 200);
}

#[test]
fn users_and_networks_are_asked_for_by_http_and_rtsp() {
    let (_folder, users) = file(b"ann:pass\n");
    let (server, _config) = serve(&format!("access-users = \"{users}\""), &[]);
    let refused = server.get(LIST);
    assert_eq!(refused.status, 401);
    assert!(refused.headers.iter().any(|(_, value)| value.starts_with("Digest ")), "{:?}", refused.headers);
    // The loopback is as good as TLS: nobody overhears it.
    assert_eq!(with_header(&server, LIST, "Authorization", "Basic YW5uOnBhc3M=").status, 200);
    assert_eq!(with_header(&server, LIST, "Authorization", "Basic YW5uOmd1ZXNz").status, 401);
    if have("curl") {
        for scheme in ["--digest", "--basic"] {
            let curl = |who: &str| {
                let output = Command::new("curl")
                    .args(["-s", "-o", "/dev/null", "-w", "%{http_code}", scheme, "-u", who, &server.url(LIST)])
                    .output()
                    .unwrap();
                String::from_utf8(output.stdout).unwrap()
            };
            assert_eq!((curl("ann:pass").as_str(), curl("ann:guess").as_str()), ("200", "401"), "{scheme}");
        }
    }
    let mut client = Client::new(&server, &format!("closed/{CLIP}"));
    assert_eq!(client.ask("DESCRIBE", "", "").status, 401);
    assert_eq!(Client::new(&server, &format!("open/{CLIP}")).ask("DESCRIBE", "", "").status, 200);
    if have("ffmpeg") {
        let of = |who: &str| format!("rtsp://{who}127.0.0.1:{}/closed/{CLIP}", server.rtsp);
        assert!(plays(&["-rtsp_transport", "tcp", "-i", &of("ann:pass@")]));
        assert!(!plays(&["-rtsp_transport", "tcp", "-i", &of("ann:guess@")]));
    }
    let (server, _config) = serve("access-networks = [\"192.0.2.0/24\"]", &[]);
    assert_eq!(server.get(LIST).status, 403);
    assert_eq!(Client::new(&server, &format!("closed/{CLIP}")).ask("DESCRIBE", "", "").status, 403);
    assert_eq!(server.get(&LIST.replace("closed", "open")).status, 200);
}

/// Paths that a search finds, and the number of places that it may not look into.
fn search(server: &Server, path: &str, authorization: &str) -> (Vec<String>, u64) {
    let found = || {
        let reply = with_header(server, path, "Authorization", authorization);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        serde_json::from_slice::<Value>(&reply.body).unwrap()
    };
    comes("the names", server, || found()["of"]["is-reading"] == false);
    let found = found();
    let rows = found["assets"].as_array().unwrap();
    assert_eq!(found["total"], rows.len(), "{found}");
    let paths = rows.iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect();
    (paths, found["of"]["refused"].as_u64().unwrap())
}

#[test]
fn a_search_shows_no_names_of_places_that_refuse_the_viewer() {
    const SEARCH: &str = ".millpond/search?q=H264_aac.mp4";
    let [open, closed] = ["open", "closed"].map(|place| format!("{place}/{CLIP}"));
    let (_secret, key) = file(SECRET.as_bytes());
    let (_folder, users) = file(b"ann:pass\n");
    let (server, _config) = serve(&format!("access-tokens = \"{key}\"\naccess-users = \"{users}\""), &[]);
    let exp = now() + 600;
    let film = made(&json!({ "exp": exp, "paths": [closed] }));
    let both = vec![closed.clone(), open.clone()];
    for (path, authorization, expected) in [
        (SEARCH.to_owned(), String::new(), (vec![open.clone()], 1)),
        (SEARCH.to_owned(), "Basic YW5uOmd1ZXNz".to_owned(), (vec![open.clone()], 1)),
        (SEARCH.to_owned(), "Bearer eyJh.b.c".to_owned(), (vec![open.clone()], 1)),
        (format!("{SEARCH}&token={}", made(&json!({ "exp": now() - 60 }))), String::new(), (vec![open.clone()], 1)),
        (SEARCH.to_owned(), "Basic YW5uOnBhc3M=".to_owned(), (both.clone(), 0)),
        (SEARCH.to_owned(), format!("Bearer {}", made(&json!({ "exp": exp }))), (both.clone(), 0)),
        (format!("~{film}/{SEARCH}"), String::new(), (both, 0)),
        // A token for one film shows that one only.
        (format!("~{film}/.millpond/search?q=.mp4%20closed"), String::new(), (vec![closed], 0)),
    ] {
        assert_eq!(search(&server, &path, &authorization), expected, "{path} {authorization}");
    }
    assert_eq!(server.metric("millpond_access_refusals_total", ""), 0.0, "a search is no attempt");
    let (server, _config) = serve("access-networks = [\"192.0.2.0/24\"]", &[]);
    assert_eq!(search(&server, SEARCH, ""), (vec![open], 1));
}

/// Addresses in a list of titles, once all folders are read.
fn addresses(server: &Server, path: &str) -> Vec<String> {
    let text = || {
        let reply = server.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.text()
    };
    comes("the names", server, || !text().contains("still being read"));
    text().lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn a_list_of_titles_hands_the_token_on() {
    const LIST: &str = ".millpond/all.m3u";
    let [open, closed] = ["open", "closed"].map(|place| format!("{place}/{CLIP}/index.m3u8"));
    let (_secret, key) = file(SECRET.as_bytes());
    let (server, _config) = serve(&format!("access-tokens = \"{key}\""), &[]);
    let film = made(&json!({ "exp": now() + 600, "paths": [format!("closed/{CLIP}")] }));
    let place = made(&json!({ "exp": now() + 600, "paths": ["closed"] }));
    let has = |list: &[String], path: &str| list.contains(&format!("http://localhost/{path}"));
    let nobody = addresses(&server, LIST);
    assert!(has(&nobody, &open) && !nobody.iter().any(|address| address.contains("closed")), "{nobody:?}");
    let in_path = addresses(&server, &format!("~{film}/{LIST}"));
    assert!(has(&in_path, &format!("~{film}/{closed}")) && has(&in_path, &format!("~{film}/{open}")), "{in_path:?}");
    let in_query = addresses(&server, &format!("{LIST}?token={film}"));
    assert!(has(&in_query, &format!("~{film}/{closed}")) && has(&in_query, &open), "{in_query:?}");
    let own: Vec<&String> = in_query.iter().filter(|address| address.contains("/closed/")).collect();
    assert_eq!(own.len(), 1, "a token for one film shows that one only: {own:?}");
    for address in own.iter().map(|address| address.strip_prefix("http://localhost/").unwrap()) {
        assert_eq!(server.get(address).status, 200, "{address}");
    }
    // A folder has the rules of its place.
    let of_folder = addresses(&server, &format!("{LIST}?folder=closed&token={place}"));
    assert!(has(&of_folder, &format!("~{place}/{closed}")), "{of_folder:?}");
    assert!(of_folder.iter().all(|address| address.contains("/closed/")), "{of_folder:?}");
    for (query, status) in [("folder=closed", 401), (&*format!("folder=closed&token={film}"), 403)] {
        assert_eq!(server.get(&format!("{LIST}?{query}")).status, status, "{query}");
    }
}

/// Whether ffmpeg decodes a picture.
fn plays(input: &[&str]) -> bool {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(input).args(["-frames:v", "5", "-f", "null", "-"]);
    command.output().unwrap().status.success()
}

fn sign(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).arg("sign").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn players_play_signed_urls() {
    let (_folder, key) = file(SECRET.as_bytes());
    let (server, _config) = serve(&format!("access-tokens = \"{key}\""), &[]);
    let (film, rtsp) =
        (server.url(&format!("closed/{CLIP}")), format!("rtsp://127.0.0.1:{}/closed/{CLIP}", server.rtsp));
    let signed = sign(&[&format!("{film}/index.m3u8"), "--key", &key, "--for", "10m"]);
    if have("ffmpeg") {
        let file = clips::folder().join(CLIP);
        let expected = decode::video(&["-i", file.to_str().unwrap()], "0:v").unwrap();
        for name in ["index.m3u8", "ts/index.m3u8", "index.mpd"] {
            let url = sign(&[&format!("{film}/{name}"), "--key", &key]);
            let frames = decode::video(&["-i", &url], "0:v").unwrap();
            assert_eq!(frames.len(), expected.len(), "{name}");
        }
        // A token in the query moves into the path.
        let token = signed.split('~').nth(1).unwrap().split('/').next().unwrap();
        let by_query = format!("{film}/index.m3u8?token={token}");
        assert_eq!(decode::video(&["-i", &by_query], "0:v").unwrap().len(), expected.len());
        for url in [sign(&[&rtsp, "--key", &key]), format!("{rtsp}?token={token}")] {
            assert!(plays(&["-rtsp_transport", "tcp", "-i", &url]), "{url}");
        }
        assert!(!plays(&["-rtsp_transport", "tcp", "-i", &rtsp]));
        let short = sign(&[&format!("{film}/index.m3u8"), "--key", &key, "--for", "1s", "--path", "closed/other.mp4"]);
        assert!(!plays(&["-i", &short]));
    }
    let here = sign(&[&format!("{film}/index.m3u8"), "--key", &key, "--network", "127.0.0.0/8"]);
    let there = sign(&[&format!("{film}/index.m3u8"), "--key", &key, "--network", "192.0.2.7"]);
    let status = |url: &str| server.get(url.split_once(&format!("{}/", server.port)).unwrap().1).status;
    assert_eq!((status(&here), status(&there)), (200, 403));
}

/// Plays a URL of HTTP with VLC, whose packages have no RTSP, and counts the pictures that it got.
fn vlc(url: &str) -> usize {
    // VLC does not run as root. The umask applies to folders as they are made.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let file = folder.path().join("out.ts");
    let is_root = rustix::process::geteuid().is_root();
    let mut command = Command::new(if is_root { "setpriv" } else { "cvlc" });
    if is_root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "cvlc"]);
    }
    command.env("HOME", folder.path()).args(["-I", "dummy", "--play-and-exit"]);
    command.arg(format!("--sout=#std{{access=file,mux=ts,dst={}}}", file.display())).args([url, "vlc://quit"]);
    let mut player = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while player.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(180) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = (player.kill(), player.wait());
    decode::video(&["-i", file.to_str().unwrap()], "0:v").map_or(0, |frames| frames.len())
}

#[test]
fn vlc_plays_with_tokens() {
    if !have("cvlc") || !have("ffmpeg") {
        return;
    }
    let (_folder, key) = file(SECRET.as_bytes());
    let (server, _config) = serve(&format!("access-tokens = \"{key}\""), &[]);
    let film = server.url(&format!("closed/{CLIP}/index.m3u8"));
    let token = sign(&[&film, "--key", &key]).split('~').nth(1).unwrap().split('/').next().unwrap().to_owned();
    let of = |name: &str| server.url(&format!("~{token}/closed/{CLIP}{name}"));
    let urls = [of("/index.m3u8"), of("/ts/index.m3u8"), of("/index.mpd"), of(""), format!("{film}?token={token}")];
    std::thread::scope(|scope| {
        let players: Vec<_> = urls.iter().map(|url| (url, scope.spawn(|| vlc(url)))).collect();
        for (url, player) in players {
            // VLC leaves out the last ones when it ends. The clip has 225.
            let pictures = player.join().unwrap();
            assert!(pictures > 150, "{url}: {pictures}\n{}", server.log_text());
        }
    });
    assert_eq!(vlc(&film), 0, "without a token");
}

#[test]
fn faults_of_rules_are_told_at_the_start() {
    let (_folder, key) = file(b"short");
    let check = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_millpond")).arg("check").args(arguments).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (arguments, said) in [
        (["--access-tokens", key.as_str()], "a secret has at least 32 bytes"),
        (["--access-tokens", "/nowhere/key"], "cannot read the file"),
        (["--access-tokens", "http://keys.example/set"], "https"),
        (["--access-users", "/nowhere/users"], "cannot read the file"),
        (["--access-networks", "10.0.0.1/8"], "networks such as"),
    ] {
        let (is_right, told) = check(&arguments);
        assert!(!is_right && told.contains(said), "{arguments:?}: {told}");
    }
    assert!(Path::new(&key).exists());
}
