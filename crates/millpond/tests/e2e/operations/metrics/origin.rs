//! A web server of a few files, which breaks off, waits or refuses when it is told to.

use std::{
    collections::HashMap,
    io::{self, BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

/// How it behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Manner {
    Honest,
    /// Waits before each reply.
    Slow(Duration),
    /// Breaks the next reply off, and is honest from then on.
    CutsOnce,
    /// Refuses with 500.
    Fails,
}

/// The bytes of each file.
type Files = HashMap<String, Arc<[u8]>>;

/// Files and a manner, which can be changed while it serves.
#[derive(Clone)]
pub(crate) struct Origin {
    state: Arc<Mutex<(Manner, Files)>>,
    pub(crate) port: u16,
}

impl Origin {
    pub(crate) fn start(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let files = files.into_iter().map(|(name, bytes)| (name, bytes.into())).collect();
        let origin = Self { state: Arc::new(Mutex::new((Manner::Honest, files))), port };
        let shared = origin.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || while shared.answer(&stream).is_ok() {});
            }
        });
        origin
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn behaves(&self, manner: Manner) {
        self.state.lock().unwrap().0 = manner;
    }

    fn answer(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(1, stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? <= 2 {
                break;
            }
            head.push(line.trim().to_ascii_lowercase());
        }
        let first = head.first().ok_or(io::ErrorKind::UnexpectedEof)?;
        let name = first.split(' ').nth(1).unwrap_or("").trim_start_matches('/').to_owned();
        let (manner, file) = {
            let state = self.state.lock().unwrap();
            (state.0, state.1.get(&name).cloned())
        };
        match manner {
            Manner::Slow(wait) => std::thread::sleep(wait),
            Manner::Fails => return stream.write_all(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
            Manner::Honest | Manner::CutsOnce => {}
        }
        let Some(file) = file else { return stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n") };
        let asked = head.iter().find_map(|line| line.strip_prefix("range: bytes=")?.split_once('-'));
        let (from, to) = asked.map_or((0, file.len()), |(from, to)| {
            (from.parse().unwrap_or(0), to.parse().map_or(file.len(), |to: usize| (to + 1).min(file.len())))
        });
        let part = match asked {
            Some(_) if from < to => format!("206 Partial\r\nContent-Range: bytes {from}-{}/{}", to - 1, file.len()),
            Some(_) => return stream.write_all(b"HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n"),
            None => "200 OK".to_owned(),
        };
        let length = to - from;
        write!(stream, "HTTP/1.1 {part}\r\nETag: \"1\"\r\nAccept-Ranges: bytes\r\nContent-Length: {length}\r\n\r\n")?;
        if first.starts_with("head") {
            return Ok(());
        }
        if manner == Manner::CutsOnce && length > 1000 {
            self.behaves(Manner::Honest);
            stream.write_all(&file[from..from + length / 2])?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        stream.write_all(&file[from..to])
    }
}

/// Bytes that can't be squeezed or guessed.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}
