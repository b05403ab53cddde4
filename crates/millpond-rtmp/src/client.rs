//! The connection to a server, as a state machine.

use crate::{
    RtmpError, RtmpMedia, RtmpUrl,
    amf0::{Property, Value, write_null, write_number, write_properties, write_string},
    capabilities::{Capabilities, OURS},
    command::Command,
    handshake::ClientHandshake,
    link::{Inbound, Link, WINDOW},
    message::{self, Message},
};
use bytes::{Bytes, BytesMut};

/// Transactions of commands.
const CONNECT: u32 = 1;
const RELEASE: u32 = 2;
const ANNOUNCE: u32 = 3;
const CREATE: u32 = 4;
const BEGIN: u32 = 5;
const LEAVE: u32 = 6;
/// Event of user control messages that states how much a player buffers (RTMP 1.0, 7.1.7), and that time in milliseconds.
const SET_BUFFER_LENGTH: u16 = 3;
const BUFFER: u32 = 1000;
/// `start` of `play`: a live stream, and else a recorded one.
const ANY: f64 = -2000.0;
/// Codecs of Flash Player, which some servers compare: all of sound, and all of pictures.
const AUDIO_CODECS: f64 = 4071.0;
const VIDEO_CODECS: f64 = 252.0;

/// The direction in which a client sends or receives its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtmpPurpose {
    /// To send a stream.
    Publish,
    /// To receive a stream.
    Play,
}

/// An event of a connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The server accepts the stream, or begins to send it.
    Ready,
    /// The server sends pictures or sound: an FLV tag.
    Media(Bytes),
    /// The stream has ended, for the reason in these words.
    Ended(&'static str),
}

/// A connection to a server.
///
/// Send the bytes of [`take_output`](Self::take_output) after [`new`](Self::new) and after each other call. Call
/// [`receive`](Self::receive) whenever bytes have arrived, until it returns nothing. The client holds at most 64 KiB of the server's
/// messages before it is ready, and 8 MiB afterwards.
#[derive(Debug)]
pub struct RtmpClient {
    url: RtmpUrl,
    purpose: RtmpPurpose,
    handshake: ClientHandshake,
    link: Link,
    stage: Stage,
    /// Message stream that the server made.
    stream: u32,
    server: Capabilities,
}

/// The command whose answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Handshake,
    Connect,
    Create,
    Begin,
    Ready,
    Over,
}

impl RtmpClient {
    /// Begins a connection.
    #[must_use]
    pub fn new(url: RtmpUrl, purpose: RtmpPurpose) -> Self {
        let mut link = Link::default();
        let handshake = ClientHandshake::begin(&mut link.output);
        let (stage, server) = (Stage::Handshake, Capabilities::default());
        Self { url, purpose, handshake, link, stage, stream: 0, server }
    }

    /// Takes bytes from the front. Returns the next event, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// The server refuses the stream, or violates the protocol.
    pub fn receive(&mut self, input: &mut BytesMut) -> Result<Option<ClientEvent>, RtmpError> {
        if !self.handshake.receive(input, &mut self.link.output)? {
            return Ok(None);
        }
        if self.stage == Stage::Handshake {
            self.connect();
        }
        while let Some(inbound) = self.link.receive(input)? {
            let event = match inbound {
                Inbound::Media(tag) => self.media(tag),
                Inbound::Command(message) => self.command(&message)?,
                Inbound::StreamEof => self.end("the stream has ended"),
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Removes and returns the bytes for the server.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.link.output)
    }

    /// Whether the server reads several tracks of sound. It tells this before it is ready.
    #[must_use]
    pub fn reads_tracks(&self) -> bool {
        self.server.is_multitrack
    }

    /// The answer that is waited for, in words; `None` once the server is ready.
    #[must_use]
    pub fn awaits(&self) -> Option<&'static str> {
        match self.stage {
            Stage::Handshake => Some("the handshake"),
            Stage::Connect => Some("the answer to connect"),
            Stage::Create => Some("the answer to createStream"),
            Stage::Begin if self.purpose == RtmpPurpose::Publish => Some("the answer to publish"),
            Stage::Begin => Some("the answer to play"),
            Stage::Ready | Stage::Over => None,
        }
    }

    /// Sends media to a server that is ready.
    pub fn send(&mut self, media: &RtmpMedia<'_>) {
        if self.stage != Stage::Ready || self.purpose != RtmpPurpose::Publish {
            return;
        }
        let mut prefix = Vec::new();
        if media.kind == message::DATA {
            write_string(&mut prefix, "@setDataFrame");
        }
        self.link.writer.media(&mut self.link.output, self.stream, &prefix, media);
    }

    /// Ends the stream. Send the output, and close the connection.
    pub fn finish(&mut self) {
        if self.stage == Stage::Ready {
            if self.purpose == RtmpPurpose::Publish {
                self.named("FCUnpublish", LEAVE, 0);
            }
            let mut body = begun("deleteStream", LEAVE + 1);
            write_null(&mut body);
            write_number(&mut body, self.stream.into());
            self.link.writer.command(&mut self.link.output, 0, &body);
        }
        self.stage = Stage::Over;
    }

    fn connect(&mut self) {
        self.stage = Stage::Connect;
        let address = self.url.connection();
        let is_player = self.purpose == RtmpPurpose::Play;
        let version = if is_player { "LNX 9,0,124,2" } else { "FMLE/3.0 (compatible; Millpond)" };
        let usual = [
            ("app", Property::Text(self.url.application())),
            ("type", Property::Text("nonprivate")),
            ("flashVer", Property::Text(version)),
            ("tcUrl", Property::Text(&address)),
        ];
        let player = [
            ("fpad", Property::Boolean(false)),
            ("capabilities", Property::Number(15.0)),
            ("audioCodecs", Property::Number(AUDIO_CODECS)),
            ("videoCodecs", Property::Number(VIDEO_CODECS)),
            ("videoFunction", Property::Number(1.0)),
        ];
        let mut body = begun("connect", CONNECT);
        let player = player.into_iter().filter(|_| is_player);
        write_properties(&mut body, usual.into_iter().chain(player).chain(OURS));
        self.link.writer.command(&mut self.link.output, 0, &body);
    }

    /// Asks for a message stream.
    fn create(&mut self) {
        self.stage = Stage::Create;
        match self.purpose {
            RtmpPurpose::Publish => {
                self.link.writer.enlarge(&mut self.link.output);
                self.named("releaseStream", RELEASE, 0);
                self.named("FCPublish", ANNOUNCE, 0);
            }
            RtmpPurpose::Play => {
                self.link.writer.control(&mut self.link.output, message::WINDOW_SIZE, &[&WINDOW.to_be_bytes()]);
            }
        }
        let mut body = begun("createStream", CREATE);
        write_null(&mut body);
        self.link.writer.command(&mut self.link.output, 0, &body);
    }

    /// Asks to publish or play in the message stream.
    fn begin(&mut self) {
        self.stage = Stage::Begin;
        let mut body = begun(if self.purpose == RtmpPurpose::Publish { "publish" } else { "play" }, BEGIN);
        write_null(&mut body);
        write_string(&mut body, self.url.stream());
        match self.purpose {
            RtmpPurpose::Publish => write_string(&mut body, "live"),
            RtmpPurpose::Play => write_number(&mut body, ANY),
        }
        self.link.writer.command(&mut self.link.output, self.stream, &body);
        if self.purpose == RtmpPurpose::Play {
            let event = SET_BUFFER_LENGTH.to_be_bytes();
            let (stream, buffer) = (self.stream.to_be_bytes(), BUFFER.to_be_bytes());
            self.link.writer.control(&mut self.link.output, message::USER_CONTROL, &[&event, &stream, &buffer]);
        }
    }

    /// Sends a command with the name of the stream.
    fn named(&mut self, command: &str, transaction: u32, stream: u32) {
        let mut body = begun(command, transaction);
        write_null(&mut body);
        write_string(&mut body, self.url.stream());
        self.link.writer.command(&mut self.link.output, stream, &body);
    }

    fn media(&mut self, tag: Bytes) -> Option<ClientEvent> {
        (self.stage == Stage::Ready && self.purpose == RtmpPurpose::Play).then_some(ClientEvent::Media(tag))
    }

    fn end(&mut self, why: &'static str) -> Option<ClientEvent> {
        let was_ready = self.stage == Stage::Ready;
        if was_ready {
            self.stage = Stage::Over;
        }
        was_ready.then_some(ClientEvent::Ended(why))
    }

    /// Takes an answer or a status of the server.
    fn command(&mut self, message: &Message) -> Result<Option<ClientEvent>, RtmpError> {
        let mut command = Command::read(message)?;
        let transaction = command.transaction as u32;
        match command.name {
            "_result" if transaction == CONNECT && self.stage == Stage::Connect => {
                let objects = [command.values.value(), command.values.value()];
                let known = objects.into_iter().flatten().map(Capabilities::of);
                self.server = known.fold(Capabilities::default(), Capabilities::or);
                self.create();
            }
            "_result" if transaction == CREATE && self.stage == Stage::Create => {
                command.values.value();
                let Some(stream) = command.values.value().and_then(Value::number) else {
                    return Err(RtmpError::Message { kind: message.kind, expected: "the number of a message stream" });
                };
                self.stream = stream as u32;
                self.begin();
            }
            "_error" => return self.error(command),
            "onStatus" => return self.status(command),
            "close" => return Ok(self.end("the server closes the connection")),
            _ => {}
        }
        Ok(None)
    }

    /// Takes the refusal of a command. Servers need not know `releaseStream` and `FCPublish`.
    fn error(&mut self, mut command: Command<'_>) -> Result<Option<ClientEvent>, RtmpError> {
        let refused = match command.transaction as u32 {
            CONNECT => "connect",
            CREATE => "createStream",
            BEGIN if self.purpose == RtmpPurpose::Publish => "publish",
            BEGIN => "play",
            _ => return Ok(None),
        };
        let objects = [command.values.value(), command.values.value()];
        let info = objects.into_iter().flatten().find(|object| object.property("code").is_some());
        Err(self.refused(refused, info))
    }

    /// Takes the status of the stream.
    fn status(&mut self, mut command: Command<'_>) -> Result<Option<ClientEvent>, RtmpError> {
        command.values.value();
        let info = command.values.value();
        let text = |name: &str| info.and_then(|info| info.property(name)).and_then(Value::text).unwrap_or_default();
        let name = if self.purpose == RtmpPurpose::Publish { "publish" } else { "play" };
        if text("level") == "error" {
            return Err(self.refused(name, info));
        }
        Ok(match text("code") {
            "NetStream.Publish.Start" | "NetStream.Play.Start" if self.stage == Stage::Begin => {
                self.stage = Stage::Ready;
                self.link.allow_media();
                Some(ClientEvent::Ready)
            }
            "NetStream.Play.Stop" | "NetStream.Play.Complete" | "NetStream.Play.UnpublishNotify" => {
                self.end("the stream has ended")
            }
            "NetStream.Unpublish.Success" => self.end("the server ends the publication"),
            "NetConnection.Connect.ReconnectRequest" => self.end("the server asks for another connection"),
            _ => None,
        })
    }

    /// Returns the error of a refusal, whose words are those of the server.
    fn refused(&self, command: &'static str, info: Option<Value<'_>>) -> RtmpError {
        let text = |name: &str| info.and_then(|info| info.property(name)).and_then(Value::text).unwrap_or_default();
        let words = match (text("code"), text("description")) {
            ("", "") => "without a reason".to_owned(),
            (code, "") => code.to_owned(),
            ("", description) => description.to_owned(),
            (code, description) => format!("{code}, {description}"),
        };
        RtmpError::Refused { command, words: self.url.redact(&words) }
    }
}

/// Begins the body of a command.
fn begun(name: &str, transaction: u32) -> Vec<u8> {
    let mut body = Vec::new();
    write_string(&mut body, name);
    write_number(&mut body, transaction.into());
    body
}

#[cfg(test)]
mod tests;
