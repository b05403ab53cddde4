//! The steps of the handshake (draft-sharabayko-srt-01 3.2.1).

use crate::{
    Rejection, Sequence,
    packet::{SocketId, word},
};
use std::net::IpAddr;

/// Bytes of a handshake without extensions.
pub(crate) const HANDSHAKE: usize = 48;
/// The version that callers begin with, and that of all further steps.
pub(crate) const FIRST_VERSION: u32 = 4;
pub(crate) const VERSION: u32 = 5;
/// Extension field of a caller's first step: datagrams.
pub(crate) const DATAGRAMS: u16 = 2;
/// Extension field of a listener's first answer: it speaks version 5.
pub(crate) const MAGIC: u16 = 0x4a17;
/// Bits of the extension field of later steps: options of SRT, key material, others.
pub(crate) const HAS_OPTIONS: u16 = 1;
pub(crate) const HAS_KEYS: u16 = 2;
pub(crate) const HAS_OTHERS: u16 = 4;

const INDUCTION: u32 = 1;
const CONCLUSION: u32 = 0xffff_ffff;
/// First type that is a refusal.
const REFUSALS: u32 = 1000;

/// A step of the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    pub(crate) version: u32,
    /// Length of the key in eight bytes; 0 where nothing is encrypted.
    pub(crate) encryption: u16,
    pub(crate) extension: u16,
    /// First sequence number.
    pub(crate) sequence: Sequence,
    /// Longest packet with the headers of IP and UDP.
    pub(crate) mtu: u32,
    /// Packets that may be under way.
    pub(crate) window: u32,
    pub(crate) step: Step,
    /// The socket of the sender.
    pub(crate) socket: SocketId,
    pub(crate) cookie: u32,
    pub(crate) address: [u8; 16],
}

/// Which step it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The caller knocks; the listener answers with a cookie.
    Induction,
    /// The caller returns the cookie with its wishes; the listener accepts.
    Conclusion,
    /// The listener refuses.
    Refusal(Rejection),
    /// A step of a rendezvous, which is not spoken.
    Other(u32),
}

impl Handshake {
    /// Reads a handshake, and returns it with the bytes of its extensions.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, extensions) = bytes.split_at_checked(HANDSHAKE)?;
        let [version, fields, sequence, mtu, window, step, socket, cookie] =
            [0, 1, 2, 3, 4, 5, 6, 7].map(|at| word(head, at).unwrap_or(0));
        let handshake = Self {
            version,
            encryption: (fields >> 16) as u16,
            extension: fields as u16,
            sequence: Sequence::new(sequence),
            mtu,
            window,
            step: match step {
                INDUCTION => Step::Induction,
                CONCLUSION => Step::Conclusion,
                REFUSALS..=0x7fff_ffff => Step::Refusal(Rejection::from_code(step - REFUSALS)),
                other => Step::Other(other),
            },
            socket: SocketId(socket),
            cookie,
            address: head.last_chunk().copied().unwrap_or_default(),
        };
        Some((handshake, extensions))
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let step = match self.step {
            Step::Induction => INDUCTION,
            Step::Conclusion => CONCLUSION,
            Step::Refusal(why) => REFUSALS.saturating_add(why.code()),
            Step::Other(step) => step,
        };
        let fields = u32::from(self.encryption) << 16 | u32::from(self.extension);
        let words =
            [self.version, fields, self.sequence.get(), self.mtu, self.window, step, self.socket.0, self.cookie];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.extend(self.address);
        bytes
    }
}

/// The field of an address. Each of its words begins with the last byte, as libsrt writes them.
pub(crate) fn address(of: IpAddr) -> [u8; 16] {
    let mut field = [0; 16];
    match of.to_canonical() {
        IpAddr::V4(v4) => field[..4].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => field = v6.octets(),
    }
    field.as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
    field
}
