//! Access units as packets put them together, and what a payload format has to tell for that.

use super::PayloadError;
use std::fmt::Debug;

/// A unit that is being put together, and the units that the last packet completed.
#[derive(Debug)]
pub(super) struct Building {
    /// Grows by [`extend`](Building::extend) only: that keeps it in its bound.
    pub(super) bytes: Vec<u8>,
    most: usize,
    /// Bytes, and how many ticks they are after the time of the packet.
    done: Vec<(Vec<u8>, u32)>,
}

impl Building {
    pub(super) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, done: Vec::new() }
    }

    pub(super) fn most(&mut self, most: usize) {
        self.most = most;
    }

    pub(super) fn extend(&mut self, bytes: &[u8]) -> Result<(), PayloadError> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(PayloadError::TooLarge { most: self.most });
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The unit is complete. One without bytes is none.
    pub(super) fn close(&mut self, after: u32) {
        if !self.bytes.is_empty() {
            self.done.push((std::mem::take(&mut self.bytes), after));
        }
    }

    /// What is complete, to be taken away.
    pub(super) fn done(&mut self) -> impl Iterator<Item = (Vec<u8>, u32)> + '_ {
        self.done.drain(..)
    }

    pub(super) fn forget(&mut self) {
        self.bytes.clear();
        self.done.clear();
    }
}

/// Whether a packet is the first one of a unit, as far as its payload tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Yes,
    No,
    Unknown,
}

impl Start {
    pub(super) fn known(is: bool) -> Self {
        if is { Self::Yes } else { Self::No }
    }
}

/// What stands after a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The unit may go on in the next packet.
    Open,
    /// All units are complete.
    Closed,
}

/// How the payloads of one format are joined: the other direction of `cut`. Packets come without gaps; where there was
/// one, what there is of the unit is forgotten first.
pub(super) trait Join: Debug + Send + Sync {
    /// Asked of a packet that may be the first one of a unit.
    fn start(&self, payload: &[u8]) -> Result<Start, PayloadError>;

    /// Adds a payload to the unit.
    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError>;

    /// Whether the unit could end here.
    fn is_whole(&self, _unit: &Building) -> bool {
        true
    }

    /// Whether the marker bit ends a unit.
    fn marks_ends(&self) -> bool {
        true
    }

    /// A new unit begins: what was of the one before doesn't matter any more.
    fn forget(&mut self) {}
}

/// What stands in front of the media.
pub(super) fn head<const N: usize>(payload: &[u8], expected: &'static str) -> Result<[u8; N], PayloadError> {
    payload.first_chunk().copied().ok_or_else(|| PayloadError::packet(0, format!("{} bytes", payload.len()), expected))
}
