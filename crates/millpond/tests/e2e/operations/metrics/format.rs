//! The two text formats.

use crate::support::{Server, get, have};
use std::{
    io::Write as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const OPEN: &str = "application/openmetrics-text; version=1.0.0";

#[test]
fn clients_get_the_format_that_they_ask_for() {
    let server = Server::start(&["films=.", "more=."]);
    server.get("films/nothing.mp4");
    // A reply counts when it was sent, which is after its client has read it.
    let began = Instant::now();
    while server.metric("millpond_http_requests_total", "kind=\"file\",status=\"4xx\"") < 1.0 {
        assert!(began.elapsed() < Duration::from_secs(20), "the reply was not counted");
    }
    for (accept, content_type) in [
        (None, "text/plain; version=0.0.4; charset=utf-8"),
        (Some("*/*"), "text/plain; version=0.0.4; charset=utf-8"),
        (Some(OPEN), "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ] {
        let fields: Vec<_> = accept.map(|value| ("Accept", value)).into_iter().collect();
        let reply = get(server.admin, "/metrics", &fields);
        assert_eq!(reply.header("content-type"), Some(content_type));
        assert_eq!(reply.header("vary"), Some("Accept"));
        let text = reply.text();
        assert_eq!(text.ends_with("# EOF\n"), accept == Some(OPEN), "{accept:?}");
        assert_eq!(text.contains("# TYPE millpond_http_requests counter"), accept == Some(OPEN));
        assert!(text.contains("millpond_http_requests_total{kind=\"file\",status=\"4xx\"} 1"), "{text}");
    }
}

#[test]
fn promtool_finds_nothing_wrong() {
    if !have("promtool") {
        return;
    }
    let server = Server::start(&["films=.", "more=."]);
    server.get("films/nothing.mp4");
    let text = get(server.admin, "/metrics", &[]).text();
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = command.spawn().unwrap();
    tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}
