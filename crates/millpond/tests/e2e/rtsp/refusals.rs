//! Refused RTSP requests: their replies and the log have the reasons that HTTP replies have.

use crate::{
    access::tokens,
    support::{Server, get, rtsp::Client},
};
use serde_json::Value;
use std::path::Path;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/sample");
const OVER_TCP: &str = "RTP/AVP/TCP;unicast;interleaved=0-1";

/// A server of a title, `a.mp4`, and of a file in a format that is not read, `b.mp4`.
fn serve() -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(Path::new(SAMPLE).join("180p.mp4"), folder.path().join("a.mp4")).unwrap();
    // The GUID of an ASF header.
    let mut asf = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c".to_vec();
    asf.resize(5000, 0);
    std::fs::write(folder.path().join("b.mp4"), asf).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap(), "--log-format", "json"]);
    (server, folder)
}

fn detail(server: &Server, path: &str) -> String {
    let problem: Value = serde_json::from_slice(&server.get(path).body).unwrap();
    problem["detail"].as_str().unwrap().to_owned()
}

/// The lines of the log with a message.
fn lines(server: &Server, message: &str) -> Vec<Value> {
    let text = server.log_text();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["message"] == message).collect()
}

#[test]
fn a_refusal_has_its_reason_in_the_body_and_in_the_log() {
    let (server, _folder) = serve();
    let describe = |path: &str| Client::new(&server, path).ask("DESCRIBE", "", "");
    let foreign = describe("b.mp4");
    assert_eq!((foreign.status, &*foreign.headers["content-type"]), (415, "text/plain; charset=utf-8"));
    assert_eq!(foreign.body.trim_end(), detail(&server, "b.mp4/index.m3u8"), "the words of HTTP");
    let missing = describe("none.mp4");
    assert!(missing.status == 404 && missing.body.contains("none.mp4: "), "{}", missing.body);
    let mut client = Client::new(&server, "a.mp4");
    let no_track = client.set_up("v9", OVER_TCP);
    assert!(
        no_track.status == 404 && no_track.body.contains("no track \"v9\". Its tracks are: v1 ("),
        "{}",
        no_track.body
    );
    let service = client.set_up("v1", "RTP/AVP;unicast;client_port=53-54");
    assert!(service.status == 461 && service.body.contains("ports from 1024 on"), "{}", service.body);
    assert_eq!(client.ask("PLAY", "", "Session: none\r\n").body, "no session of this name and client\r\n");
    assert_eq!(client.set_up("v1", OVER_TCP).status, 200);
    let outside = client.ask("PLAY", "", "Range: npt=9000-\r\n");
    assert_eq!((outside.status, &*outside.body), (457, "the part lies outside of the asset\r\n"));
    let words = client.ask("PLAY", "", "Range: npt=soon\r\n").body;
    assert!(words.contains("\"npt=soon\"") && words.contains("expected npt="), "{words}");

    let refused = lines(&server, "RTSP request refused");
    for (status, uri) in [(415, "/b.mp4"), (404, "/none.mp4"), (404, "/a.mp4/v9"), (461, "/a.mp4/v1"), (457, "/a.mp4")]
    {
        let told = refused.iter().find(|line| line["status"] == status && line["uri"].as_str().unwrap().ends_with(uri));
        assert!(told.is_some_and(|line| line["why"].is_string()), "{status} {uri}: {refused:#?}");
    }
    let failed = lines(&server, "RTSP request failed");
    assert!(failed.iter().any(|line| line["path"] == "b.mp4" && line["level"] == "WARN"), "{failed:#?}");
}

#[test]
fn a_rule_that_refuses_is_named_in_the_log_and_the_reply_tells_what_mends_it() {
    let (server, _config) = tokens::serve("access-networks = \"192.0.2.0/24\"", &["--log-format", "json"]);
    let path = "closed/h264_aac.mp4";
    let cure = "The operator of this server can add the network to access-networks";
    let reply = get(server.port, &format!("/{path}/index.m3u8"), &[]);
    assert!(
        reply.status == 403 && reply.text().contains(cure) && !reply.text().contains("192.0.2"),
        "{}",
        reply.text()
    );
    let told = Client::new(&server, path).ask("DESCRIBE", "", "");
    assert!(told.status == 403 && told.body.contains(cure) && !told.body.contains("192.0.2"), "{}", told.body);
    for message in ["request not admitted", "RTSP request not admitted"] {
        let lines = lines(&server, message);
        let named = |line: &Value| {
            let has_path = line["path"].as_str().is_some_and(|logged| logged.contains(path));
            has_path && line["rule"] == "access-networks" && line["level"] == "INFO"
        };
        assert!(lines.iter().any(named), "{message}: {lines:#?}");
    }
}
