//! MPEG audio (RFC 2250 3.5).

use super::{
    PayloadError, Piece,
    building::{Building, Join, Progress, Start, head},
    parts,
};
use millpond_media::codec::MpegAudioHeader;

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
            self.expected = MpegAudioHeader::read(media).and_then(|header| header.length);
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
fn frames(media: &[u8]) -> Option<(MpegAudioHeader, Vec<usize>)> {
    let first = MpegAudioHeader::read(media)?;
    let (mut length, mut at, mut lengths) = (first.length?, 0, Vec::new());
    while at + length < media.len() {
        lengths.push(length);
        at += length;
        length = MpegAudioHeader::read(&media[at..]).filter(|header| header.fixed == first.fixed)?.length?;
    }
    (at + length == media.len()).then_some((first, lengths))
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
