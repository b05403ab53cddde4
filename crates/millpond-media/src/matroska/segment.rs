//! Elements of a segment that stand before its clusters, or that its `SeekHead` names (RFC 9559 5.1).

use super::{
    ebml::{Element, Elements},
    ids,
    track_entry::TrackEntry,
};
use crate::{budget::MOST_TRACKS, error::MediaError};

/// Longest identifier and size that are read (RFC 8794 11.2.4).
const LONGEST_ID: u64 = 4;
const LONGEST_SIZE: u64 = 8;
/// Nanoseconds of a tick, where no scale is stated.
const DEFAULT_SCALE: u64 = 1_000_000;

/// Checks the EBML header (RFC 8794 11.2.1).
///
/// # Errors
/// The file needs a later reader, or holds something else than Matroska.
pub(super) fn check_header(header: &Element<'_>) -> Result<(), MediaError> {
    let number = |id: u32, default: u64| header.child(id).map_or(Ok(default), |element| element.unsigned());
    let invalid = |found: String, expected: &str| Err(MediaError::invalid("EBML", header.offset, found, expected));
    let version = number(ids::EBML_READ_VERSION, 1)?;
    if version > 1 {
        return invalid(format!("EBMLReadVersion {version}"), "1");
    }
    let (id, size) = (number(ids::MAX_ID_LENGTH, LONGEST_ID)?, number(ids::MAX_SIZE_LENGTH, LONGEST_SIZE)?);
    if id > LONGEST_ID || size > LONGEST_SIZE {
        return invalid(format!("identifiers of {id} bytes and sizes of {size}"), "at most 4 and 8");
    }
    match header.child(ids::DOC_TYPE).map(|element| element.text()) {
        Some(kind) if kind != "matroska" && kind != "webm" => {
            invalid(format!("DocType \"{}\"", kind.escape_debug()), "matroska or webm")
        }
        _ => Ok(()),
    }
}

/// `Info` (5.1.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Info {
    /// Nanoseconds of a tick.
    pub(super) scale: u64,
    /// Duration in ticks.
    pub(super) duration: Option<f64>,
}

impl Default for Info {
    fn default() -> Self {
        Self { scale: DEFAULT_SCALE, duration: None }
    }
}

impl Info {
    pub(super) fn read(info: &Element<'_>) -> Result<Self, MediaError> {
        let scale = info.child(ids::TIMESTAMP_SCALE).map_or(Ok(DEFAULT_SCALE), |element| element.unsigned())?;
        if !(1..=1_000_000_000).contains(&scale) {
            let found = format!("a TimestampScale of {scale} ns");
            return Err(MediaError::invalid("Info", info.offset, found, "1 ns to a second"));
        }
        let duration = info.child(ids::DURATION).map(|element| element.float()).transpose()?;
        Ok(Self { scale, duration: duration.filter(|ticks| ticks.is_finite() && *ticks > 0.0) })
    }
}

/// Reads `SeekHead` (5.1.1): identifiers of elements, and their offsets from the beginning of the segment's body.
pub(super) fn seeks(head: &Element<'_>) -> Vec<(u32, u64)> {
    let seeks = head.children().filter(|element| element.id == ids::SEEK);
    let read = |seek: Element<'_>| {
        let id = seek.child(ids::SEEK_ID)?;
        let id = u32::try_from(id.unsigned().ok()?).ok()?;
        Some((id, seek.child(ids::SEEK_POSITION)?.unsigned().ok()?))
    };
    seeks.filter_map(read).collect()
}

/// Reads `Tracks` (5.1.4).
///
/// # Errors
/// An entry is damaged.
pub(super) fn tracks(tracks: &Element<'_>) -> Result<Vec<TrackEntry>, MediaError> {
    let entries = tracks.children().filter(|element| element.id == ids::TRACK_ENTRY).take(MOST_TRACKS);
    entries.map(|entry| TrackEntry::read(&entry)).collect()
}

/// Returns the element at the beginning of `bytes`, which are at `offset`.
pub(super) fn element(bytes: &[u8], offset: u64) -> Option<Element<'_>> {
    Elements::new(bytes, offset).next()
}
