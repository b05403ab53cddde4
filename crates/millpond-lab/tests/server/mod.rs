//! A small HTTP/1.1 server that answers from a function, with the faults that tests need.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The answer to one request.
pub(crate) struct Answer {
    status: u16,
    body: Vec<u8>,
    ranges: bool,
    delay: Duration,
    promised: Option<usize>,
    hang_up: bool,
}

impl Answer {
    pub(crate) fn text(text: &str) -> Self {
        Self {
            status: 200,
            body: text.as_bytes().to_vec(),
            ranges: true,
            delay: Duration::ZERO,
            promised: None,
            hang_up: false,
        }
    }

    pub(crate) fn bytes(length: usize) -> Self {
        Self { body: vec![b'x'; length], ..Self::text("") }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self { status, ..Self::text("an error page") }
    }

    /// Closes the connection instead of answering.
    pub(crate) fn hang_up() -> Self {
        Self { hang_up: true, ..Self::text("") }
    }

    pub(crate) fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    pub(crate) fn without_ranges(self) -> Self {
        Self { ranges: false, ..self }
    }

    /// Says another Content-Length than the body has, and closes after the body.
    pub(crate) fn promising(self, length: usize) -> Self {
        Self { promised: Some(length), ..self }
    }
}

type Route = dyn Fn(&str) -> Answer + Send + Sync;

/// A running server; it ends with the test's runtime.
pub(crate) struct Server {
    address: std::net::SocketAddr,
    log: Arc<Mutex<HashMap<String, usize>>>,
}

impl Server {
    pub(crate) async fn start(route: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let log = Arc::new(Mutex::new(HashMap::new()));
        let (route, asked): (Arc<Route>, _) = (Arc::new(route), log.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (route, asked) = (route.clone(), asked.clone());
                // A client that goes away is no failure of the test.
                tokio::spawn(async move {
                    let _ = connection(stream, &*route, &asked).await;
                });
            }
        });
        Self { address, log }
    }

    pub(crate) fn url(&self, path: &str) -> url::Url {
        format!("http://{}{path}", self.address).parse().expect("a URL")
    }

    /// How often a path was asked for.
    pub(crate) fn asked(&self, path: &str) -> usize {
        self.log.lock().expect("no test panics holding it").get(path).copied().unwrap_or(0)
    }
}

async fn connection(stream: TcpStream, route: &Route, asked: &Mutex<HashMap<String, usize>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_until(b'\n', &mut head).await? == 0 {
                return Ok(());
            }
        }
        let head = String::from_utf8_lossy(&head).to_lowercase();
        let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
        *asked.lock().expect("no holder panics").entry(path.clone()).or_default() += 1;
        let answer = route(&path);
        tokio::time::sleep(answer.delay).await;
        if answer.hang_up {
            return Ok(());
        }
        let range = head.split("range: bytes=").nth(1).and_then(|rest| {
            let (first, last) = rest.split_once("\r\n")?.0.split_once('-')?;
            Some((first.parse::<usize>().ok()?, last.parse::<usize>().ok()?))
        });
        let (status, body) = match range.filter(|_| answer.ranges) {
            Some((first, last)) => (206, answer.body.get(first..=last).unwrap_or_default()),
            None => (answer.status, answer.body.as_slice()),
        };
        let length = answer.promised.unwrap_or(body.len());
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(&[head.as_bytes(), body].concat()).await?;
        stream.flush().await?;
        if answer.promised.is_some() {
            return Ok(());
        }
    }
}
