//! The requests of WHEP: which are answered, and which are refused.

use crate::{
    access::tokens::{SECRET, file, made, now},
    live::webrtc::Pushed,
    support::{
        Server, free_port, request,
        webrtc::{self, SDP, Viewer, offer, send},
    },
};
use serde_json::json;
use std::time::Duration;

const FRAGMENT: (&str, &str) = ("Content-Type", "application/trickle-ice-sdpfrag");
/// Candidates of a client (RFC 8840 9).
const CANDIDATES: &str = "a=ice-ufrag:aaaa\r\na=ice-pwd:bbbbbbbbbbbbbbbbbbbbbb\r\nm=audio 9 RTP/AVP 0\r\na=mid:0\r\n\
                          a=candidate:1 1 udp 1 192.0.2.1 4000 typ host\r\n";

#[test]
fn a_session_ends_when_its_client_asks_for_it() {
    let Some(pushed) = Pushed::start(&[]) else { return };
    let server = &pushed.server;
    let mut viewer = Viewer::new(server, "live/cam");
    viewer.receive(|viewer| viewer.pictures.len() > 5);
    webrtc::until_sessions(server, "playing", 1);
    let session = viewer.session.clone();
    let ask =
        |method: &str, headers: &[(&str, &str)], body: &str| send(server.port, method, &session, headers, body).status;
    assert_eq!((ask("GET", &[], ""), request(server.port, "HEAD", &session, &[]).status), (200, 200));
    assert_eq!(ask("PATCH", &[FRAGMENT], CANDIDATES), 204);
    assert_eq!(ask("PATCH", &[FRAGMENT, ("If-Match", "*")], CANDIDATES), 422, "ICE is not restarted");
    assert_eq!(ask("PATCH", &[FRAGMENT, ("If-Match", "\"another\"")], CANDIDATES), 412);
    assert_eq!(ask("PATCH", &[SDP], CANDIDATES), 415);
    assert_eq!(ask("POST", &[SDP], &offer()), 405);
    let other = format!("/live/cam/whep/{}", "0".repeat(32));
    assert_eq!(send(server.port, "DELETE", &other, &[], "").status, 404);
    let before = viewer.pictures.len();
    viewer.receive(|viewer| viewer.pictures.len() > before + 10);

    assert_eq!(ask("DELETE", &[], ""), 200);
    viewer.receive_to_end(server);
    assert_eq!((ask("DELETE", &[], ""), ask("GET", &[], ""), ask("PATCH", &[FRAGMENT], CANDIDATES)), (404, 404, 404));
    // Packets that were under way arrive.
    viewer.receive_for(Duration::from_millis(200));
    let packets = viewer.packets;
    viewer.receive_for(Duration::from_millis(500));
    assert_eq!(viewer.packets, packets, "packets behind the end");
    webrtc::until_sessions(server, "playing", 0);
    assert_eq!(webrtc::sessions(server).len(), 0);
}

#[test]
fn bad_offers_are_refused() {
    let (server, _) = webrtc::serve(&[]);
    let post = |kind: Option<(&str, &str)>, body: &str| {
        let reply = send(server.port, "POST", "/live/cam/whep", kind.as_slice(), body);
        (reply.status, reply.text())
    };
    let whole = offer();
    for (kind, body, status) in [
        (None, whole.clone(), 415),
        (Some(("Content-Type", "application/json")), whole.clone(), 415),
        (Some(FRAGMENT), CANDIDATES.to_owned(), 415),
        (Some(SDP), String::new(), 400),
        (Some(SDP), "nonsense".to_owned(), 400),
        (Some(SDP), "v=0\r\n".to_owned(), 400),
        (Some(SDP), whole.replace("a=ice-ufrag:", "a=x:"), 400),
        (Some(SDP), whole.replace("a=ice-pwd:", "a=x:"), 400),
        (Some(SDP), whole.replace("a=fingerprint:sha-256 ", "a=fingerprint:sha-256 zz"), 400),
        (Some(SDP), whole.replace("a=recvonly", "a=inactive"), 400),
        (Some(SDP), "a=x\r\n".repeat(20_000), 413),
    ] {
        let (found, problem) = post(kind, &body);
        assert_eq!(found, status, "{kind:?} {}: {problem}", body.get(..40).unwrap_or(&body));
        assert!(problem.contains("\"detail\""), "{problem}");
    }
    assert_eq!(webrtc::sessions(&server).len(), 0);
    assert_eq!(request(server.port, "GET", "/live/cam/whep", &[]).status, 200);
    assert_eq!(send(server.port, "DELETE", "/live/cam/whep", &[], "").status, 405);
}

#[test]
fn without_a_port_offers_are_told_the_setting() {
    let server = Server::start(&["live=publish:"]);
    for method in ["POST", "GET"] {
        let reply = send(server.port, method, "/live/cam/whep", &[SDP], &offer());
        let text = reply.text();
        assert!(reply.status == 404 && text.contains("webrtc"), "{method}: {} {text}", reply.status);
    }
}

#[test]
fn rules_of_access_count_for_offers() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("millpond.toml");
    let ((_secret, key), (_users, users)) = (file(SECRET.as_bytes()), file(b"ann:pass\n"));
    let text = format!(
        "[places.named]\nurl = \"publish:\"\naccess-users = \"{users}\"\n\
         [places.signed]\nurl = \"publish:\"\naccess-tokens = \"{key}\"\n\
         [places.far]\nurl = \"publish:\"\naccess-networks = \"192.0.2.0/24\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let port = format!("127.0.0.1:{}", free_port());
    let server = Server::start(&["--config", config.to_str().unwrap(), "--webrtc", &port]);
    let token = |path: &str| format!("Bearer {}", made(&json!({ "exp": now() + 600, "paths": [path] })));
    let post = |place: &str, authorization: &str| {
        // Rights are looked at before the offer is.
        send(server.port, "POST", &format!("/{place}/cam/whep"), &[SDP, ("Authorization", authorization)], "nonsense")
    };
    let refused = post("named", "none");
    assert_eq!((refused.status, refused.header("www-authenticate").is_some()), (401, true));
    // ann:guess and ann:pass.
    assert_eq!(post("named", "Basic YW5uOmd1ZXNz").status, 401);
    assert_eq!(post("named", "Basic YW5uOnBhc3M=").status, 400);
    assert_eq!((post("named", "Bearer ann:guess").status, post("named", "Bearer ann:pass").status), (401, 400));
    assert_eq!(post("signed", "none").status, 401);
    assert_eq!(post("signed", &token("signed/other")).status, 403);
    assert_eq!(post("signed", &token("signed/cam")).status, 400);
    assert_eq!(post("far", "none").status, 403);
}

#[test]
fn pages_of_other_origins_may_send_offers() {
    let Some(pushed) = Pushed::start(&[]) else { return };
    let server = &pushed.server;
    let origin = ("Origin", "https://page.example");
    let viewer = Viewer::new(server, "live/cam");
    for (path, methods) in [("/live/cam/whep", vec!["POST"]), (&*viewer.session, vec!["PATCH", "DELETE"])] {
        for method in methods {
            let asks =
                [origin, ("Access-Control-Request-Method", method), ("Access-Control-Request-Headers", "if-match")];
            let reply = request(server.port, "OPTIONS", path, &asks);
            let field = |name: &str| reply.header(name).unwrap_or_default();
            assert_eq!((reply.status / 100, field("access-control-allow-origin")), (2, "*"), "{path}");
            assert!(field("access-control-allow-methods").split(", ").any(|allowed| allowed == method), "{path}");
            let fields = field("access-control-allow-headers");
            assert!(["Authorization", "Content-Type", "If-Match"].iter().all(|name| fields.contains(name)), "{fields}");
        }
    }
    assert_eq!(request(server.port, "OPTIONS", "/live/cam/whep", &[origin]).header("accept-post"), Some(SDP.1));
    let reply = send(server.port, "POST", "/live/cam/whep", &[SDP, origin], &offer());
    let exposed = reply.header("access-control-expose-headers").unwrap_or_default();
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (201, Some("*")));
    assert!(["Location", "ETag", "Link"].iter().all(|name| exposed.contains(name)), "{exposed}");
}
