//! MPEG audio (RFC 2250 3.5).

use super::{
    PayloadError, Piece,
    building::{Building, Join, Progress, Start, head},
    parts,
};

/// Each packet states the offset of its fragment in the frame.
pub(super) fn cut(frame: &[u8], most: usize, pieces: &mut Vec<Piece>) -> Result<(), PayloadError> {
    if frame.len() > usize::from(u16::MAX) {
        return Err(PayloadError::new(0, format!("a frame of {} bytes", frame.len()), "fewer than 65536"));
    }
    for part in parts(0..frame.len(), most - 4) {
        let [high, low] = (part.start as u16).to_be_bytes();
        pieces.push(Piece::new(&[0, 0, high, low], part));
    }
    Ok(())
}

#[derive(Debug, Default)]
pub(super) struct MpaJoin {
    /// Length of the frame of which fragments are arriving, where its header states it.
    expected: Option<usize>,
}

impl MpaJoin {
    /// Takes whole consecutive frames, or the beginning of one.
    fn begin(&mut self, media: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        let Some((first, mut lengths)) = frames(media) else {
            unit.extend(media)?;
            // A frame of unknown length ends where the next one begins.
            self.expected = FrameHeader::read(media).map(|header| header.length);
            return Ok(Progress::Open);
        };
        let (mut at, mut samples) = (0, 0_u64);
        lengths.push(media.len() - at - lengths.iter().sum::<usize>());
        for length in lengths {
            unit.extend(&media[at..at + length])?;
            // Ticks of the 90 kHz clock (RFC 3551 4.5.13).
            unit.close((samples * 90_000 / u64::from(first.sample_rate)) as u32);
            at += length;
            samples += u64::from(first.samples);
        }
        Ok(Progress::Closed)
    }
}

/// Returns the first frame's header, and the lengths of all but the last frame, if the bytes are whole frames of one
/// stream.
fn frames(media: &[u8]) -> Option<(FrameHeader, Vec<usize>)> {
    let first = FrameHeader::read(media)?;
    let (mut header, mut at, mut lengths) = (first, 0, Vec::new());
    while at + header.length < media.len() {
        lengths.push(header.length);
        at += header.length;
        header = FrameHeader::read(&media[at..]).filter(|header| header.same_stream(first))?;
    }
    (at + header.length == media.len()).then_some((first, lengths))
}

impl Join for MpaJoin {
    fn start(&self, payload: &[u8]) -> Result<Start, PayloadError> {
        let [_, _, high, low] = head(payload, "an MPEG audio header")?;
        Ok(Start::known((high, low) == (0, 0)))
    }

    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        let [_, _, high, low] = head(payload, "an MPEG audio header")?;
        let (offset, media) = (usize::from(u16::from_be_bytes([high, low])), &payload[4..]);
        if offset != unit.bytes.len() || media.is_empty() {
            let found = format!("{} bytes at offset {offset} of the frame", media.len());
            return Err(PayloadError::packet(2, found, "the offset where the fragment before ended"));
        }
        if offset == 0 {
            return self.begin(media, unit);
        }
        unit.extend(media)?;
        if self.expected == Some(unit.bytes.len()) {
            unit.close(0);
            return Ok(Progress::Closed);
        }
        Ok(Progress::Open)
    }

    fn is_whole(&self, unit: &Building) -> bool {
        self.expected.is_none_or(|expected| unit.bytes.len() >= expected)
    }

    /// The marker begins a talkspurt (RFC 2250 3.5).
    fn marks_ends(&self) -> bool {
        false
    }

    fn forget(&mut self) {
        self.expected = None;
    }
}

/// Header of a frame (ISO/IEC 11172-3 2.4.1.3, ISO/IEC 13818-3 2.4.2.3).
#[derive(Clone, Copy, Debug)]
struct FrameHeader {
    /// Bits of version, layer and sampling rate.
    stream: [u8; 2],
    length: usize,
    sample_rate: u32,
    samples: u32,
}

impl FrameHeader {
    fn read(bytes: &[u8]) -> Option<Self> {
        let [0xff, second, third, _, ..] = *bytes else { return None };
        if second & 0xe0 != 0xe0 {
            return None;
        }
        // 3 is MPEG-1, 2 MPEG-2, 0 MPEG-2.5; layers count down from 3.
        let (version, layer) = (second >> 3 & 3, 4 - (second >> 1 & 3));
        let (rate, padding) = (usize::from(third >> 4), usize::from(third >> 1 & 1));
        let frequency = *[44_100_u32, 48_000, 32_000].get(usize::from(third >> 2 & 3))?;
        let (sample_rate, low) = match version {
            3 => (frequency, false),
            2 => (frequency / 2, true),
            0 => (frequency / 4, true),
            _ => return None,
        };
        let (kilobits, samples) = match (layer, low) {
            (1, false) => (LAYER_1[rate], 384),
            (2, false) => (LAYER_2[rate], 1152),
            (3, false) => (LAYER_3[rate], 1152),
            (1, true) => (LOW_LAYER_1[rate], 384),
            (2, true) => (LOW_LAYER_2_3[rate], 1152),
            (3, true) => (LOW_LAYER_2_3[rate], 576),
            _ => return None,
        };
        // Index 0 is a free format without a stated length; 15 is invalid.
        if kilobits == 0 {
            return None;
        }
        let slot = if layer == 1 { 4 } else { 1 };
        let slots = samples / 8 / slot * usize::from(kilobits) * 1000 / sample_rate as usize + padding;
        Some(Self { stream: [second & 0xfe, third & 0x0c], length: slots * slot, sample_rate, samples: samples as u32 })
    }

    fn same_stream(self, other: Self) -> bool {
        self.stream == other.stream
    }
}

const LAYER_1: [u16; 16] = [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 0];
const LAYER_2: [u16; 16] = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 0];
const LAYER_3: [u16; 16] = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0];
const LOW_LAYER_1: [u16; 16] = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256, 0];
const LOW_LAYER_2_3: [u16; 16] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0];
