//! The end of a FLAC frame, which states no length: a header with the next number, before which the frame's checksum stands.

use super::{
    flac_crc::crc16,
    flac_frame::{FrameHeader, StreamInfo},
    tags,
};

/// Bytes of the checksum at the end of a frame.
const CHECKSUM: usize = 2;

/// A frame whose end is searched.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFrame {
    pub(super) header: FrameHeader,
    /// Bytes from its beginning in which no end was found.
    searched: usize,
    /// CRC-16 of `checked` bytes.
    crc: u16,
    checked: usize,
    /// The first header with the next number, before which no checksum stands.
    doubtful: Option<usize>,
    /// The first header of a later frame.
    later: Option<usize>,
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The frame has this many bytes.
    At(usize),
    /// The frame is damaged: another one may begin behind this many bytes.
    Lost(usize),
    /// More bytes are needed.
    Short,
    /// The file ends within the frame.
    Cut,
}

impl OpenFrame {
    pub(super) fn new(header: FrameHeader) -> Self {
        let searched = header.length + CHECKSUM;
        Self { header, searched, crc: 0, checked: 0, doubtful: None, later: None }
    }

    /// Bytes that were searched, for limits on work.
    pub(super) fn searched(&self) -> usize {
        self.searched
    }

    /// Searches for the end in `held`, which begins with the frame. `ends`: no bytes follow.
    pub(super) fn search(&mut self, info: &StreamInfo, held: &[u8], ends: bool) -> End {
        let most = info.most_bytes(self.header.block);
        let next = self.header.number + if self.header.is_variable { u64::from(self.header.block) } else { 1 };
        // A header at the end of the available bytes may be a part of one.
        let whole = if ends { held.len() } else { held.len().saturating_sub(FrameHeader::MOST) };
        let until = whole.min(most);
        while self.searched < until {
            let rest = held.get(self.searched..until).unwrap_or_default();
            let Some(place) = rest.iter().position(|byte| *byte == 0xff) else { break };
            let place = self.searched + place;
            self.searched = place + 1;
            let header = FrameHeader::read(held.get(place..).unwrap_or_default());
            let is_of_stream = |header: &FrameHeader| info.has(header) && header.is_variable == self.header.is_variable;
            let Some(header) = header.filter(is_of_stream) else { continue };
            if header.number == next {
                if self.ends_at(place, held) {
                    return End::At(place);
                }
                self.doubtful.get_or_insert(place);
            } else if header.number > next {
                // A second header behind the missing one: no search is needed any more.
                match (self.doubtful, self.later) {
                    (Some(doubtful), _) => return End::At(doubtful),
                    (None, Some(later)) => return End::Lost(later),
                    (None, None) => self.later = Some(place),
                }
            }
        }
        self.searched = self.searched.max(until);
        if until < most && !ends {
            return End::Short;
        }
        let last = held.get(..most.min(held.len())).unwrap_or_default();
        self.without_next(last, ends && held.len() <= most)
    }

    /// Returns the end of a frame that no header with the next number follows. `is_all`: the file ends with `last`.
    fn without_next(&self, last: &[u8], is_all: bool) -> End {
        match (tail_end(last, is_all), self.doubtful, self.later) {
            (Some(end), ..) => End::At(end),
            (None, Some(place), _) => End::At(place),
            (None, None, Some(place)) => End::Lost(place),
            (None, None, None) if is_all => End::Cut,
            (None, None, None) => End::Lost(last.len()),
        }
    }

    /// Whether the frame's checksum is right if it has `length` bytes. Lengths rise from call to call.
    fn ends_at(&mut self, length: usize, bytes: &[u8]) -> bool {
        self.crc = crc16(self.crc, bytes.get(self.checked..length).unwrap_or_default());
        self.checked = length.max(self.checked);
        self.crc == 0
    }
}

/// Returns the length of a last frame: it ends before a tag, or with the bytes, where these are all.
fn tail_end(bytes: &[u8], is_all: bool) -> Option<usize> {
    if is_all && crc16(0, bytes) == 0 {
        return Some(bytes.len());
    }
    let (mut crc, mut checked) = (0, 0);
    for (place, _) in bytes.iter().enumerate().filter(|(_, byte)| matches!(byte, b'T' | b'A' | b'L' | b'I')) {
        if bytes.get(place..).is_some_and(tags::begins_tail) {
            crc = crc16(crc, bytes.get(checked..place).unwrap_or_default());
            checked = place;
            if crc == 0 {
                return Some(place);
            }
        }
    }
    None
}
