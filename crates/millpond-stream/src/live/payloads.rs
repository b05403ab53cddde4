//! Payloads of a transport stream for receivers that get it as datagrams.

use super::Program;
use crate::{Run, transport_stream::TransportStream};
use bytes::Bytes;

/// Bytes of a packet of a transport stream.
const PACKET: usize = 188;
/// Bytes of a payload: seven packets, as all programs send them.
const PAYLOAD: usize = 7 * PACKET;

/// The tracks of a frame's epoch can't follow in the same transport stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the formats of the stream changed: the same transport stream can't go on")]
pub struct FormatsChanged;

/// Makes payloads of the frames of a program.
#[derive(Debug)]
pub struct TransportPayloads {
    muxer: Box<TransportStream>,
    /// Number of the current epoch; `None` before the first frame.
    epoch: Option<u32>,
}

impl TransportPayloads {
    /// Makes those of a program; `None` where a transport stream can't carry its leading track.
    #[must_use]
    pub fn new(program: &Program) -> Option<Self> {
        Some(Self { muxer: Box::new(program.transport_stream()?), epoch: None })
    }

    /// Returns the payloads of a run, each with whole packets and at most `longest` bytes.
    ///
    /// # Errors
    /// The media of a frame can't follow in the same transport stream.
    pub fn of(&mut self, run: &Run, program: &Program, longest: usize) -> Result<Vec<Bytes>, FormatsChanged> {
        let mut packets = Vec::new();
        for frame in run.iter() {
            if self.epoch.replace(frame.epoch) != Some(frame.epoch) {
                let epoch = program.feed().epoch(frame.epoch);
                if !epoch.is_none_or(|epoch| self.muxer.enter(&epoch.formats)) {
                    return Err(FormatsChanged);
                }
            }
            self.muxer.push(frame, &mut packets);
        }
        let packets = Bytes::from(packets);
        let most = PAYLOAD.min(longest / PACKET * PACKET).max(PACKET);
        Ok((0..packets.len()).step_by(most).map(|at| packets.slice(at..packets.len().min(at + most))).collect())
    }
}
