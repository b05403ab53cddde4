//! Offsets of fragments, read from the segment index (`sidx`, ISO/IEC 14496-12 8.16.3) and from the movie fragment
//! random access box (`mfra`, 8.8.9 to 8.8.11).

use crate::boxes::{BoxHeader, Entries, FullBox, Node};

/// Length in bytes of `mfro`, the last box of a file with an `mfra`.
const MFRO: usize = 16;

/// Returns the offsets of the subsegments that `sidx` refers to, media and further indexes alike, and the end of the
/// last.
pub(crate) fn segment_index(sidx: &Node<'_>) -> Option<Vec<u64>> {
    let FullBox { version, mut fields, .. } = sidx.full().ok()?;
    fields.skip(8).ok()?;
    fields.versioned(version).ok()?;
    let first = fields.versioned(version).ok()?;
    fields.skip(2).ok()?;
    let count = fields.u16().ok()?;
    // Offsets count from the end of the box.
    let mut place = (sidx.offset + sidx.whole.len() as u64).checked_add(first)?;
    let mut places = vec![place];
    for [a, b, c, d, ..] in Entries::<12>::new(fields.rest(), u32::from(count)).iter() {
        let size = u32::from_be_bytes([*a, *b, *c, *d]) & 0x7fff_ffff;
        place = place.checked_add(u64::from(size))?;
        places.push(place);
    }
    Some(places)
}

/// Returns the size of the `mfra` at the end of the object, whose last bytes are `tail`.
pub(crate) fn random_access_size(tail: &[u8]) -> Option<u64> {
    let mfro = tail.get(tail.len().checked_sub(MFRO)?..)?;
    let header = BoxHeader::parse(mfro)?;
    let size = mfro.get(12..).and_then(|s| s.first_chunk()).map(|s| u64::from(u32::from_be_bytes(*s)))?;
    (&header.kind == b"mfro" && header.size == Some(MFRO as u64) && size > MFRO as u64).then_some(size)
}

/// Returns the offsets of the fragments that `mfra` names, unsorted.
pub(crate) fn random_access(mfra: &Node<'_>) -> Vec<u64> {
    let mut places = Vec::new();
    for tfra in mfra.children().filter(|node| &node.kind == b"tfra") {
        // Entries before the end of a truncated table are used.
        let _ = track_places(&tfra, &mut places);
    }
    places
}

fn track_places(tfra: &Node<'_>, places: &mut Vec<u64>) -> Result<(), crate::error::MediaError> {
    let FullBox { version, mut fields, .. } = tfra.full()?;
    fields.skip(4)?;
    let lengths = fields.u32()?;
    let numbers = [lengths >> 4 & 3, lengths >> 2 & 3, lengths & 3].iter().map(|n| *n as usize + 1).sum();
    let count = fields.u32()?;
    for _ in 0..count {
        fields.versioned(version)?;
        places.push(fields.versioned(version)?);
        fields.skip(numbers)?;
    }
    Ok(())
}
