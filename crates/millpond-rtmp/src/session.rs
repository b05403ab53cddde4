//! The connection of a publisher as a state machine.

use crate::{
    RtmpError,
    amf0::{Reader, Value},
    chunk::ChunkReader,
    handshake::Handshake,
    message::{self, Message},
    reply,
};
use bytes::{Bytes, BytesMut};

/// Most bytes of messages under way before the client publishes.
const MOST_BEFORE: usize = 64 << 10;
/// The same while it publishes: a key frame, and messages beside it.
const MOST_MEDIA: usize = 8 << 20;
/// Least bytes between two acknowledgements.
const LEAST_WINDOW: u32 = 4096;
/// Event of a ping request (RTMP 1.0, 7.1.7).
const PING: u16 = 6;

/// An action of the client that the caller must answer or pass on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RtmpEvent {
    /// It asks to publish: call [`Session::accept`] or [`Session::refuse`].
    Publish(PublishTarget),
    /// It sends pictures or sound. This happens only after [`Session::accept`].
    Media(Bytes),
    /// It stops publishing.
    End,
}

/// The stream that a client names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishTarget {
    /// Application and stream, as the client wrote them, without slashes at both ends.
    pub path: String,
    /// Queries of the application's and the stream's name: the text behind `?`. It may contain a password.
    pub query: String,
}

/// Why a publication is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The stream can't have that name, or has another publisher.
    Name,
    /// The client may not publish.
    Denied,
    /// The server can't receive the stream.
    Failed,
}

/// The state of a connection.
///
/// Call [`receive`](Self::receive) whenever bytes have arrived, until it returns nothing. Then send the bytes of
/// [`take_output`](Self::take_output). The session holds at most 64 KiB before it is accepted, and 8 MiB afterwards.
#[derive(Debug)]
pub struct Session {
    handshake: Handshake,
    chunks: ChunkReader,
    output: Vec<u8>,
    application: String,
    course: Course,
    /// Bytes of chunks that were received, modulo 2^32.
    received: u32,
    acknowledged: u32,
    window: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Idle,
    Asked,
    Publishing,
    Over,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            handshake: Handshake::First,
            chunks: ChunkReader::new(MOST_BEFORE),
            output: Vec::new(),
            application: String::new(),
            course: Course::Idle,
            received: 0,
            acknowledged: 0,
            window: reply::WINDOW,
        }
    }
}

impl Session {
    /// Takes bytes from the front. Returns the next event, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// The client violates the protocol, or wants to play. Send the output, and close the connection.
    pub fn receive(&mut self, input: &mut BytesMut) -> Result<Option<RtmpEvent>, RtmpError> {
        if !self.handshake.receive(input, &mut self.output)? {
            return Ok(None);
        }
        loop {
            let before = input.len();
            let message = self.chunks.read(input)?;
            self.received = self.received.wrapping_add((before - input.len()) as u32);
            if self.received.wrapping_sub(self.acknowledged) >= self.window {
                self.acknowledged = self.received;
                reply::acknowledgement(&mut self.output, self.received);
            }
            let Some(message) = message else { return Ok(None) };
            if let Some(event) = self.message(message)? {
                return Ok(Some(event));
            }
        }
    }

    /// Removes and returns the bytes for the client.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Lets the client publish.
    pub fn accept(&mut self) {
        if self.course == Course::Asked {
            self.course = Course::Publishing;
            self.chunks.allow(MOST_MEDIA);
            reply::began(&mut self.output);
        }
    }

    /// Tells the client why it may not publish, or why its publication ends. Send the output, and close the connection.
    pub fn refuse(&mut self, refusal: Refusal, description: &str) {
        let code = match refusal {
            Refusal::Name => "NetStream.Publish.BadName",
            Refusal::Denied => "NetStream.Publish.Denied",
            Refusal::Failed => "NetStream.Publish.Failed",
        };
        self.course = Course::Over;
        reply::status(&mut self.output, "error", code, description);
    }

    fn message(&mut self, message: Message) -> Result<Option<RtmpEvent>, RtmpError> {
        let kind = message.kind;
        let number = || message.number().ok_or(RtmpError::Message { kind, expected: "a number of 32 bits" });
        match kind {
            message::SET_CHUNK_SIZE => self.chunks.set_chunk_size(number()?)?,
            message::ABORT => self.chunks.abort(number()?),
            message::WINDOW_SIZE => self.window = (number()? / 2).clamp(LEAST_WINDOW, reply::WINDOW),
            message::USER_CONTROL => {
                if let Some((&[high, low, ..], time)) = message.body().split_first_chunk::<2>()
                    && u16::from_be_bytes([high, low]) == PING
                    && let Some(time) = time.first_chunk()
                {
                    reply::pong(&mut self.output, *time);
                }
            }
            message::AUDIO | message::VIDEO if self.course == Course::Publishing => {
                return Ok(Some(RtmpEvent::Media(message.into_tag())));
            }
            message::COMMAND => return self.command(kind, message.body()),
            // The first byte tells that AMF 0 follows, as it always does.
            message::COMMAND_AMF3 => return self.command(kind, message.body().get(1..).unwrap_or_default()),
            message::AGGREGATE => return Err(RtmpError::Aggregate),
            _ => {}
        }
        Ok(None)
    }

    /// Performs a command (RTMP 1.0, 7.2). Unknown ones are ignored.
    fn command(&mut self, kind: u8, body: &[u8]) -> Result<Option<RtmpEvent>, RtmpError> {
        let mut values = Reader(body);
        let Some(name) = values.value().and_then(Value::text) else {
            return Err(RtmpError::Message { kind, expected: "the name of a command" });
        };
        let transaction = values.value().and_then(Value::number).unwrap_or(0.0);
        match name {
            "connect" => {
                let application = values.value().and_then(|object| object.property("app")).and_then(Value::text);
                self.application = application.unwrap_or_default().to_owned();
                reply::connected(&mut self.output, transaction);
            }
            "createStream" => reply::created(&mut self.output, transaction),
            "publish" => {
                values.value();
                let Some(stream) = values.value().and_then(Value::text) else {
                    return Err(RtmpError::Message { kind, expected: "the name of a stream" });
                };
                if self.course != Course::Idle {
                    return Err(RtmpError::Second);
                }
                self.course = Course::Asked;
                return Ok(Some(RtmpEvent::Publish(PublishTarget::of(&self.application, stream))));
            }
            "play" | "play2" => {
                let words = "this server takes streams by RTMP, and plays them by RTSP, HLS and DASH";
                reply::status(&mut self.output, "error", "NetStream.Play.Failed", words);
                return Err(RtmpError::Play(name.to_owned()));
            }
            "FCUnpublish" | "deleteStream" | "closeStream" if self.course == Course::Publishing => {
                self.course = Course::Over;
                return Ok(Some(RtmpEvent::End));
            }
            _ => {}
        }
        Ok(None)
    }
}

impl PublishTarget {
    /// Joins the names of application and stream.
    fn of(application: &str, stream: &str) -> Self {
        let mut target = Self::default();
        for name in [application, stream] {
            let (path, query) = name.split_once('?').unwrap_or((name, ""));
            for (all, part, between) in
                [(&mut target.path, path.trim_matches('/'), '/'), (&mut target.query, query, '&')]
            {
                if !part.is_empty() && !all.is_empty() {
                    all.push(between);
                }
                all.push_str(part);
            }
        }
        target
    }
}
