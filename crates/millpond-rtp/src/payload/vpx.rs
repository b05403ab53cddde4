//! VP8 (RFC 7741) and VP9 (RFC 9628).

use super::{
    PayloadError, Piece,
    building::{Building, Content, Join, Progress, Start},
    parts,
};
use bytes::Bytes;
use millpond_media::Importance;

/// Writes the descriptor's one required byte (RFC 7741 4.2); S marks the start of the frame's only partition.
pub(super) fn cut_vp8(frame: &[u8], most: usize, pieces: &mut Vec<Piece>) {
    for part in parts(0..frame.len(), most - 1) {
        let start = u8::from(part.start == 0) << 4;
        pieces.push(Piece::new(&[start], part));
    }
}

/// Writes descriptors (RFC 9628 4.2) without layers and picture ID. P marks pictures predicted from others, B and E the
/// ends of the frame. All frames of a superframe are one picture; the last one is shown.
pub(super) fn cut_vp9(frame: &[u8], most: usize, pieces: &mut Vec<Piece>) -> Result<(), PayloadError> {
    let Some(&first) = frame.first() else {
        return Err(PayloadError::new(0, "no bytes", "a frame"));
    };
    if first >> 6 != 2 {
        return Err(PayloadError::new(0, format!("frame marker {}", first >> 6), "2"));
    }
    let flags = u8::from(first >> (vp9_shift(first) - 1) & 1 == 1) << 6;
    for part in parts(0..frame.len(), most - 1) {
        let ends = u8::from(part.start == 0) << 3 | u8::from(part.end == frame.len()) << 2;
        pieces.push(Piece::new(&[flags | ends], part));
    }
    Ok(())
}

/// Returns the place of `show_existing_frame` in the first byte of a frame; `frame_type` follows. Profile 3 has one more
/// bit before it (VP9 bitstream 6.2).
fn vp9_shift(first: u8) -> u8 {
    if first & 0x30 == 0x30 { 2 } else { 3 }
}

/// Whether a frame that begins with this byte is a key frame: neither an old frame nor a predicted one.
fn is_vp9_key(first: u8) -> bool {
    first >> (vp9_shift(first) - 1) & 0b11 == 0
}

/// Reads a payload's descriptor byte by byte.
struct Descriptor<'a> {
    payload: &'a [u8],
    at: usize,
}

impl<'a> Descriptor<'a> {
    fn new(payload: &'a [u8]) -> Self {
        Self { payload, at: 0 }
    }

    fn byte(&mut self) -> Result<u8, PayloadError> {
        let byte = self.payload.get(self.at).copied();
        self.at += 1;
        byte.ok_or_else(|| PayloadError::packet(self.at - 1, "the end", "the payload descriptor's next byte"))
    }

    fn skip(&mut self, count: usize) -> Result<(), PayloadError> {
        (0..count).try_for_each(|_| self.byte().map(drop))
    }

    /// Skips a picture ID of 7 or 15 bits.
    fn picture_id(&mut self) -> Result<(), PayloadError> {
        if self.byte()? & 0x80 != 0 { self.skip(1) } else { Ok(()) }
    }

    /// Returns the bytes after the descriptor.
    fn media(self) -> Result<&'a [u8], PayloadError> {
        let media = self.payload.get(self.at..).filter(|media| !media.is_empty());
        media.ok_or_else(|| PayloadError::packet(self.at, "the end", "bytes of a frame"))
    }
}

/// Appends a fragment of a frame; only the first one may begin the frame.
fn join(begins: bool, media: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
    if begins != unit.bytes.is_empty() {
        let found = if begins { "the beginning of a frame" } else { "no beginning" };
        let expected = if begins { "the rest of the last frame" } else { "the beginning of a frame" };
        return Err(PayloadError::packet(0, found, expected));
    }
    unit.extend(media)?;
    Ok(Progress::Open)
}

/// Properties of a frame that its packet states.
struct Part<'a> {
    /// Whether the frame begins here.
    begins: bool,
    importance: Option<Importance>,
    media: &'a [u8],
}

/// Reads a packet (RFC 7741 4.2).
fn vp8(payload: &[u8]) -> Result<Part<'_>, PayloadError> {
    let mut descriptor = Descriptor::new(payload);
    let first = descriptor.byte()?;
    let mut layer = None;
    if first & 0x80 != 0 {
        let extensions = descriptor.byte()?;
        if extensions & 0x80 != 0 {
            descriptor.picture_id()?;
        }
        // Skips TL0PICIDX.
        descriptor.skip(usize::from(extensions & 0x40 != 0))?;
        // TID and KEYIDX share a byte.
        if extensions & 0x30 != 0 {
            layer = Some(descriptor.byte()? >> 6).filter(|_| extensions & 0x20 != 0);
        }
    }
    let mut importance = layer.map(Importance::of_layer);
    if first & 0x20 != 0 {
        // N: no frame refers to it.
        importance = Some(Importance { layer: layer.unwrap_or(0), ..Importance::DISPOSABLE });
    }
    // S bit, of partition 0.
    Ok(Part { begins: first & 0x17 == 0x10, importance, media: descriptor.media()? })
}

#[derive(Debug, Default)]
pub(super) struct Vp8Join {
    importance: Option<Importance>,
}

impl Join for Vp8Join {
    fn start(&self, payload: &[u8]) -> Result<Start, PayloadError> {
        vp8(payload).map(|part| Start::known(part.begins))
    }

    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        let part = vp8(payload)?;
        self.importance = part.importance;
        join(part.begins, part.media, unit)
    }

    fn content(&self, unit: &Bytes) -> Content {
        let is_key = unit.first().is_some_and(|first| first & 1 == 0);
        Content { importance: self.importance, ..Content::picture(is_key) }
    }
}

/// Reads a packet (RFC 9628 4.2).
fn vp9(payload: &[u8]) -> Result<Part<'_>, PayloadError> {
    let mut descriptor = Descriptor::new(payload);
    let first = descriptor.byte()?;
    let has = |bit: u8| first & bit != 0;
    let (id, predicted, layers, flexible) = (has(0x80), has(0x40), has(0x20), has(0x10));
    if id {
        descriptor.picture_id()?;
    }
    let mut importance = None;
    if layers {
        let indices = descriptor.byte()?;
        // TID and U: from a switching point on, no frame of a higher layer refers to earlier frames of them.
        let layer = indices >> 5;
        let resumes = if indices & 0x10 != 0 { layer + 1 } else { Importance::BASE.resumes };
        importance = Some(Importance { resumes, ..Importance::of_layer(layer) });
        // Files have the frames of all spatial layers in a superframe with an index, which packets lack.
        if indices >> 1 & 7 != 0 {
            let found = format!("spatial layer {}", indices >> 1 & 7);
            return Err(PayloadError::packet(descriptor.at - 1, found, "one spatial layer"));
        }
        descriptor.skip(usize::from(!flexible))?;
    }
    if flexible && predicted {
        references(&mut descriptor)?;
    }
    if has(0x02) {
        scalability(&mut descriptor)?;
    }
    Ok(Part { begins: has(0x08), importance, media: descriptor.media()? })
}

/// Skips up to three P_DIFF.
fn references(descriptor: &mut Descriptor<'_>) -> Result<(), PayloadError> {
    for _ in 0..3 {
        if descriptor.byte()? & 1 == 0 {
            return Ok(());
        }
    }
    Err(PayloadError::packet(descriptor.at - 1, "a fourth reference", "at most three"))
}

/// Skips the scalability structure (RFC 9628 4.2.1).
fn scalability(descriptor: &mut Descriptor<'_>) -> Result<(), PayloadError> {
    let structure = descriptor.byte()?;
    let spatial_layers = usize::from(structure >> 5) + 1;
    if structure & 0x10 != 0 {
        descriptor.skip(4 * spatial_layers)?;
    }
    if structure & 0x08 != 0 {
        for _ in 0..descriptor.byte()? {
            let picture = descriptor.byte()?;
            descriptor.skip(usize::from(picture >> 2 & 3))?;
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
pub(super) struct Vp9Join {
    importance: Option<Importance>,
}

impl Join for Vp9Join {
    fn start(&self, payload: &[u8]) -> Result<Start, PayloadError> {
        vp9(payload).map(|part| Start::known(part.begins))
    }

    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        let part = vp9(payload)?;
        self.importance = part.importance;
        join(part.begins, part.media, unit)
    }

    fn content(&self, unit: &Bytes) -> Content {
        let is_key = unit.first().is_some_and(|first| is_vp9_key(*first));
        Content { importance: self.importance, ..Content::picture(is_key) }
    }
}
