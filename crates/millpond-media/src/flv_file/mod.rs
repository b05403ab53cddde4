//! FLV files (Video File Format 10, annex E): the tags of [`flv`](crate::flv) become the index of an object.
//!
//! Bodies of tags are not read, except for configurations. A large body is skipped by the next request.

mod clock;
mod entries;
mod lane;
mod tag_header;
#[cfg(test)]
mod tests;

use crate::{
    error::MediaError,
    flv::{FlvCodec, FlvContent, FlvTag},
    movie::{Movie, SkippedTrack, Track},
    scan::{FileReader, Progress},
    units::{ByteRange, Timescale},
    window::Window,
    work::Work,
};
use clock::Clock;
use lane::{Frame, Lane};
use tag_header::TagHeader;

/// Path of errors.
const PATH: &str = "FLV tag";
/// First bytes of a file: signature and version.
const MAGIC: &[u8] = b"FLV\x01";
/// Bytes of the header of a file, and most that it states.
const FILE_HEADER: u64 = 9;
const MOST_FILE_HEADER: u64 = 4096;
/// Bytes of the size that follows a tag.
const TAIL: u64 = 4;
/// Bytes of a body that tell its codec, and of one that configures a decoder.
const BEGINNING: u64 = 64;
const FIRST_FRAME: u64 = 4096;
/// Most bytes of a configuration, and of frames of MP3 in one tag.
const MOST_WHOLE: u64 = 64 << 10;
/// Most bytes between two tags that are passed.
const MOST_PASSED: u64 = 4 << 20;
/// Bytes searched in one step of work.
const SEARCHED_A_STEP: u64 = 16;
/// Ids of the tracks of pictures and of sound.
const PICTURES: u32 = 1;
const SOUND: u32 = 2;

/// Returns a reader of the FLV file that begins with `head`; `None` for other files.
pub(crate) fn reader(head: &[u8]) -> Option<Box<dyn FileReader>> {
    head.starts_with(MAGIC).then(|| Box::<Flv>::default() as Box<dyn FileReader>)
}

/// Reads an FLV file.
#[derive(Debug, Default)]
struct Flv {
    is_open: bool,
    pictures: Lane,
    sound: Lane,
    clock: Clock,
    /// Bytes since the last tag.
    passed: u64,
    is_cut_short: bool,
    /// Whether tracks after the first one of a kind were left out.
    has_others: bool,
}

impl FileReader for Flv {
    fn read(&mut self, window: &mut Window, work: &Work) -> Result<Progress, MediaError> {
        if !self.is_open && !self.open(window)? {
            return Ok(Progress::Needs(FILE_HEADER));
        }
        loop {
            let at = window.at();
            let spent = |steps: u64| work.spend(steps).map_err(|error| MediaError::work(PATH, at, error));
            spent(1)?;
            if window.left() < TagHeader::BYTES || self.passed > MOST_PASSED {
                return self.finish(at);
            }
            let Some(bytes) = window.bytes(TagHeader::BYTES) else { return Ok(Progress::Scans(TagHeader::BYTES)) };
            let Some(header) = TagHeader::read(&bytes) else {
                spent(self.pass(window) / SEARCHED_A_STEP)?;
                continue;
            };
            // Behind damaged places, the size that follows a tag must be its own.
            if self.passed > 0 {
                let whole = header.whole() + TAIL;
                match window.bytes(whole) {
                    Some(bytes) if header.is_followed_by_size(&bytes) => self.passed = 0,
                    None if whole <= window.left().min(MOST_PASSED) => return Ok(Progress::Scans(whole)),
                    _ => {
                        spent(self.pass(window) / SEARCHED_A_STEP)?;
                        continue;
                    }
                }
            }
            if header.whole() > window.left() {
                self.is_cut_short = true;
                return self.finish(at);
            }
            if let Some(size) = self.tag(&header, window)? {
                return Ok(Progress::Scans(size));
            }
            window.advance(header.whole() + TAIL);
        }
    }

    fn heap_bytes(&self) -> usize {
        self.pictures.heap_bytes() + self.sound.heap_bytes()
    }
}

impl Flv {
    /// Reads the header of the file. `false` where its bytes are missing.
    fn open(&mut self, window: &mut Window) -> Result<bool, MediaError> {
        let Some(bytes) = window.bytes(FILE_HEADER) else { return Ok(false) };
        let size = bytes.last_chunk::<4>().map_or(0, |size| u64::from(u32::from_be_bytes(*size)));
        if !(FILE_HEADER..=MOST_FILE_HEADER).contains(&size) {
            let expected = format!("{FILE_HEADER} to {MOST_FILE_HEADER}");
            return Err(MediaError::invalid("FLV header", 5, format!("a size of {size}"), expected));
        }
        window.advance(size + TAIL);
        self.is_open = true;
        Ok(true)
    }

    /// Reads the tag at the position. Returns the bytes that are needed.
    fn tag(&mut self, header: &TagHeader, window: &Window) -> Result<Option<u64>, MediaError> {
        let Some(is_sound) = header.is_sound() else { return Ok(None) };
        let lane = if is_sound { &mut self.sound } else { &mut self.pictures };
        if header.is_filtered {
            lane.refuse(MediaError::unsupported(PATH, window.at(), "an encrypted tag"));
            return Ok(None);
        }
        if !lane.plays() {
            return Ok(None);
        }
        let beginning = if lane.needs_frame() { FIRST_FRAME } else { BEGINNING };
        let wanted = header.whole().min(TagHeader::BYTES + beginning);
        let Some(bytes) = window.bytes(wanted) else { return Ok(Some(wanted)) };
        let tag = match FlvTag::read(&bytes) {
            Ok(Some(tag)) => tag,
            Err(error @ MediaError::Unsupported { .. }) => {
                lane.refuse(at(error, window.at()));
                return Ok(None);
            }
            // Other tags are too short to mean anything.
            Ok(None) | Err(_) => return Ok(None),
        };
        if tag.track > 0 {
            self.has_others = true;
            return Ok(None);
        }
        let is_whole = matches!((&tag.content, tag.codec), (FlvContent::Configuration(_), _) | (_, FlvCodec::Mp3));
        let (bytes, tag) = if is_whole && wanted < header.whole() {
            let whole = header.whole().min(TagHeader::BYTES + MOST_WHOLE);
            let Some(bytes) = window.bytes(whole) else { return Ok(Some(whole)) };
            let Ok(Some(tag)) = FlvTag::read(&bytes) else { return Ok(None) };
            (bytes, tag)
        } else {
            (bytes, tag)
        };
        match tag.content {
            FlvContent::Configuration(record) => lane.configure(tag.codec, &record, window.at()),
            FlvContent::Frame { composition, is_key, data } => {
                // The data extend to the end of the tag, of which the beginning was read.
                let before = bytes.len() - data.len();
                let start = window.at() + before as u64;
                let range = ByteRange::new(start, window.at() + header.whole());
                let time = self.clock.time(header.timestamp);
                let held = window.held();
                let end = usize::try_from(header.whole()).unwrap_or(usize::MAX).min(held.len());
                let available = held.slice(before..end);
                lane.push(tag.codec, &Frame { time, composition, is_key, range, beginning: data, available });
            }
        }
        Ok(None)
    }

    /// Passes bytes up to the next one that may begin a tag. Returns their number.
    fn pass(&mut self, window: &mut Window) -> u64 {
        let rest = window.held().get(1..).unwrap_or_default();
        let found = rest.iter().position(|byte| tag_header::begins(*byte));
        let passed = found.unwrap_or(rest.len()) as u64 + 1;
        self.passed += passed;
        window.advance(passed);
        passed
    }

    fn finish(&mut self, offset: u64) -> Result<Progress, MediaError> {
        let lanes = [(PICTURES, std::mem::take(&mut self.pictures)), (SOUND, std::mem::take(&mut self.sound))];
        let base = lanes.iter().filter_map(|(_, lane)| lane.first()).min().unwrap_or(0);
        let mut tracks: Vec<Track> = Vec::new();
        let mut reasons = Vec::new();
        for (id, lane) in lanes {
            let (track, left) = lane.finish(id, base);
            tracks.extend(track);
            reasons.extend(left);
        }
        if self.has_others {
            reasons.push(SkippedTrack::new(0, "further tracks of Enhanced RTMP: only the first ones play".to_owned()));
        }
        if self.passed > MOST_PASSED {
            let found = format!("{} bytes without tags", self.passed);
            let error = MediaError::invalid(PATH, offset - self.passed, found, "a tag");
            reasons.push(SkippedTrack::of_error(0, &error));
        }
        if tracks.is_empty() {
            let found = reasons.into_iter().map(|track| track.reason).collect();
            let (path, cut_short) = ("FLV".to_owned(), self.is_cut_short);
            return Err(MediaError::NoPlayableTrack { path, offset: 0, found, cut_short });
        }
        let movie = Movie { cut_short: self.is_cut_short, ..Movie::of_tracks(Timescale::MPEG, tracks, reasons) };
        Ok(Progress::Done(Box::new(movie)))
    }
}

/// Returns an error of a tag with the offset of the tag.
fn at(error: MediaError, tag: u64) -> MediaError {
    match error {
        MediaError::Unsupported { path, found, codec, .. } => {
            MediaError::Unsupported { path, offset: tag, found, codec }
        }
        MediaError::Truncated { path, found, expected, .. } => {
            MediaError::Truncated { path, offset: tag, found, expected }
        }
        MediaError::Invalid { path, found, expected, .. } => MediaError::Invalid { path, offset: tag, found, expected },
        error => error,
    }
}
