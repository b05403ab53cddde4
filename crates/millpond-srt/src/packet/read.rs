//! Reading packets.

use super::{
    Acknowledgement, Data, HEADER, KeySlot, Losses, Packet, Report, Sequence, SequenceRange, SocketId, SrtBody,
};
use crate::handshake::Handshake;

/// Types of control packets (draft-sharabayko-srt-01 3.2).
pub(super) const HANDSHAKE: u16 = 0;
pub(super) const KEEP_ALIVE: u16 = 1;
pub(super) const ACKNOWLEDGEMENT: u16 = 2;
pub(super) const LOSSES: u16 = 3;
pub(super) const SHUTDOWN: u16 = 5;
pub(super) const ACKNOWLEDGED: u16 = 6;
pub(super) const DROPPED: u16 = 7;
pub(super) const USER: u16 = 0x7fff;
/// Subtypes of user-defined packets: key material, and its answer.
pub(super) const KEY_REQUEST: u16 = 3;
pub(super) const KEY_ANSWER: u16 = 4;
/// Marks control packets.
pub(super) const CONTROL: u32 = 1 << 31;

/// Reads the word at a position; `None` behind the end.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(4 * at..).and_then(|rest| rest.first_chunk()).map(|word| u32::from_be_bytes(*word))
}

/// Reads a packet; `None` where a datagram is none.
#[must_use]
pub fn read(datagram: &[u8]) -> Option<Packet<'_>> {
    let (head, content) = datagram.split_at_checked(HEADER)?;
    let [first, info, timestamp, to] = [0, 1, 2, 3].map(|at| word(head, at).unwrap_or(0));
    let body = match first & CONTROL {
        0 => SrtBody::Data(data(first, info, content)?),
        _ => control(first, info, content)?,
    };
    Some(Packet { timestamp, to: SocketId(to), body })
}

fn data(first: u32, info: u32, payload: &[u8]) -> Option<Data<'_>> {
    let key = match info >> 27 & 3 {
        0 => None,
        1 => Some(KeySlot::Even),
        2 => Some(KeySlot::Odd),
        // Both keys: only control packets may say that.
        _ => return None,
    };
    let (sequence, message, is_again) = (Sequence::new(first), info & 0x03ff_ffff, info & 1 << 26 != 0);
    Some(Data { sequence, message, key, is_again, payload })
}

fn control(first: u32, info: u32, content: &[u8]) -> Option<SrtBody<'_>> {
    let (kind, subtype) = ((first >> 16) as u16 & 0x7fff, first as u16);
    Some(match kind {
        HANDSHAKE => {
            let (handshake, extensions) = Handshake::read(content)?;
            SrtBody::Handshake(handshake, extensions)
        }
        KEEP_ALIVE => SrtBody::KeepAlive,
        ACKNOWLEDGEMENT => {
            let next = Sequence::new(word(content, 0)?);
            SrtBody::Acknowledgement(Acknowledgement { number: info, next, report: report(content) })
        }
        LOSSES => SrtBody::Losses(Losses(content)),
        SHUTDOWN => SrtBody::Shutdown,
        ACKNOWLEDGED => SrtBody::Acknowledged(info),
        DROPPED => {
            let [first, last] = [word(content, 0)?, word(content, 1)?].map(Sequence::new);
            if last.since(first) < 0 {
                return None;
            }
            SrtBody::Dropped(SequenceRange { first, last })
        }
        USER if subtype == KEY_REQUEST || subtype == KEY_ANSWER => {
            SrtBody::KeyMaterial { is_answer: subtype == KEY_ANSWER, bytes: content }
        }
        _ => SrtBody::Other,
    })
}

/// The measurements of an acknowledgement that has some. Old peers send fewer.
fn report(content: &[u8]) -> Option<Report> {
    let [rtt, deviation, room] = [word(content, 1)?, word(content, 2)?, word(content, 3)?];
    let [packets, bytes] = [4, 6].map(|at| word(content, at).unwrap_or(0));
    Some(Report { rtt, deviation, room, packets, bytes })
}
