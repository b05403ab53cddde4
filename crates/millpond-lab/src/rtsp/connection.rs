//! A client's RTSP connection: requests out, replies and interleaved packets in.

use super::{
    clock::Clock,
    tally::{FailureKind, Step},
};
use bytes::BytesMut;
use millpond_rtp::{
    framing::{self, ServerMessage},
    message::{HeaderName, Method, Request, Response, StatusCode, Url, Version, headers},
};
use std::{cell::RefCell, io, rc::Rc, time::Duration};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::timeout};

/// Bytes read at once: some hundred packets.
const READ: usize = 256 << 10;
/// Of all requests.
const AGENT: &str = "millpond-load";

/// The buffer that all connections of a thread read into, one after the other. Between two reads a connection keeps only
/// the beginning of a message that is not complete.
pub(crate) type Scratch = Rc<RefCell<BytesMut>>;

/// Takes interleaved packets: when they were read, their channel, their bytes.
pub(crate) trait Frames {
    /// One packet.
    fn frame(&mut self, arrival: Duration, channel: u8, bytes: &[u8]);
}

/// An open connection.
pub(crate) struct Connection {
    stream: TcpStream,
    clock: Clock,
    scratch: Scratch,
    rest: Vec<u8>,
    /// Of the last request.
    number: u32,
    /// As the server calls it.
    pub(crate) session: Option<String>,
}

/// Why a request has no good reply.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: FailureKind,
    pub(crate) why: String,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, clock: Clock, scratch: Scratch) -> Self {
        // Without it a request waits for the last one's acknowledgement.
        let _ = stream.set_nodelay(true);
        Self { stream, clock, scratch, rest: Vec::new(), number: 0, session: None }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Asks, and waits for a reply that says 200; gives it with the time it took.
    pub(crate) async fn ask(
        &mut self,
        (step, method): (Step, Method),
        url: &str,
        headers: &[(HeaderName, &str)],
        patience: Duration,
        frames: &mut impl Frames,
    ) -> Result<(Response<Vec<u8>>, Duration), Refusal> {
        let broken = |why: String| Refusal { kind: FailureKind::Closed, why: format!("{}: {why}", step.name()) };
        let request = self.request(method, url, headers).ok_or_else(|| broken(format!("{url} is no URL")))?;
        let asked = self.clock.now();
        let answered = timeout(patience, async {
            self.stream.write_all(&request).await?;
            loop {
                // Replies to what was given up before are passed over.
                if let Some(reply) = self.hear(frames).await?
                    && self.is_answered_by(&reply)
                {
                    return io::Result::Ok(reply);
                }
            }
        });
        let reply = match answered.await {
            Ok(reply) => reply.map_err(|error| broken(error.to_string()))?,
            Err(_) => {
                let why = format!("no reply in {} s", patience.as_secs_f64());
                return Err(Refusal { kind: FailureKind::Timeout(step), why });
            }
        };
        let took = self.clock.now().saturating_sub(asked);
        if reply.status() == StatusCode::Ok {
            return Ok((reply, took));
        }
        let (status, phrase) = (u16::from(reply.status()), reply.reason_phrase());
        Err(Refusal {
            kind: FailureKind::Status(step, status),
            why: format!("{} gives {status} {phrase}", step.name()),
        })
    }

    fn request(&mut self, method: Method, url: &str, headers: &[(HeaderName, &str)]) -> Option<Vec<u8>> {
        self.number += 1;
        let mut request = Request::builder(method, Version::V1_0)
            .request_uri(Url::parse(url).ok()?)
            .header(headers::CSEQ, self.number.to_string())
            .header(headers::USER_AGENT, AGENT);
        if let Some(session) = &self.session {
            request = request.header(headers::SESSION, session.as_str());
        }
        for (name, value) in headers {
            request = request.header(name.clone(), *value);
        }
        let mut bytes = Vec::with_capacity(256);
        // Into memory: nothing that can fail.
        let _ = request.empty().write(&mut bytes);
        Some(bytes)
    }

    fn is_answered_by(&self, reply: &Response<Vec<u8>>) -> bool {
        reply.header(&headers::CSEQ).is_none_or(|number| number.as_str().trim() == self.number.to_string())
    }

    /// Reads once: packets go to `frames`, a reply is given. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The connection ended, or brings what is no RTSP.
    pub(crate) async fn hear(&mut self, frames: &mut impl Frames) -> io::Result<Option<Response<Vec<u8>>>> {
        self.stream.readable().await?;
        let scratch = self.scratch.clone();
        let mut input = scratch.borrow_mut();
        input.clear();
        input.extend_from_slice(&self.rest);
        input.reserve(READ);
        match self.stream.try_read_buf(&mut *input) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
        let arrival = self.clock.now();
        let mut reply = None;
        while let Some(message) = framing::take_reply(&mut input).map_err(io::Error::other)? {
            match message {
                ServerMessage::Data(channel, bytes) => frames.frame(arrival, channel, &bytes),
                // One request is under way at a time.
                ServerMessage::Response(response) => reply = Some(response),
                ServerMessage::Request(_) => {}
            }
        }
        self.rest.clear();
        self.rest.extend_from_slice(&input);
        Ok(reply)
    }

    /// Sends interleaved bytes, where there is room now: what is not sent is lost, as a report may be.
    pub(crate) fn offer(&self, channel: u8, bytes: &[u8]) {
        let mut framed = Vec::with_capacity(4 + bytes.len());
        framed.extend_from_slice(&[b'$', channel]);
        framed.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        framed.extend_from_slice(bytes);
        // Of so few bytes the kernel takes all or none, unless its buffer is full to the brim.
        let _ = self.stream.try_write(&framed);
    }
}
