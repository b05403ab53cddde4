//! `Attachments` (RFC 9559 5.1.6): the place of a cover among the attached files of a segment. The files' contents are not read.

use super::{
    ebml::{Header, Here, LONGEST_HEADER},
    ids, segment,
};
use crate::{
    movie::artwork::{ImageRange, MAGIC},
    units::ByteRange,
    window::Window,
};

/// Most elements that are examined: attached files and their fields.
const MOST_ELEMENTS: u32 = 256;
/// Most requests for attached files: fonts of many megabytes may lie between them.
const MOST_READS: u32 = 4;
/// Longest field that is read.
const LONGEST_FIELD: u64 = 1024;

/// The walk over the attached files of a segment.
#[derive(Debug)]
pub(super) struct Attachments {
    /// Offset behind the last file.
    end: u64,
    file: Option<AttachedFile>,
    elements: u32,
    reads: u32,
    found: Option<(Rank, ImageRange)>,
}

/// An attached file whose fields are read.
#[derive(Debug)]
struct AttachedFile {
    end: u64,
    name: Option<String>,
    is_image: bool,
    data: Option<ImageRange>,
}

/// Use of a picture, judged by its name (RFC 9559 21.1). The lowest rank is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// `cover.jpg`.
    Cover,
    /// `small_cover.jpg`, `cover_land.jpg`.
    OtherCover,
    /// Another image.
    Image,
}

impl Rank {
    fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        match name.rsplit_once('.').map_or(&*name, |(stem, _)| stem) {
            "cover" => Self::Cover,
            "small_cover" | "cover_land" | "small_cover_land" => Self::OtherCover,
            _ => Self::Image,
        }
    }
}

impl Attachments {
    /// Begins at the first file. `end` is the offset behind the last one.
    pub(super) fn new(end: u64) -> Self {
        Self { end, file: None, elements: 0, reads: 0, found: None }
    }

    /// Offset behind the last file.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the best picture of the files that were read.
    pub(super) fn artwork(&self) -> Option<ImageRange> {
        self.found.map(|(_, artwork)| artwork)
    }

    /// Reads as far as the bytes of `window` allow. Returns the number of bytes that are needed from its position on; `None` at the
    /// end of the walk.
    pub(super) fn step(&mut self, window: &mut Window) -> Option<u64> {
        loop {
            if self.file.as_ref().is_some_and(|file| window.at() >= file.end) {
                self.file = None;
            }
            self.elements += 1;
            let is_over = window.at() >= self.end || self.elements > MOST_ELEMENTS;
            if is_over || self.found.is_some_and(|(rank, _)| rank == Rank::Cover) {
                return None;
            }
            let header = match Here::of(window) {
                Here::Unknown => return self.needs(LONGEST_HEADER.min(window.left())),
                Here::Element(header) => header,
                Here::End | Here::Garbage => return None,
            };
            let end = self.file.as_ref().map_or(self.end, |file| file.end);
            let whole = header.whole().filter(|whole| window.at().saturating_add(*whole) <= end)?;
            let Some(file) = &mut self.file else {
                if header.id == ids::ATTACHED_FILE {
                    let end = window.at() + whole;
                    self.file = Some(AttachedFile { end, name: None, is_image: false, data: None });
                    window.advance(header.length);
                } else {
                    window.advance(whole);
                }
                continue;
            };
            let read = match header.id {
                ids::FILE_NAME | ids::FILE_MEDIA_TYPE => whole.min(LONGEST_FIELD),
                ids::FILE_DATA => whole.min(header.length + MAGIC as u64),
                _ => 0,
            };
            let Some(bytes) = window.bytes(read) else { return self.needs(read) };
            file.take(&header, &bytes, window.at());
            if let Some(found) = file.picture()
                && self.found.is_none_or(|(best, _)| found.0 < best)
            {
                self.found = Some(found);
            }
            window.advance(whole);
        }
    }

    fn needs(&mut self, size: u64) -> Option<u64> {
        self.reads += 1;
        (self.reads <= MOST_READS).then_some(size)
    }
}

impl AttachedFile {
    /// Returns the file's picture, once its name, type and place are read.
    fn picture(&self) -> Option<(Rank, ImageRange)> {
        let name = self.name.as_deref().filter(|_| self.is_image)?;
        Some((Rank::of(name), self.data?))
    }

    /// Takes a field at the offset `at`, whose first bytes are `bytes`.
    fn take(&mut self, header: &Header, bytes: &[u8], at: u64) {
        let text = || segment::element(bytes, at).map(|element| element.text());
        match header.id {
            ids::FILE_NAME => self.name = text(),
            ids::FILE_MEDIA_TYPE => self.is_image = text().is_some_and(|kind| kind.starts_with("image/")),
            ids::FILE_DATA => {
                let place = ByteRange::at(at + header.length, header.body.unwrap_or(0));
                let head = usize::try_from(header.length).ok().and_then(|start| bytes.get(start..));
                self.data = head.and_then(|head| ImageRange::of(place, head));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::movie::artwork::ImageKind;
    use bytes::Bytes;

    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0";

    fn element(id: u32, body: &[u8]) -> Vec<u8> {
        let id: Vec<u8> = id.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
        let length = 0x1000_0000 | u32::try_from(body.len()).unwrap();
        [&id[..], &length.to_be_bytes(), body].concat()
    }

    fn file(name: &str, kind: &str, data: &[u8]) -> Vec<u8> {
        let fields = [
            element(ids::FILE_NAME, name.as_bytes()),
            element(ids::FILE_MEDIA_TYPE, kind.as_bytes()),
            element(ids::FILE_DATA, data),
        ];
        element(ids::ATTACHED_FILE, &fields.concat())
    }

    /// Walks over files at offset 100, with requests of `read` bytes. Returns the picture and the number of requests.
    fn walked(files: &[u8], read: u64) -> (Option<ImageRange>, u32) {
        let end = 100 + files.len() as u64;
        let mut window = Window::new(100, end + 50, read);
        let object = [&[0; 100][..], files, &[0; 50]].concat();
        let mut walk = Attachments::new(end);
        let mut reads = 0;
        while let Some(size) = walk.step(&mut window) {
            let range = window.want(size);
            assert!(!range.is_empty() && range.end <= object.len() as u64);
            window.append(Bytes::copy_from_slice(&object[range.start as usize..range.end as usize]));
            reads += 1;
        }
        (walk.artwork(), reads)
    }

    #[test]
    fn the_cover_is_preferred_to_other_images() {
        let large = [JPEG, &[7; 5000]].concat();
        let files = [
            file("font.ttf", "font/ttf", &[1; 3000]),
            file("scene.jpg", "image/jpeg", &large),
            file("small_cover.jpg", "image/jpeg", &large),
            file("Cover.JPG", "image/jpeg", &large),
            file("cover.png", "image/png", JPEG),
        ];
        let all = files.concat();
        let end = 100 + (all.len() - files[4].len()) as u64;
        let expected = ImageRange { range: ByteRange::new(end - large.len() as u64, end), kind: ImageKind::Jpeg };
        assert_eq!(walked(&all, 1 << 16), (Some(expected), 1));
        // A segment of many large files costs few requests: contents are not read.
        let (found, reads) = walked(&all, 64);
        assert!(found.is_some() && reads <= MOST_READS, "{reads}");
        assert_eq!(walked(&files[..2].concat(), 1 << 16).0.map(|found| found.range.len()), Some(large.len() as u64));
    }

    #[test]
    fn files_that_are_no_images_count_for_nothing() {
        for (name, kind, data) in [
            ("cover.jpg", "application/octet-stream", JPEG),
            ("cover.jpg", "image/jpeg", b"<html>not a picture</html>"),
            ("cover.jpg", "image/jpeg", b"\xff\xd8\xff"),
        ] {
            assert_eq!(walked(&file(name, kind, data), 1 << 16).0, None, "{name} {kind}");
        }
        let unnamed = [element(ids::FILE_MEDIA_TYPE, b"image/jpeg"), element(ids::FILE_DATA, JPEG)].concat();
        assert_eq!(walked(&element(ids::ATTACHED_FILE, &unnamed), 1 << 16).0, None);
    }

    #[test]
    fn damaged_files_end_the_walk() {
        let good = [file("a.ttf", "font/ttf", &[1; 90]), file("cover.jpg", "image/jpeg", JPEG)].concat();
        for cut in 0..good.len() {
            assert_eq!(walked(&good[..cut], 32).0, None, "{cut}");
            let mut damaged = good.clone();
            damaged[cut] ^= 0xff;
            if let Some(found) = walked(&damaged, 1 << 16).0 {
                assert!(found.range.end <= 100 + good.len() as u64);
            }
        }
        let many: Vec<u8> = (0..10_000).flat_map(|_| file("a.ttf", "font/ttf", b"")).collect();
        assert_eq!(walked(&many, 1 << 20).0, None);
    }
}
