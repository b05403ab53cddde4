//! Parameter sets of a stream, by their ids.

use super::{
    TsConfiguration,
    fields::{Field, FieldSyntax},
};
use crate::{
    bits::BitReader,
    codec::nal::{NalSyntax, unescaped},
};
use std::collections::BTreeMap;

/// Most bytes of all sets. Real streams have hundreds.
const MOST_BYTES: usize = 16 << 10;
/// Greatest id (H.264 7.4.2.2); the other kinds have lower limits.
const GREATEST_ID: u32 = 255;
/// Bits of `profile_tier_level` of one layer without its level (H.265 7.3.3).
const PROFILE: usize = 88;

/// Kind of a parameter set. Each refers to one of the kind before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SetKind {
    Video,
    Sequence,
    Picture,
}

/// Sets that were seen last.
#[derive(Debug, Default)]
pub(super) struct SetsById {
    sets: BTreeMap<(SetKind, u32), Set>,
    bytes: usize,
    has_changed: bool,
}

#[derive(Debug)]
struct Set {
    unit: Vec<u8>,
    /// Id of the sequence parameter set to which a picture parameter set refers.
    sequence: Option<u32>,
    /// Syntax of slices under a sequence parameter set of H.264 that allows fields.
    fields: Option<FieldSyntax>,
}

/// Returns the id of a set and, in a picture parameter set, that of its sequence parameter set. `bytes` have no
/// emulation prevention.
fn ids(syntax: NalSyntax, kind: SetKind, bytes: &[u8]) -> Option<(u32, Option<u32>)> {
    let mut bits = BitReader::new(bytes);
    bits.skip(if syntax == NalSyntax::Avc { 8 } else { 16 })?;
    match (syntax, kind) {
        (_, SetKind::Picture) => return Some((bits.golomb()?, Some(bits.golomb()?))),
        (_, SetKind::Video) => return Some((bits.bits(4)?, None)),
        (NalSyntax::Avc, SetKind::Sequence) => bits.skip(24)?,
        (NalSyntax::Hevc, SetKind::Sequence) => {
            bits.skip(4)?;
            let layers = bits.bits(3)? as usize;
            bits.skip(1 + PROFILE + 8)?;
            let mut lengths = if layers > 0 { 2 * (8 - layers) } else { 0 };
            for _ in 0..layers {
                lengths += if bits.flag()? { PROFILE } else { 0 };
                lengths += if bits.flag()? { 8 } else { 0 };
            }
            bits.skip(lengths)?;
        }
    }
    Some((bits.golomb()?, None))
}

impl SetsById {
    /// Takes a set. Returns whether it was taken: its id can be read, and the limit of bytes is kept.
    pub(super) fn insert(&mut self, syntax: NalSyntax, kind: SetKind, unit: &[u8]) -> bool {
        let bytes = unescaped(unit);
        let Some((id, sequence)) = ids(syntax, kind, &bytes).filter(|(id, _)| *id <= GREATEST_ID) else { return false };
        let before = self.sets.get(&(kind, id));
        if before.is_some_and(|before| before.unit == unit) {
            return true;
        }
        let freed = before.map_or(0, |before| before.unit.len());
        if self.bytes - freed + unit.len() > MOST_BYTES {
            return false;
        }
        if freed > 0 && kind == SetKind::Sequence {
            // Pictures need sets that were sent after the one that they refer to.
            self.sets.retain(|_, set| set.sequence != Some(id));
        }
        let has_fields = (syntax, kind) == (NalSyntax::Avc, SetKind::Sequence);
        let fields = if has_fields { FieldSyntax::read(&bytes) } else { None };
        self.sets.insert((kind, id), Set { unit: unit.to_vec(), sequence, fields });
        self.bytes = self.sets.values().map(|set| set.unit.len()).sum();
        self.has_changed = true;
        true
    }

    /// Returns the configuration where sets changed since the last call, and are complete.
    pub(super) fn changed(&mut self, syntax: NalSyntax) -> Option<TsConfiguration> {
        if !self.has_changed {
            return None;
        }
        let of = |kind| {
            let sets = self.sets.iter().filter(|((of, _), _)| *of == kind);
            sets.map(|(_, set)| set.unit.clone()).collect::<Vec<_>>()
        };
        let (vps, sps, pps) = (of(SetKind::Video), of(SetKind::Sequence), of(SetKind::Picture));
        if sps.is_empty() || pps.is_empty() || syntax == NalSyntax::Hevc && vps.is_empty() {
            return None;
        }
        self.has_changed = false;
        Some(match syntax {
            NalSyntax::Avc => TsConfiguration::Avc { sps, pps },
            NalSyntax::Hevc => TsConfiguration::Hevc { vps, sps, pps },
        })
    }

    /// Returns the field that a slice of H.264 codes; `None` for frames.
    pub(super) fn field(&self, slice: &[u8]) -> Option<Field> {
        if self.sets.values().all(|set| set.fields.is_none()) {
            return None;
        }
        Field::read(slice, |id| {
            let sequence = self.sets.get(&(SetKind::Picture, id))?.sequence?;
            self.sets.get(&(SetKind::Sequence, sequence))?.fields
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::hex;

    #[test]
    fn sets_are_replaced_by_id() {
        let sps = hex("6764000cacd941419f9f011000000300100000030320f1429960");
        let other = hex("6764000dacd941519e226c0440000003004000000c83c50a6580");
        let (pps, second) = (vec![0x68, 0b1100_0000], vec![0x68, 0b0101_0000]);
        let mut sets = SetsById::default();
        let mut insert = |kind, unit: &[u8]| {
            assert!(sets.insert(NalSyntax::Avc, kind, unit));
            sets.changed(NalSyntax::Avc)
        };
        let avc = |sps: &Vec<u8>, pps: &[&Vec<u8>]| {
            Some(TsConfiguration::Avc { sps: vec![sps.clone()], pps: pps.iter().map(|set| set.to_vec()).collect() })
        };
        assert_eq!(insert(SetKind::Sequence, &sps), None);
        assert_eq!(insert(SetKind::Picture, &pps), avc(&sps, &[&pps]));
        assert_eq!(insert(SetKind::Picture, &pps), None);
        assert_eq!(insert(SetKind::Picture, &second), avc(&sps, &[&pps, &second]));
        assert_eq!(insert(SetKind::Sequence, &other), None, "its picture parameter sets are missing");
        assert_eq!(insert(SetKind::Picture, &pps), avc(&other, &[&pps]));
    }

    #[test]
    fn sets_without_a_valid_id_are_refused() {
        let mut sets = SetsById::default();
        assert!(!sets.insert(NalSyntax::Avc, SetKind::Sequence, &[0x67, 1]));
        assert!(!sets.insert(NalSyntax::Avc, SetKind::Picture, &[0x68, 0, 1, 1]), "id 32767");
        assert!(!sets.insert(NalSyntax::Avc, SetKind::Picture, &[0xff; 20_000]));
    }
}
