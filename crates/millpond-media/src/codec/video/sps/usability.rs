//! Colours and pixel aspect that only the parameter sets state.

use super::PictureSequence;
use crate::{
    boxes::Node,
    codec::{Codec, TrackKind, from_quicktime, video::color::Color},
};

/// Length in bytes of a visual sample entry's fields before its boxes.
const FIELDS: usize = 78;

/// Adds colours and pixel aspect of the usability information (H.264 and H.265, annex E) to a track and its sample entry,
/// where the entry has no `colr` and `pasp`. Players and manifests look for them there. Usual colours are left out. Colours of
/// AV1, which were read with its configuration, are added to the entry.
pub(crate) fn fill_usability(kind: &mut TrackKind, codec: &mut Codec, sample_entry: &mut Vec<u8>) {
    if let Codec::Av1(config) = codec {
        if let Some(stated) = config.color.filter(|stated| !stated.is_default() && !has(sample_entry, b"colr")) {
            append(sample_entry, b"colr", &codes(stated));
        }
        return;
    }
    let Some(sequence) = PictureSequence::of(codec) else { return };
    let color = match codec {
        Codec::Avc(config) => &mut config.color,
        Codec::Hevc(config) => &mut config.color,
        _ => return,
    };
    if let Some(stated) = sequence.color.filter(|stated| color.is_none() && !stated.is_default()) {
        *color = Some(stated);
        append(sample_entry, b"colr", &codes(stated));
    }
    let TrackKind::Video { pixel_aspect, .. } = kind else { return };
    let is_stated = |aspect: &(u32, u32)| aspect.0 != aspect.1 && !has(sample_entry, b"pasp");
    if let Some((horizontal, vertical)) = sequence.pixel_aspect.filter(is_stated) {
        *pixel_aspect = (horizontal, vertical);
        append(sample_entry, b"pasp", &[horizontal.to_be_bytes(), vertical.to_be_bytes()].concat());
    }
}

/// Largest ratio between the scales of a matrix that counts; others are mistakes.
const MOST_SCALE: u32 = 16;

/// Applies the horizontal and vertical scale of a track header's matrix to the pixel aspect of a track and its sample entry:
/// players of fragments apply no matrix but a rotation.
pub(crate) fn scale(kind: &mut TrackKind, sample_entry: &mut Vec<u8>, (horizontal, vertical): (u32, u32)) {
    let TrackKind::Video { pixel_aspect, .. } = kind else { return };
    let (wide, narrow) = (horizontal.max(vertical), horizontal.min(vertical));
    // Equal within a hundredth, or none.
    if narrow == 0 || wide - narrow <= wide / 100 || wide / narrow > MOST_SCALE {
        return;
    }
    let (mut h, mut v) = (
        u64::from(pixel_aspect.0.max(1)) * u64::from(horizontal),
        u64::from(pixel_aspect.1.max(1)) * u64::from(vertical),
    );
    let common = gcd(h, v).max(1);
    (h, v) = (h / common, v / common);
    while h.max(v) > u64::from(u32::MAX) {
        (h, v) = ((h / 2).max(1), (v / 2).max(1));
    }
    let aspect = (h as u32, v as u32);
    *pixel_aspect = aspect;
    remove(sample_entry, b"pasp");
    append(sample_entry, b"pasp", &[aspect.0.to_be_bytes(), aspect.1.to_be_bytes()].concat());
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Removes the boxes of a type from a sample entry. The size of the entry is right after the next [`append`].
fn remove(sample_entry: &mut Vec<u8>, kind: &[u8; 4]) {
    let Some(entry) = Node::new(sample_entry, 0, "stsd") else { return };
    let Some(mut kept) = sample_entry.get(..FIELDS + 8).map(<[u8]>::to_vec) else { return };
    for child in entry.children_after(FIELDS).filter(|child| &child.kind != kind) {
        kept.extend_from_slice(child.whole);
    }
    *sample_entry = kept;
}

/// Returns the content of a `colr` box of type `nclx` (ISO/IEC 14496-12 12.1.5).
fn codes(color: Color) -> Vec<u8> {
    let mut codes = b"nclx".to_vec();
    codes.extend([0, color.primaries, 0, color.transfer, 0, color.matrix, u8::from(color.full_range) << 7]);
    codes
}

fn has(sample_entry: &[u8], kind: &[u8; 4]) -> bool {
    let entry = Node::new(sample_entry, 0, "stsd");
    entry.is_some_and(|entry| entry.children_after(FIELDS).any(|child| &child.kind == kind))
}

/// Appends a box to a sample entry.
fn append(sample_entry: &mut Vec<u8>, kind: &[u8; 4], body: &[u8]) {
    from_quicktime::put(sample_entry, kind, &[body]);
    let size = u32::try_from(sample_entry.len()).unwrap_or(u32::MAX).to_be_bytes();
    if let Some(field) = sample_entry.get_mut(..4) {
        field.copy_from_slice(&size);
    }
}
