//! The connection of a publisher or player as a state machine.

use crate::{
    RtmpError, RtmpMedia, StreamTarget,
    amf0::Value,
    capabilities::Capabilities,
    command::Command,
    handshake::Handshake,
    link::{Inbound, Link},
    message::Message,
    reply,
};
use bytes::{Bytes, BytesMut};

/// An action of the client that the caller must answer or pass on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RtmpEvent {
    /// It asks to publish: call [`Session::accept`] or [`Session::refuse`].
    Publish(StreamTarget),
    /// It asks to play: call [`Session::accept`] or [`Session::refuse`].
    Play(StreamTarget),
    /// It sends pictures or sound. This happens only after a publication was accepted.
    Media(Bytes),
    /// It stops publishing or playing.
    End,
}

/// Why a publication or playback is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The stream can't have that name, has another publisher, or does not exist.
    Name,
    /// The client may not publish or play.
    Denied,
    /// The server can't receive or send the stream.
    Failed,
}

/// The state of a connection.
///
/// Call [`receive`](Self::receive) whenever bytes have arrived, until it returns nothing. Then send the bytes of
/// [`take_output`](Self::take_output). The session holds at most 64 KiB of the client's messages before it is accepted as a publisher,
/// and 8 MiB afterwards.
#[derive(Debug)]
pub struct Session {
    handshake: Handshake,
    link: Link,
    application: String,
    client: Capabilities,
    course: Course,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Idle,
    /// The client asks to publish, or to play.
    Asked {
        plays: bool,
    },
    Publishing,
    Playing,
    Over,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            handshake: Handshake::First,
            link: Link::default(),
            application: String::new(),
            client: Capabilities::default(),
            course: Course::Idle,
        }
    }
}

impl Session {
    /// Takes bytes from the front. Returns the next event, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// The client violates the protocol. Send the output, and close the connection.
    pub fn receive(&mut self, input: &mut BytesMut) -> Result<Option<RtmpEvent>, RtmpError> {
        if !self.handshake.receive(input, &mut self.link.output)? {
            return Ok(None);
        }
        while let Some(inbound) = self.link.receive(input)? {
            let event = match inbound {
                Inbound::Media(tag) => (self.course == Course::Publishing).then_some(RtmpEvent::Media(tag)),
                Inbound::Command(message) => self.command(&message)?,
                Inbound::StreamEof => None,
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Removes and returns the bytes for the client.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.link.output)
    }

    /// Whether the client reads several tracks of sound.
    #[must_use]
    pub fn reads_tracks(&self) -> bool {
        self.client.is_multitrack
    }

    /// Lets the client publish or play.
    pub fn accept(&mut self) {
        let Course::Asked { plays } = self.course else { return };
        if plays {
            self.course = Course::Playing;
            reply::playing(&mut self.link);
        } else {
            self.course = Course::Publishing;
            self.link.allow_media();
            reply::publishing(&mut self.link);
        }
    }

    /// Sends media to a client that plays.
    pub fn send(&mut self, media: &RtmpMedia<'_>) {
        if self.course == Course::Playing {
            self.link.writer.media(&mut self.link.output, reply::STREAM, &[], media);
        }
    }

    /// Tells a client that plays why its stream has ended. Send the output, and close the connection.
    pub fn finish(&mut self, description: &str) {
        if self.course == Course::Playing {
            self.course = Course::Over;
            reply::ended(&mut self.link, description);
        }
    }

    /// Tells the client why it may not publish or play, or why its publication ends. Send the output, and close the connection.
    pub fn refuse(&mut self, refusal: Refusal, description: &str) {
        let plays = matches!(self.course, Course::Asked { plays: true } | Course::Playing);
        let code = match (plays, refusal) {
            (true, Refusal::Name) => "NetStream.Play.StreamNotFound",
            (true, Refusal::Denied | Refusal::Failed) => "NetStream.Play.Failed",
            (false, Refusal::Name) => "NetStream.Publish.BadName",
            (false, Refusal::Denied) => "NetStream.Publish.Denied",
            (false, Refusal::Failed) => "NetStream.Publish.Failed",
        };
        self.course = Course::Over;
        reply::status(&mut self.link, "error", code, description);
    }

    /// Performs a command (RTMP 1.0, 7.2). Unknown ones are ignored, and so are pauses and seeks of players.
    fn command(&mut self, message: &Message) -> Result<Option<RtmpEvent>, RtmpError> {
        let mut command = Command::read(message)?;
        let (link, transaction) = (&mut self.link, command.transaction);
        match command.name {
            "connect" => {
                let object = command.values.value();
                let application = object.and_then(|object| object.property("app")).and_then(Value::text);
                self.application = application.unwrap_or_default().to_owned();
                self.client = object.map_or_else(Capabilities::default, Capabilities::of);
                reply::connected(link, transaction, self.client);
            }
            "createStream" => reply::result(link, transaction, Some(reply::STREAM.into())),
            // Old encoders wait for the answers to these.
            "releaseStream" | "_checkbw" => reply::result(link, transaction, None),
            "FCPublish" => {
                reply::result(link, transaction, None);
                reply::known(link, "onFCPublish", "NetStream.Publish.Start");
            }
            "FCSubscribe" => reply::known(link, "onFCSubscribe", "NetStream.Play.Start"),
            // Live streams have none.
            "getStreamLength" => reply::result(link, transaction, Some(0.0)),
            name @ ("publish" | "play" | "play2") => {
                let Some(stream) = command.text() else {
                    return Err(RtmpError::Message { kind: message.kind, expected: "the name of a stream" });
                };
                if self.course != Course::Idle {
                    return Err(RtmpError::Second);
                }
                let (plays, target) = (name != "publish", StreamTarget::of(&self.application, stream));
                self.course = Course::Asked { plays };
                return Ok(Some(if plays { RtmpEvent::Play(target) } else { RtmpEvent::Publish(target) }));
            }
            "FCUnpublish" if self.course == Course::Publishing => return Ok(Some(self.end())),
            "deleteStream" | "closeStream" if matches!(self.course, Course::Publishing | Course::Playing) => {
                return Ok(Some(self.end()));
            }
            _ => {}
        }
        Ok(None)
    }

    fn end(&mut self) -> RtmpEvent {
        self.course = Course::Over;
        RtmpEvent::End
    }
}
