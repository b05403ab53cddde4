//! Headers of tags (Video File Format 10, E.4.1).

/// Types of tags.
const AUDIO: u8 = 8;
const VIDEO: u8 = 9;
const SCRIPT: u8 = 18;
/// Flag of tags that are encrypted, and bits that are 0.
const FILTER: u8 = 0x20;
const RESERVED: u8 = 0xc0;

/// Header of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TagHeader {
    kind: u8,
    pub(super) is_filtered: bool,
    /// Bytes of the body.
    size: u32,
    /// Time in milliseconds. It wraps.
    pub(super) timestamp: u32,
}

/// Whether a tag may begin with this byte.
pub(super) fn begins(byte: u8) -> bool {
    byte & RESERVED == 0 && matches!(byte & !FILTER, AUDIO | VIDEO | SCRIPT)
}

impl TagHeader {
    pub(super) const BYTES: u64 = 11;

    /// Reads a header; `None` where the bytes begin with none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let [kind, high, middle, low, time @ .., upper, 0, 0, 0] = bytes.first_chunk::<11>()? else { return None };
        begins(*kind).then(|| Self {
            kind: kind & !FILTER,
            is_filtered: kind & FILTER != 0,
            size: u32::from_be_bytes([0, *high, *middle, *low]),
            timestamp: u32::from_be_bytes([*upper, time[0], time[1], time[2]]),
        })
    }

    /// Bytes of header and body.
    pub(super) fn whole(&self) -> u64 {
        Self::BYTES + u64::from(self.size)
    }

    /// Whether the tag has sound, or pictures; `None` for other tags.
    pub(super) fn is_sound(&self) -> Option<bool> {
        match self.kind {
            _ if self.size == 0 => None,
            AUDIO => Some(true),
            VIDEO => Some(false),
            _ => None,
        }
    }

    /// Whether `bytes`, which begin with the tag, end with its size (`PreviousTagSize`).
    pub(super) fn is_followed_by_size(&self, bytes: &[u8]) -> bool {
        bytes.last_chunk().is_some_and(|size| u64::from(u32::from_be_bytes(*size)) == self.whole())
    }
}
