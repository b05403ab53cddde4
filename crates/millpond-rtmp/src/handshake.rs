//! The handshake (RTMP 1.0, 5.2).

use crate::RtmpError;
use bytes::{Buf as _, BytesMut};

/// Version of RTMP without encryption.
const VERSION: u8 = 3;
/// Bytes of C1, S1, C2 and S2.
const PACKET: usize = 1536;
/// Bytes of time and zero, before the random bytes of a packet.
const HEAD: usize = 8;

/// The part of a server's handshake that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// C0 and C1.
    First,
    /// C2, whose contents say nothing that is needed.
    Second,
    /// Nothing: chunks follow.
    Done,
}

impl Handshake {
    /// Takes as much of the input as belongs to the handshake, and writes the replies. Returns whether it is done.
    ///
    /// # Errors
    /// The client speaks another version.
    pub(crate) fn receive(&mut self, input: &mut BytesMut, output: &mut Vec<u8>) -> Result<bool, RtmpError> {
        if *self == Self::First {
            match input.first() {
                Some(&VERSION) | None => {}
                Some(&other) => return Err(RtmpError::Version(other)),
            }
            let Some(first) = input.get(1..1 + PACKET) else { return Ok(false) };
            // S0 and S1; S2 is a copy of C1.
            greet(output);
            output.extend_from_slice(first);
            input.advance(1 + PACKET);
            *self = Self::Second;
        }
        if *self == Self::Second {
            if input.len() < PACKET {
                return Ok(false);
            }
            input.advance(PACKET);
            *self = Self::Done;
        }
        Ok(true)
    }
}

/// The part of a client's handshake that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientHandshake {
    /// S0 and S1.
    First,
    /// S2, whose contents say nothing that is needed.
    Second,
    /// Nothing: chunks follow.
    Done,
}

impl ClientHandshake {
    /// Begins a handshake: writes C0 and C1.
    pub(crate) fn begin(output: &mut Vec<u8>) -> Self {
        greet(output);
        Self::First
    }

    /// Takes as much of the input as belongs to the handshake, and writes C2. Returns whether it is done.
    ///
    /// # Errors
    /// The server speaks another version.
    pub(crate) fn receive(&mut self, input: &mut BytesMut, output: &mut Vec<u8>) -> Result<bool, RtmpError> {
        if *self == Self::First {
            match input.first() {
                Some(&VERSION) | None => {}
                Some(&other) => return Err(RtmpError::Version(other)),
            }
            let Some(first) = input.get(1..1 + PACKET) else { return Ok(false) };
            output.extend_from_slice(first);
            input.advance(1 + PACKET);
            *self = Self::Second;
        }
        if *self == Self::Second {
            if input.len() < PACKET {
                return Ok(false);
            }
            input.advance(PACKET);
            *self = Self::Done;
        }
        Ok(true)
    }
}

/// Writes the version, and a packet with time 0 and a version of 0, so that no peer asks for a digest.
fn greet(output: &mut Vec<u8>) {
    output.push(VERSION);
    output.extend([0; HEAD]);
    output.extend((HEAD..PACKET).map(|place| (place.wrapping_mul(167) >> 3) as u8));
}
