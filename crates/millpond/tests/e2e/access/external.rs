//! `auth-url`: a server that decides who may play and publish, also when it is slow, wrong or down.

use crate::{
    access::tokens::{LIST, RTSP_CLIP, comes, serve},
    operations::metrics::{By, watch::Watch},
    support::{self, Server, clips, decode, have, rtsp::Client},
};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// How the server that decides behaves.
const FINE: u8 = 0;
const DOWN: u8 = 1;
const SLOW: u8 = 2;
const HUGE: u8 = 3;

/// A server that admits ann with her password, and the token "opaque".
struct Decider {
    address: String,
    mode: Arc<AtomicU8>,
    asked: Arc<AtomicUsize>,
    questions: Arc<Mutex<Vec<Value>>>,
}

fn judge(question: &Value) -> &'static str {
    let is = |name: &str, text: &str| question[name] == text;
    match () {
        () if is("user", "ann") && is("password", "pass") => "204 No Content",
        () if is("token", "opaque") => "200 OK",
        () if is("user", "") && is("token", "") => "401 Unauthorized",
        () => "403 Forbidden",
    }
}

fn answer(stream: TcpStream, mode: u8, questions: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let question: Value = serde_json::from_slice(&body).unwrap();
    let status = judge(&question);
    questions.lock().unwrap().push(question);
    let mut stream = reader.into_inner();
    match mode {
        DOWN => write!(stream, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        SLOW => {
            std::thread::sleep(Duration::from_secs(20));
            Ok(())
        }
        HUGE => {
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 1000000000000\r\nConnection: close\r\n\r\n")?;
            let block = vec![b'x'; 1 << 16];
            loop {
                stream.write_all(&block)?;
            }
        }
        _ => write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    }
}

impl Decider {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let decider = Self { address, mode: Arc::default(), asked: Arc::default(), questions: Arc::default() };
        let (mode, asked, questions) = (decider.mode.clone(), decider.asked.clone(), decider.questions.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (mode, questions) = (mode.load(Ordering::Relaxed), questions.clone());
                asked.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || drop(answer(stream, mode, &questions)));
            }
        });
        decider
    }

    fn is(&self, mode: u8) {
        self.mode.store(mode, Ordering::Relaxed);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn last(&self) -> Value {
        self.questions.lock().unwrap().last().cloned().unwrap()
    }
}

/// The status of a playlist for credentials of Basic authentication, in base64.
fn status(server: &Server, basic: &str) -> u16 {
    support::get(server.port, &format!("/{LIST}"), &[("Authorization", &format!("Basic {basic}"))]).status
}

const ANN: &str = "YW5uOnBhc3M=";
const GUESS: &str = "YW5uOmd1ZXNz";

#[test]
fn a_session_is_asked_for_once() {
    let decider = Decider::start();
    let (server, _config) = serve(&format!("auth-url = \"http://{}/auth?key=hidden\"", decider.address), &[]);
    let watch = Watch::begin(&server);
    let refused = server.get(LIST);
    assert_eq!(refused.status, 401);
    assert!(refused.header("www-authenticate").unwrap().starts_with("Basic "), "{:?}", refused.headers);
    assert_eq!((status(&server, ANN), status(&server, GUESS)), (200, 403));
    let before = decider.asked();
    assert!((0..20).all(|_| status(&server, ANN) == 200));
    assert_eq!(decider.asked(), before, "remembered");
    let question = &decider.questions.lock().unwrap()[1].clone();
    assert_eq!((&question["action"], &question["path"]), (&"read".into(), &format!("closed/{RTSP_CLIP}").into()));
    assert_eq!((&question["ip"], &question["protocol"]), (&"127.0.0.1".into(), &"http".into()));
    // A query goes on to the segments, and all of them are one session.
    let moved = server.get(&format!("{LIST}?token=opaque&x=1"));
    let location = moved.header("location").unwrap().to_owned();
    assert_eq!(moved.status, 307);
    let location = location.trim_start_matches("../");
    assert!(location.starts_with("~eyJ") && !location.contains("opaque"), "{location}");
    let before = decider.asked();
    let list = server.get(location);
    assert_eq!((list.status, decider.asked()), (200, before));
    if have("ffmpeg") {
        let own = clips::folder().join(RTSP_CLIP);
        let expected = decode::video(&["-i", own.to_str().unwrap()], "0:v").unwrap();
        let url = server.url(&format!("{LIST}?user=ann&pass=pass"));
        assert_eq!(decode::video(&["-i", &url], "0:v").unwrap().len(), expected.len());
        assert!(decider.asked() <= before + 2, "{} questions for a film", decider.asked() - before);
    }
    // RTSP: by a password, by a token of the query, and by neither.
    let mut client = Client::new(&server, &format!("closed/{RTSP_CLIP}"));
    let asked = client.ask("DESCRIBE", "", "");
    assert_eq!(asked.status, 401);
    assert!(asked.headers["www-authenticate"].starts_with("Basic "));
    assert_eq!(client.ask("DESCRIBE", "", &format!("Authorization: Basic {ANN}\r\n")).status, 200);
    assert_eq!(client.ask("DESCRIBE", "", &format!("Authorization: Basic {GUESS}\r\n")).status, 403);
    let described = client.ask("DESCRIBE", "?token=opaque", "");
    assert_eq!((described.status, &decider.last()["protocol"]), (200, &"rtsp".into()));
    // The tracks are below the base, which carries the query on.
    let (base, before) = (&described.headers["content-base"], decider.asked());
    assert!(base.contains("/~eyJ") && !base.contains("opaque"), "{base}");
    client.url = base.trim_end_matches('/').to_owned();
    let transport = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
    assert_eq!((client.ask("SETUP", "/v1", transport).status, decider.asked()), (200, before));
    let log = server.log_text();
    assert!(!log.contains("hidden") && !log.contains("opaque") && !log.contains("guess"), "{log}");
    watch.end(By::AccessExternal, &server);
}

#[test]
fn viewers_outlive_the_server_that_decides() {
    let decider = Decider::start();
    let rules = format!("auth-url = \"http://{}/\"\nauth-ttl = \"1s\"\nauth-timeout = \"1s\"", decider.address);
    let (server, _config) = serve(&rules, &[]);
    for mode in [DOWN, SLOW] {
        decider.is(FINE);
        comes("the admission", &server, || status(&server, ANN) == 200);
        decider.is(mode);
        std::thread::sleep(Duration::from_millis(1200));
        assert!((0..5).all(|_| status(&server, ANN) == 200), "spared");
        let stranger = support::get(server.port, &format!("/{LIST}?token=opaque&mode={mode}"), &[]);
        assert_eq!((stranger.status, stranger.header("retry-after")), (503, Some("5")));
    }
    // Many who ask at once are one question. Answers hold, and are waited for, as long as a busy machine needs.
    decider.is(FINE);
    let rules = format!("auth-url = \"http://{}/\"\nauth-timeout = \"60s\"", decider.address);
    let (server, _config) = serve(&rules, &[]);
    let before = decider.asked();
    let path = format!("/{LIST}?token=opaque&crowd=1");
    std::thread::scope(|scope| {
        let asks: Vec<_> = (0..20).map(|_| scope.spawn(|| support::get(server.port, &path, &[]).status)).collect();
        assert!(asks.into_iter().all(|ask| ask.join().unwrap() == 307));
    });
    assert_eq!(decider.asked(), before + 1);
    // An endless answer is not read.
    decider.is(HUGE);
    let reply = support::get(server.port, &format!("/{LIST}?token=opaque&huge=1"), &[]);
    assert_eq!(reply.status, 307);
}

#[test]
fn publishers_are_asked_for_too() {
    let decider = Decider::start();
    let port = support::free_port();
    let rtmp = format!("127.0.0.1:{port}");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("millpond.toml");
    let text = format!("[places.in]\nurl = \"publish:\"\nauth-url = \"http://{}/\"\n", decider.address);
    std::fs::write(&config, text).unwrap();
    let server = Server::start(&["--config", config.to_str().unwrap(), "--rtmp", &rtmp]);
    let put = |basic: &str| {
        let authorization = format!("Basic {basic}");
        support::request(server.port, "PUT", "/in/a", &[("Authorization", &authorization), ("Content-Length", "0")])
            .status
    };
    // An empty body is no stream: 415 comes after the admission.
    assert_eq!((put(ANN), put(GUESS)), (415, 403));
    assert_eq!((&decider.last()["action"], &decider.last()["path"]), (&"publish".into(), &"in/a".into()));
    let mut client = Client::new(&server, "in/a");
    assert_eq!(client.ask("ANNOUNCE", "", "").status, 401);
    assert_eq!(client.ask("ANNOUNCE", "", &format!("Authorization: Basic {GUESS}\r\n")).status, 403);
    assert_eq!(client.ask("ANNOUNCE", "", &format!("Authorization: Basic {ANN}\r\n")).status, 400, "no description");
    if have("ffmpeg") {
        let publish = |url: String| {
            let clip = clips::folder().join(RTSP_CLIP);
            let mut ffmpeg = Command::new("ffmpeg");
            ffmpeg.args(["-v", "error", "-nostdin", "-i", clip.to_str().unwrap(), "-c", "copy", "-f", "flv", &url]);
            ffmpeg.output().unwrap().status.success()
        };
        assert!(publish(format!("rtmp://{rtmp}/in/b?user=ann&pass=pass")), "{}", server.log_text());
        assert!(!publish(format!("rtmp://{rtmp}/in/b?user=ann&pass=guess")));
        assert_eq!(decider.last()["protocol"], "rtmp");
    }
}
