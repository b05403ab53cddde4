//! Marks of files that a recording wrote: two `uuid` boxes (ISO/IEC 14496-12 4.2) of our own, which players ignore.
//!
//! [`FileHead`] follows the init segment and [`FileTail`] the last fragment. A file with both is complete, and is one of a recording,
//! whatever its name is. [`FragmentWalk`] finds the end of the last whole fragment of a file without a tail.

use crate::boxes::BoxHeader;
use std::time::Duration;

/// Extended type of the box behind the init segment.
const HEAD: [u8; 16] = *b"\x6d\x69\x6c\x6c\x70\x6f\x6e\x64\x2d\x72\x65\x63\x2d\x68\x65\x61";
/// Extended type of the box behind the last fragment.
const TAIL: [u8; 16] = *b"\x6d\x69\x6c\x6c\x70\x6f\x6e\x64\x2d\x72\x65\x63\x2d\x74\x61\x69";
/// Size, `uuid` and the extended type.
const UUID_HEADER: usize = 24;
/// Longest box of a mark.
pub const LONGEST_MARK: u64 = 64 << 10;
/// Longest header of a box, with the extended type of a `uuid`.
pub const LONGEST_HEADER: u64 = 32;
/// Bytes at the end of a file that tell the length of its tail.
pub const END: u64 = 8;
/// The last bytes of a tail, after its length.
const END_MARK: [u8; 4] = *b"mprt";
/// Most boxes before the head.
const BEFORE_HEAD: usize = 8;
/// Most gaps of a tail.
const GAPS: usize = 4000;
/// Longest path of a stream in bytes.
const PATH: usize = 4096;

/// The mark behind the init segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHead {
    /// Path of the stream, shortened to 4096 bytes.
    pub stream: String,
    /// Wall time of the first frame, since the Unix epoch. It has whole milliseconds.
    pub began: Duration,
}

/// The mark behind the last fragment. Times have whole milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTail {
    /// Duration, gaps included.
    pub duration: Duration,
    /// Number of frames; 0 where a process ended before the file was complete.
    pub frames: u64,
    /// Frames that were left out.
    pub lost: u64,
    /// Gaps, each as time from the beginning and length. At most 4000 are kept.
    pub gaps: Vec<(Duration, Duration)>,
}

/// Reads fields one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number<const N: usize>(&mut self) -> Option<u64> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(field.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn millis(&mut self) -> Option<Duration> {
        self.number::<8>().map(Duration::from_millis)
    }
}

fn millis(time: Duration) -> [u8; 8] {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).to_be_bytes()
}

/// Returns a `uuid` box.
fn mark(kind: [u8; 16], content: &[u8]) -> Vec<u8> {
    // Contents are bounded far below 2^32.
    let size = u32::try_from(UUID_HEADER + content.len()).unwrap_or(u32::MAX);
    [&size.to_be_bytes()[..], b"uuid", &kind, content].concat()
}

/// Returns the content of a whole `uuid` box of an extended type.
fn content(bytes: &[u8], kind: [u8; 16]) -> Option<&[u8]> {
    let header = BoxHeader::parse(bytes)?;
    let is_whole = header.kind == *b"uuid" && header.header == 8 && header.size == u64::try_from(bytes.len()).ok();
    let (found, content) = bytes.get(8..)?.split_first_chunk::<16>()?;
    (is_whole && *found == kind).then_some(content)
}

impl FileHead {
    /// Returns the box.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let stream = &self.stream[..self.stream.floor_char_boundary(PATH)];
        mark(HEAD, &[&[1][..], &millis(self.began), stream.as_bytes()].concat())
    }

    /// Parses a whole box; `None` where it is none.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(content(bytes, HEAD)?);
        fields.number::<1>().filter(|version| *version == 1)?;
        let began = fields.millis()?;
        let stream = std::str::from_utf8(fields.0).ok().filter(|stream| stream.len() <= PATH)?.to_owned();
        Some(Self { stream, began })
    }
}

impl FileTail {
    /// Returns the box.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let Self { duration, frames, lost, gaps } = self;
        let mut text = vec![1];
        text.extend(millis(*duration));
        [*frames, *lost].iter().for_each(|count| text.extend(count.to_be_bytes()));
        gaps.iter().take(GAPS).for_each(|(at, length)| text.extend([millis(*at), millis(*length)].concat()));
        let size = u32::try_from(UUID_HEADER + text.len() + 8).unwrap_or(u32::MAX);
        text.extend(size.to_be_bytes());
        text.extend(END_MARK);
        mark(TAIL, &text)
    }

    /// Returns the length of the tail of a file, by the last [`END`] bytes of the file; `None` where it has no tail.
    #[must_use]
    pub fn length(end: &[u8]) -> Option<u64> {
        let mut fields = Fields(end);
        let length = fields.number::<4>()?;
        (fields.0 == END_MARK && length <= LONGEST_MARK && length >= UUID_HEADER as u64).then_some(length)
    }

    /// Parses a whole box; `None` where it is none.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(content(bytes, TAIL)?.strip_suffix(&END_MARK)?);
        fields.number::<1>().filter(|version| *version == 1)?;
        let duration = fields.millis()?;
        let (frames, lost) = (fields.number::<8>()?, fields.number::<8>()?);
        let mut gaps = Vec::new();
        while fields.0.len() >= 16 {
            gaps.push((fields.millis()?, fields.millis()?));
        }
        let length = fields.number::<4>().filter(|_| fields.0.is_empty())?;
        (length == bytes.len() as u64).then_some(Self { duration, frames, lost, gaps })
    }
}

/// Finds the head of a file: reads the headers of its first boxes.
///
/// Call [`at`](Self::at), read up to [`LONGEST_HEADER`] bytes from there, and give them to [`take`](Self::take), until that tells the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadSearch {
    at: u64,
    boxes: usize,
}

/// The result of a step of the search for the head's box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundHead {
    /// The next header must be read.
    GoOn,
    /// The head has this place: offset and length.
    At(u64, u64),
    /// The file has none.
    None,
}

impl HeadSearch {
    /// Offset of the next header.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Takes the bytes at that offset.
    pub fn take(&mut self, bytes: &[u8]) -> FoundHead {
        let Some(BoxHeader { kind, header, size: Some(size) }) = BoxHeader::parse(bytes) else {
            return FoundHead::None;
        };
        let is_head = kind == *b"uuid" && bytes.get(8..24) == Some(&HEAD[..]);
        if is_head && size <= LONGEST_MARK {
            return FoundHead::At(self.at, size);
        }
        self.boxes += 1;
        let is_before = matches!(&kind, b"ftyp" | b"moov" | b"uuid" | b"free") && size >= header;
        match self.at.checked_add(size) {
            Some(next) if is_before && self.boxes < BEFORE_HEAD => {
                self.at = next;
                FoundHead::GoOn
            }
            _ => FoundHead::None,
        }
    }
}

/// Finds the end of the last whole fragment of a file that was cut off.
///
/// Call [`at`](Self::at), read up to [`LONGEST_HEADER`] bytes from there, and give them to [`take`](Self::take), while that returns `true`.
#[derive(Clone, Copy, Debug)]
pub struct FragmentWalk {
    /// Length of the file.
    length: u64,
    at: u64,
    /// End of what is whole.
    whole: u64,
    fragments: u64,
    /// Whether a `moof` stands before the next box.
    is_begun: bool,
}

impl FragmentWalk {
    /// Begins to walk over a file of a length.
    #[must_use]
    pub fn new(length: u64) -> Self {
        Self { length, at: 0, whole: 0, fragments: 0, is_begun: false }
    }

    /// Offset of the next header.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// End of the last whole fragment, which ends before the walk's offset. 0 where there is none.
    #[must_use]
    pub fn whole(&self) -> u64 {
        if self.fragments == 0 { 0 } else { self.whole }
    }

    /// Number of whole fragments.
    #[must_use]
    pub fn fragments(&self) -> u64 {
        self.fragments
    }

    /// Takes the bytes at the offset. Returns whether the walk goes on.
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        let Some(BoxHeader { kind, header, size: Some(size) }) = BoxHeader::parse(bytes) else { return false };
        let Some(end) = self.at.checked_add(size).filter(|end| size >= header.max(8) && *end <= self.length) else {
            return false;
        };
        // Behind a tail nothing follows that is ours.
        if kind == *b"uuid" && bytes.get(8..24) == Some(&TAIL[..]) {
            return false;
        }
        self.at = end;
        match &kind {
            b"moof" => self.is_begun = true,
            b"mdat" if self.is_begun => {
                (self.is_begun, self.whole) = (false, end);
                self.fragments += 1;
            }
            _ => {}
        }
        end < self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [&(8 + content.len() as u32).to_be_bytes()[..], kind, content].concat()
    }

    fn head() -> FileHead {
        FileHead { stream: "cams/door é".to_owned(), began: Duration::from_millis(1_795_362_716_123) }
    }

    fn tail() -> FileTail {
        let gap = (Duration::from_secs(7), Duration::from_millis(2500));
        FileTail { duration: Duration::from_millis(3_599_960), frames: 258_750, lost: 3, gaps: vec![gap; 3] }
    }

    fn walk(file: &[u8]) -> FragmentWalk {
        let mut walk = FragmentWalk::new(file.len() as u64);
        while walk.take(&file[walk.at() as usize..]) {}
        walk
    }

    fn find(file: &[u8]) -> Option<FileHead> {
        let mut search = HeadSearch::default();
        loop {
            let at = file.get(search.at() as usize..)?;
            match search.take(&at[..at.len().min(LONGEST_HEADER as usize)]) {
                FoundHead::GoOn => {}
                FoundHead::At(at, length) => return FileHead::parse(file.get(at as usize..(at + length) as usize)?),
                FoundHead::None => return None,
            }
        }
    }

    #[test]
    fn marks_come_back() {
        assert_eq!(FileHead::parse(&head().write()), Some(head()));
        assert_eq!(FileTail::parse(&tail().write()), Some(tail()));
        assert_eq!(FileTail::parse(&FileTail::default().write()), Some(FileTail::default()));
        let written = tail().write();
        assert_eq!(FileTail::length(&written[written.len() - END as usize..]), Some(written.len() as u64));
        assert_eq!((FileHead::parse(&written), FileTail::parse(&head().write())), (None, None));
        let long = FileHead { stream: "é".repeat(5000), ..head() };
        assert_eq!(FileHead::parse(&long.write()).unwrap().stream.len(), 4096);
        let many = FileTail { gaps: vec![Default::default(); 9000], ..tail() };
        assert_eq!(FileTail::parse(&many.write()).unwrap().gaps.len(), GAPS);
        assert!(many.write().len() as u64 <= LONGEST_MARK);
    }

    #[test]
    fn a_file_is_walked_to_its_last_whole_fragment() {
        let init = [boxed(b"ftyp", b"isom"), boxed(b"moov", &[0; 50]), head().write()].concat();
        let fragment = [boxed(b"moof", &[0; 30]), boxed(b"mdat", &[1; 100])].concat();
        let file = [&init[..], &fragment, &fragment, &fragment].concat();
        assert_eq!(find(&file), Some(head()));
        let whole = walk(&file);
        assert_eq!((whole.whole(), whole.fragments()), (file.len() as u64, 3));
        for length in 0..file.len() {
            let cut = walk(&file[..length]);
            let fragments = length.saturating_sub(init.len()) / fragment.len();
            let expected = if fragments == 0 { 0 } else { init.len() + fragments * fragment.len() };
            assert_eq!((cut.fragments(), cut.whole()), (fragments as u64, expected as u64), "{length}");
        }
        // A tail ends the walk, and is no part of a fragment.
        let complete = walk(&[&file[..], &tail().write()].concat());
        assert_eq!((complete.whole(), complete.fragments()), (file.len() as u64, 3));
    }

    #[test]
    fn files_of_others_have_no_head() {
        let fragment = [boxed(b"moof", &[0; 30]), boxed(b"mdat", &[1; 100])].concat();
        let foreign = [boxed(b"ftyp", b"isom"), boxed(b"moov", &[0; 50]), fragment, head().write()].concat();
        assert_eq!(find(&foreign), None, "it stands behind the first fragment");
        assert_eq!(find(b""), None);
        assert_eq!(find(&boxed(b"free", b"").repeat(100)), None);
        assert_eq!(find(&[0, 0, 0, 0, b'm', b'o', b'o', b'v']), None);
    }
}
