//! Tags and covers in the header packets of a stream: Vorbis comments, whose covers are base64 (`METADATA_BLOCK_PICTURE`, and `COVERART`
//! of old players), and `PICTURE` blocks of FLAC. Header packets arrive in pieces, one for each page, and are not kept.

use crate::{
    movie::{
        artwork::{Artwork, ImageRange, MOST_BYTES},
        image_text::{GROUP_BYTES, GROUP_CHARACTERS, ImageText, decoded, is_character},
        tags::{TagName, Tags},
    },
    sound_file::{
        flac_picture::{self, PICTURE},
        vorbis_comment::{self, MOST_COMMENTS},
    },
    units::ByteRange,
};

/// First bytes of the packet with the comments of Opus.
pub(super) const OPUS_TAGS: &[u8] = b"OpusTags";
/// Bytes of the header of a FLAC block.
const FLAC_HEADER: u64 = 4;
/// Name of a comment that is an image, and both halves of the name of one that is a `PICTURE` block. The first two are equally long.
const COVER_ART: &[u8] = b"COVERART=";
const BLOCK_BEGIN: &[u8] = b"METADATA_";
const BLOCK_END: &[u8] = b"BLOCK_PICTURE=";
/// Bytes of a number.
const NUMBER: u64 = 4;
/// Bytes of the value of a tag that are read.
const LOOKED_VALUE: usize = 1024;
/// Most pages that a picture may lie in.
const MOST_PIECES: usize = 8192;
/// Longest text of a picture, and the characters at its beginning that are decoded.
const MOST_TEXT: u64 = (MOST_BYTES + flac_picture::LOOKED).div_ceil(GROUP_BYTES) * GROUP_CHARACTERS;
const TEXT_LOOKED: u64 = flac_picture::LOOKED.div_ceil(GROUP_BYTES) * GROUP_CHARACTERS;

/// The search for tags and a cover in the header packets of a stream.
#[derive(Debug)]
pub(super) struct HeaderSearch {
    is_flac: bool,
    /// The field at the position, and its bytes that are still to come.
    field: Field,
    left: u64,
    /// Bytes of the field that are needed at its end.
    held: Vec<u8>,
    /// Length of the comment.
    comment: u64,
    /// Further comments of the packet, and comments that were examined.
    comments: u32,
    examined: u32,
    found: Option<(Rank, Artwork)>,
    tags: Tags,
}

/// A field of a header packet.
#[derive(Debug)]
enum Field {
    /// The first bytes of a packet.
    Mark,
    VendorLength,
    Vendor,
    CommentCount,
    CommentLength,
    /// The first bytes of a comment.
    Name,
    /// The second half of a long name.
    LongName,
    /// A comment that is neither a tag nor a picture.
    Comment,
    /// A tag, with the beginning of its value.
    Tag(TagName, Vec<u8>),
    Picture(Box<Picture>),
    /// Bytes up to the next packet.
    Rest,
}

/// Use of a picture. The lowest rank is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Front,
    Other,
    /// `COVERART`.
    Old,
}

/// Form of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A block of FLAC as it is.
    Block,
    /// The base64 text of such a block.
    BlockText,
    /// The base64 text of an image.
    ImageText,
}

/// A picture that is read.
#[derive(Debug)]
struct Picture {
    form: Form,
    length: u64,
    pieces: Vec<ByteRange>,
    /// The first bytes or characters.
    head: Vec<u8>,
    /// Characters of padding.
    padding: u64,
    is_sound: bool,
}

impl HeaderSearch {
    pub(super) fn new(is_flac: bool) -> Self {
        Self {
            is_flac,
            field: Field::Rest,
            left: 0,
            held: Vec::new(),
            comment: 0,
            comments: 0,
            examined: 0,
            found: None,
            tags: Tags::default(),
        }
    }

    /// Takes the next bytes of a header packet, which stand at `offset`. `begins`: they are the first of the packet.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut offset: u64, begins: bool) {
        if begins {
            self.held.clear();
            self.left = if self.is_flac { FLAC_HEADER } else { OPUS_TAGS.len() as u64 };
            self.field = Field::Mark;
        }
        while !bytes.is_empty() && !matches!(self.field, Field::Rest) {
            let size = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            let (taken, rest) = bytes.split_at(size);
            self.take(taken, offset);
            (bytes, offset) = (rest, offset + size as u64);
            self.left -= size as u64;
            while self.left == 0 && !matches!(self.field, Field::Rest) {
                (self.field, self.left) = self.next();
                self.held.clear();
            }
        }
    }

    /// Returns the best picture that was found.
    pub(super) fn take_artwork(&mut self) -> Option<Artwork> {
        self.found.take().map(|(_, artwork)| artwork)
    }

    /// Takes the tags that were found.
    pub(super) fn take_tags(&mut self) -> Tags {
        std::mem::take(&mut self.tags)
    }

    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        let open = match &self.field {
            Field::Picture(picture) => picture.head.capacity() + picture.pieces.capacity() * size_of::<ByteRange>(),
            Field::Tag(_, value) => value.capacity(),
            _ => 0,
        };
        open + self.tags.heap_bytes() + self.found.as_ref().map_or(0, |(_, artwork)| artwork.heap_bytes())
    }

    fn take(&mut self, bytes: &[u8], offset: u64) {
        match &mut self.field {
            Field::Vendor | Field::Comment | Field::Rest => {}
            Field::Picture(picture) => picture.push(bytes, offset),
            Field::Tag(_, value) => {
                let room = LOOKED_VALUE.saturating_sub(value.len());
                value.extend(bytes.iter().take(room));
            }
            _ => self.held.extend_from_slice(bytes),
        }
    }

    /// Returns the field behind the one that was read, and its length.
    fn next(&mut self) -> (Field, u64) {
        match std::mem::replace(&mut self.field, Field::Rest) {
            Field::Mark if self.is_flac => self.block(),
            Field::Mark if self.held == OPUS_TAGS => (Field::VendorLength, NUMBER),
            Field::VendorLength => (Field::Vendor, self.number().into()),
            Field::Vendor => (Field::CommentCount, NUMBER),
            Field::CommentCount => {
                self.comments = self.number();
                self.following()
            }
            Field::CommentLength => {
                self.comment = self.number().into();
                (Field::Name, self.comment.min(COVER_ART.len() as u64))
            }
            Field::Name => {
                let left = self.comment - self.held.len() as u64;
                match &*self.held.to_ascii_uppercase() {
                    // Pictures behind a front cover are passed.
                    COVER_ART | BLOCK_BEGIN if self.has_front() => (Field::Comment, left),
                    COVER_ART => picture(Form::ImageText, left),
                    BLOCK_BEGIN => (Field::LongName, left.min(BLOCK_END.len() as u64)),
                    _ => (tag(&self.held).unwrap_or(Field::Comment), left),
                }
            }
            Field::LongName => {
                let left = self.comment - (BLOCK_BEGIN.len() + self.held.len()) as u64;
                let is_picture = self.held.eq_ignore_ascii_case(BLOCK_END);
                if is_picture { picture(Form::BlockText, left) } else { (Field::Comment, left) }
            }
            Field::Comment => self.following(),
            Field::Tag(name, value) => {
                self.tags.add(name, &String::from_utf8_lossy(&value));
                self.following()
            }
            Field::Picture(picture) => {
                let is_block = picture.form == Form::Block;
                self.find(*picture);
                if is_block { (Field::Rest, 0) } else { self.following() }
            }
            Field::Mark | Field::Rest => (Field::Rest, 0),
        }
    }

    /// Returns the field behind the header of a FLAC block.
    fn block(&self) -> (Field, u64) {
        let Some([kind, size @ ..]) = self.held.first_chunk::<4>() else { return (Field::Rest, 0) };
        match kind & 0x7f {
            vorbis_comment::BLOCK => (Field::VendorLength, NUMBER),
            PICTURE => picture(Form::Block, size.iter().fold(0, |size, byte| size << 8 | u64::from(*byte))),
            _ => (Field::Rest, 0),
        }
    }

    fn has_front(&self) -> bool {
        self.found.as_ref().is_some_and(|(rank, _)| *rank == Rank::Front)
    }

    /// Returns the next comment of the packet.
    fn following(&mut self) -> (Field, u64) {
        if self.comments == 0 || self.examined >= MOST_COMMENTS {
            return (Field::Rest, 0);
        }
        self.comments -= 1;
        self.examined += 1;
        (Field::CommentLength, NUMBER)
    }

    fn number(&self) -> u32 {
        self.held.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn find(&mut self, picture: Picture) {
        if let Some(found) = picture.finish()
            && self.found.as_ref().is_none_or(|(rank, _)| found.0 < *rank)
        {
            self.found = Some(found);
        }
    }
}

/// Returns the field of a tag that begins with these bytes of its comment; `None` for other comments.
fn tag(comment: &[u8]) -> Option<Field> {
    let equals = comment.iter().position(|byte| *byte == b'=')?;
    let (name, value) = comment.split_at(equals);
    Some(Field::Tag(TagName::of_text(name)?, value.get(1..)?.to_vec()))
}

/// Returns the field of a picture, which is passed if it is too long.
fn picture(form: Form, length: u64) -> (Field, u64) {
    let most = if form == Form::Block { MOST_BYTES + flac_picture::LOOKED } else { MOST_TEXT };
    let (pieces, head) = (Vec::new(), Vec::new());
    let picture = Picture { form, length, pieces, head, padding: 0, is_sound: length <= most };
    (Field::Picture(Box::new(picture)), length)
}

impl Picture {
    /// Takes the next bytes, which stand at `offset`.
    fn push(&mut self, bytes: &[u8], offset: u64) {
        if !self.is_sound || bytes.is_empty() {
            return;
        }
        let mut looked = flac_picture::LOOKED;
        if self.form != Form::Block {
            let text = bytes.iter().position(|byte| *byte == b'=').unwrap_or(bytes.len());
            let (text, padding) = bytes.split_at(text);
            self.is_sound = text.iter().all(|byte| is_character(*byte))
                && padding.iter().all(|byte| *byte == b'=')
                && (text.is_empty() || self.padding == 0);
            self.padding += padding.len() as u64;
            looked = TEXT_LOOKED;
        }
        self.is_sound &= self.pieces.len() < MOST_PIECES;
        if !self.is_sound {
            (self.pieces, self.head) = (Vec::new(), Vec::new());
            return;
        }
        self.pieces.push(ByteRange::at(offset, bytes.len() as u64));
        let room = usize::try_from(looked).unwrap_or(usize::MAX).saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(room).filter(|byte| self.form == Form::Block || **byte != b'='));
    }

    /// Returns the picture, all of whose bytes were taken.
    fn finish(self) -> Option<(Rank, Artwork)> {
        if !self.is_sound {
            return None;
        }
        if self.form == Form::Block {
            let (rank, ImageRange { range, kind }) = of_block(&self.head, self.length)?;
            return Some((rank, Artwork { kind, pieces: cut(&self.pieces, range), text: None }));
        }
        let characters = self.length - self.padding;
        // One character of a group stands for no byte.
        if self.padding > 2 || characters % GROUP_CHARACTERS == 1 {
            return None;
        }
        let (bytes, head) = (characters * GROUP_BYTES / GROUP_CHARACTERS, decoded(&self.head)?);
        let (rank, ImageRange { range, kind }) = match self.form {
            Form::ImageText => (Rank::Old, ImageRange::of(ByteRange::at(0, bytes), &head)?),
            Form::Block | Form::BlockText => of_block(&head, bytes)?,
        };
        let first = range.start / GROUP_BYTES * GROUP_CHARACTERS;
        let last = (range.end.div_ceil(GROUP_BYTES) * GROUP_CHARACTERS).min(characters);
        let text = ImageText { skip: (range.start % GROUP_BYTES) as u8, len: range.len() };
        Some((rank, Artwork { kind, pieces: cut(&self.pieces, ByteRange::new(first, last)), text: Some(text) }))
    }
}

/// Returns the picture of a FLAC block of `length` bytes, counted from the beginning of the block.
fn of_block(head: &[u8], length: u64) -> Option<(Rank, ImageRange)> {
    let found = flac_picture::picture(head, ByteRange::at(0, length))?;
    Some((if found.is_front { Rank::Front } else { Rank::Other }, found.artwork))
}

/// Returns the part of pieces that is `range`, counted from the beginning of the first one.
fn cut(pieces: &[ByteRange], range: ByteRange) -> Vec<ByteRange> {
    let mut before = 0;
    let part = |piece: &ByteRange| {
        let start = range.start.saturating_sub(before).min(piece.len());
        let end = range.end.saturating_sub(before).min(piece.len());
        before += piece.len();
        Some(ByteRange::new(piece.start + start, piece.start + end)).filter(|part| !part.is_empty())
    };
    pieces.iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::movie::{artwork::ImageKind, image_text::ImageDecoder};
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01";

    fn block(kind: u8, length: u32, image: &[u8]) -> Vec<u8> {
        let text = |text: &[u8]| [&(text.len() as u32).to_be_bytes()[..], text].concat();
        [&[0, 0, 0, kind][..], &text(b"image/png"), &text(b"front"), &[0; 16], &length.to_be_bytes(), image].concat()
    }

    fn picture_comment(kind: u8, image: &[u8]) -> Vec<u8> {
        let block = STANDARD.encode(block(kind, image.len() as u32, image));
        [&b"metadata_block_PICTURE="[..], block.as_bytes()].concat()
    }

    fn cover_comment(text: &str) -> Vec<u8> {
        [&b"CoverArt="[..], text.as_bytes()].concat()
    }

    fn comments(comments: &[Vec<u8>]) -> Vec<u8> {
        let number = |number: usize| (number as u32).to_le_bytes();
        let mut bytes = [&number(6)[..], b"vendor", &number(comments.len())].concat();
        comments.iter().for_each(|comment| bytes.extend([&number(comment.len())[..], comment].concat()));
        bytes
    }

    fn packet(of: &[Vec<u8>]) -> Vec<u8> {
        [OPUS_TAGS, &comments(of)].concat()
    }

    /// Searches packets that stand in pieces of `size` bytes with gaps of 30 bytes. Returns the picture's format and bytes.
    fn searched(is_flac: bool, packets: &[Vec<u8>], size: usize) -> Option<(ImageKind, Vec<u8>)> {
        all_found(is_flac, packets, size).0
    }

    /// The same, with the tags.
    fn all_found(is_flac: bool, packets: &[Vec<u8>], size: usize) -> (Option<(ImageKind, Vec<u8>)>, Tags) {
        let (mut search, mut object) = (HeaderSearch::new(is_flac), Vec::new());
        for packet in packets {
            for (number, piece) in packet.chunks(size).enumerate() {
                object.extend([b'-'; 30]);
                search.push(piece, object.len() as u64, number == 0);
                object.extend(piece);
            }
        }
        let tags = search.take_tags();
        (search.take_artwork().and_then(|artwork| image(artwork, &object)), tags)
    }

    fn image(Artwork { kind, pieces, text }: Artwork, object: &[u8]) -> Option<(ImageKind, Vec<u8>)> {
        let bytes = pieces.iter().map(|piece| object.get(piece.start as usize..piece.end as usize).unwrap());
        let Some(text) = text else { return Some((kind, bytes.collect::<Vec<_>>().concat())) };
        let (mut decoder, mut out) = (ImageDecoder::new(text), Vec::new());
        bytes.for_each(|bytes| decoder.push(bytes, &mut out).unwrap());
        decoder.finish(&mut out).map(|()| (kind, out))
    }

    fn found(of: &[Vec<u8>]) -> Option<(ImageKind, Vec<u8>)> {
        searched(false, &[packet(of)], 255)
    }

    #[test]
    fn the_front_cover_is_found_wherever_pages_end() {
        let old = cover_comment(&STANDARD.encode(JPEG));
        let all = [
            b"TITLE=a".to_vec(),
            Vec::new(),
            b"METADATA_X".to_vec(),
            old,
            picture_comment(4, JPEG),
            picture_comment(3, PNG),
        ];
        for size in 1..300 {
            assert_eq!(searched(false, &[packet(&all)], size), Some((ImageKind::Png, PNG.to_vec())), "{size}");
            assert_eq!(searched(false, &[packet(&all[..4])], size), Some((ImageKind::Jpeg, JPEG.to_vec())), "{size}");
        }
        assert_eq!(found(&all[..5]), Some((ImageKind::Jpeg, JPEG.to_vec())));
        assert_eq!(found(&all[..3]), None);
    }

    #[test]
    fn tags_are_found_before_and_behind_covers() {
        let long = [&b"ALBUM="[..], "ä".repeat(10_000).as_bytes()].concat();
        let all = [
            b"title=\xc3\xa4".to_vec(),
            b"Artist=A = B".to_vec(),
            picture_comment(3, PNG),
            picture_comment(4, JPEG),
            b"ALBUM".to_vec(),
            b"=nothing".to_vec(),
            b"SUBTITLE=no".to_vec(),
            b"ARTIST=C".to_vec(),
            b"TITLE=".to_vec(),
            long,
        ];
        for size in (1..40).chain([255, 100_000]) {
            let (cover, tags) = all_found(false, &[packet(&all)], size);
            assert_eq!(cover, Some((ImageKind::Png, PNG.to_vec())), "{size}");
            assert_eq!((tags.title.as_deref(), tags.artist.as_deref()), (Some("ä"), Some("A = B; C")), "{size}");
            assert_eq!(tags.album, Some("ä".repeat(256)), "{size}");
        }
        // A comment that is longer than its packet is none.
        let whole = packet(&[b"TITLE=one".to_vec(), b"ALBUM=two".to_vec()]);
        let (_, tags) = all_found(false, &[whole[..whole.len() - 1].to_vec(), packet(&[])], 7);
        assert_eq!((tags.title.as_deref(), tags.album), (Some("one"), None));
        // Headers that are repeated.
        let (_, tags) = all_found(false, &[whole.clone(), whole], 7);
        assert_eq!((tags.title.as_deref(), tags.album.as_deref()), (Some("one"), Some("two")));
    }

    #[test]
    fn flac_has_comments_and_blocks() {
        let framed = |kind: u8, body: &[u8]| {
            let [_, size @ ..] = (body.len() as u32).to_be_bytes();
            [&[kind][..], &size, body].concat()
        };
        let in_comment = framed(4, &comments(&[picture_comment(3, JPEG)]));
        let in_block = framed(0x86, &block(3, PNG.len() as u32, PNG));
        for size in [1, 7, 60, 1000] {
            let first = searched(true, &[in_comment.clone(), in_block.clone()], size);
            assert_eq!(first, Some((ImageKind::Jpeg, JPEG.to_vec())));
            assert_eq!(
                searched(true, &[framed(1, &[0; 9]), in_block.clone()], size),
                Some((ImageKind::Png, PNG.to_vec()))
            );
        }
    }

    #[test]
    fn text_without_padding_is_read_and_other_text_is_none() {
        let text = STANDARD.encode(JPEG);
        let plain = text.trim_end_matches('=');
        assert!(text.len() > plain.len());
        assert_eq!(found(&[cover_comment(plain)]), Some((ImageKind::Jpeg, JPEG.to_vec())));
        for bad in [format!("{text}="), format!("{plain}=A"), format!("{plain}\n"), format!("={plain}"), "A".repeat(21)]
        {
            assert_eq!(found(&[cover_comment(&bad)]), None, "{bad}");
        }
        assert_eq!(found(&[cover_comment(&STANDARD.encode(b"GIF89a and what follows"))]), None);
    }

    #[test]
    fn lengths_that_lie_give_no_picture_outside_of_their_comments() {
        let lie = [&b"METADATA_BLOCK_PICTURE="[..], STANDARD.encode(block(3, u32::MAX, PNG)).as_bytes()].concat();
        assert_eq!(found(&[lie, cover_comment(&STANDARD.encode(JPEG))]), Some((ImageKind::Jpeg, JPEG.to_vec())));
        // A comment that is longer than its packet.
        let whole = packet(&[picture_comment(3, PNG)]);
        assert_eq!(searched(false, &[whole[..whole.len() - 4].to_vec(), packet(&[])], 255), None);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            searched(false, &[damaged], 64);
        }
    }

    #[test]
    fn comments_and_pages_are_bounded() {
        let many = |count: u32| {
            let mut all = vec![Vec::new(); count as usize];
            all.push(picture_comment(3, PNG));
            found(&all).is_some()
        };
        assert_eq!([many(MOST_COMMENTS - 1), many(MOST_COMMENTS)], [true, false]);
        let large = picture_comment(3, &[PNG, &[0; MOST_PIECES]].concat());
        let is_found = |size: usize| searched(false, &[packet(std::slice::from_ref(&large))], size).is_some();
        assert_eq!([is_found(1), is_found(2)], [false, true]);
        let (field, length) = picture(Form::ImageText, MOST_TEXT + 1);
        assert!(matches!(field, Field::Picture(picture) if !picture.is_sound) && length == MOST_TEXT + 1);
    }
}
