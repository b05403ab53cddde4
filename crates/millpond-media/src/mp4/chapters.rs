//! Chapters of MP4: the list of Nero (`udta/chpl`), and chapter tracks (QuickTime File Format, "Chapter Lists").

use crate::{
    boxes::{Entries, Fields, FullBox, Node},
    budget::MOST_TRACKS,
    movie::{
        Edit,
        chapter::{Chapter, MOST_CHAPTERS, in_order},
    },
    mp4::{progressive::Tables, trak},
    units::{ByteRange, Timescale},
};
use bytes::Bytes;
use std::time::Duration;

/// Nanoseconds of a tick of `chpl`.
const TICK: u64 = 100;
/// Bytes of a sample of a chapter track that are read.
const MOST_SAMPLE: u64 = 1024;
/// Most bytes between samples that are read together.
const GAP: u64 = 4096;
/// Most bytes that are read together.
const MOST_READ: u64 = 64 << 10;
/// Most reads of a chapter track.
const MOST_READS: usize = 32;

/// Reads the list of Nero in a movie box. Version 0 has a count of 8 bits, version 1 a reserved byte and 32 bits.
pub(crate) fn listed(moov: &Node<'_>) -> Vec<Chapter> {
    let Some(chpl) = moov.child(b"udta").and_then(|udta| udta.child(b"chpl")) else { return Vec::new() };
    let Ok(FullBox { version, mut fields, .. }) = chpl.full() else { return Vec::new() };
    let count = match version {
        0 => fields.u8().map(u32::from),
        _ => fields.skip(1).and_then(|()| fields.u32()),
    };
    let count = count.unwrap_or(0) as usize;
    in_order((0..count.min(MOST_CHAPTERS)).map_while(|_| entry(&mut fields)))
}

fn entry(fields: &mut Fields<'_, '_>) -> Option<Chapter> {
    let start = Duration::from_nanos(fields.u64().ok()?.saturating_mul(TICK));
    let length = usize::from(fields.u8().ok()?);
    let title = String::from_utf8_lossy(fields.take(length).ok()?).into_owned();
    Some(Chapter { start, title })
}

/// Returns the ids of the tracks that other tracks name as their chapters.
pub(crate) fn named_tracks(moov: &Node<'_>) -> Vec<u32> {
    let named = moov.children_of(b"trak").take(MOST_TRACKS).filter_map(|trak| trak.child(b"tref")?.child(b"chap"));
    let ids = named.flat_map(|chap| Entries::<4>::new(chap.body, MOST_TRACKS as u32).iter());
    ids.map(|id| u32::from_be_bytes(*id)).take(MOST_TRACKS).collect()
}

/// A track whose samples are the titles of chapters.
#[derive(Debug)]
pub(crate) struct ChapterTrack {
    /// Start of each chapter, and the place of its title.
    places: Vec<(Duration, ByteRange)>,
}

impl ChapterTrack {
    /// Whether a track has text.
    pub(crate) fn has_text(trak: &Node<'_>) -> bool {
        let handler = trak.child(b"mdia").and_then(|mdia| mdia.child(b"hdlr"));
        let kind = handler.and_then(|handler| handler.body.get(8..12));
        matches!(kind, Some(b"text" | b"sbtl" | b"subt"))
    }

    /// Reads the tables of a track. `clock` is that of its edits. `None` where they can't be read, or are empty.
    pub(crate) fn parse(trak: &Node<'_>, clock: Timescale, object_len: u64) -> Option<Self> {
        let mdia = trak.child(b"mdia")?;
        let timescale = trak::timescale(&mdia).ok()?;
        let stbl = mdia.child(b"minf")?.child(b"stbl")?;
        let samples = Tables::parse(&stbl).ok()?.places(object_len, MOST_CHAPTERS);
        let shift = shift(&trak::edits(trak).unwrap_or_default(), timescale, clock);
        let place = |(time, range): (i64, ByteRange)| {
            let seconds = timescale.seconds(time) + shift;
            let end = range.end.min(range.start.saturating_add(MOST_SAMPLE));
            (Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default(), ByteRange::new(range.start, end))
        };
        let places: Vec<_> = samples.into_iter().map(place).collect();
        (!places.is_empty()).then_some(Self { places })
    }

    /// Returns the ranges to read: titles that lie near each other are read together.
    pub(crate) fn wanted(&self) -> Vec<ByteRange> {
        let mut places: Vec<ByteRange> = self.places.iter().map(|(_, range)| *range).collect();
        places.retain(|range| !range.is_empty());
        places.sort_unstable();
        let mut reads: Vec<ByteRange> = Vec::new();
        for place in places {
            let is_near = |last: &ByteRange| {
                place.start <= last.end.saturating_add(GAP) && place.end.saturating_sub(last.start) <= MOST_READ
            };
            if let Some(last) = reads.last_mut().filter(|last| is_near(last)) {
                last.end = last.end.max(place.end);
            } else if reads.len() < MOST_READS {
                reads.push(place);
            } else {
                break;
            }
        }
        reads
    }

    /// Returns the chapters, with the titles that were read.
    pub(crate) fn read(&self, bytes_of: impl Fn(ByteRange) -> Option<Bytes>) -> Vec<Chapter> {
        let read: Vec<(ByteRange, Bytes)> =
            self.wanted().into_iter().filter_map(|range| Some((range, bytes_of(range)?))).collect();
        let sample = |place: &ByteRange| {
            let is_in = |range: &ByteRange| range.start <= place.start && place.end <= range.end;
            let (range, bytes) = read.iter().find(|(range, _)| is_in(range))?;
            bytes.get((place.start - range.start) as usize..(place.end - range.start) as usize)
        };
        let chapter = |(start, place): &(Duration, ByteRange)| {
            let title = sample(place).and_then(title).unwrap_or_default();
            Chapter { start: *start, title }
        };
        in_order(self.places.iter().map(chapter))
    }
}

/// Returns the seconds by which edits move the samples of a track.
fn shift(edits: &[Edit], timescale: Timescale, clock: Timescale) -> f64 {
    let empty = edits.iter().take_while(|edit| edit.media_time.is_none());
    let empty = empty.map(|edit| edit.duration).fold(0, u64::saturating_add);
    let first = edits.iter().find_map(|edit| edit.media_time).unwrap_or(0);
    clock.seconds(i64::try_from(empty).unwrap_or(0)) - timescale.seconds(first)
}

/// Reads a sample of text: its length, and text in UTF-8 or with a byte order mark in UTF-16.
fn title(sample: &[u8]) -> Option<String> {
    let length = u16::from_be_bytes(*sample.first_chunk()?);
    let text = sample.get(2..)?;
    let text = text.get(..usize::from(length)).unwrap_or(text);
    let wide = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|unit| read(*unit)).collect();
        String::from_utf16_lossy(&units)
    };
    Some(match text {
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        plain => String::from_utf8_lossy(plain).into_owned(),
    })
}

#[cfg(test)]
mod tests;
