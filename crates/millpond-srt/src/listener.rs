//! The listening end: it answers callers until one has returned the cookie.

use crate::{
    Passphrase, Rejection, Sequence, SrtConnection,
    connection::Agreed,
    cookie::Cookies,
    crypto::{BAD_SECRET, KeyFailure, Keys, NO_SECRET},
    extensions::{ExtensionWriter, Extensions, Options},
    handshake::{self, Handshake, Step},
    packet::{self, PAYLOAD, PacketWriter, SocketId, SrtBody},
};
use std::{net::SocketAddr, time::Duration};

/// Packets that may be under way to us: the room of the receiver's buffer.
pub(crate) const WINDOW: u32 = 8192;
/// Longest packet with the headers of IP and UDP.
pub(crate) const MTU: u32 = (PAYLOAD + packet::HEADER + 28) as u32;

/// Answers callers. It keeps nothing for callers that have not returned a cookie, and answers them with no more bytes than they sent.
#[derive(Clone)]
pub struct SrtListener {
    cookies: Cookies,
}

/// Meaning of a datagram for no connection.
#[derive(Debug)]
pub enum SrtArrival {
    /// Nothing that is answered.
    Nothing,
    /// A caller's step, which is answered at once.
    Answer(Vec<u8>),
    /// A caller that has returned its cookie.
    Request(Box<ConnectionRequest>),
}

/// A caller that wants a connection.
#[derive(Clone, Debug)]
pub struct ConnectionRequest {
    peer: SocketAddr,
    handshake: Handshake,
    extensions: Extensions,
    options: Options,
    /// The packet's time, and that of its arrival.
    timestamp: u32,
    arrived: Duration,
}

/// A request whose key material was taken.
#[derive(Debug)]
pub struct UnlockedRequest {
    request: Box<ConnectionRequest>,
    keys: Option<(Keys, Passphrase)>,
}

/// Addressee of a datagram at a listener's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The connection with this socket.
    Connection(SocketId),
    /// The listener. It is a step of a handshake of the caller with this socket.
    Listener(SocketId),
}

impl Destination {
    /// Reads that of a datagram; `None` where it is no packet, or for the listener and no handshake.
    #[must_use]
    pub fn of(datagram: &[u8]) -> Option<Self> {
        let packet = packet::read(datagram)?;
        match packet.body {
            _ if packet.to != SocketId::LISTENER => Some(Self::Connection(packet.to)),
            SrtBody::Handshake(handshake, _) => Some(Self::Listener(handshake.socket)),
            _ => None,
        }
    }
}

impl SrtListener {
    /// Creates a listener. The secret is that of its cookies.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> Self {
        Self { cookies: Cookies::new(secret) }
    }

    /// Takes a datagram for the listener, or for no connection that there is.
    #[must_use]
    pub fn receive(&self, from: SocketAddr, datagram: &[u8], now: Duration) -> SrtArrival {
        let Some(packet) = packet::read(datagram) else { return SrtArrival::Nothing };
        let SrtBody::Handshake(handshake, extensions) = packet.body else { return SrtArrival::Nothing };
        if packet.to != SocketId::LISTENER || handshake.socket == SocketId::LISTENER {
            return SrtArrival::Nothing;
        }
        let writer = PacketWriter { timestamp: microseconds(now), to: handshake.socket };
        match handshake.step {
            Step::Induction => {
                let cookie = self.cookies.make(from, now);
                let (version, extension, address) =
                    (handshake::VERSION, handshake::MAGIC, handshake::address(from.ip()));
                let answer = Handshake { version, encryption: 0, extension, cookie, address, ..handshake };
                SrtArrival::Answer(writer.handshake(&answer, &[]))
            }
            Step::Conclusion if self.cookies.is_good(handshake.cookie, from, now) => {
                match read_wishes(&handshake, extensions) {
                    Ok((extensions, options)) => SrtArrival::Request(Box::new(ConnectionRequest {
                        peer: from,
                        handshake,
                        extensions,
                        options,
                        timestamp: packet.timestamp,
                        arrived: now,
                    })),
                    Err(why) => SrtArrival::Answer(refusal(writer, &handshake, why)),
                }
            }
            _ => SrtArrival::Nothing,
        }
    }
}

fn read_wishes(handshake: &Handshake, extensions: &[u8]) -> Result<(Extensions, Options), Rejection> {
    if handshake.version < handshake::VERSION {
        return Err(Rejection::VERSION);
    }
    let extensions = Extensions::read(extensions).ok_or(Rejection::ROGUE)?;
    let options = extensions.options.ok_or(Rejection::ROGUE)?;
    let is_live = extensions.congestion.as_deref().is_none_or(|name| name == b"live");
    match () {
        () if options.is_bytes() => Err(Rejection::MESSAGE_API),
        () if !is_live || !options.is_timed() => Err(Rejection::CONGESTION),
        () if extensions.has_filter => Err(Rejection::FILTER),
        () if extensions.has_group => Err(Rejection::GROUP),
        () => Ok((extensions, options)),
    }
}

/// A refusal, which has no extensions.
fn refusal(writer: PacketWriter, handshake: &Handshake, why: Rejection) -> Vec<u8> {
    let refused = Handshake { step: Step::Refusal(why), encryption: 0, extension: 0, ..handshake.clone() };
    writer.handshake(&refused, &[])
}

impl ConnectionRequest {
    /// Address of the caller.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The socket of the caller: with its address it tells a repeated request from another one.
    #[must_use]
    pub fn socket(&self) -> SocketId {
        self.handshake.socket
    }

    /// The bytes of the stream id; none where the caller has sent none.
    #[must_use]
    pub fn stream_id(&self) -> &[u8] {
        self.extensions.stream_id.as_deref().unwrap_or_default()
    }

    /// Whether payloads of the connection are to be encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.extensions.keys.is_some()
    }

    /// The version of SRT that the caller tells: major, minor, patch.
    #[must_use]
    pub fn version(&self) -> (u8, u8, u8) {
        let [_, major, minor, patch] = self.options.version.to_be_bytes();
        (major, minor, patch)
    }

    /// Returns the datagram that refuses it.
    #[must_use]
    pub fn refuse(&self, why: Rejection, now: Duration) -> Vec<u8> {
        let writer = PacketWriter { timestamp: microseconds(now), to: self.handshake.socket };
        refusal(writer, &self.handshake, why)
    }

    /// Takes its key material, which costs a millisecond of computation.
    ///
    /// # Errors
    /// The request, and the reason for which it has to be refused: the passphrases differ, or only one side has one.
    pub fn unlock(self: Box<Self>, passphrase: Option<&Passphrase>) -> Result<UnlockedRequest, (Box<Self>, Rejection)> {
        let keys = match (&self.extensions.keys, passphrase) {
            (None, None) => Ok(None),
            (Some(message), Some(passphrase)) => match Keys::unlock(message, passphrase) {
                Ok(keys) => Ok(Some((keys, passphrase.clone()))),
                Err(KeyFailure::BadSecret) => Err(Rejection::BAD_SECRET),
                Err(KeyFailure::Malformed) => Err(Rejection::ROGUE),
            },
            _ => Err(Rejection::UNSECURE),
        };
        match keys {
            Ok(keys) => Ok(UnlockedRequest { request: self, keys }),
            Err(why) => Err((self, why)),
        }
    }
}

impl UnlockedRequest {
    /// The request.
    #[must_use]
    pub fn request(&self) -> &ConnectionRequest {
        &self.request
    }

    /// Accepts it. The connection gives the datagram that says so. `socket` is the id of our socket, which no other connection of the
    /// port has; `latency` is the least time that either side holds payloads for missing ones.
    #[must_use]
    pub fn accept(self, socket: SocketId, latency: Duration, now: Duration) -> SrtConnection {
        let Self { request, keys } = self;
        let ConnectionRequest { peer, handshake, extensions: wishes, options, timestamp, arrived } = *request;
        let ours = milliseconds(latency);
        let (receive, send) = (ours.max(options.sender_delay), ours.max(options.receiver_delay));
        let mut extensions = ExtensionWriter::default();
        extensions.options(&Options::ours(receive, send), true);
        let mut extension = handshake::HAS_OPTIONS;
        if let Some(message) = &wishes.keys {
            extensions.keys(message, true);
            extension |= handshake::HAS_KEYS;
        }
        let answer = Handshake {
            version: handshake::VERSION,
            extension,
            mtu: MTU,
            window: WINDOW,
            step: Step::Conclusion,
            socket,
            address: handshake::address(peer.ip()),
            ..handshake.clone()
        };
        let agreed = Agreed {
            local: socket,
            peer: handshake.socket,
            sequence: handshake.sequence,
            window: handshake.window,
            mtu: handshake.mtu,
            receive_latency: Duration::from_millis(receive.into()),
            send_latency: Duration::from_millis(send.into()),
            keys,
            began: (timestamp, arrived),
            answer: Some((answer, extensions.0)),
        };
        SrtConnection::new(agreed, now)
    }
}

/// The low 32 bits of a time in microseconds.
pub(crate) fn microseconds(time: Duration) -> u32 {
    time.as_micros() as u32
}

/// A latency in milliseconds, as handshakes have it.
pub(crate) fn milliseconds(latency: Duration) -> u16 {
    u16::try_from(latency.as_millis()).unwrap_or(u16::MAX)
}

/// Answer of a receiver to key material that it can't take.
pub(crate) fn key_failure(why: KeyFailure) -> [u8; 4] {
    match why {
        KeyFailure::BadSecret => BAD_SECRET,
        KeyFailure::Malformed => NO_SECRET,
    }
}

/// The first number that a caller sends, of random bits.
pub(crate) fn first_sequence(random: u32) -> Sequence {
    Sequence::new(random)
}
