//! Tags of ID3v2 (id3.org): pictures (`APIC`, in 2.2 `PIC`), and the texts of [`id3_text`]. Other frames are not read. Tags and frames
//! that are compressed or encrypted are ignored. Of unsynchronised tags (2.4.0 section 6.1) only the texts are read, because the
//! pictures are no ranges of the file.

use super::id3_text;
use crate::{
    movie::{
        artwork::ImageRange,
        tags::{TagName, Tags},
    },
    units::ByteRange,
    window::Window,
};

/// Bytes of the header of a tag.
const TAG_HEADER: u64 = 10;
/// Flags of a tag: its frames are unsynchronised; an extended header follows. In 2.2 the second flag states compression.
const UNSYNCHRONISED: u8 = 0x80;
const EXTENDED: u8 = 0x40;
/// Bytes of a picture's frame that are read: its description, and the beginning of the image.
const LOOKED: u64 = 4096;
/// Bytes of a text's frame that are read.
const LOOKED_TEXT: u64 = 1024;
/// Bytes of an unsynchronised tag that are read.
const LOOKED_UNSYNCHRONISED: u64 = 64 << 10;
/// Format flags of a frame in 2.4: the length of the data precedes the data; the frame is unsynchronised.
const HAS_LENGTH: u8 = 0x01;
const FRAME_UNSYNCHRONISED: u8 = 0x02;
/// Most frames of a tag.
const MOST_FRAMES: u32 = 256;
/// Most requests for bytes of a tag.
const MOST_READS: u32 = 8;
/// Picture type of a front cover.
pub(super) const FRONT_COVER: u32 = 3;

/// The reading of a tag.
#[derive(Debug)]
pub(super) struct Id3Search {
    version: u8,
    /// Offset behind the frames.
    end: u64,
    has_extended_header: bool,
    is_unsynchronised: bool,
    frames: u32,
    reads: u32,
    found: Option<TaggedPicture>,
    tags: Tags,
}

/// A picture in a tag or metadata block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaggedPicture {
    /// Whether the picture is the front cover.
    pub(super) is_front: bool,
    pub(super) artwork: ImageRange,
}

impl TaggedPicture {
    /// Returns the better of two pictures: a front cover, or else the first.
    pub(super) fn better(known: Option<Self>, other: Self) -> Self {
        known.filter(|known| known.is_front || !other.is_front).unwrap_or(other)
    }
}

impl Id3Search {
    /// Creates a search in the tag at `at`, whose first bytes are `head` and whose size with its header is `size`. `None` if the tag
    /// is no ID3v2 tag, or is compressed.
    pub(super) fn of(head: &[u8], at: u64, size: u64) -> Option<Self> {
        let [b'I', b'D', b'3', version @ 2..=4, _, flags, ..] = *head else { return None };
        if version == 2 && flags & EXTENDED != 0 {
            return None;
        }
        Some(Self {
            version,
            end: at.saturating_add(size),
            has_extended_header: flags & EXTENDED != 0,
            is_unsynchronised: flags & UNSYNCHRONISED != 0,
            frames: 0,
            reads: 0,
            found: None,
            tags: Tags::default(),
        })
    }

    /// Passes the header of the tag.
    pub(super) fn begin(&self, window: &mut Window) {
        window.advance(TAG_HEADER);
    }

    /// Offset behind the tag.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the best picture that was found.
    pub(super) fn artwork(&self) -> Option<ImageRange> {
        self.found.map(|found| found.artwork)
    }

    /// Takes the texts that were found.
    pub(super) fn take_tags(&mut self) -> Tags {
        std::mem::take(&mut self.tags)
    }

    /// Reads as far as the bytes of `window` allow. Returns the number of bytes needed from its position on; `None` at the end.
    pub(super) fn step(&mut self, window: &mut Window) -> Option<u64> {
        loop {
            let room = self.end.saturating_sub(window.at());
            if self.is_unsynchronised {
                let looked = room.min(LOOKED_UNSYNCHRONISED);
                let Some(bytes) = window.bytes(looked) else { return self.needs(looked) };
                self.take_unsynchronised(&bytes);
                return None;
            }
            if self.has_extended_header {
                let Some(bytes) = window.bytes(4_u64.min(room)) else { return self.needs(4_u64.min(room)) };
                let size = self.extended_size(&bytes).filter(|size| *size <= room)?;
                self.has_extended_header = false;
                window.advance(size);
                continue;
            }
            let header = frame_header(self.version);
            if room <= header || self.frames >= MOST_FRAMES {
                return None;
            }
            let Some(bytes) = window.bytes(header) else { return self.needs(header) };
            let frame = Frame::read(self.version, &bytes, 0)?;
            let whole = header + frame.size;
            if whole > room {
                return None;
            }
            let most = match frame.content {
                FrameContent::Picture if !self.found.is_some_and(|found| found.is_front) => LOOKED,
                FrameContent::Text(_) => LOOKED_TEXT,
                FrameContent::Picture | FrameContent::Other => 0,
            };
            if most > 0 {
                let looked = header + frame.size.min(most);
                let Some(bytes) = window.bytes(looked) else { return self.needs(looked) };
                let body = bytes.get(header as usize..).unwrap_or_default();
                self.take(&frame, body, ByteRange::at(window.at() + header, frame.size));
            }
            self.frames += 1;
            window.advance(whole);
        }
    }

    /// Takes the picture or the text of a frame, whose body at `place` begins with `body`.
    fn take(&mut self, frame: &Frame, body: &[u8], place: ByteRange) {
        match frame.content {
            FrameContent::Picture => {
                if let Some(picture) = picture(self.version, body, place) {
                    self.found = Some(TaggedPicture::better(self.found, picture));
                }
            }
            FrameContent::Text(name) => id3_text::add(&mut self.tags, name, body),
            FrameContent::Other => {}
        }
    }

    /// Takes the texts of an unsynchronised tag, whose bytes behind its header begin with `bytes`. Before version 2.4, the whole tag is
    /// unsynchronised, else the body of each frame.
    fn take_unsynchronised(&mut self, bytes: &[u8]) {
        let whole = if self.version < 4 { synchronised(bytes) } else { bytes.to_vec() };
        let before = if self.has_extended_header { self.extended_size(&whole) } else { Some(0) };
        let before = before.and_then(|size| usize::try_from(size).ok());
        let mut rest = before.and_then(|size| whole.get(size..)).unwrap_or_default();
        for _ in 0..MOST_FRAMES {
            let Some((header, behind)) = rest.split_at_checked(frame_header(self.version) as usize) else { return };
            let Some(frame) = Frame::read(self.version, header, HAS_LENGTH | FRAME_UNSYNCHRONISED) else { return };
            let size = usize::try_from(frame.size).unwrap_or(usize::MAX);
            if let FrameContent::Text(name) = frame.content {
                let looked = size.min(LOOKED_TEXT as usize);
                let body = behind.get(..looked).unwrap_or(behind);
                let before = if frame.has_length { 4 } else { 0 };
                let body = body.get(before..).unwrap_or_default();
                let body = if self.version < 4 { body.to_vec() } else { synchronised(body) };
                id3_text::add(&mut self.tags, name, &body);
            }
            rest = behind.get(size..).unwrap_or_default();
        }
    }

    fn needs(&mut self, size: u64) -> Option<u64> {
        self.reads += 1;
        (self.reads <= MOST_READS).then_some(size)
    }

    /// Returns the size of an extended header with its size field, which only version 2.4 counts.
    fn extended_size(&self, bytes: &[u8]) -> Option<u64> {
        let bytes = bytes.first_chunk()?;
        if self.version == 4 { synchsafe(*bytes) } else { Some(u64::from(u32::from_be_bytes(*bytes)) + 4) }
    }
}

/// Header of a frame.
struct Frame {
    /// Bytes behind the header.
    size: u64,
    content: FrameContent,
    /// Whether the body begins with the length of its data.
    has_length: bool,
}

/// Content of a frame that is neither compressed nor encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameContent {
    Picture,
    Text(TagName),
    Other,
}

impl FrameContent {
    fn named(name: &[u8]) -> Self {
        match name {
            b"APIC" | b"PIC" => Self::Picture,
            name => id3_text::name(name).map_or(Self::Other, Self::Text),
        }
    }
}

impl Frame {
    /// Reads a header; `None` where padding begins. The content of a frame with a format flag outside of `forms` is not read.
    fn read(version: u8, bytes: &[u8], forms: u8) -> Option<Self> {
        if version == 2 {
            let [a, b, c, size @ ..] = bytes else { return None };
            let size = size.iter().fold(0, |size, byte| size << 8 | u64::from(*byte));
            let content = FrameContent::named(&[*a, *b, *c]);
            return (size > 0 && *a != 0).then_some(Self { size, content, has_length: false });
        }
        let (name, rest) = bytes.split_first_chunk::<4>()?;
        let (size, flags) = rest.split_first_chunk::<4>()?;
        let size = if version == 4 { synchsafe(*size)? } else { u64::from(u32::from_be_bytes(*size)) };
        // The second byte of the flags states compression, encryption and the like.
        let form = flags.get(1).copied()?;
        let forms = if version == 4 { forms } else { 0 };
        let content = if form & !forms == 0 { FrameContent::named(name) } else { FrameContent::Other };
        (size > 0 && name[0] != 0).then_some(Self { size, content, has_length: form & forms & HAS_LENGTH != 0 })
    }
}

/// Bytes of a frame's header.
const fn frame_header(version: u8) -> u64 {
    if version == 2 { 6 } else { 10 }
}

/// Returns bytes without the zeros that unsynchronisation has inserted behind bytes of 0xff.
fn synchronised(bytes: &[u8]) -> Vec<u8> {
    let mut before = 0;
    let is_own = |byte: &u8| {
        let is_inserted = before == 0xff && *byte == 0;
        before = *byte;
        !is_inserted
    };
    bytes.iter().copied().filter(is_own).collect()
}

/// Reads a number whose bytes have seven bits each.
fn synchsafe(bytes: [u8; 4]) -> Option<u64> {
    let is_valid = bytes.iter().all(|byte| byte & 0x80 == 0);
    is_valid.then(|| bytes.iter().fold(0, |number, byte| number << 7 | u64::from(*byte)))
}

/// Returns the picture of a frame at `place`, whose body begins with `body`: encoding, media type (of three letters in 2.2), picture
/// type, description, image.
fn picture(version: u8, body: &[u8], place: ByteRange) -> Option<TaggedPicture> {
    let (encoding, rest) = body.split_first()?;
    let of_type = if version == 2 { 3 } else { rest.iter().position(|byte| *byte == 0)? + 1 };
    let (kind, text) = rest.get(of_type..)?.split_first()?;
    let of_text = match encoding {
        // UTF-16
        1 | 2 => 2 * (text.chunks_exact(2).position(|unit| unit == [0, 0])? + 1),
        _ => text.iter().position(|byte| *byte == 0)? + 1,
    };
    let start = 1 + of_type + 1 + of_text;
    let range = ByteRange::new(place.start + start as u64, place.end);
    let artwork = ImageRange::of(range, body.get(start..)?)?;
    Some(TaggedPicture { is_front: u32::from(*kind) == FRONT_COVER, artwork })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::movie::artwork::ImageKind;
    use bytes::Bytes;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    fn size(version: u8, size: usize) -> [u8; 4] {
        let size = u32::try_from(size).unwrap();
        if version == 4 { [21, 14, 7, 0].map(|bits| (size >> bits & 0x7f) as u8) } else { size.to_be_bytes() }
    }

    fn frame(version: u8, name: &str, body: &[u8]) -> Vec<u8> {
        if version == 2 {
            return [name.as_bytes(), &size(2, body.len())[1..], body].concat();
        }
        [name.as_bytes(), &size(version, body.len()), &[0, 0], body].concat()
    }

    fn tag(version: u8, flags: u8, frames: &[u8]) -> Vec<u8> {
        [&b"ID3"[..], &[version, 0, flags], &size(4, frames.len()), frames].concat()
    }

    /// Returns the picture of a tag at offset 50, which is read with requests of `read` bytes.
    fn found(tag: &[u8], read: u64) -> Option<ByteRange> {
        let search = searched(tag, read)?;
        assert!(search.artwork().is_none_or(|artwork| artwork.kind == ImageKind::Png));
        search.artwork().map(|artwork| artwork.range)
    }

    fn searched(tag: &[u8], read: u64) -> Option<Id3Search> {
        let object = [&[0xaa; 50][..], tag, &[0xff; 100]].concat();
        let mut window = Window::new(50, object.len() as u64, read);
        let mut search = Id3Search::of(tag, 50, tag.len() as u64)?;
        search.begin(&mut window);
        while let Some(size) = search.step(&mut window) {
            let range = window.want(size);
            assert!(!range.is_empty() && range.end <= object.len() as u64);
            window.append(Bytes::copy_from_slice(&object[range.start as usize..range.end as usize]));
        }
        Some(search)
    }

    #[test]
    fn pictures_of_all_versions_are_found() {
        let utf16 = b"\x01image/png\0\x03\xff\xfea\0b\0\0\0";
        for (version, name, head) in [
            (2, "PIC", &b"\0PNG\x03cover\0"[..]),
            (3, "APIC", b"\0image/png\0\x03\0"),
            (3, "APIC", utf16),
            (4, "APIC", utf16),
        ] {
            let title = if version == 2 { "TT2" } else { "TIT2" };
            let frames = [frame(version, title, b"\0a title"), frame(version, name, &[head, PNG].concat())].concat();
            let tag = tag(version, 0, &[&frames[..], &[0; 40]].concat());
            let end = 50 + 10 + frames.len() as u64;
            let expected = Some(ByteRange::new(end - PNG.len() as u64, end));
            assert_eq!([found(&tag, 16), found(&tag, 1 << 16)], [expected; 2], "2.{version}");
            let title = searched(&tag, 16).and_then(|mut search| search.take_tags().title);
            assert_eq!(title.as_deref(), Some("a title"), "2.{version}");
        }
    }

    #[test]
    fn a_front_cover_is_preferred_and_large_frames_are_passed() {
        let of = |kind: u8, more: usize| {
            let body = [&b"\0image/png\0"[..], &[kind, 0], PNG, &vec![1; more]].concat();
            frame(3, "APIC", &body)
        };
        let frames = [frame(3, "GEOB", &[1; 50_000]), of(4, 100_000), of(3, 0), of(3, 9)].concat();
        let range = found(&tag(3, 0, &frames), 1024).unwrap();
        assert_eq!(range.len(), PNG.len() as u64);
        assert_eq!(found(&tag(3, 0, &of(4, 7)), 1024).map(ByteRange::len), Some(PNG.len() as u64 + 7));
        let extended = [&[0, 0, 0, 6, 0, 0, 0, 0, 0, 0][..], &of(3, 0)].concat();
        assert!(found(&tag(3, EXTENDED, &extended), 1024).is_some());
        let plain = [&b"\0image/png\0\x03\0"[..], PNG].concat();
        let extended = [&[0, 0, 0, 6, 1, 0][..], &frame(4, "APIC", &plain)].concat();
        assert!(found(&tag(4, EXTENDED, &extended), 1024).is_some());
    }

    #[test]
    fn texts_behind_a_front_cover_are_found() {
        let cover = frame(4, "APIC", &[&b"\0image/png\0\x03\0"[..], PNG, &vec![1; 100_000]].concat());
        let frames = [frame(4, "TIT2", b"\0one"), cover, frame(4, "TALB", b"\x03two"), frame(4, "TPE1", b"\0three")];
        let mut search = searched(&tag(4, 0, &frames.concat()), 1024).unwrap();
        assert!(search.artwork().is_some());
        let tags = search.take_tags();
        assert_eq!([tags.title, tags.album, tags.artist], ["one", "two", "three"].map(|text| Some(text.to_owned())));
    }

    fn unsynchronised(bytes: &[u8]) -> Vec<u8> {
        let mut coded = Vec::new();
        for (place, byte) in bytes.iter().enumerate() {
            coded.push(*byte);
            if *byte == 0xff && bytes.get(place + 1).is_none_or(|next| *next == 0 || *next >= 0xe0) {
                coded.push(0);
            }
        }
        coded
    }

    #[test]
    fn texts_of_unsynchronised_tags_are_read() {
        let (title, artist) = (b"\x01\xff\xfeo\0n\0e\0", b"\0t\xff\0");
        let of_form = |name: &str, body: &[u8], form: u8| {
            let mut frame = frame(4, name, body);
            frame[9] = form;
            frame
        };
        let long = unsynchronised(artist);
        let long = [&size(4, artist.len())[..], &long].concat();
        for (version, frames) in [
            (2, unsynchronised(&[frame(2, "TT2", title), frame(2, "TP1", artist)].concat())),
            (3, unsynchronised(&[frame(3, "TIT2", title), frame(3, "TPE1", artist)].concat())),
            (4, [frame(4, "TIT2", &unsynchronised(title)), of_form("TPE1", &long, 3)].concat()),
        ] {
            let tag = tag(version, UNSYNCHRONISED, &[&frames[..], &[0; 40]].concat());
            let tags = searched(&tag, 16).unwrap().take_tags();
            assert_eq!([tags.title, tags.artist], ["one", "t\u{ff}"].map(|text| Some(text.to_owned())), "2.{version}");
        }
    }

    #[test]
    fn coded_and_damaged_tags_have_none() {
        let good = frame(3, "APIC", &[&b"\0image/png\0\x03\0"[..], PNG].concat());
        assert_eq!(found(&tag(3, UNSYNCHRONISED, &good), 1024), None);
        let mut compressed = good.clone();
        compressed[9] = 0x80;
        assert_eq!(found(&tag(3, 0, &compressed), 1024), None);
        let address = frame(3, "APIC", b"\0-->\0\x03\0http://example.org/cover.png");
        assert_eq!(found(&tag(3, 0, &address), 1024), None);
        let whole = tag(3, 0, &good);
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0xff;
            if let Some(range) = found(&damaged, 64) {
                assert!(range.end <= 50 + whole.len() as u64);
            }
            assert_eq!(found(&whole[..place], 64), None);
        }
        let many: Vec<u8> = (0..10_000).flat_map(|_| frame(3, "TXXX", b"\0a\0b")).collect();
        assert_eq!(found(&tag(3, 0, &[many, good].concat()), 64), None);
    }
}
