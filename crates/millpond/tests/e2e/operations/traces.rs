//! Traces by OTLP: a collector of this test decodes the spans of requests, index jobs and origin requests.

use crate::{
    operations::metrics::{By, watch::Watch},
    support::{Server, free_port, get},
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::any_value::Value,
    trace::v1::Span,
};
use prost::Message as _;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/sample");
const LONG: Duration = Duration::from_secs(60);

/// Head and body of a request.
type Noted = (String, Vec<u8>);

/// A server that notes the requests it gets.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Noted>>>);

impl Collector {
    /// Listens on a port. Requests are answered with an empty reply of OTLP.
    fn listen(port: u16) -> Self {
        let collector = Self::default();
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let requests = collector.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let requests = requests.clone();
                std::thread::spawn(move || while requests.take(&stream).is_some() {});
            }
        });
        collector
    }

    fn take(&self, mut stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        self.0.lock().unwrap().push((head, body));
        let reply = ExportTraceServiceResponse::default().encode_to_vec();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
            reply.len()
        )
        .ok()?;
        stream.write_all(&reply).ok()
    }

    /// All spans so far.
    fn spans(&self) -> Vec<Span> {
        let requests = self.0.lock().unwrap();
        let batches = requests.iter().map(|(head, body)| {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
            ExportTraceServiceRequest::decode(body.as_slice()).unwrap()
        });
        let resources = batches.flat_map(|batch| batch.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// A span that is as wanted, once it has arrived.
    fn span(&self, wanted: impl Fn(&Span) -> bool) -> Span {
        let began = Instant::now();
        loop {
            let spans = self.spans();
            if let Some(span) = spans.iter().find(|span| wanted(span)) {
                return span.clone();
            }
            let names: Vec<_> = spans.iter().map(|span| (&span.name, text(span, "url.path"))).collect();
            assert!(began.elapsed() < LONG, "no such span among {names:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn value(span: &Span, key: &str) -> Option<Value> {
    span.attributes.iter().find(|attribute| attribute.key == key)?.value.clone()?.value
}

fn text(span: &Span, key: &str) -> String {
    match value(span, key) {
        Some(Value::StringValue(text)) => text,
        other => format!("{other:?}"),
    }
}

fn number(span: &Span, key: &str) -> i64 {
    match value(span, key) {
        Some(Value::IntValue(number)) => number,
        other => panic!("{key} is {other:?}"),
    }
}

/// A server whose files are at another one, with its traces sent to a port.
fn serve(port: u16, args: &[&str]) -> (Server, Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(Path::new(SAMPLE).join("360p.mp4"), folder.path().join("a.mp4")).unwrap();
    let at = format!("http://127.0.0.1:{port}");
    let trace = ["--trace-endpoint", at.as_str(), "--trace-ratio", "1"];
    let env = [("OTEL_BSP_SCHEDULE_DELAY", "100")];
    // The origin continues the traces of its client.
    let parents = ["--trace-parents", "127.0.0.0/8"];
    let origin = Server::start_with(&[&[folder.path().to_str().unwrap()], &trace[..], &parents].concat(), &env);
    let place = format!("films={}", origin.url(""));
    let server = Server::start_with(&[&[place.as_str()], &trace[..], args].concat(), &env);
    (server, origin, folder)
}

#[test]
fn a_trace_leads_from_the_request_to_the_origin() {
    let port = free_port();
    let collector = Collector::listen(port);
    let (server, _origin, _folder) = serve(port, &["--trace-parents", "127.0.0.1"]);
    let watch = Watch::begin(&server);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let reply = get(server.port, "/films/a.mp4/v1/1.m4s?token=eyJh.b.c", &[("traceparent", &parent)]);
    assert_eq!(reply.status, 200);
    let is_ours = |span: &Span| span.trace_id.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == trace;
    let request = collector.span(|span| is_ours(span) && text(span, "url.path") == "/films/a.mp4/v1/1.m4s");
    assert_eq!(request.parent_span_id, [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]);
    assert_eq!((request.name.as_str(), request.kind), ("GET", 2), "a server's span");
    assert_eq!(number(&request, "http.response.status_code"), 200);
    assert_eq!(number(&request, "http.response.body.size"), reply.body.len() as i64);
    assert_eq!(
        (text(&request, "millpond.kind"), text(&request, "millpond.ended")),
        ("segment".into(), "complete".into())
    );
    let index = collector.span(|span| is_ours(span) && span.name == "index job");
    assert_eq!(index.parent_span_id, request.span_id);
    let has_bytes = |span: &Span| matches!(value(span, "millpond.bytes"), Some(Value::IntValue(1..)));
    collector.span(|span| is_ours(span) && span.name == "slice flight" && has_bytes(span));
    let asked = collector.span(|span| is_ours(span) && span.name == "origin request");
    assert_eq!((text(&asked, "millpond.place"), asked.kind), ("films".into(), 3), "a client's span");
    let parent = collector.span(|span| is_ours(span) && span.span_id == asked.parent_span_id);
    assert!(["GET", "index job", "slice flight"].contains(&parent.name.as_str()), "{parent:?}");
    // The origin's own server continues the trace.
    let there = collector.span(|span| is_ours(span) && span.kind == 2 && span.parent_span_id == asked.span_id);
    assert_eq!(text(&there, "url.path"), "/a.mp4");
    watch.end(By::Traces, &server);
}

#[test]
fn strangers_begin_no_trace_and_a_collector_that_is_down_or_silent_delays_nobody() {
    // A collector that accepts connections and never answers.
    let port = free_port();
    let silent = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let (server, _origin, _folder) = serve(port, &[]);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for number in 0..3_000 {
        // More spans than the queue of the SDK holds.
        let reply = get(server.port, &format!("/nothing-{number}"), &[("traceparent", parent)]);
        assert_eq!(reply.status, 404);
    }
    assert_eq!(server.get("films/a.mp4").status, 200);
    assert_eq!(get(server.admin, "/readyz", &[]).status, 200);
    drop(silent);
    let down = Server::start(&["--trace-endpoint", &format!("http://127.0.0.1:{port}"), "--trace-ratio", "1"]);
    assert_eq!(down.get("sample/index.m3u8").status, 200);
    let began = Instant::now();
    while down.metric("millpond_trace_exports_total", "failed") < 1.0 {
        assert!(began.elapsed() < LONG, "the failure is not counted");
        assert_eq!(down.get("sample/index.m3u8").status, 200);
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn traces_of_strangers_are_not_continued() {
    let port = free_port();
    let collector = Collector::listen(port);
    let (server, _origin, _folder) = serve(port, &[]);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    get(server.port, "/films/a.mp4", &[("traceparent", parent)]);
    let span = collector.span(|span| text(span, "url.path") == "/films/a.mp4");
    assert!(span.parent_span_id.is_empty(), "{span:?}");
    assert_ne!(span.trace_id[..4], [0x0a, 0xf7, 0x65, 0x19], "{span:?}");
}
