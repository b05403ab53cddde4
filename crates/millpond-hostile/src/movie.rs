//! A movie and its tracks, as bytes.

use crate::{
    boxes::{bx, table, words},
    fragments::Fragments,
    tables::TableRecipe,
};
use bytes::Bytes;
use millpond_media::ByteRange;

/// A sparse file: `head`, then zeros up to `len`.
#[derive(Clone, Debug)]
pub struct SparseObject {
    /// Bytes at the start of the file.
    pub head: Bytes,
    /// Length of the whole file.
    pub len: u64,
}

impl SparseObject {
    /// Returns the bytes of `range`.
    #[must_use]
    pub fn read(&self, range: ByteRange) -> Bytes {
        let end = range.end.min(self.len);
        let held = self.head.len() as u64;
        if end <= held {
            return self.head.slice((range.start.min(end)) as usize..end as usize);
        }
        let mut bytes = self.head.slice(range.start.min(held) as usize..).to_vec();
        bytes.resize(end.saturating_sub(range.start) as usize, 0);
        bytes.into()
    }
}

/// Media type of a track, which decides its handler and sample entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackMedia {
    /// H.264.
    Video,
    /// AAC.
    Audio,
    /// PCM of two bytes a frame.
    Pcm,
    /// 3GPP timed text.
    Text,
}

/// One track.
#[derive(Clone, Debug)]
pub struct TrackRecipe {
    /// `track_ID`.
    pub id: u32,
    /// Media type.
    pub media: TrackMedia,
    /// Ticks per second.
    pub timescale: u32,
    /// Edits: duration in movie ticks, and media time in track ticks.
    pub edits: Vec<(u32, i32)>,
    /// Track name in `udta`.
    pub name: String,
    /// Sample tables.
    pub tables: TableRecipe,
}

impl TrackRecipe {
    /// Creates a track with 1000 ticks per second.
    #[must_use]
    pub fn new(id: u32, media: TrackMedia, tables: TableRecipe) -> Self {
        Self { id, media, timescale: 1000, edits: Vec::new(), name: String::new(), tables }
    }
}

/// A whole file.
#[derive(Clone, Debug)]
pub struct MovieRecipe {
    /// Ticks per second of the movie, in which edits are given.
    pub timescale: u32,
    /// Tracks, in file order.
    pub tracks: Vec<TrackRecipe>,
    /// Number of empty boxes before the tracks.
    pub junk: usize,
    /// Number of nested boxes around the junk.
    pub nesting: usize,
    /// Fragments of a fragmented file; `None` for a progressive one.
    pub fragments: Option<Fragments>,
    /// Length of the object; longer where the boxes need more.
    pub len: u64,
}

impl MovieRecipe {
    /// Creates a progressive movie with 1000 ticks per second in an object of `len` bytes.
    #[must_use]
    pub fn new(tracks: Vec<TrackRecipe>, len: u64) -> Self {
        Self { timescale: 1000, tracks, junk: 0, nesting: 0, fragments: None, len }
    }

    /// Writes the file.
    #[must_use]
    pub fn object(&self) -> SparseObject {
        let mut file = bx(b"ftyp", &[b"isom", &[0; 4], b"isom"]);
        file.extend(self.movie_box());
        if let Some(fragments) = &self.fragments {
            fragments.write(&mut file);
        }
        let len = self.len.max(file.len() as u64);
        // An `mdat` box fills the object to its end.
        if len > file.len() as u64 {
            file.extend(words(&[1]));
            file.extend(b"mdat");
            file.extend((len - file.len() as u64 + 8).max(16).to_be_bytes());
        }
        let len = len.max(file.len() as u64);
        SparseObject { head: file.into(), len }
    }

    fn movie_box(&self) -> Vec<u8> {
        let empty = bx(b"free", &[]).repeat(self.junk);
        let mut junk = Vec::with_capacity(empty.len() + 8 * self.nesting);
        // From outside to inside: a box that is wrapped again and again is copied each time.
        for inside in (1..=self.nesting).rev() {
            junk.extend(words(&[(empty.len() + 8 * inside) as u32]));
            junk.extend(b"udta");
        }
        junk.extend(empty);
        let mut parts = vec![bx(b"mvhd", &[&words(&[0, 0, 0, self.timescale, 0]), &[0; 80]]), junk];
        parts.extend(self.tracks.iter().map(track));
        if self.fragments.is_some() {
            let defaults: Vec<Vec<u8>> =
                self.tracks.iter().map(|t| bx(b"trex", &[&words(&[0, t.id, 1, 1000, 0, 0])])).collect();
            parts.push(bx(b"mvex", &[&defaults.concat()]));
        }
        bx(b"moov", &[&parts.concat()])
    }
}

fn track(track: &TrackRecipe) -> Vec<u8> {
    let mut tkhd = words(&[7, 0, 0, track.id, 0, 0, 0, 0, 0, 0]);
    tkhd.extend(words(&[0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000, 0, 0]));
    let edits = track.edits.iter().flat_map(|(duration, time)| [*duration, *time as u32, 0x1_0000]);
    let elst = table(b"elst", track.edits.len() as u32, edits);
    let mdhd = bx(b"mdhd", &[&words(&[0, 0, 0, track.timescale, 0, 0x15c7_0000])]);
    let (handler, entry) = entry(track.media);
    let hdlr = bx(b"hdlr", &[&words(&[0, 0]), handler, &[0; 13]]);
    let minf = bx(b"minf", &[&track.tables.write(&entry)]);
    let mdia = bx(b"mdia", &[&mdhd, &hdlr, &minf]);
    let name = bx(b"udta", &[&bx(b"name", &[track.name.as_bytes()])]);
    let edits = if track.edits.is_empty() { Vec::new() } else { bx(b"edts", &[&elst]) };
    bx(b"trak", &[&bx(b"tkhd", &[&tkhd]), &edits, &mdia, &name])
}

/// Handler and sample entry.
fn entry(media: TrackMedia) -> (&'static [u8; 4], Vec<u8>) {
    match media {
        TrackMedia::Video => (b"vide", avc()),
        TrackMedia::Audio => (b"soun", aac()),
        TrackMedia::Pcm => {
            (b"soun", bx(b"sowt", &[&[0, 0, 0, 0, 0, 0, 0, 1], &[0; 8], &[0, 1, 0, 16, 0, 0, 0, 0, 0xbb, 0x80, 0, 0]]))
        }
        TrackMedia::Text => (b"sbtl", bx(b"tx3g", &[&[0, 0, 0, 0, 0, 0, 0, 1], &[0; 30]])),
    }
}

/// An `avc1` sample entry of 640x360 pixels.
fn avc() -> Vec<u8> {
    let mut fields = vec![0, 0, 0, 0, 0, 0, 0, 1];
    fields.extend([0; 16]);
    fields.extend([2, 128, 1, 104, 0, 72, 0, 0, 0, 72, 0, 0, 0, 0, 0, 0, 0, 1]);
    fields.extend([0; 32]);
    fields.extend([0, 24, 255, 255]);
    let avcc = [1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 4, 0x67, 0x64, 0, 0x1f, 1, 0, 2, 0x68, 0xee];
    bx(b"avc1", &[&fields, &bx(b"avcC", &[&avcc])])
}

/// An `mp4a` sample entry of AAC-LC, 48 kHz, stereo.
fn aac() -> Vec<u8> {
    let fields = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 16, 0, 0, 0, 0, 0xbb, 0x80, 0, 0];
    let descriptor = [
        0, 0, 0, 0, 3, 25, 0, 1, 0, 4, 17, 0x40, 0x15, 0, 0, 0, 0, 1, 0xf4, 0, 0, 1, 0xf4, 0, 5, 2, 0x11, 0x90, 6, 1, 2,
    ];
    bx(b"mp4a", &[&fields, &bx(b"esds", &[&descriptor])])
}
