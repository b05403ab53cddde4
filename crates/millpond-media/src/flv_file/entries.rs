//! The sample entries of a track, from the configurations in its tags.

use crate::{
    codec::{
        PictureSequence,
        make::{self, Made, Pictures},
    },
    error::MediaError,
    flv::FlvCodec,
    movie::descriptions::Descriptions,
    mp4::sample_entries::{Fate, MOST_ENTRIES, SampleEntries, StoredEntry},
};
use bytes::Bytes;

/// Makes the sample entry of a configuration. `None` where a frame tells it.
pub(super) fn made(codec: FlvCodec, record: &[u8]) -> Option<Result<Made, MediaError>> {
    match codec {
        FlvCodec::Avc => Some(configured((b"avc1", b"avcC"), record)),
        FlvCodec::Hevc => Some(configured((b"hvc1", b"hvcC"), record)),
        other => other.configured(record),
    }
}

/// Makes an entry whose parameter sets state size and colours of the pictures.
fn configured((kind, of): (&[u8; 4], &[u8; 4]), record: &[u8]) -> Result<Made, MediaError> {
    let pictures = Pictures { size: (0, 0), pixel_aspect: None, color: None, boxes: &[] };
    let made = make::configured(kind, (of, record), &pictures)?;
    let sequence = PictureSequence::of(&made.codec);
    let Some((sequence, size)) = sequence.and_then(|sequence| Some((sequence, sequence.size?))) else {
        let (found, expected) = ("no picture size in the parameter sets", "1 to 65535 pixels across and down");
        return Err(MediaError::invalid("FLV tag", 0, found, expected));
    };
    let (pixel_aspect, color) = (sequence.pixel_aspect, sequence.color);
    make::configured(kind, (of, record), &Pictures { size, pixel_aspect, color, boxes: &[] })
}

/// The sample entries of a track, and which samples each describes.
#[derive(Debug)]
pub(super) struct Entries {
    entries: SampleEntries,
    /// Configurations in the order of their numbers, from 1.
    records: Vec<Bytes>,
    /// Number of the entry of the next samples.
    current: u32,
    fate: Fate,
}

impl Entries {
    /// Begins with the entry of the first configuration, which is at `offset`.
    pub(super) fn new(made: Made, record: Bytes, offset: u64) -> Self {
        let mut entries = SampleEntries::of(("FLV tag".to_owned(), offset), stored(1, made));
        let fate = entries.begin(1, 0);
        Self { entries, records: vec![record], current: 1, fate }
    }

    /// Takes a further configuration, which holds from sample `next` on.
    pub(super) fn change(&mut self, codec: FlvCodec, record: &Bytes, next: u32) {
        let known = self.records.iter().position(|other| other == record);
        let number = known.unwrap_or(self.records.len()) as u32 + 1;
        if number == self.current {
            return;
        }
        if known.is_none() && self.records.len() < MOST_ENTRIES {
            let Some(made) = made(codec, record) else { return };
            self.entries.add(number, made.map(|made| stored(number, made)));
            self.records.push(Bytes::copy_from_slice(record));
        }
        self.current = number;
        self.fate = self.entries.begin(number, next);
    }

    /// Whether a sample belongs to the track. Others are counted.
    pub(super) fn keeps(&mut self) -> bool {
        let is_kept = self.fate == Fate::Kept;
        if !is_kept {
            self.entries.leave_out(self.current, 1);
        }
        is_kept
    }

    /// Returns the entry of all samples, descriptions where their parameter sets differ, and why samples are left out.
    pub(super) fn finish(self) -> (Option<StoredEntry>, Option<Descriptions>, Vec<String>) {
        let warnings = self.entries.warnings(false);
        let (entry, descriptions) = self.entries.finish();
        (entry, descriptions, warnings)
    }
}

fn stored(number: u32, made: Made) -> StoredEntry {
    let Made { codec, kind, sample_entry } = made;
    StoredEntry { number, codec, kind, sample_entry, location: None, is_encrypted: false }
}
