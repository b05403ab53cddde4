//! Walks clusters (RFC 9559 5.1.3) and finds their blocks, without I/O.

use super::{
    block,
    ebml::{self, Header, Here, LONGEST_HEADER},
    ids,
};
use crate::{error::MediaError, units::ByteRange, window::Window, work::Work};
use bytes::Bytes;
use std::collections::BTreeSet;

/// Bytes of a block that are read first: its head, and most lists of laced frames.
const BLOCK_HEAD: u64 = 64;
/// Ticks by which writers round the time of a cue differently than that of its frame.
const ROUNDED: u64 = 1;
/// Bytes of a frame that tell how long it lasts.
const OPENING: u64 = 2;
/// Most bytes of a first frame that tell its codec.
const FIRST_FRAME: u64 = 4096;
/// Bytes by which a cluster is recognised.
const BEGINNING: usize = LONGEST_HEADER as usize + 1;
/// First bytes of elements which clusters begin with: time, checksum, padding, position, size of the one before.
const FIRST: [u8; 5] = [0xe7, 0xbf, 0xec, 0xa7, 0xab];
/// Most bytes in which clusters are searched behind damaged places.
const MOST_SEARCHED: u64 = 256 << 20;
/// Most damaged places that a walk passes.
const MOST_DAMAGES: u32 = 1024;

/// A block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) track: u64,
    /// The `SimpleBlock` or `BlockGroup`, with its header.
    pub(super) element: ByteRange,
    /// Time in ticks of the segment.
    pub(super) time: i64,
    pub(super) is_key: bool,
    /// `BlockDuration` in ticks of the segment.
    pub(super) duration: Option<u64>,
    /// Nanoseconds at its end that are not heard (`DiscardPadding`).
    pub(super) padding: u64,
    /// First two bytes of its first frame; zeros where it has fewer.
    pub(super) opening: [u8; 2],
    /// Beginning of its first frame, where [`Clusters::show_first_of`] asked for it.
    pub(super) first: Option<Bytes>,
}

/// A key frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) track: u64,
    /// Time in ticks of the segment.
    pub(super) time: i64,
}

impl Mark {
    /// Whether a block begins with the frame.
    pub(super) fn is(&self, track: u64, time: i64) -> bool {
        track == self.track && time.abs_diff(self.time) <= ROUNDED
    }
}

/// Result of one step.
#[derive(Debug)]
pub(super) enum Event {
    /// The bytes of this range are needed.
    Needs(ByteRange),
    /// A block, whose frames are [`Clusters::frames`].
    Block(Block),
    End,
}

/// The walk over a stretch of a segment.
#[derive(Debug)]
pub(super) struct Clusters {
    window: Window,
    cluster: Option<Cluster>,
    group: Option<Group>,
    /// Frames of the last block.
    frames: Vec<ByteRange>,
    /// Available bytes of the first frame of the last block.
    available: Bytes,
    /// Tracks whose next frame is shown.
    shown: BTreeSet<u64>,
    places: Vec<(u64, u64)>,
    /// Frame at which the walk ends.
    until: Option<Mark>,
    damages: u32,
    /// Bytes in which clusters were searched.
    searched: u64,
    is_searching: bool,
    is_cut_short: bool,
    work: Work,
}

#[derive(Debug)]
struct Cluster {
    /// `None` where the size is unknown.
    end: Option<u64>,
    time: Option<i64>,
}

/// A `BlockGroup` that is being read.
#[derive(Debug)]
struct Group {
    start: u64,
    end: u64,
    block: Option<Block>,
    duration: Option<u64>,
    padding: u64,
    has_reference: bool,
}

impl Clusters {
    /// Creates a walk over a segment that ends at `end`, from an element of it at the beginning of `range` on. Requests have
    /// `read_size` bytes, if they lie in `range`.
    pub(super) fn new(range: ByteRange, end: u64, read_size: u64, work: Work) -> Self {
        Self {
            window: Window::new(range.start, end, read_size).eager_to(range.end),
            until: None,
            cluster: None,
            group: None,
            frames: Vec::new(),
            available: Bytes::new(),
            shown: BTreeSet::new(),
            places: Vec::new(),
            damages: 0,
            searched: 0,
            is_searching: false,
            is_cut_short: false,
            work,
        }
    }

    /// Shows the beginning of the next frame of a track.
    pub(super) fn show_first_of(&mut self, track: u64) {
        self.shown.insert(track);
    }

    /// Frames of the block that was returned last.
    pub(super) fn frames(&self) -> &[ByteRange] {
        &self.frames
    }

    /// Beginning of the first frame of the last block, as far as its bytes are available.
    pub(super) fn available(&self) -> &[u8] {
        &self.available
    }

    /// Whether the stretch ends within an element.
    pub(super) fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// Position of the walk.
    pub(super) fn at(&self) -> u64 {
        self.window.at()
    }

    /// Ends the walk at a frame.
    pub(super) fn end_at(&mut self, mark: Mark) {
        self.until = Some(mark);
    }

    /// Takes the bytes of the range that was needed.
    pub(super) fn supply(&mut self, bytes: Bytes) {
        self.window.append(bytes);
    }

    /// Walks to the next block.
    ///
    /// # Errors
    /// The job has ended, or too many places are damaged.
    pub(super) fn next(&mut self) -> Result<Event, MediaError> {
        if self.group.is_none() {
            // The slice would keep all bytes of its request in memory.
            self.available = Bytes::new();
        }
        loop {
            let at = self.window.at();
            self.work.spend(1).map_err(|error| MediaError::work("Cluster", at, error))?;
            if let Some(group) = self.group.take_if(|group| at >= group.end) {
                if let Some(block) = group.block {
                    let is_key = !group.has_reference;
                    let element = ByteRange::new(group.start, group.end);
                    let (duration, padding) = (group.duration, group.padding);
                    return Ok(Event::Block(Block { element, is_key, duration, padding, ..block }));
                }
                continue;
            }
            if self.is_searching {
                match self.search() {
                    Some(range) => return Ok(Event::Needs(range)),
                    None => continue,
                }
            }
            self.cluster.take_if(|cluster| cluster.end.is_some_and(|end| at >= end));
            let header = match Here::of(&self.window) {
                Here::End if self.group.is_some() => {
                    self.is_cut_short = true;
                    self.group = None;
                    return Ok(Event::End);
                }
                Here::End => return Ok(Event::End),
                Here::Unknown => return Ok(Event::Needs(self.window.want(LONGEST_HEADER))),
                Here::Garbage => {
                    self.damaged()?;
                    continue;
                }
                Here::Element(header) => header,
            };
            let step = if self.group.is_some() {
                self.in_group(&header)?
            } else if self.cluster.is_some() {
                self.in_cluster(&header)?
            } else {
                self.at_top(&header)?
            };
            if let Some(event) = step {
                return Ok(event);
            }
        }
    }

    fn at_top(&mut self, header: &Header) -> Result<Option<Event>, MediaError> {
        match (header.id, header.body) {
            (ids::CLUSTER, body) => {
                self.window.advance(header.length);
                let end = body.map(|body| self.window.at().saturating_add(body));
                self.cluster = Some(Cluster { end, time: None });
                Ok(None)
            }
            // Files may be joined: another segment is read as a part of this one.
            (ids::SEGMENT, _) => {
                self.window.advance(header.length);
                Ok(None)
            }
            (_, Some(_)) => self.skip(header),
            (_, None) => {
                self.damaged()?;
                Ok(None)
            }
        }
    }

    fn in_cluster(&mut self, header: &Header) -> Result<Option<Event>, MediaError> {
        if ids::is_top_level(header.id) {
            self.cluster = None;
            return Ok(None);
        }
        let end = self.cluster.as_ref().and_then(|cluster| cluster.end).unwrap_or(u64::MAX);
        if header.whole().is_some_and(|whole| self.window.at().saturating_add(whole) > end) {
            self.damaged()?;
            return Ok(None);
        }
        match header.id {
            ids::TIMESTAMP => {
                let Some(body) = header.body.filter(|body| *body <= 8) else {
                    self.damaged()?;
                    return Ok(None);
                };
                let Some(bytes) = self.window.bytes(header.length + body) else {
                    return Ok(Some(self.wants(header.length + body)));
                };
                let value =
                    bytes.iter().skip(header.length as usize).fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
                if let Some(cluster) = &mut self.cluster {
                    cluster.time = i64::try_from(value).ok();
                }
                self.skip(header)
            }
            ids::SIMPLE_BLOCK => self.block(header),
            ids::BLOCK_GROUP => {
                let Some(body) = header.body else {
                    self.damaged()?;
                    return Ok(None);
                };
                let start = self.window.at();
                self.window.advance(header.length);
                let end = self.window.at().saturating_add(body);
                self.group = Some(Group { start, end, block: None, duration: None, padding: 0, has_reference: false });
                Ok(None)
            }
            _ => self.skip(header),
        }
    }

    fn in_group(&mut self, header: &Header) -> Result<Option<Event>, MediaError> {
        let Some(group) = &mut self.group else { return Ok(None) };
        let fits = header.whole().is_some_and(|whole| self.window.at().saturating_add(whole) <= group.end);
        if !fits {
            self.group = None;
            self.damaged()?;
            return Ok(None);
        }
        match (header.id, header.body.unwrap_or(0)) {
            (ids::BLOCK, _) => self.block(header),
            (ids::REFERENCE_BLOCK, _) => {
                group.has_reference = true;
                self.skip(header)
            }
            (id @ (ids::BLOCK_DURATION | ids::DISCARD_PADDING), body @ ..=8) => {
                let Some(bytes) = self.window.bytes(header.length + body) else {
                    return Ok(Some(self.wants(header.length + body)));
                };
                let value =
                    bytes.iter().skip(header.length as usize).fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
                match id {
                    ids::BLOCK_DURATION => group.duration = Some(value),
                    _ => group.padding = at_end(value, body),
                }
                self.skip(header)
            }
            _ => self.skip(header),
        }
    }

    /// Reads the head of a block, and skips it. A block without group is returned.
    fn block(&mut self, header: &Header) -> Result<Option<Event>, MediaError> {
        let (Some(size), Some(whole)) = (header.body, header.whole()) else {
            self.damaged()?;
            return Ok(None);
        };
        if whole > self.window.left() {
            return self.cut();
        }
        let start = header.length as usize;
        let held = self.window.held();
        let available = held.len().saturating_sub(start);
        let body = held.get(start..).unwrap_or_default();
        let body = &body[..body.len().min(usize::try_from(size).unwrap_or(usize::MAX))];
        let head = match block::read(body, size, &mut self.places) {
            block::Read::Head(head) => head,
            block::Read::Needs(bytes) => {
                let wanted = (bytes as u64).max(BLOCK_HEAD).min(size);
                return Ok(Some(self.wants(header.length + wanted)));
            }
            block::Read::Garbage => {
                // Only this block is lost: its size is known.
                self.count_damage()?;
                return self.skip(header);
            }
        };
        let time = self.cluster.as_ref().and_then(|cluster| cluster.time?.checked_add(i64::from(head.time)));
        // Whether a block of a group is a key frame is told behind it: the cues are trusted there.
        let may_be_key = head.is_key || self.group.is_some();
        if time.zip(self.until).is_some_and(|(time, mark)| may_be_key && mark.is(head.track, time)) {
            return Ok(Some(Event::End));
        }
        let (place, length) = self.places.first().copied().unwrap_or((0, 0));
        let until = place + length.min(OPENING);
        if (available as u64) < until {
            return Ok(Some(self.wants(header.length + until.max(BLOCK_HEAD.min(size)))));
        }
        let mut opening = [0; OPENING as usize];
        for (byte, found) in opening.iter_mut().zip(&body[place as usize..until as usize]) {
            *byte = *found;
        }
        let mut first = None;
        if self.shown.contains(&head.track) {
            let until = place + length.min(FIRST_FRAME);
            if (available as u64) < until {
                return Ok(Some(self.wants(header.length + until)));
            }
            first = Some(Bytes::copy_from_slice(&body[place as usize..until as usize]));
            self.shown.remove(&head.track);
        }
        let end = usize::try_from(place + length).unwrap_or(usize::MAX).min(body.len());
        self.available = held.slice(start + place as usize..start + end);
        let element = ByteRange::at(self.window.at(), whole);
        let offset = element.start + header.length;
        self.frames.clear();
        self.frames.extend(self.places.iter().map(|(place, length)| ByteRange::at(offset + place, *length)));
        self.window.advance(whole);
        let Some(time) = time else {
            self.count_damage()?;
            return Ok(None);
        };
        let block =
            Block { track: head.track, element, time, is_key: head.is_key, duration: None, padding: 0, opening, first };
        match &mut self.group {
            Some(group) => {
                group.block = Some(block);
                Ok(None)
            }
            None => Ok(Some(Event::Block(block))),
        }
    }

    /// Skips an element whose size is known.
    fn skip(&mut self, header: &Header) -> Result<Option<Event>, MediaError> {
        match header.whole() {
            Some(whole) if whole <= self.window.left() => {
                self.window.advance(whole);
                Ok(None)
            }
            Some(_) if self.cluster.is_some() => self.cut(),
            _ => {
                self.damaged()?;
                Ok(None)
            }
        }
    }

    /// Passes an element that exceeds the stretch: it is cut, or its size is damaged and another cluster follows.
    fn cut(&mut self) -> Result<Option<Event>, MediaError> {
        self.is_cut_short = true;
        self.damaged()?;
        Ok(None)
    }

    fn wants(&self, size: u64) -> Event {
        Event::Needs(self.window.want(size))
    }

    /// Leaves a damaged cluster: by its size, or by searching for the next one.
    fn damaged(&mut self) -> Result<(), MediaError> {
        self.count_damage()?;
        self.group = None;
        let end = self.cluster.take().and_then(|cluster| cluster.end);
        match end.filter(|end| *end > self.window.at() && *end <= self.window.end()) {
            Some(end) => self.window.advance(end - self.window.at()),
            None => self.is_searching = true,
        }
        Ok(())
    }

    fn count_damage(&mut self) -> Result<(), MediaError> {
        self.damages += 1;
        if self.damages > MOST_DAMAGES {
            let (found, most) = (u64::from(self.damages), u64::from(MOST_DAMAGES));
            return Err(MediaError::too_large("Cluster", self.window.at(), found, most, "damaged places"));
        }
        Ok(())
    }

    /// Searches for the identifier of a cluster, behind the first byte. Returns the range that is needed.
    fn search(&mut self) -> Option<ByteRange> {
        let held = self.window.held();
        let found = held.get(1..).and_then(|rest| rest.windows(BEGINNING).position(begins_cluster));
        if let Some(place) = found {
            self.window.advance(place as u64 + 1);
            self.is_searching = false;
            return None;
        }
        // The last bytes may be the beginning of one.
        let passed = (held.len() as u64).saturating_sub(BEGINNING as u64);
        self.searched += passed;
        if self.window.held_to() >= self.window.end() || self.searched > MOST_SEARCHED {
            self.window.advance(self.window.left());
            self.is_searching = false;
            return None;
        }
        self.window.advance(passed);
        Some(self.window.want(2 * BEGINNING as u64))
    }
}

/// Returns a `DiscardPadding` of `bytes` bytes, in nanoseconds; 0 where it is negative, and so discards the beginning (5.1.3.5.7).
const fn at_end(value: u64, bytes: u64) -> u64 {
    match bytes {
        1..=8 if value >> (8 * bytes - 1) == 0 => value,
        _ => 0,
    }
}

/// Whether bytes are the header of a cluster, and that of an element which clusters begin with.
fn begins_cluster(bytes: &[u8]) -> bool {
    let ebml::Read::Header(header) = Header::read(bytes) else { return false };
    let first = usize::try_from(header.length).ok().and_then(|length| bytes.get(length));
    header.id == ids::CLUSTER && first.is_some_and(|first| FIRST.contains(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The block of a cluster with one group, whose block is followed by this element.
    fn block(element: &[u8]) -> Block {
        let group = [&[0xa1, 0x86, 0x81, 0, 0, 0, b'a', b'b'][..], element].concat();
        let head = [0xe7, 0x81, 0, 0xa0, 0x80 | u8::try_from(group.len()).unwrap()];
        let size = 0x80 | u8::try_from(head.len() + group.len()).unwrap();
        let cluster = [&ids::CLUSTER.to_be_bytes()[..], &[size], &head, &group].concat();
        let length = cluster.len() as u64;
        let mut clusters = Clusters::new(ByteRange::new(0, length), length, 64, Work::unlimited());
        loop {
            match clusters.next().unwrap() {
                Event::Needs(range) => {
                    let bytes = &cluster[range.start as usize..range.end as usize];
                    clusters.supply(Bytes::copy_from_slice(bytes));
                }
                Event::Block(block) => {
                    assert_eq!(clusters.available(), b"ab");
                    return block;
                }
                Event::End => panic!("no block"),
            }
        }
    }

    #[test]
    fn padding_at_the_end_is_read() {
        let padding = |body: &[u8]| {
            let head = [0x75, 0xa2, 0x80 | u8::try_from(body.len()).unwrap()];
            let element = [&head[..], body].concat();
            block(&element).padding
        };
        assert_eq!((padding(&[0, 0xcd, 0xfe, 0x60]), padding(&[0x7f])), (13_500_000, 127));
        assert_eq!([padding(&[0xcd, 0xfe, 0x60]), padding(&[0xff; 8]), padding(&[])], [0; 3], "negative, or none");
        assert_eq!((block(&[]).padding, block(&[0x9b, 0x81, 7]).duration), (0, Some(7)));
    }
}
