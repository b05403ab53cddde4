//! Parameter sets that arrive among the frames of a stream (H.264 7.4.1.2.1, H.265 7.4.2.4.2).

use crate::{
    codec::{
        make::{self, MOST_CONFIGURATION, Made},
        nal::{NalSyntax, set_kind::SetKind},
    },
    error::MediaError,
};
use bytes::Bytes;
use std::{collections::VecDeque, ops::Range, time::Duration};

/// Changes within [`CHANGE_WINDOW`] that end the attempt to keep sets out of frames.
const MOST_CHANGES: usize = 3;
/// Time within which changes count together.
const CHANGE_WINDOW: Duration = Duration::from_secs(60);
/// Most NAL units of a frame. H.264 and H.265 allow some hundreds of slices.
const MOST_UNITS: usize = 4096;

/// Keeps the parameter sets of a stream in its sample entry.
///
/// `avc1` and `hvc1` forbid sets in frames (ISO/IEC 14496-15 5.4.2.1.2, 8.4.1.1), but cameras repeat them before each key frame.
/// Sets that equal the sample entry's sets are removed. Access unit delimiters are removed too. A set with other contents makes a
/// new sample entry at the next key frame. A stream that changes its sets three times within a minute gets `avc3` or `hev1`, and
/// its sets stay in frames from then on.
#[derive(Debug)]
pub struct ParameterSets {
    syntax: NalSyntax,
    length_size: usize,
    /// Sets of the sample entry.
    current: Vec<ParameterSet>,
    /// Sets to be used from the next key frame on; `None` where they are the current ones.
    next: Option<Vec<ParameterSet>>,
    /// Whether the stream has a sample entry.
    is_known: bool,
    /// Whether sets stay in frames.
    is_in_band: bool,
    /// Times of the last changes.
    changes: VecDeque<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ParameterSet {
    kind: SetKind,
    id: u8,
    unit: Vec<u8>,
}

/// A frame after [`ParameterSets::frame`].
#[derive(Clone, Debug, PartialEq)]
pub struct Sifted {
    /// The frame without removed NAL units; empty where nothing else was in it.
    pub bytes: Bytes,
    /// Sample entry that is valid from this frame on, where it differs from the one before.
    pub made: Option<Made>,
}

impl ParameterSets {
    /// Creates the sets of a stream that has no sample entry yet. `length_size` is the length in bytes of NAL unit
    /// lengths: 1 to 4.
    #[must_use]
    pub fn new(syntax: NalSyntax, length_size: u8) -> Self {
        Self {
            syntax,
            length_size: usize::from(length_size.clamp(1, 4)),
            current: Vec::new(),
            next: None,
            is_known: false,
            is_in_band: false,
            changes: VecDeque::new(),
        }
    }

    /// Adds sets from outside of the stream, such as a session description; returns the sample entry. Units that are no
    /// parameter sets are ignored.
    ///
    /// # Errors
    /// A set of some type is missing or not readable. The sets are kept: later ones may complete them.
    pub fn describe(&mut self, sets: &[impl AsRef<[u8]>]) -> Result<Made, MediaError> {
        let mut all = self.next.take().unwrap_or_else(|| self.current.clone());
        for set in sets {
            self.replace(&mut all, trimmed(set.as_ref()));
        }
        self.current = all;
        let made = self.make(&self.current)?;
        self.is_known = true;
        Ok(made)
    }

    /// Takes a frame: NAL units, each preceded by its length. `is_key` is whether decoding can begin with it. `now`
    /// counts from any epoch. A frame that violates its format is returned as it is.
    pub fn frame(&mut self, frame: &Bytes, is_key: bool, now: Duration) -> Sifted {
        let Some(units) = self.units(frame) else { return Sifted { bytes: frame.clone(), made: None } };
        self.learn_sets(frame, &units);
        if !units.iter().any(|unit| self.syntax.is_slice(&frame[unit.clone()])) {
            // Decoders fail at frames without a picture, such as delimiters and messages that cameras send alone.
            return Sifted { bytes: Bytes::new(), made: None };
        }
        let made = if is_key { self.change(now) } else { None };
        let has_sets = units.iter().any(|unit| self.syntax.is_sequence_set(&frame[unit.clone()]));
        let kept = units.into_iter().filter(|unit| !self.is_redundant(&frame[unit.clone()]));
        let kept = joined(kept.map(|unit| unit.start - self.length_size..unit.end));
        let missing = if self.is_in_band && is_key && !has_sets { &self.current[..] } else { &[] };
        Sifted { bytes: self.assembled(frame, &kept, missing), made }
    }

    /// Creates the sets of a stream whose sets stay in frames. `known` are those of its sample entry, each after its length.
    #[must_use]
    pub fn in_band(syntax: NalSyntax, length_size: u8, known: &[u8]) -> Self {
        let mut sets = Self { is_in_band: true, is_known: true, ..Self::new(syntax, length_size) };
        let mut all = Vec::new();
        for unit in sets.units(known).unwrap_or_default() {
            sets.replace(&mut all, trimmed(&known[unit]));
        }
        all.sort_by_key(|set| set.kind);
        sets.current = all;
        sets
    }

    /// Takes a key frame of a stream whose sets stay in frames. Returns the sample entry `avc3` or `hev1` of the frame's sets, where
    /// these differ from those before.
    pub fn key_frame(&mut self, frame: &[u8]) -> Option<Made> {
        let units = self.units(frame)?;
        self.learn_sets(frame, &units);
        let mut next = self.next.take()?;
        next.sort_by_key(|set| set.kind);
        if next == self.current {
            return None;
        }
        self.current = next;
        self.make(&self.current).ok()
    }

    /// Takes note of the sets among the NAL units of a frame.
    fn learn_sets(&mut self, frame: &[u8], units: &[Range<usize>]) {
        for unit in units {
            let unit = &frame[unit.clone()];
            if SetKind::of(self.syntax, unit).is_some() {
                self.learn(trimmed(unit));
            }
        }
    }

    /// Returns the places of NAL units; `None` where lengths don't add up.
    fn units(&self, frame: &[u8]) -> Option<Vec<Range<usize>>> {
        let (mut at, mut units) = (0, Vec::new());
        while at < frame.len() {
            let start = at + self.length_size;
            let length = frame.get(at..start)?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            at = start.checked_add(length).filter(|end| *end <= frame.len())?;
            units.push(start..at);
            if units.len() > MOST_UNITS {
                return None;
            }
        }
        Some(units)
    }

    /// Whether a NAL unit says nothing that the sample entry doesn't.
    fn is_redundant(&self, unit: &[u8]) -> bool {
        if self.syntax.is_delimiter(unit) {
            return true;
        }
        let Some(kind) = SetKind::of(self.syntax, unit) else { return false };
        let unit = trimmed(unit);
        !self.is_in_band && self.current.iter().any(|set| set.kind == kind && self.has_contents(set, unit))
    }

    /// Whether both sets say the same. `nal_ref_idc` of H.264 is no part of the contents.
    fn has_contents(&self, set: &ParameterSet, unit: &[u8]) -> bool {
        let header = usize::from(self.syntax == NalSyntax::Avc);
        set.unit.get(header..) == unit.get(header..)
    }

    /// Takes note of a set in a frame.
    fn learn(&mut self, unit: &[u8]) {
        let latest = self.next.as_ref().unwrap_or(&self.current);
        let kind = SetKind::of(self.syntax, unit);
        if latest.iter().any(|set| kind == Some(set.kind) && self.has_contents(set, unit)) {
            return;
        }
        let mut all = self.next.take().unwrap_or_else(|| self.current.clone());
        if self.replace(&mut all, unit) {
            // The sample entry states the properties of its first sequence parameter set, which is now this one.
            all.rotate_right(1);
        }
        self.next = Some(all);
    }

    /// Appends a set, and removes the one with the same type and identifier. Returns `false` for an unreadable set, and
    /// where the sets would not fit into a sample entry.
    fn replace(&self, all: &mut Vec<ParameterSet>, unit: &[u8]) -> bool {
        let Some((kind, id)) =
            SetKind::of(self.syntax, unit).and_then(|kind| Some((kind, kind.id(self.syntax, unit)?)))
        else {
            return false;
        };
        let is_other = |set: &ParameterSet| (set.kind, set.id) != (kind, id);
        let others = all.iter().filter(|set| is_other(set)).map(|set| set.unit.len()).sum::<usize>();
        if others + unit.len() > MOST_CONFIGURATION {
            return false;
        }
        all.retain(is_other);
        all.push(ParameterSet { kind, id, unit: unit.to_vec() });
        true
    }

    /// Uses the next sets, at a key frame. Returns their sample entry, if the stream needs another one.
    fn change(&mut self, now: Duration) -> Option<Made> {
        let mut next = self.next.take()?;
        // Decoders need them in this order (H.264 7.4.1.2.1, H.265 7.4.2.4.4).
        next.sort_by_key(|set| set.kind);
        if self.is_known && (self.is_in_band || next == self.current) {
            self.current = next;
            return None;
        }
        self.changes.retain(|change| now.saturating_sub(*change) < CHANGE_WINDOW);
        self.is_in_band = self.is_known && self.changes.len() + 1 >= MOST_CHANGES;
        let Ok(made) = self.make(&next) else {
            // The missing sets may follow.
            (self.next, self.is_in_band) = (Some(next), false);
            return None;
        };
        if self.is_known {
            self.changes.push_back(now);
        }
        (self.current, self.is_known) = (next, true);
        Some(made)
    }

    fn make(&self, sets: &[ParameterSet]) -> Result<Made, MediaError> {
        let of = |kind: SetKind| -> Vec<&[u8]> {
            sets.iter().filter(|set| set.kind == kind).map(|set| &set.unit[..]).collect()
        };
        let (vps, sps, pps) = (of(SetKind::Video), of(SetKind::Sequence), of(SetKind::Picture));
        match (self.syntax, self.is_in_band) {
            (NalSyntax::Avc, false) => make::avc(&sps, &pps),
            (NalSyntax::Avc, true) => make::avc_in_band(&sps, &pps),
            (NalSyntax::Hevc, false) => make::hevc(&vps, &sps, &pps),
            (NalSyntax::Hevc, true) => make::hevc_in_band(&vps, &sps, &pps),
        }
    }

    /// Returns `sets`, each after its length, and the parts of the frame. One part is not copied.
    fn assembled(&self, frame: &Bytes, parts: &[Range<usize>], sets: &[ParameterSet]) -> Bytes {
        match (parts, sets) {
            ([], []) => return Bytes::new(),
            ([part], []) => return frame.slice(part.clone()),
            _ => {}
        }
        let mut bytes = Vec::new();
        for set in sets {
            let length = (set.unit.len() as u32).to_be_bytes();
            let (high, low) = length.split_at(length.len() - self.length_size);
            if high.iter().all(|byte| *byte == 0) {
                bytes.extend_from_slice(low);
                bytes.extend_from_slice(&set.unit);
            }
        }
        parts.iter().for_each(|part| bytes.extend_from_slice(&frame[part.clone()]));
        bytes.into()
    }
}

/// Returns a NAL unit without `trailing_zero_8bits` (H.264 and H.265, B.1), which some encoders leave after it.
fn trimmed(unit: &[u8]) -> &[u8] {
    let end = unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &unit[..end]
}

/// Joins adjacent ranges.
fn joined(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => all.push(range),
        }
    }
    all
}

#[cfg(test)]
mod tests;
