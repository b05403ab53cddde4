//! A small HTTP server for tests, which misbehaves on demand.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::url_text::decoded;

/// The fault of one request.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Answers this status without a body.
    Status(u16),
    /// Closes after this many bytes of the body.
    Truncate(usize),
    /// Closes without a reply.
    Hangup,
    /// Never answers.
    Silence,
    /// Stops sending after this many bytes of the body.
    Stall(usize),
    /// Sends the whole object.
    IgnoreRange,
    /// Announces another range than it was asked for.
    WrongRange,
    /// Sends at most this many bytes of the range, and announces so.
    Shorter(u64),
    /// Redirects.
    Redirect(String),
}

/// One request as received.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
}

struct Object {
    bytes: Vec<u8>,
    etag: String,
}

#[derive(Default)]
struct State {
    objects: Mutex<BTreeMap<String, Object>>,
    /// For the next requests, one each.
    faults: Mutex<VecDeque<Fault>>,
    /// For all requests after those.
    always: Mutex<Option<Fault>>,
    seen: Mutex<Vec<Seen>>,
}

/// A server on a free port, until dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<State>::default();
        let serving = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = serving.clone();
                tokio::spawn(async move {
                    let _ = serve(stream, &state).await;
                });
            }
        });
        Self { address, state, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Puts an object under its URL path, percent-decoded.
    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        let mut objects = self.state.objects.lock().unwrap();
        let number = fastrand::u64(..);
        let object = Object { bytes: bytes.to_vec(), etag: format!("\"{number:x}\"") };
        objects.insert(path.to_owned(), object);
    }

    pub(crate) fn faults(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.faults.lock().unwrap().extend(faults);
    }

    pub(crate) fn always(&self, fault: Fault) {
        *self.state.always.lock().unwrap() = Some(fault);
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state.seen.lock().unwrap())
    }
}

async fn serve(mut stream: TcpStream, state: &State) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                let rest = buffer.split_off(end + 4);
                break String::from_utf8(std::mem::replace(&mut buffer, rest)).unwrap();
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let seen = parse(&head);
        state.seen.lock().unwrap().push(seen.clone());
        let next = state.faults.lock().unwrap().pop_front();
        let fault = next.or_else(|| state.always.lock().unwrap().clone()).unwrap_or(Fault::None);
        match &fault {
            Fault::Hangup => return Ok(()),
            Fault::Silence => tokio::time::sleep(Duration::from_secs(3600)).await,
            _ => {}
        }
        let (head, body) = answer(&seen, &fault, state);
        stream.write_all(head.as_bytes()).await?;
        match fault {
            Fault::Truncate(len) => {
                stream.write_all(&body[..len.min(body.len())]).await?;
                return stream.shutdown().await;
            }
            Fault::Stall(len) => {
                stream.write_all(&body[..len.min(body.len())]).await?;
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
            _ => stream.write_all(&body).await?,
        }
    }
}

fn parse(head: &str) -> Seen {
    let mut lines = head.lines();
    let mut words = lines.next().unwrap().split(' ');
    let method = words.next().unwrap().to_owned();
    let target = words.next().unwrap().to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Seen { method, target, headers }
}

fn answer(seen: &Seen, fault: &Fault, state: &State) -> (String, Vec<u8>) {
    let simple = |status: u16, more: &str| {
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n{more}\r\n");
        (head, Vec::new())
    };
    match fault {
        Fault::Status(status) => return simple(*status, ""),
        Fault::Redirect(to) => return simple(302, &format!("Location: {to}\r\n")),
        _ => {}
    }
    let objects = state.objects.lock().unwrap();
    let path = decoded(seen.target.split('?').next().unwrap());
    let Some(object) = objects.get(&path) else {
        return simple(404, "");
    };
    if seen.headers.get("if-match").is_some_and(|tag| *tag != object.etag) {
        return simple(412, "");
    }
    let len = object.bytes.len() as u64;
    let mut head = format!(
        "ETag: {}\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: x/y\r\nServer: test/1\r\n",
        object.etag
    );
    let range = seen.headers.get("range").map(|text| {
        let (first, last) = text.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let first: u64 = first.parse().unwrap();
        let last: u64 = last.parse().unwrap();
        first..(last + 1).min(len)
    });
    let (status, body) = match range {
        Some(range) if !matches!(fault, Fault::IgnoreRange) => {
            if range.start >= len {
                return simple(416, &format!("Content-Range: bytes */{len}\r\n"));
            }
            let mut range = range;
            if let Fault::Shorter(most) = fault {
                range.end = range.end.min(range.start + most);
            }
            let body = object.bytes[range.start as usize..range.end as usize].to_vec();
            let shift = u64::from(matches!(fault, Fault::WrongRange));
            head +=
                &format!("Content-Range: bytes {}-{}/{}\r\n", range.start + shift, range.end - 1 + shift, len + shift);
            (206, body)
        }
        _ => (200, object.bytes.clone()),
    };
    head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{head}\r\n", body.len());
    let body = if seen.method == "HEAD" { Vec::new() } else { body };
    (head, body)
}
