//! The calling end: it makes a connection to a listener.

use crate::{
    KeyLength, Passphrase, Rejection, SrtConnection,
    connection::Agreed,
    crypto::Keys,
    extensions::{ExtensionWriter, Extensions, LONGEST_STREAM_ID, Options},
    handshake::{self, Handshake, Step},
    listener::{MTU, WINDOW, first_sequence, microseconds, milliseconds},
    packet::{self, PacketWriter, SocketId, SrtBody},
};
use std::{net::IpAddr, time::Duration};

/// Time between two repetitions of a step.
const AGAIN: Duration = Duration::from_millis(250);

/// How a connection is made.
#[derive(Clone, Debug)]
pub struct CallerOptions {
    /// Address of the listener.
    pub listener: IpAddr,
    /// The stream id; empty where none is sent.
    pub stream_id: String,
    /// The passphrase, and the length of the key; `None` where nothing is encrypted.
    pub encryption: Option<(Passphrase, KeyLength)>,
    /// Least time that either side holds payloads for missing ones.
    pub latency: Duration,
    /// Time after which no connection has been made.
    pub timeout: Duration,
}

/// Why no connection is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailed {
    /// The listener refuses it.
    #[error("the listener refuses the connection: {0}")]
    Refused(Rejection),
    /// The listener does not answer.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The answer has no options of SRT, or others than live streams have.
    #[error("the listener speaks another protocol: expected SRT 1.3 or later")]
    Protocol,
    /// The listener has no passphrase, or another one.
    #[error("the listener has no passphrase, or another one")]
    Secret,
    /// The stream id is too long.
    #[error("the stream id has more than {LONGEST_STREAM_ID} bytes")]
    StreamId,
}

/// A connection that is being made. Call [`poll`](Self::poll) for datagrams to send, first at once, then at the time that it tells;
/// give [`receive`](Self::receive) what arrives.
#[derive(Debug)]
pub struct Caller {
    options: CallerOptions,
    socket: SocketId,
    handshake: Handshake,
    extensions: Vec<u8>,
    keys: Option<Keys>,
    has_cookie: bool,
    began: Duration,
    due: Duration,
}

impl Caller {
    /// Begins. The random bytes are those of the socket's id, the first number, and the key.
    ///
    /// # Errors
    /// The stream id is too long.
    pub fn new(options: CallerOptions, random: &[u8; 56], now: Duration) -> Result<Self, CallFailed> {
        if options.stream_id.len() > LONGEST_STREAM_ID {
            return Err(CallFailed::StreamId);
        }
        let [first, second] = [0, 4].map(|at| {
            let rest = random.get(at..).and_then(|rest| rest.first_chunk());
            rest.map_or(0, |word| u32::from_be_bytes(*word))
        });
        let socket = SocketId(first >> 2 | 1);
        let mut extension = handshake::HAS_OPTIONS;
        let mut extensions = ExtensionWriter::default();
        let delay = milliseconds(options.latency);
        extensions.options(&Options::ours(delay, delay), false);
        let made = options.encryption.as_ref().and_then(|(passphrase, length)| {
            let random = random.last_chunk()?;
            Keys::make(passphrase, *length, random)
        });
        let keys = made.map(|(keys, message)| {
            extensions.keys(&message, false);
            extension |= handshake::HAS_KEYS;
            keys
        });
        if !options.stream_id.is_empty() {
            extensions.stream_id(&options.stream_id);
            extension |= handshake::HAS_OTHERS;
        }
        let length = options.encryption.as_ref().map_or(0, |(_, length)| length.bytes() / 8);
        let handshake = Handshake {
            version: handshake::VERSION,
            encryption: length as u16,
            extension,
            sequence: first_sequence(second),
            mtu: MTU,
            window: WINDOW,
            step: Step::Conclusion,
            socket,
            cookie: 0,
            address: handshake::address(options.listener),
        };
        let extensions = extensions.0;
        Ok(Self { options, socket, handshake, extensions, keys, has_cookie: false, began: now, due: now })
    }

    /// Id of our socket.
    #[must_use]
    pub fn socket(&self) -> SocketId {
        self.socket
    }

    /// Time at which [`poll`](Self::poll) is called next.
    #[must_use]
    pub fn next(&self) -> Duration {
        self.due.min(self.began + self.options.timeout)
    }

    /// Returns the datagram that is to be sent now, if one is due.
    ///
    /// # Errors
    /// The listener has not answered in time.
    pub fn poll(&mut self, now: Duration) -> Result<Option<Vec<u8>>, CallFailed> {
        if now >= self.began + self.options.timeout {
            return Err(CallFailed::Silent(self.options.timeout));
        }
        if now < self.due {
            return Ok(None);
        }
        self.due = now + AGAIN;
        let writer = PacketWriter { timestamp: self.timestamp(now), to: SocketId::LISTENER };
        if self.has_cookie {
            return Ok(Some(writer.handshake(&self.handshake, &self.extensions)));
        }
        let (version, extension) = (handshake::FIRST_VERSION, handshake::DATAGRAMS);
        let first = Handshake { version, extension, encryption: 0, step: Step::Induction, ..self.handshake.clone() };
        Ok(Some(writer.handshake(&first, &[])))
    }

    fn timestamp(&self, now: Duration) -> u32 {
        microseconds(now.saturating_sub(self.began))
    }

    /// Takes a datagram of the listener. Returns the connection when there is one.
    ///
    /// # Errors
    /// The reason for which there will be none.
    pub fn receive(&mut self, datagram: &[u8], now: Duration) -> Result<Option<SrtConnection>, CallFailed> {
        let Some(packet) = packet::read(datagram).filter(|packet| packet.to == self.socket) else { return Ok(None) };
        let SrtBody::Handshake(handshake, extensions) = packet.body else { return Ok(None) };
        match handshake.step {
            Step::Refusal(Rejection::BAD_SECRET | Rejection::UNSECURE) => Err(CallFailed::Secret),
            Step::Refusal(why) => Err(CallFailed::Refused(why)),
            Step::Induction if !self.has_cookie => {
                if handshake.version != handshake::VERSION || handshake.extension != handshake::MAGIC {
                    return Err(CallFailed::Protocol);
                }
                (self.handshake.cookie, self.has_cookie, self.due) = (handshake.cookie, true, now);
                Ok(None)
            }
            Step::Conclusion if self.has_cookie => {
                self.conclude(&handshake, extensions, packet.timestamp, now).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn conclude(
        &mut self,
        handshake: &Handshake,
        extensions: &[u8],
        timestamp: u32,
        now: Duration,
    ) -> Result<SrtConnection, CallFailed> {
        let extensions = Extensions::read(extensions).ok_or(CallFailed::Protocol)?;
        let theirs = extensions.options.filter(Options::is_timed).ok_or(CallFailed::Protocol)?;
        // A listener that can't take the keys answers with one word instead of the message.
        let took_keys = extensions.keys.is_some_and(|answer| answer.len() > 4);
        if self.keys.is_some() != took_keys {
            return Err(CallFailed::Secret);
        }
        let passphrase = self.options.encryption.as_ref().map(|(passphrase, _)| passphrase.clone());
        let ours = milliseconds(self.options.latency);
        let agreed = Agreed {
            local: self.socket,
            peer: handshake.socket,
            sequence: self.handshake.sequence,
            window: handshake.window,
            mtu: handshake.mtu,
            receive_latency: Duration::from_millis(ours.max(theirs.sender_delay).into()),
            send_latency: Duration::from_millis(ours.max(theirs.receiver_delay).into()),
            keys: self.keys.take().zip(passphrase),
            began: (timestamp, now),
            answer: None,
        };
        let mut connection = SrtConnection::new(agreed, now);
        connection.began_at(self.began);
        Ok(connection)
    }
}
