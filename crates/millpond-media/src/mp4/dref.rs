//! Writes an index as a file: a movie box whose data reference (ISO/IEC 14496-12 8.7.2) names the file with the media.

use crate::{
    boxes::FourCc,
    codec::{Codec, TrackKind, orientation::Orientation},
    error::MediaError,
    movie::{
        Edit, Movie, SkippedTrack, Track,
        edits::media_end,
        sample_table::{Sample, SampleTable},
    },
    mp4::alias,
    units::ByteRange,
};

/// Longest chunk in bytes: players read a whole chunk at once.
const CHUNK: u64 = 1 << 20;

/// Returns a file of `ftyp` and `moov` with progressive sample tables, also for a fragmented movie. Its data reference
/// names the media `location`, a URL or a path, at the offsets that `movie` has.
///
/// # Errors
/// No track can be written, or one does not fit the format: more than 2^32 bytes of tables, or encryption. Or the samples are
/// made of the file, as those of a transport stream are, and lie in no file.
pub fn write(movie: &Movie, location: &str) -> Result<Vec<u8>, MediaError> {
    let mut entry = location.as_bytes().to_vec();
    entry.push(0);
    file(movie, b"url ", &entry)
}

/// Like [`write()`], but names the media by a Macintosh alias instead of a URL. QuickTime writes aliases, and ffmpeg
/// follows no other reference (`-enable_drefs 1 -use_absolute_path 1`).
///
/// # Errors
/// As [`write()`]; also, the path is longer than 65,000 bytes.
pub fn write_alias(movie: &Movie, path: &str) -> Result<Vec<u8>, MediaError> {
    let record = alias::write(path).ok_or_else(|| {
        MediaError::invalid("dref/alis", 0, format!("a path of {} bytes", path.len()), "65000 at most")
    })?;
    file(movie, b"alis", &record)
}

/// Returns the tracks that [`write()`] leaves out, each with the reason: MP4 has no sample entry of their codec.
#[must_use]
pub fn left_out(movie: &Movie) -> Vec<SkippedTrack> {
    let reason = |track: &Track| format!("an MP4 file has no form of its codec ({})", track.codec.name());
    let left = movie.tracks.iter().filter(|track| !has_entry(track));
    left.map(|track| SkippedTrack::new(track.id, reason(track))).collect()
}

/// Whether a track has a sample entry. Text of Matroska has none.
fn has_entry(track: &Track) -> bool {
    !track.sample_entry.is_empty()
}

/// A data reference: its type, and its content after the flags.
type Reference<'a> = (&'a FourCc, &'a [u8]);

fn file(movie: &Movie, kind: &FourCc, reference: &[u8]) -> Result<Vec<u8>, MediaError> {
    if movie.extraction.is_some() {
        let found = "samples in pieces, or without their beginning";
        return Err(MediaError::invalid("media", 0, found, "samples that are ranges of the file"));
    }
    if movie.tracks.iter().all(|track| !has_entry(track)) {
        let found = format!("{} tracks without a sample entry", movie.tracks.len());
        return Err(MediaError::invalid("moov", 0, found, "a track that an MP4 file can describe"));
    }
    let reference = (kind, reference);
    let mut out = Writer::default();
    out.boxed(b"ftyp", |out| {
        out.bytes(b"isom\0\0\x02\0isomiso2mp41");
        Ok(())
    })?;
    out.boxed(b"moov", |out| {
        movie_header(out, movie)?;
        for (number, track) in movie.tracks.iter().filter(|track| has_entry(track)).enumerate() {
            let path = format!("moov/trak[{}]", number + 1);
            if track.sample_entry.len() < 16 {
                let found = format!("a sample entry of {} bytes", track.sample_entry.len());
                return Err(MediaError::invalid(path, 0, found, "16 at least"));
            }
            if let Some(protection) = &track.protection {
                let found = format!("a track encrypted by {} in an index file", protection.scheme.name());
                return Err(MediaError::unsupported(path, 0, found));
            }
            out.boxed(b"trak", |out| trak(out, movie, track, reference))?;
        }
        Ok(())
    })?;
    Ok(out.0)
}

/// Writes big-endian fields into nested boxes.
#[derive(Default)]
struct Writer(Vec<u8>);

type Written = Result<(), MediaError>;

impl Writer {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    fn zeros(&mut self, count: usize) {
        self.0.resize(self.0.len() + count, 0);
    }

    fn boxed(&mut self, kind: &FourCc, body: impl FnOnce(&mut Self) -> Written) -> Written {
        let start = self.0.len();
        self.u32(0);
        self.bytes(kind);
        body(self)?;
        let size = self.0.len() - start;
        let size = u32::try_from(size).map_err(|_| {
            MediaError::too_large(crate::boxes::show(*kind), start as u64, size as u64, u32::MAX.into(), "bytes")
        })?;
        if let Some(field) = self.0.get_mut(start..start + 4) {
            field.copy_from_slice(&size.to_be_bytes());
        }
        Ok(())
    }

    fn full(&mut self, kind: &FourCc, version: u8, flags: u32, body: impl FnOnce(&mut Self) -> Written) -> Written {
        self.boxed(kind, |out| {
            out.u32(u32::from(version) << 24 | flags);
            body(out)
        })
    }

    /// Writes a table with its entry count.
    fn table<T>(&mut self, kind: &FourCc, version: u8, entries: &[T], entry: impl Fn(&mut Self, &T)) -> Written {
        self.full(kind, version, 0, |out| {
            out.u32(entries.len() as u32);
            entries.iter().for_each(|e| entry(out, e));
            Ok(())
        })
    }

    /// Writes the matrix (6.2.2) of an orientation.
    fn matrix(&mut self, orientation: Orientation) {
        let [a, b, c, d] = orientation.matrix().map(|number| (number << 16).cast_unsigned());
        for field in [a, b, 0, c, d, 0, 0, 0, 0x4000_0000] {
            self.u32(field);
        }
    }
}

fn movie_header(out: &mut Writer, movie: &Movie) -> Written {
    let durations = movie.tracks.iter().map(|track| shown(movie, track));
    let duration = durations.max().unwrap_or(0).max(movie.duration);
    out.full(b"mvhd", 1, 0, |out| {
        out.zeros(16);
        out.u32(movie.timescale.get());
        out.u64(duration);
        out.u32(0x1_0000);
        out.u16(0x100);
        out.zeros(10);
        out.matrix(Orientation::UPRIGHT);
        out.zeros(24);
        out.u32(movie.tracks.iter().map(|track| track.id).max().unwrap_or(0).saturating_add(1));
        Ok(())
    })
}

/// Returns the length of a track in movie ticks: that of its edits, or else of its samples.
fn shown(movie: &Movie, track: &Track) -> u64 {
    let samples = track.timescale.convert(track.samples.end_dts(), movie.timescale).max(0).unsigned_abs();
    let edits = track.edits.iter().fold(0_u64, |sum, edit| sum.saturating_add(edit.duration));
    if edits == 0 { samples } else { edits }
}

fn trak(out: &mut Writer, movie: &Movie, track: &Track, reference: Reference<'_>) -> Written {
    let (orientation, width, height) = match track.kind {
        TrackKind::Video { width, height, orientation, .. } => (orientation, width, height),
        TrackKind::Audio { .. } | TrackKind::Text => (Orientation::UPRIGHT, 0, 0),
    };
    let sound = matches!(track.kind, TrackKind::Audio { .. });
    out.full(b"tkhd", 1, 6 | u32::from(track.enabled), |out| {
        out.zeros(16);
        out.u32(track.id);
        out.u32(0);
        out.u64(shown(movie, track));
        out.zeros(12);
        out.u16(if sound { 0x100 } else { 0 });
        out.zeros(2);
        out.matrix(orientation);
        out.u32(u32::from(width) << 16);
        out.u32(u32::from(height) << 16);
        Ok(())
    })?;
    let edits = edits(movie, track);
    if !edits.is_empty() {
        out.boxed(b"edts", |out| {
            out.table(b"elst", 1, &edits, |out, edit| {
                out.u64(edit.duration);
                out.u64(edit.media_time.unwrap_or(-1) as u64);
                out.u32(0x1_0000);
            })
        })?;
    }
    out.boxed(b"mdia", |out| mdia(out, track, reference))?;
    match &track.name {
        Some(name) => out.boxed(b"udta", |out| {
            out.boxed(b"name", |out| {
                out.bytes(name.as_bytes());
                Ok(())
            })
        }),
        None => Ok(()),
    }
}

/// Returns the edit list, moved: a progressive table starts at 0 whatever the time of the first fragment was (8.8.12).
/// A duration of 0 means "to the end" only in fragmented files, so the actual duration replaces it.
fn edits(movie: &Movie, track: &Track) -> Vec<Edit> {
    let start = track.samples.start_dts();
    let movie_ticks = |ticks: i64| track.timescale.convert(ticks.max(0), movie.timescale).unsigned_abs();
    let whole = [Edit { duration: 0, media_time: Some(start.min(0)) }];
    let edits = match (&*track.edits, start) {
        ([], 0) => return Vec::new(),
        ([], _) => &whole,
        (edits, _) => edits,
    };
    let mut moved = Vec::with_capacity(edits.len() + 1);
    for (index, edit) in edits.iter().enumerate() {
        let Some(time) = edit.media_time else {
            moved.push(*edit);
            continue;
        };
        let duration = match edit.duration {
            0 if index + 1 == edits.len() => movie_ticks(media_end(&track.samples).saturating_sub(time)).max(1),
            duration => duration,
        };
        let time = time.saturating_sub(start);
        // An edit that begins before the first sample is preceded by an empty edit.
        let wait = movie_ticks(time.min(0).saturating_neg());
        if wait > 0 {
            moved.push(Edit { duration: wait, media_time: None });
        }
        moved.push(Edit { duration: duration.saturating_sub(wait), media_time: Some(time.max(0)) });
    }
    moved
}

fn mdia(out: &mut Writer, track: &Track, (kind, reference): Reference<'_>) -> Written {
    let duration = track.samples.end_dts().saturating_sub(track.samples.start_dts());
    let (language, extended) = match packed_language(&track.language) {
        Some(packed) => (packed, None),
        None => (0x55c4, Some(&track.language)),
    };
    out.full(b"mdhd", 1, 0, |out| {
        out.zeros(16);
        out.u32(track.timescale.get());
        out.u64(duration.max(0).unsigned_abs());
        out.u16(language);
        out.u16(0);
        Ok(())
    })?;
    let handler = match (track.kind, &track.codec) {
        (TrackKind::Video { .. }, _) => b"vide",
        (TrackKind::Audio { .. }, _) => b"soun",
        (TrackKind::Text, Codec::Stpp(_)) => b"subt",
        (TrackKind::Text, _) => b"text",
    };
    out.full(b"hdlr", 0, 0, |out| {
        out.u32(0);
        out.bytes(handler);
        out.zeros(13);
        Ok(())
    })?;
    if let Some(tag) = extended {
        out.full(b"elng", 0, 0, |out| {
            out.bytes(tag.as_bytes());
            out.zeros(1);
            Ok(())
        })?;
    }
    out.boxed(b"minf", |out| {
        media_header(out, track)?;
        out.boxed(b"dinf", |out| {
            out.full(b"dref", 0, 0, |out| {
                out.u32(1);
                out.full(kind, 0, 0, |out| {
                    out.bytes(reference);
                    Ok(())
                })
            })
        })?;
        out.boxed(b"stbl", |out| stbl(out, track))
    })
}

/// Writes `vmhd`, `smhd`, `sthd` or `nmhd` (12.1.2, 12.2.2, 12.6.2, 8.4.5.2).
fn media_header(out: &mut Writer, track: &Track) -> Written {
    let (kind, flags, zeros) = match (track.kind, &track.codec) {
        (TrackKind::Video { .. }, _) => (b"vmhd", 1, 8),
        (TrackKind::Audio { .. }, _) => (b"smhd", 0, 4),
        (TrackKind::Text, Codec::Stpp(_)) => (b"sthd", 0, 0),
        (TrackKind::Text, _) => (b"nmhd", 0, 0),
    };
    out.full(kind, 0, flags, |out| {
        out.zeros(zeros);
        Ok(())
    })
}

/// Packs three letters into 15 bits (8.4.2.3).
fn packed_language(language: &str) -> Option<u16> {
    let letters: [u8; 3] = language.as_bytes().try_into().ok()?;
    let lower = letters.iter().all(u8::is_ascii_lowercase);
    lower.then(|| letters.iter().fold(0, |packed, letter| packed << 5 | u16::from(letter - 0x60)))
}

fn stbl(out: &mut Writer, track: &Track) -> Written {
    let described = track.descriptions.iter().flat_map(|all| all.entries()).map(|entry| &entry.sample_entry[..]);
    let mut entries: Vec<&[u8]> = described.collect();
    if entries.is_empty() {
        entries.push(&track.sample_entry);
    }
    out.full(b"stsd", 0, 0, |out| {
        out.u32(entries.len() as u32);
        for entry in entries {
            let (head, rest) = entry.split_at(14.min(entry.len()));
            out.bytes(head);
            // The index of the only data reference.
            out.u16(1);
            out.bytes(rest.get(2..).unwrap_or_default());
        }
        Ok(())
    })?;
    let table = &track.samples;
    let times = runs(table.iter().map(|sample| sample.duration));
    out.table(b"stts", 0, &times, |out, (count, duration)| {
        out.u32(*count);
        out.u32(*duration);
    })?;
    let composition = runs(table.iter().map(|sample| sample.composition));
    if composition.iter().any(|(_, offset)| *offset != 0) {
        let version = u8::from(table.composition_bounds().0 < 0);
        out.table(b"ctts", version, &composition, |out, (count, offset)| {
            out.u32(*count);
            out.u32(*offset as u32);
        })?;
    }
    if !table.all_sync() {
        let sync: Vec<u32> = table.sync_samples().collect();
        out.table(b"stss", 0, &sync, |out, index| out.u32(index + 1))?;
    }
    sizes(out, table)?;
    chunks(out, track)
}

/// Returns the runs of equal values, as counts and values.
fn runs<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<(u32, T)> {
    let mut runs: Vec<(u32, T)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((count, last)) if *last == value => *count += 1,
            _ => runs.push((1, value)),
        }
    }
    runs
}

fn sizes(out: &mut Writer, table: &SampleTable) -> Written {
    let size = |sample: Sample| sample.range.len() as u32;
    let first = table.get(0).map_or(0, size);
    let constant = first != 0 && table.iter().all(|sample| size(sample) == first);
    out.full(b"stsz", 0, 0, |out| {
        out.u32(if constant { first } else { 0 });
        out.u32(table.len());
        if !constant {
            table.iter().for_each(|sample| out.u32(size(sample)));
        }
        Ok(())
    })
}

/// A run of samples without gaps, of one sample entry.
struct Chunk {
    start: u64,
    samples: u32,
    /// Place of the sample entry.
    entry: usize,
}

/// Writes `stsc` and `stco` or `co64`.
fn chunks(out: &mut Writer, track: &Track) -> Written {
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut end = None;
    for sample in &track.samples {
        let ByteRange { start, end: after } = sample.range;
        let entry = track.descriptions.as_ref().map_or(0, |descriptions| descriptions.place(sample.index));
        match chunks.last_mut() {
            Some(chunk) if end == Some(start) && chunk.entry == entry && after - chunk.start <= CHUNK => {
                chunk.samples += 1
            }
            _ => chunks.push(Chunk { start, samples: 1, entry }),
        }
        end = Some(after);
    }
    let mut shapes: Vec<(u32, &Chunk)> = Vec::new();
    for (number, chunk) in (1_u32..).zip(&chunks) {
        let shape = |chunk: &Chunk| (chunk.samples, chunk.entry);
        if shapes.last().is_none_or(|(_, last)| shape(last) != shape(chunk)) {
            shapes.push((number, chunk));
        }
    }
    out.table(b"stsc", 0, &shapes, |out, (first, chunk)| {
        out.u32(*first);
        out.u32(chunk.samples);
        out.u32(chunk.entry as u32 + 1);
    })?;
    if chunks.iter().all(|chunk| u32::try_from(chunk.start).is_ok()) {
        out.table(b"stco", 0, &chunks, |out, chunk| out.u32(chunk.start as u32))
    } else {
        out.table(b"co64", 0, &chunks, |out, chunk| out.u64(chunk.start))
    }
}

#[cfg(test)]
mod tests;
