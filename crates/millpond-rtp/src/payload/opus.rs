//! Opus (RFC 7587): one Opus packet per RTP packet.

use super::{
    PayloadError, Piece,
    building::{Building, Join, Progress, Start, head},
};

pub(super) fn cut(frame: &[u8], pieces: &mut Vec<Piece>) {
    // Silence is not sent (RFC 7587 3.1.3).
    if !frame.is_empty() {
        pieces.push(Piece::new(&[], 0..frame.len()));
    }
}

#[derive(Debug)]
pub(super) struct OpusJoin;

impl Join for OpusJoin {
    fn start(&self, _payload: &[u8]) -> Result<Start, PayloadError> {
        Ok(Start::Yes)
    }

    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        let _toc: [u8; 1] = head(payload, "an Opus packet")?;
        unit.extend(payload)?;
        unit.close(0);
        Ok(Progress::Closed)
    }

    /// The marker begins a talkspurt (RFC 7587 4.1).
    fn marks_ends(&self) -> bool {
        false
    }
}
