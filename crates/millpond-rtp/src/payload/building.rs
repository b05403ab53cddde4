//! Access units under construction, and the interface of payload formats for that.

use super::PayloadError;
use bytes::Bytes;
use millpond_media::Importance;
use std::fmt::Debug;

/// A unit under construction, and the units that the last packet completed.
#[derive(Debug)]
pub(super) struct Building {
    /// Grows only by [`extend`](Building::extend), which enforces the bound.
    pub(super) bytes: Vec<u8>,
    most: usize,
    /// Bytes of a unit, and its time in ticks after the packet's timestamp.
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

    /// Completes the unit. A unit without bytes is dropped.
    pub(super) fn close(&mut self, after: u32) {
        if !self.bytes.is_empty() {
            self.done.push((std::mem::take(&mut self.bytes), after));
        }
    }

    /// Removes and returns the complete units.
    pub(super) fn done(&mut self) -> impl Iterator<Item = (Vec<u8>, u32)> + '_ {
        self.done.drain(..)
    }

    pub(super) fn forget(&mut self) {
        self.bytes.clear();
        self.done.clear();
    }
}

/// Whether a packet begins a unit, according to its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Yes,
    No,
    Unknown,
    /// The whole unit will show it ([`Join::has_beginning`]).
    Later,
}

impl Start {
    pub(super) fn known(is: bool) -> Self {
        if is { Self::Yes } else { Self::No }
    }
}

/// Whether a packet belongs to a unit that a marker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continues {
    /// It begins another unit.
    No,
    /// It does: what came before is no picture yet.
    Precedes,
    /// It does: the sender marks each slice, so markers end no units.
    Slices,
}

/// State after a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The unit may continue in the next packet.
    Open,
    /// All units are complete.
    Closed,
}

/// Joins the payloads of one format: the inverse of `cut`. Packets arrive without gaps. After a gap, the unit is
/// discarded first.
pub(super) trait Join: Debug + Send + Sync {
    /// Called for a packet that may be the first one of a unit.
    fn start(&self, payload: &[u8]) -> Result<Start, PayloadError>;

    /// Adds a payload to the unit.
    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError>;

    /// Whether the unit may end here.
    fn is_whole(&self, _unit: &Building) -> bool {
        true
    }

    /// Whether a unit, before whose first packet others are missing, has its beginning.
    fn has_beginning(&self, _unit: &Building) -> bool {
        false
    }

    /// Called for a whole unit whose beginning is certain.
    fn learn(&mut self, _unit: &Building) {}

    /// Ends the unit, where it may end here. Returns whether it may.
    fn finish(&mut self, unit: &mut Building) -> bool {
        let is_whole = self.is_whole(unit);
        if is_whole {
            unit.close(0);
        }
        is_whole
    }

    /// Whether the marker bit ends a unit.
    fn marks_ends(&self) -> bool {
        true
    }

    /// How a payload goes on with a unit of its timestamp that ended with a marker.
    fn continues(&self, _ended: &[u8], _payload: &[u8]) -> Continues {
        Continues::No
    }

    /// Called when a new unit begins: state of the last one is discarded.
    fn forget(&mut self) {}

    /// Describes a whole unit. Sound consists of key frames only.
    fn content(&self, _unit: &Bytes) -> Content {
        Content::picture(true)
    }
}

/// Content of a unit that receivers act on.
pub(super) struct Content {
    pub(super) is_key: bool,
    /// Where payload descriptors state it.
    pub(super) importance: Option<Importance>,
    pub(super) parameter_sets: Vec<Bytes>,
}

impl Content {
    /// Describes a picture of a codec whose key frames contain all that decoders need.
    pub(super) fn picture(is_key: bool) -> Self {
        Self { is_key, importance: None, parameter_sets: Vec::new() }
    }
}

/// Reads the first `N` bytes of a payload.
pub(super) fn head<const N: usize>(payload: &[u8], expected: &'static str) -> Result<[u8; N], PayloadError> {
    payload.first_chunk().copied().ok_or_else(|| PayloadError::packet(0, format!("{} bytes", payload.len()), expected))
}
