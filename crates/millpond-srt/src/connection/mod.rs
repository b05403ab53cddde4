//! A connection between two peers.

mod peer_clock;
mod receiver;
mod rtt;
mod sender;

pub use receiver::SrtReceived;

use crate::{
    Passphrase, Sequence,
    crypto::Keys,
    handshake::{Handshake, Step},
    listener::{key_failure, microseconds},
    packet::{self, Data, PAYLOAD, PacketWriter, SocketId, SrtBody},
};
use bytes::Bytes;
use receiver::Receiver;
use sender::Sender;
use std::{collections::VecDeque, time::Duration};

/// Silence after which the peer is told that we are there.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Silence of the peer after which the connection has ended.
const SILENT: Duration = Duration::from_secs(5);
/// Datagrams beside payloads that wait to be sent, at most: a flood of questions is not answered for ever.
const WAITING: usize = 256;
/// Least time between two derivations of a key, each of which costs a millisecond.
const DERIVE: Duration = Duration::from_secs(1);
/// Payloads of a key, at most: the numbers of packets, and so the key stream, would begin again.
const PAYLOADS: u64 = 1 << 31;

/// Result of the handshake, on which both sides agree.
#[derive(Debug)]
pub(crate) struct Agreed {
    pub(crate) local: SocketId,
    pub(crate) peer: SocketId,
    /// The first number of both directions.
    pub(crate) sequence: Sequence,
    pub(crate) window: u32,
    pub(crate) mtu: u32,
    pub(crate) receive_latency: Duration,
    pub(crate) send_latency: Duration,
    pub(crate) keys: Option<(Keys, Passphrase)>,
    /// Timestamp and arrival of the peer's last step of the handshake.
    pub(crate) began: (u32, Duration),
    /// The answer to a caller, which it may ask for again.
    pub(crate) answer: Option<(Handshake, Vec<u8>)>,
}

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SrtEnded {
    /// The peer has closed it.
    #[error("its peer closed the connection")]
    Closed,
    /// The peer is silent.
    #[error("nothing arrived for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// As many payloads were sent as a key is good for.
    #[error("the key was used up")]
    KeyUsedUp,
}

/// Counts of a connection so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets with payloads that arrived, and bytes of payloads in them.
    pub received: (u64, u64),
    /// Packets that were not delivered: they came too late, or never.
    pub lost: u64,
    /// Packets that were not decrypted, because their key is not known.
    pub undecrypted: u64,
    /// Packets with payloads that were sent, repetitions among them, and bytes of payloads in them.
    pub sent: (u64, u64),
    /// Packets that were sent again.
    pub repeated: u64,
    /// Payloads that were dropped because they were too late.
    pub dropped: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
}

/// A connection.
///
/// - Give each datagram of the peer to [`receive`](Self::receive), and payloads to [`send`](Self::send).
/// - Then, and at the time of [`next`](Self::next), call [`tick`](Self::tick), take datagrams from [`poll`](Self::poll) until there are
///   none, and payloads from [`deliver`](Self::deliver) until there are none.
/// - [`close`](Self::close) gives the last datagram.
#[derive(Debug)]
pub struct SrtConnection {
    local: SocketId,
    peer: SocketId,
    began: Duration,
    answer: Option<(Handshake, Vec<u8>)>,
    sender: Sender,
    receiver: Receiver,
    /// Longest payload that fits.
    payload: usize,
    /// Keys of what is received and sent: at first the same.
    keys: Option<(Keys, Passphrase)>,
    sending_keys: Option<Keys>,
    derived: Duration,
    encrypted: u64,
    undecrypted: u64,
    latency: (Duration, Duration),
    control: VecDeque<Vec<u8>>,
    heard: Duration,
    spoke: Duration,
    is_closed: bool,
}

impl SrtConnection {
    pub(crate) fn new(agreed: Agreed, now: Duration) -> Self {
        let Agreed { local, peer, sequence, window, mtu, receive_latency, send_latency, keys, began, answer } = agreed;
        let room = usize::try_from(mtu).unwrap_or(usize::MAX).saturating_sub(28 + packet::HEADER);
        let mut connection = Self {
            local,
            peer,
            began: now,
            answer,
            sender: Sender::new(sequence, window, send_latency),
            receiver: Receiver::new(sequence, receive_latency, began),
            payload: room.min(PAYLOAD),
            sending_keys: keys.as_ref().map(|(keys, _)| keys.clone()),
            keys,
            derived: now,
            encrypted: 0,
            undecrypted: 0,
            latency: (receive_latency, send_latency),
            control: VecDeque::new(),
            heard: now,
            spoke: now,
            is_closed: false,
        };
        connection.put_answer(now);
        connection
    }

    /// Sets the time of timestamp 0: handshakes were sent before.
    pub(crate) fn began_at(&mut self, began: Duration) {
        self.began = began;
    }

    /// Id of our socket, which the peer's packets name.
    #[must_use]
    pub fn socket(&self) -> SocketId {
        self.local
    }

    /// Time that payloads are held for missing ones: those received, and those sent.
    #[must_use]
    pub fn latency(&self) -> (Duration, Duration) {
        self.latency
    }

    /// Longest payload that can be sent, in bytes.
    #[must_use]
    pub fn longest_payload(&self) -> usize {
        self.payload
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            received: (self.receiver.packets, self.receiver.bytes),
            lost: self.receiver.lost,
            undecrypted: self.undecrypted,
            sent: (self.sender.packets, self.sender.bytes),
            repeated: self.sender.again,
            dropped: self.sender.dropped,
            rtt: if self.sender.packets > 0 { self.sender.rtt.smoothed } else { self.receiver.rtt.smoothed },
        }
    }

    fn writer(&self, at: Duration) -> PacketWriter {
        PacketWriter { timestamp: microseconds(at.saturating_sub(self.began)), to: self.peer }
    }

    fn put(&mut self, datagram: Vec<u8>) {
        if self.control.len() < WAITING {
            self.control.push_back(datagram);
        }
    }

    fn put_answer(&mut self, now: Duration) {
        let writer = self.writer(now);
        let answer = self.answer.as_ref().map(|(handshake, extensions)| writer.handshake(handshake, extensions));
        if let Some(answer) = answer {
            self.put(answer);
        }
    }

    /// Takes the next payload, which must not be empty nor longer than [`longest_payload`](Self::longest_payload); others are left out.
    pub fn send(&mut self, payload: Bytes, now: Duration) {
        if payload.is_empty() || payload.len() > self.payload {
            return;
        }
        let Some(keys) = &self.sending_keys else { return self.sender.push(payload, None, now) };
        let mut payload = payload.to_vec();
        let slot = keys.slot();
        if keys.apply(slot, self.sender.next(), &mut payload) {
            self.encrypted += 1;
            self.sender.push(payload.into(), Some(slot), now);
        }
    }

    /// Takes a datagram of the peer. Another caller's or connection's changes nothing.
    ///
    /// # Errors
    /// The peer has closed the connection.
    pub fn receive(&mut self, datagram: &[u8], now: Duration) -> Result<(), SrtEnded> {
        let Some(packet) = packet::read(datagram) else { return Ok(()) };
        if packet.to == SocketId::LISTENER {
            // The answer was lost: the caller asks again.
            if matches!(&packet.body, SrtBody::Handshake(of, _) if of.step == Step::Conclusion && of.socket == self.peer)
            {
                self.put_answer(now);
            }
            return Ok(());
        }
        if packet.to != self.local {
            return Ok(());
        }
        self.heard = now;
        match packet.body {
            SrtBody::Data(data) => self.take_data(packet.timestamp, &data, now),
            SrtBody::Acknowledgement(of) => {
                self.sender.acknowledged(&of, now);
                if of.number != 0 {
                    self.put(self.writer(now).acknowledged(of.number));
                }
            }
            SrtBody::Losses(losses) => {
                for range in self.sender.losses(&losses, now) {
                    self.put(self.writer(now).dropped(range));
                }
            }
            SrtBody::Acknowledged(number) => self.receiver.answered(number, now),
            SrtBody::Dropped(range) => self.receiver.drop_range(range, now),
            SrtBody::KeyMaterial { is_answer: false, bytes } => self.take_keys(bytes, now),
            SrtBody::Shutdown => {
                self.is_closed = true;
                return Err(SrtEnded::Closed);
            }
            SrtBody::Handshake(..) | SrtBody::KeepAlive | SrtBody::KeyMaterial { .. } | SrtBody::Other => {}
        }
        Ok(())
    }

    fn take_data(&mut self, timestamp: u32, data: &Data<'_>, now: Duration) {
        let Data { sequence, key, is_again, payload, .. } = *data;
        if payload.is_empty() || !self.receiver.takes(sequence) {
            return self.receiver.refuse(sequence);
        }
        let payload = match (&self.keys, key) {
            (None, None) => Bytes::copy_from_slice(payload),
            (Some((keys, _)), Some(slot)) => {
                let mut payload = payload.to_vec();
                if !keys.apply(slot, sequence, &mut payload) {
                    self.undecrypted += 1;
                    return;
                }
                payload.into()
            }
            // A payload that should be encrypted, or should not.
            _ => {
                self.undecrypted += 1;
                return;
            }
        };
        if let Some(range) = self.receiver.push(sequence, (timestamp, is_again), payload, now) {
            self.put(self.writer(now).losses([range]));
        }
    }

    /// Takes the next key of the peer (draft-sharabayko-srt-01 6.1.6).
    fn take_keys(&mut self, message: &[u8], now: Duration) {
        let Some((keys, passphrase)) = &mut self.keys else {
            return self.put(self.writer(now).key_material(true, &crate::crypto::NO_SECRET));
        };
        let result = if keys.is_alike(message) {
            keys.refresh(message)
        } else if now < self.derived + DERIVE {
            // The peer repeats it.
            return;
        } else {
            self.derived = now;
            Keys::unlock(message, passphrase).map(|new| *keys = new)
        };
        let answer = match result {
            Ok(()) => self.writer(now).key_material(true, message),
            Err(why) => self.writer(now).key_material(true, &key_failure(why)),
        };
        self.put(answer);
    }

    /// Does what is due.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn tick(&mut self, now: Duration) -> Result<(), SrtEnded> {
        if self.is_closed {
            return Err(SrtEnded::Closed);
        }
        if now >= self.heard + SILENT {
            return Err(SrtEnded::Silent(SILENT));
        }
        if self.encrypted >= PAYLOADS {
            return Err(SrtEnded::KeyUsedUp);
        }
        self.sender.drop_late(now);
        if let Some(of) = self.receiver.acknowledge(now) {
            self.put(self.writer(now).acknowledgement(&of));
        }
        if let Some(ranges) = self.receiver.missing(now) {
            self.put(self.writer(now).losses(ranges));
        }
        if now >= self.spoke + KEEP_ALIVE {
            self.spoke = now;
            self.put(self.writer(now).keep_alive());
        }
        Ok(())
    }

    /// Returns a datagram that is sent now, if there is one.
    pub fn poll(&mut self, now: Duration) -> Option<Vec<u8>> {
        if let Some(datagram) = self.control.pop_front() {
            self.spoke = now;
            return Some(datagram);
        }
        let (began, to) = (self.began, self.peer);
        let (at, data) = self.sender.poll(now)?;
        let datagram = PacketWriter { timestamp: microseconds(at.saturating_sub(began)), to }.data(&data);
        self.spoke = now;
        Some(datagram)
    }

    /// Returns a payload that is due, or the number of those that are lost before it.
    pub fn deliver(&mut self, now: Duration) -> Option<SrtReceived> {
        self.receiver.pop(now)
    }

    /// Whether all payloads that were sent have arrived, or were dropped.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.sender.is_empty()
    }

    /// Time at which [`tick`](Self::tick) must be called, unless something arrives before.
    #[must_use]
    pub fn next(&self) -> Duration {
        let times = [self.heard + SILENT, self.spoke + KEEP_ALIVE];
        let halves = [self.sender.wake(), self.receiver.wake()];
        times.into_iter().chain(halves.into_iter().flatten()).min().unwrap_or_default()
    }

    /// Ends the connection. Returns the last datagram.
    pub fn close(&mut self, now: Duration) -> Vec<u8> {
        self.is_closed = true;
        self.writer(now).shutdown()
    }
}
