//! Bodies whose codec is a FourCC (Enhanced RTMP 2, "Enhanced Audio" and "Enhanced Video"): one packet, or those of several tracks.

use super::{cut_off, four_cc, rest, unsupported};
use crate::{boxes::FourCc, error::MediaError};
use bytes::Bytes;

/// Types of packets. That of several tracks differs for pictures and sound.
pub(super) const CONFIGURATION: u8 = 0;
pub(super) const FRAME: u8 = 1;
const MODIFIED: u8 = 7;
/// Forms of several tracks (`AvMultitrackType`).
const ONE_TRACK: u8 = 0;
const MANY_TRACKS: u8 = 1;
const MANY_CODECS: u8 = 2;
/// Most tracks of a message.
const MOST_TRACKS: usize = 32;

/// A packet of one track.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) track: u8,
    pub(super) code: FourCc,
    /// Type of the packet.
    pub(super) kind: u8,
    pub(super) content: Bytes,
}

/// Which packets of a body are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The packets of all tracks.
    All,
    /// The packet of a body that has only one.
    Single,
}

/// Reads the packets of a body whose first byte tells `kind`. `multitrack` is the type of several tracks.
pub(super) fn read(body: &Bytes, mut kind: u8, multitrack: u8, wanted: Wanted) -> Result<Vec<Packet>, MediaError> {
    let mut at = 1;
    // Modifiers, such as the nanoseconds of a time, tell nothing that is needed.
    while kind == MODIFIED {
        let mut size = usize::from(byte(body, at)?) + 1;
        at += 1;
        if size == 256 {
            size = usize::from(byte(body, at)?) << 8 | usize::from(byte(body, at + 1)?);
            (size, at) = (size + 1, at + 2);
        }
        at += size;
        kind = byte(body, at)? & 0xf;
        at += 1;
    }
    if kind != multitrack {
        let code = four_cc(body, at)?;
        return Ok(vec![Packet { track: 0, code, kind, content: rest(body, at + 4)? }]);
    }
    let forms = byte(body, at)?;
    let (form, kind) = (forms >> 4, forms & 0xf);
    at += 1;
    if kind == multitrack || form > MANY_CODECS {
        return Err(unsupported(format!("several tracks in the form {form}")));
    }
    let mut code = FourCc::default();
    if form != MANY_CODECS {
        code = four_cc(body, at)?;
        at += 4;
    }
    if form == ONE_TRACK {
        return Ok(vec![Packet { track: byte(body, at)?, code, kind, content: rest(body, at + 1)? }]);
    }
    if wanted == Wanted::Single {
        return Err(unsupported("several tracks in one tag"));
    }
    let mut packets = Vec::new();
    while at < body.len() {
        if packets.len() == MOST_TRACKS {
            return Err(unsupported(format!("more than {MOST_TRACKS} tracks in one message")));
        }
        if form != MANY_TRACKS {
            code = four_cc(body, at)?;
            at += 4;
        }
        let track = byte(body, at)?;
        let size = rest(body, at + 1)?.first_chunk::<3>().map(|[a, b, c]| u32::from_be_bytes([0, *a, *b, *c]));
        let start = at + 4;
        let end = start + size.ok_or_else(|| cut_off(body.len(), start))? as usize;
        if end > body.len() {
            return Err(cut_off(body.len(), end));
        }
        packets.push(Packet { track, code, kind, content: body.slice(start..end) });
        at = end;
    }
    Ok(packets)
}

fn byte(body: &[u8], at: usize) -> Result<u8, MediaError> {
    body.get(at).copied().ok_or_else(|| cut_off(body.len(), at + 1))
}
