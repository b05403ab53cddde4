//! The record of one payload in an index: 128 bytes, little-endian, times in nanoseconds.
//!
//! | bytes | is |
//! |---|---|
//! | 0..4 | `MPr1` |
//! | 4 | kind |
//! | 5 | 1 if payloads before it were lost |
//! | 6..8 | track |
//! | 8..12 | flags |
//! | 12..16 | epoch |
//! | 16..24 | run |
//! | 24..32 | segment |
//! | 32..36 | part |
//! | 36..40 | number of the file |
//! | 40..48 | start |
//! | 48..56 | duration |
//! | 56..64 | wall time |
//! | 64..72 | time of the source |
//! | 72..80 | offset of the payload |
//! | 80..84 | length of the payload |
//! | 84..88 | zero |
//! | 88..96 | checksum of the payload (XXH3, 64 bits) |
//! | 96..120 | zero |
//! | 120..128 | checksum of bytes 0..120 |

use std::ops::Range;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a record.
pub(super) const SIZE: usize = 128;
/// Identifies the format.
const FORM: [u8; 4] = *b"MPr1";
/// Bytes before the checksum.
const CHECKED: usize = SIZE - 8;

/// Kind of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingKind {
    /// Init segment of a track.
    Init,
    /// Part of a segment: `moof` and `mdat`.
    Part,
    /// Begin of an epoch.
    Epoch,
    /// End of a segment.
    SegmentEnd,
    /// Cue, such as one of SCTE-35.
    Cue,
}

/// Meaning of a payload. The ring itself uses only `wall` and `duration`, for the age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingRecord {
    /// Kind of the payload.
    pub kind: RingKind,
    /// Index of the track.
    pub track: u16,
    /// Flags of the caller.
    pub flags: u32,
    /// Run of the stream.
    pub run: u64,
    /// Number of the epoch.
    pub epoch: u32,
    /// Number of the segment.
    pub segment: u64,
    /// Number of the part in its segment.
    pub part: u32,
    /// Start on the timeline of the stream.
    pub start: Duration,
    /// Duration of the media.
    pub duration: Duration,
    /// Time of `start` since the Unix epoch.
    pub wall: Duration,
    /// Time of `start` by the clock of the source, since the Unix epoch; zero if unknown.
    pub source: Duration,
}

/// Place of a payload on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) length: u32,
}

impl RingPlace {
    /// Length of the payload in bytes.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// Bytes of the data file.
    pub(super) fn range(&self) -> Range<u64> {
        self.offset..self.end()
    }

    /// First byte behind the payload.
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }
}

/// A payload that was on the disk when the ring was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Meaning of the payload.
    pub record: RingRecord,
    /// Whether payloads between it and the one before were lost.
    pub is_after_gap: bool,
    /// Place of the payload.
    pub place: RingPlace,
}

/// Content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) found: Found,
    /// Checksum of the payload.
    pub(super) sum: u64,
}

impl Entry {
    pub(super) fn encode(&self) -> [u8; SIZE] {
        let Found { record, is_after_gap, place } = &self.found;
        let mut bytes = [0; SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &FORM);
        put(4, &[record.kind as u8, u8::from(*is_after_gap)]);
        put(6, &record.track.to_le_bytes());
        put(8, &record.flags.to_le_bytes());
        put(12, &record.epoch.to_le_bytes());
        put(16, &record.run.to_le_bytes());
        put(24, &record.segment.to_le_bytes());
        put(32, &record.part.to_le_bytes());
        put(36, &place.file.to_le_bytes());
        for (at, time) in [(40, record.start), (48, record.duration), (56, record.wall), (64, record.source)] {
            put(at, &u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).to_le_bytes());
        }
        put(72, &place.offset.to_le_bytes());
        put(80, &place.length.to_le_bytes());
        put(88, &self.sum.to_le_bytes());
        let sum = xxh3_64(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses a record; `None` where the bytes are not one.
    pub(super) fn decode(bytes: &[u8; SIZE]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let time = |at: usize| Duration::from_nanos(long(at));
        if bytes[..4] != FORM || long(CHECKED) != xxh3_64(&bytes[..CHECKED]) {
            return None;
        }
        let kind = match bytes[4] {
            0 => RingKind::Init,
            1 => RingKind::Part,
            2 => RingKind::Epoch,
            3 => RingKind::SegmentEnd,
            4 => RingKind::Cue,
            _ => return None,
        };
        let record = RingRecord {
            kind,
            track: u16::from_le_bytes([bytes[6], bytes[7]]),
            flags: word(8),
            epoch: word(12),
            run: long(16),
            segment: long(24),
            part: word(32),
            start: time(40),
            duration: time(48),
            wall: time(56),
            source: time(64),
        };
        let place = RingPlace { file: word(36), offset: long(72), length: word(80) };
        Some(Self { found: Found { record, is_after_gap: bytes[5] != 0, place }, sum: long(88) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_makes_it_invalid() {
        let record = RingRecord {
            kind: RingKind::Cue,
            track: 2,
            flags: 3,
            run: u64::MAX,
            epoch: 5,
            segment: 6,
            part: 7,
            start: Duration::from_nanos(8),
            duration: Duration::from_nanos(9),
            wall: Duration::from_secs(1_800_000_000),
            source: Duration::ZERO,
        };
        let place = RingPlace { file: 10, offset: 11, length: 12 };
        let entry = Entry { found: Found { record, is_after_gap: true, place }, sum: 13 };
        let bytes = entry.encode();
        assert_eq!(Entry::decode(&bytes), Some(entry));
        assert_eq!(Entry::decode(&[0; SIZE]), None);
        for bit in 0..SIZE * 8 {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Entry::decode(&other), None, "bit {bit}");
        }
    }

    #[test]
    fn all_kinds_are_kept() {
        for kind in [RingKind::Init, RingKind::Part, RingKind::Epoch, RingKind::SegmentEnd, RingKind::Cue] {
            let zero = Duration::ZERO;
            let (start, duration, wall, source) = (zero, zero, zero, zero);
            let (track, flags, run, epoch, segment, part) = (0, 0, 0, 0, 0, 0);
            let record = RingRecord { kind, track, flags, run, epoch, segment, part, start, duration, wall, source };
            let place = RingPlace { file: 1, offset: 0, length: 0 };
            let entry = Entry { found: Found { record, is_after_gap: false, place }, sum: 0 };
            assert_eq!(Entry::decode(&entry.encode()), Some(entry));
        }
    }
}
