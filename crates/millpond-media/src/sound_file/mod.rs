//! Files of sound alone: MPEG audio, AAC in ADTS, FLAC, WAVE, AIFF, and Ogg with Opus or FLAC.
//!
//! [`SoundFile`] passes tags and recognises the format by its first bytes. The readers of MPEG audio and ADTS ([`frames`]), of FLAC and
//! of Ogg find all frames, whose places no table states. PCM is told by headers alone.

mod adts;
mod aiff;
mod chunks;
mod flac;
pub mod flac_crc;
mod flac_end;
mod flac_frame;
mod flac_picture;
mod frames;
mod gapless;
mod id3;
mod id3_text;
mod mpeg_audio;
mod ogg;
mod pcm;
mod tags;
#[cfg(test)]
mod tests;
mod vorbis_comment;
mod wave;

use crate::{
    Foreign,
    error::MediaError,
    movie::{Edit, Movie, SkippedTrack, Track, artwork::ImageRange, tags::Tags},
    scan::{FileReader, Progress},
    units::Timescale,
    window::Window,
    work::Work,
};
use adts::Adts;
use frames::FrameReader;
use id3::Id3Search;
use mpeg_audio::MpegAudio;

/// Bytes in which frames are searched behind tags.
const SEARCHED: u64 = 64 << 10;
/// Most tags before the sound.
const MOST_TAGS: u32 = 64;

/// Returns a reader of the sound file that begins with `head`; `None` for other files.
///
/// Frames of MPEG audio and ADTS begin with twelve bits that other files have too. Where they are not at the beginning, some must
/// follow one another within `head`, and no other format be recognised.
pub(crate) fn reader(head: &[u8]) -> Option<Box<dyn FileReader>> {
    let is_known = tags::front(head).is_some() || Format::of_magic(head).is_some();
    let begins = || matches!(head, [0xff, second, ..] if second & 0xe0 == 0xe0);
    let has_frames = || Foreign::of_bytes(head).is_none() && Format::of_frames(head, false).is_some();
    (is_known || begins() || has_frames()).then(|| Box::<SoundFile>::default() as Box<dyn FileReader>)
}

/// The reading of a sound file.
#[derive(Debug, Default)]
struct SoundFile {
    /// Number of tags that were passed.
    passed: u32,
    /// The reading of the current tag.
    tag: Option<Id3Search>,
    artwork: Option<ImageRange>,
    tags: Tags,
    /// Reader of the format, once that is known.
    reader: Option<Box<dyn FileReader>>,
}

impl FileReader for SoundFile {
    fn read(&mut self, window: &mut Window, work: &Work) -> Result<Progress, MediaError> {
        loop {
            if let Some(reader) = &mut self.reader {
                let mut progress = reader.read(window, work)?;
                if let Progress::Done(movie) = &mut progress {
                    movie.artwork = movie.artwork.take().or(self.artwork.map(Into::into));
                    movie.tags = std::mem::take(&mut self.tags).or(std::mem::take(&mut movie.tags));
                }
                return Ok(progress);
            }
            if let Some(size) = self.search(window) {
                return Ok(Progress::Needs(size));
            }
            if window.bytes(tags::HEADER.min(window.left())).is_none() {
                return Ok(Progress::Needs(tags::HEADER));
            }
            if let Some(size) = tags::front(window.held()) {
                self.pass(size, window)?;
                continue;
            }
            if Format::of_magic(window.held()).is_none() && window.bytes(SEARCHED.min(window.left())).is_none() {
                return Ok(Progress::Needs(SEARCHED));
            }
            self.reader = Some(found(window)?);
        }
    }

    fn heap_bytes(&self) -> usize {
        self.reader.as_ref().map_or(0, |reader| reader.heap_bytes())
    }
}

impl SoundFile {
    /// Reads the current tag as far as the bytes allow, then passes it. Returns the number of bytes that are needed.
    fn search(&mut self, window: &mut Window) -> Option<u64> {
        let search = self.tag.as_mut()?;
        if let Some(size) = search.step(window) {
            return Some(size);
        }
        let rest = search.end().saturating_sub(window.at());
        self.artwork = self.artwork.or(search.artwork());
        self.tags = std::mem::take(&mut self.tags).or(search.take_tags());
        self.tag = None;
        window.advance(rest);
        None
    }

    /// Passes a tag, or begins to read it.
    fn pass(&mut self, size: u64, window: &mut Window) -> Result<(), MediaError> {
        self.passed += 1;
        if self.passed > MOST_TAGS {
            let (found, most) = (u64::from(self.passed), u64::from(MOST_TAGS));
            return Err(MediaError::too_large("ID3v2 tag", window.at(), found, most, "tags before the sound"));
        }
        if size >= window.left() {
            return Err(MediaError::truncated("ID3v2 tag", window.at(), window.left(), size.saturating_add(1)));
        }
        self.tag = Id3Search::of(window.held(), window.at(), size);
        match &self.tag {
            Some(search) => search.begin(window),
            None => window.advance(size),
        }
        Ok(())
    }
}

/// Returns the reader of the format at the position of a window, and moves to its first byte.
fn found(window: &mut Window) -> Result<Box<dyn FileReader>, MediaError> {
    let at = window.at();
    let format = Format::of_magic(window.held()).map(|format| (0, format));
    let Some((place, format)) = format.or_else(|| Format::of_frames(window.held(), window.holds_end())) else {
        if mpeg_audio::is_free(window.held()) {
            let what = "the free format, whose frames state no length,";
            return Err(MediaError::unsupported("MPEG audio", at, what));
        }
        let found = window.held().get(..8.min(window.held().len())).unwrap_or_default();
        let found = format!("the bytes \"{}\"", found.escape_ascii());
        let expected = "FLAC, or frames of MPEG audio or of ADTS that follow one another";
        return Err(MediaError::invalid("the file", at, found, expected));
    };
    window.advance(place as u64);
    Ok(match format {
        Format::MpegAudio => Box::new(FrameReader::<MpegAudio>::default()),
        Format::Adts => Box::new(FrameReader::<Adts>::default()),
        Format::Flac => Box::<flac::Flac>::default(),
        Format::Wave => Box::<wave::Wave>::default(),
        Format::Aiff => Box::<aiff::Aiff>::default(),
        Format::Ogg => Box::<ogg::Ogg>::default(),
    })
}

/// A format of sound files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    MpegAudio,
    Adts,
    Flac,
    Wave,
    Aiff,
    Ogg,
}

impl Format {
    /// Returns the format whose first bytes are unmistakable.
    fn of_magic(head: &[u8]) -> Option<Self> {
        match (head.first_chunk::<4>()?, head.get(8..12)) {
            (b"fLaC", _) => Some(Self::Flac),
            (b"OggS", _) => Some(Self::Ogg),
            (b"RIFF" | b"RF64" | b"BW64", Some(b"WAVE")) => Some(Self::Wave),
            (b"FORM", Some(b"AIFF" | b"AIFC")) => Some(Self::Aiff),
            _ => None,
        }
    }

    /// Returns the place of the first frames that follow one another, and their format. `ends`: no bytes follow.
    fn of_frames(bytes: &[u8], ends: bool) -> Option<(usize, Self)> {
        let mpeg = frames::first::<MpegAudio>(bytes, ends).map(|place| (place, Self::MpegAudio));
        let adts = frames::first::<Adts>(bytes, ends).map(|place| (place, Self::Adts));
        mpeg.into_iter().chain(adts).min_by_key(|(place, _)| *place)
    }
}

/// Returns the movie of one track of sound, whose clock is that of the movie. `shown` are the ticks that are heard: the beginning and the
/// end; `None` for all.
fn movie(mut track: Track, shown: Option<(i64, i64)>, reasons: Vec<String>) -> Movie {
    let (start, end) = shown.unwrap_or((track.samples.start_dts(), track.samples.end_dts()));
    let duration = u64::try_from(end.saturating_sub(start)).unwrap_or(0);
    if shown.is_some() && duration > 0 {
        track.edits = vec![Edit { duration, media_time: Some(start) }];
    }
    let timescale: Timescale = track.timescale;
    let skipped = reasons.into_iter().map(|reason| SkippedTrack::new(track.id, reason)).collect();
    Movie { duration, ..Movie::of_tracks(timescale, vec![track], skipped) }
}

/// Returns the error of a file in which nothing can be played.
fn nothing(path: &str, offset: u64, reason: impl Into<String>, cut_short: bool) -> MediaError {
    MediaError::NoPlayableTrack { path: path.to_owned(), offset, found: vec![reason.into()], cut_short }
}
