//! Renames `hev1` and `avc3` tracks whose samples hold no other parameter sets than the sample entry.
//!
//! These types allow sets in samples, which `hvc1` and `avc1` forbid (ISO/IEC 14496-15 8.4.1.1, 5.4.2.1.2). ffmpeg writes `hev1`
//! unless told otherwise, and Apple's devices don't play it. Some key frames of the track are read. Sets in key frames that
//! repeat the sample entry's sets do no harm, and stay.

use crate::{
    codec::{
        Codec,
        nal::{NalSyntax, set_kind::SetKind},
        video::hevc::state_completeness,
    },
    index::lane::Arrived,
    movie::Track,
    units::ByteRange,
};

/// Bytes of a key frame that are read: enough for its parameter sets.
const READ: u64 = 2048;
/// Most key frames of a track that are read.
const MOST_PICTURES: u32 = 8;
/// Length of the fields of a visual sample entry before its boxes, with the box header (ISO/IEC 14496-12 12.1.3).
const FIELDS: usize = 86;

/// Returns the ranges to read of a track; none where its sample entry can't be renamed.
pub(crate) fn wanted(track: &Track) -> Vec<ByteRange> {
    if track.protection.is_some() || track.descriptions.is_some() || sets(&track.codec).is_none() {
        return Vec::new();
    }
    let mut next = 0;
    let step = (track.samples.len() / MOST_PICTURES).max(1);
    let spread = track.samples.sync_samples().filter(|index| {
        let is_due = *index >= next;
        next = if is_due { index.saturating_add(step) } else { next };
        is_due
    });
    let ranges = spread.take(MOST_PICTURES as usize).filter_map(|index| Some(track.samples.get(index)?.range));
    ranges.map(head).filter(|range| !range.is_empty()).collect()
}

/// Returns the range of a key frame at `frame` that tells its parameter sets.
pub(crate) fn head(frame: ByteRange) -> ByteRange {
    ByteRange::at(frame.start, frame.len().min(READ))
}

/// Whether the parameter sets at the start of a key frame repeat those of a sample entry.
pub(crate) fn repeats_sets(codec: &Codec, bytes: &[u8]) -> bool {
    let Some((syntax, length_size)) = NalSyntax::of(codec) else { return false };
    sets(codec).is_some_and(|known| repeats(bytes, syntax, usize::from(length_size), &known))
}

/// Renames the sample entry if the key frames that arrived allow it.
pub(crate) fn learn(track: &mut Track, arrived: &Arrived) {
    let ranges = wanted(track);
    let allows = |range: &ByteRange| arrived.get(*range).is_some_and(|bytes| repeats_sets(&track.codec, bytes));
    if ranges.is_empty() || !ranges.iter().all(allows) {
        return;
    }
    match &mut track.codec {
        Codec::Hevc(config) => {
            config.fourcc = *b"hvc1";
            close_arrays(&mut track.sample_entry);
        }
        Codec::Avc(config) => config.fourcc = *b"avc1",
        _ => return,
    }
    if let (Some(kind), Some(name)) = (track.sample_entry.get_mut(4..8), track.codec.entry_type()) {
        kind.copy_from_slice(&name);
    }
}

/// Returns the parameter sets of a sample entry of type `hev1` or `avc3` that holds one of each kind.
fn sets(codec: &Codec) -> Option<Vec<Vec<u8>>> {
    let (is_complete, sets): (bool, Vec<&[u8]>) = match codec {
        Codec::Hevc(config) if config.fourcc == *b"hev1" => {
            let is_complete = [&config.vps, &config.sps, &config.pps].iter().all(|sets| !sets.is_empty());
            (is_complete, config.parameter_sets().collect())
        }
        Codec::Avc(config) if config.fourcc == *b"avc3" => {
            (!config.sps.is_empty() && !config.pps.is_empty(), config.parameter_sets().collect())
        }
        _ => return None,
    };
    is_complete.then(|| sets.into_iter().map(<[u8]>::to_vec).collect())
}

/// Whether all parameter sets before the first slice of a sample are `known`. `bytes` may end within it.
fn repeats(bytes: &[u8], syntax: NalSyntax, length_size: usize, known: &[Vec<u8>]) -> bool {
    let mut rest = bytes;
    while let Some((field, after)) = rest.split_at_checked(length_size).filter(|(_, after)| !after.is_empty()) {
        let len = field.iter().fold(0_usize, |len, byte| len << 8 | usize::from(*byte));
        let unit = &after[..len.min(after.len())];
        if syntax.is_slice(unit) {
            return true;
        }
        if SetKind::of(syntax, unit).is_some() && !known.iter().any(|set| is_same(syntax, set, unit)) {
            return false;
        }
        let Some(next) = after.get(len..) else { break };
        rest = next;
    }
    true
}

/// Whether two sets have the same contents. `nal_ref_idc` of H.264 and zeros at the end are no part of them.
fn is_same(syntax: NalSyntax, a: &[u8], b: &[u8]) -> bool {
    let header = usize::from(syntax == NalSyntax::Avc);
    let contents = |set: &'_ [u8]| -> Vec<u8> {
        let end = set.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        set.get(header..end).unwrap_or_default().to_vec()
    };
    contents(a) == contents(b)
}

/// Sets `array_completeness` of all arrays in `hvcC`, as `hvc1` requires.
fn close_arrays(entry: &mut [u8]) {
    let word = |entry: &[u8], at: usize| {
        entry.get(at..at + 4).map(|four| four.iter().fold(0, |word: usize, byte| word << 8 | usize::from(*byte)))
    };
    let mut at = FIELDS;
    while let Some(size) = word(entry, at).filter(|size| *size >= 8) {
        if entry.get(at + 4..at + 8) == Some(b"hvcC") {
            state_completeness(entry.get_mut(at + 8..at.saturating_add(size)).unwrap_or_default(), true);
            return;
        }
        at = at.saturating_add(size);
    }
}

#[cfg(test)]
mod tests;
