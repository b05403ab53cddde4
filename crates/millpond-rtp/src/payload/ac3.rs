//! AC-3 (RFC 4184) and E-AC-3 (RFC 4598).

use super::{
    PayloadError, Piece,
    building::{Building, Join, Progress, Start, head},
    parts,
};
use millpond_media::codec::Ac3Frame;

/// Makes a packet of a frame, or one per fragment (RFC 4184 4.1, RFC 4598 4.1); other header bits are reserved.
pub(super) fn cut(frame: &[u8], most: usize, pieces: &mut Vec<Piece>, enhanced: bool) {
    let room = most - 2;
    let count = frame.len().div_ceil(room).max(1);
    for part in parts(0..frame.len(), room) {
        let kind = match (count, part.start) {
            (1, _) => 0,
            // E-AC-3 does not state how much of the frame is in the first fragment.
            (_, 0) if enhanced => 1,
            (_, 0) => {
                let five_eighths = room * 8 >= frame.len() * 5;
                if five_eighths { 1 } else { 2 }
            }
            _ if enhanced => 1,
            _ => 3,
        };
        pieces.push(Piece::new(&[kind, count.min(MOST_COUNTED) as u8], part));
    }
}

/// Most fragments of a frame, whose count has 8 bits.
const MOST_COUNTED: usize = 255;

/// Fragments of a frame: number so far, and total.
#[derive(Debug, Default)]
struct Fragments {
    count: usize,
    of: Option<u8>,
}

impl Fragments {
    fn add(&mut self, of: u8, part: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        if *self.of.get_or_insert(of) != of || part.is_empty() {
            let found = format!("{} bytes of one of {of} fragments", part.len());
            return Err(PayloadError::packet(1, found, "as many fragments as earlier packets state"));
        }
        self.count += 1;
        unit.extend(part)?;
        Ok(Progress::Open)
    }

    fn is_whole(&self) -> bool {
        self.of.is_none_or(|of| self.count == usize::from(of) || usize::from(of) == MOST_COUNTED)
    }
}

#[derive(Debug, Default)]
pub(super) struct Ac3Join {
    fragments: Fragments,
}

impl Join for Ac3Join {
    fn start(&self, payload: &[u8]) -> Result<Start, PayloadError> {
        let [kind, _] = head(payload, "an AC-3 header")?;
        Ok(Start::known(kind & 3 != 3))
    }

    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        let [kind, count] = head(payload, "an AC-3 header")?;
        let begun = self.fragments.count > 0;
        match kind & 3 {
            0 if !begun => whole(payload, count, false, unit),
            1 | 2 if !begun => self.fragments.add(count, &payload[2..], unit),
            3 if begun => self.fragments.add(count, &payload[2..], unit),
            kind => Err(PayloadError::packet(
                0,
                format!("frame type {kind}"),
                if begun { "3: another fragment" } else { "0, 1 or 2: a beginning" },
            )),
        }
    }

    fn is_whole(&self, _unit: &Building) -> bool {
        self.fragments.is_whole()
    }

    fn forget(&mut self) {
        self.fragments = Fragments::default();
    }
}

#[derive(Debug, Default)]
pub(super) struct Eac3Join {
    fragments: Fragments,
}

impl Join for Eac3Join {
    fn start(&self, payload: &[u8]) -> Result<Start, PayloadError> {
        let [kind, _] = head(payload, "an E-AC-3 header")?;
        // Fragments don't state which one they are.
        Ok(if kind & 1 == 0 { Start::Yes } else { Start::Unknown })
    }

    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        let [kind, count] = head(payload, "an E-AC-3 header")?;
        match (kind & 1, self.fragments.count) {
            (0, 0) => whole(payload, count, true, unit),
            (0, _) => Err(PayloadError::packet(0, "whole frames", "another fragment")),
            _ => self.fragments.add(count, &payload[2..], unit),
        }
    }

    fn is_whole(&self, _unit: &Building) -> bool {
        self.fragments.is_whole()
    }

    fn forget(&mut self) {
        self.fragments = Fragments::default();
    }
}

/// Takes one or several whole frames: each is a unit.
fn whole(payload: &[u8], count: u8, enhanced: bool, unit: &mut Building) -> Result<Progress, PayloadError> {
    let end = payload.len();
    if end == 2 || count == 0 {
        return Err(PayloadError::packet(1, format!("{count} frames in {} bytes", end - 2), "at least one frame"));
    }
    if count == 1 {
        unit.extend(&payload[2..])?;
        unit.close(0);
        return Ok(Progress::Closed);
    }
    let (mut at, mut blocks, mut first) = (2, 0, 0);
    while at < end {
        let frame = Ac3Frame::read(&payload[at..]).filter(|frame| frame.length <= end - at);
        let frame = frame.ok_or_else(|| PayloadError::packet(at, "other bytes", "a whole frame of AC-3 or E-AC-3"))?;
        // Six blocks of the first substream, with the frames that belong to them, are one sample in files (ETSI TS 102
        // 366 F.2).
        if at > 2 && frame.leads && (!enhanced || blocks - first >= Ac3Frame::BLOCKS) {
            unit.close(first * Ac3Frame::SAMPLES);
            first = blocks;
        }
        if frame.leads {
            blocks += frame.blocks;
        }
        unit.extend(&payload[at..at + frame.length])?;
        at += frame.length;
    }
    unit.close(first * Ac3Frame::SAMPLES);
    Ok(Progress::Closed)
}
