//! `TrackEntry` (RFC 9559 5.1.4.1): what a segment states of a track.

use super::{ebml::Element, ids, light::Light};
use crate::{
    codec::{BlockEncoding, Color, make::MOST_CONFIGURATION},
    error::MediaError,
    movie::purpose::{Purpose, Purposes},
};
use std::ops::RangeInclusive;

/// Values of `TrackType` (5.1.4.1.3).
const VIDEO: u64 = 1;
const AUDIO: u64 = 2;
const SUBTITLE: u64 = 17;
/// Compressions (5.1.4.1.31.6). By the second one a common beginning of all frames is kept apart.
const ZLIB: u64 = 0;
const HEADER_STRIPPING: u64 = 3;
/// Most records of block additions that are kept.
const MOST_ADDITIONS: usize = 16;
/// Plausible durations of a frame, in nanoseconds: from a tick of the finest clock of pictures up to an hour. An hour on this clock fits
/// into the 32 bits of a sample's duration. Other durations, such as 2^62, count as unknown.
const FRAMES: RangeInclusive<u64> = 1_000..=3_600_000_000_000;
/// Longest plausible delay of a codec, in nanoseconds. Delays are a few frames long. A delay of the length of the file would hide all sound.
const MOST_DELAY: u64 = 10_000_000_000;
/// Language of a track that states none (5.1.4.1.19).
const DEFAULT_LANGUAGE: &str = "eng";

/// A track.
#[derive(Clone, Debug)]
pub(super) struct TrackEntry {
    pub(super) number: u64,
    pub(super) uid: u64,
    pub(super) kind: EntryKind,
    pub(super) codec_id: String,
    pub(super) codec_private: Vec<u8>,
    pub(super) language: String,
    pub(super) name: Option<String>,
    pub(super) enabled: bool,
    pub(super) is_default: bool,
    pub(super) purposes: Purposes,
    /// Nanoseconds of a frame, where all frames last equally long; `None` for implausible values.
    pub(super) default_duration: Option<u64>,
    /// Nanoseconds by which frames are decoded before they are heard.
    pub(super) codec_delay: u64,
    /// Records of block additions: type and extra data, such as `dvcC`.
    pub(super) additions: Vec<(u64, Vec<u8>)>,
    /// Encoding of the frames; why they can't be read, where that is not known.
    pub(super) encoding: Result<BlockEncoding, &'static str>,
    /// Offset of the entry in the object.
    pub(super) offset: u64,
}

/// Kind of a track, with the properties of that kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EntryKind {
    Video(Picture),
    Audio(Sound),
    Text,
    /// Buttons, control and others, by their number.
    Other(u64),
}

/// `Video` (5.1.4.1.28).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Picture {
    pub(super) size: (u16, u16),
    /// Width and height of the shown picture, in pixels or as an aspect ratio.
    pub(super) display: Option<(u32, u32)>,
    pub(super) color: Option<Color>,
    pub(super) light: Light,
}

/// `Audio` (5.1.4.1.29).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sound {
    pub(super) sample_rate: f64,
    pub(super) channels: u16,
    pub(super) bits: Option<u16>,
}

impl TrackEntry {
    /// Reads an entry.
    ///
    /// # Errors
    /// A number of it is no number, or the track has none.
    pub(super) fn read(entry: &Element<'_>) -> Result<Self, MediaError> {
        let mut track = Self {
            number: 0,
            uid: 0,
            kind: EntryKind::Other(0),
            codec_id: String::new(),
            codec_private: Vec::new(),
            language: String::new(),
            name: None,
            enabled: true,
            is_default: true,
            purposes: Purposes::default(),
            default_duration: None,
            codec_delay: 0,
            additions: Vec::new(),
            encoding: Ok(BlockEncoding::Plain),
            offset: entry.offset,
        };
        let (mut kind, mut picture, mut sound) = (0, Picture::default(), Sound::default());
        let (mut old_language, mut purposes) = (None, Vec::new());
        for element in entry.children() {
            let purpose = match element.id {
                ids::FLAG_FORCED => Some(Purpose::Forced),
                ids::FLAG_HEARING_IMPAIRED => Some(Purpose::Captions),
                ids::FLAG_VISUAL_IMPAIRED | ids::FLAG_TEXT_DESCRIPTIONS => Some(Purpose::Description),
                ids::FLAG_COMMENTARY => Some(Purpose::Commentary),
                _ => None,
            };
            if let Some(purpose) = purpose {
                purposes.extend((element.unsigned()? == 1).then_some(purpose));
                continue;
            }
            match element.id {
                ids::TRACK_NUMBER => track.number = element.unsigned()?,
                ids::TRACK_UID => track.uid = element.unsigned()?,
                ids::TRACK_TYPE => kind = element.unsigned()?,
                ids::CODEC_ID => track.codec_id = element.text(),
                ids::CODEC_PRIVATE => track.codec_private = kept(element.body),
                ids::LANGUAGE => old_language = Some(element.text()),
                ids::LANGUAGE_BCP47 => track.language = element.text(),
                ids::NAME => track.name = Some(element.text()).filter(|name| !name.trim().is_empty()),
                ids::FLAG_ENABLED => track.enabled = element.unsigned()? != 0,
                ids::FLAG_DEFAULT => track.is_default = element.unsigned()? != 0,
                ids::DEFAULT_DURATION => {
                    track.default_duration = Some(element.unsigned()?).filter(|time| FRAMES.contains(time));
                }
                ids::CODEC_DELAY => {
                    track.codec_delay = Some(element.unsigned()?).filter(|delay| *delay <= MOST_DELAY).unwrap_or(0);
                }
                ids::VIDEO => picture = Picture::read(&element)?,
                ids::AUDIO => sound = Sound::read(&element)?,
                ids::BLOCK_ADDITION_MAPPING if track.additions.len() < MOST_ADDITIONS => {
                    track.additions.extend(addition(&element));
                }
                ids::CONTENT_ENCODINGS => track.encoding = encoding(&element)?,
                _ => {}
            }
        }
        if track.number == 0 {
            return Err(MediaError::invalid("Tracks/TrackEntry", entry.offset, "no TrackNumber", "1 or more"));
        }
        if track.language.is_empty() {
            track.language = old_language.unwrap_or_else(|| DEFAULT_LANGUAGE.to_owned());
        }
        track.purposes = purposes.into_iter().collect();
        track.kind = match kind {
            VIDEO => EntryKind::Video(picture),
            AUDIO => EntryKind::Audio(sound),
            SUBTITLE => EntryKind::Text,
            other => EntryKind::Other(other),
        };
        Ok(track)
    }
}

impl TrackEntry {
    /// Common beginning of all frames of pictures or sound that the file does not store; empty where it stores whole frames.
    pub(super) fn prefix(&self) -> &[u8] {
        match &self.encoding {
            Ok(BlockEncoding::Stripped(prefix)) if !matches!(self.kind, EntryKind::Text) => prefix,
            _ => &[],
        }
    }

    /// Colours of pictures that the entry states.
    pub(super) fn color(&self) -> Option<Color> {
        if let EntryKind::Video(picture) = &self.kind { picture.color } else { None }
    }
}

impl Picture {
    fn read(video: &Element<'_>) -> Result<Self, MediaError> {
        let (mut size, mut display, mut unit) = ([0_u64; 2], [0_u64; 2], 0);
        let (mut color, mut light) = (None, Light::default());
        for element in video.children() {
            match element.id {
                ids::PIXEL_WIDTH => size[0] = element.unsigned()?,
                ids::PIXEL_HEIGHT => size[1] = element.unsigned()?,
                ids::DISPLAY_WIDTH => display[0] = element.unsigned()?,
                ids::DISPLAY_HEIGHT => display[1] = element.unsigned()?,
                ids::DISPLAY_UNIT => unit = element.unsigned()?,
                ids::COLOUR => (color, light) = (read_color(&element)?, Light::read(&element)),
                _ => {}
            }
        }
        let [width, height] = size.map(|length| u16::try_from(length).unwrap_or(0));
        let display = match display.map(|length| u32::try_from(length).unwrap_or(0)) {
            // Pixels, centimetres, inches, an aspect ratio; 4 is unknown (5.1.4.1.28.14).
            [width, height] if width > 0 && height > 0 && unit < 4 => Some((width, height)),
            _ => None,
        };
        Ok(Self { size: (width, height), display, color, light })
    }

    /// Pixel aspect ratio: horizontal and vertical spacing.
    pub(super) fn pixel_aspect(&self) -> Option<(u32, u32)> {
        let ((width, height), (across, down)) = (self.size, self.display?);
        let horizontal = u64::from(across) * u64::from(height);
        let vertical = u64::from(down) * u64::from(width);
        // A display size in whole pixels is only near the true ratio.
        let is_square = horizontal.abs_diff(vertical) * 2 <= u64::from(across.max(down));
        if is_square || horizontal == 0 || vertical == 0 {
            return None;
        }
        let divisor = greatest_divisor(horizontal, vertical);
        let ratio = (u32::try_from(horizontal / divisor).ok()?, u32::try_from(vertical / divisor).ok()?);
        Some(ratio)
    }
}

impl Default for Sound {
    fn default() -> Self {
        Self { sample_rate: 8000.0, channels: 1, bits: None }
    }
}

impl Sound {
    fn read(audio: &Element<'_>) -> Result<Self, MediaError> {
        let mut sound = Self::default();
        for element in audio.children() {
            match element.id {
                ids::SAMPLING_FREQUENCY => sound.sample_rate = element.float()?,
                ids::CHANNELS => sound.channels = u16::try_from(element.unsigned()?).unwrap_or(0).max(1),
                ids::BIT_DEPTH => sound.bits = u16::try_from(element.unsigned()?).ok(),
                _ => {}
            }
        }
        Ok(sound)
    }

    /// Samples per second; `None` where they are no whole number of 1 or more.
    pub(super) fn rate(&self) -> Option<u32> {
        let rounded = self.sample_rate.round();
        (rounded >= 1.0 && rounded <= f64::from(u32::MAX)).then_some(rounded as u32)
    }
}

/// Reads `Colour`; `None` where it states nothing.
fn read_color(colour: &Element<'_>) -> Result<Option<Color>, MediaError> {
    let mut color = Color::UNSPECIFIED;
    for element in colour.children() {
        let code = |element: &Element<'_>| element.unsigned().map(|code| u8::try_from(code).unwrap_or(2));
        match element.id {
            ids::PRIMARIES => color.primaries = code(&element)?,
            ids::TRANSFER_CHARACTERISTICS => color.transfer = code(&element)?,
            ids::MATRIX_COEFFICIENTS => color.matrix = code(&element)?,
            // 1 is broadcast range, 2 full range.
            ids::RANGE => color.full_range = element.unsigned()? == 2,
            _ => {}
        }
    }
    Ok(Some(color).filter(|color| *color != Color::UNSPECIFIED))
}

fn addition(mapping: &Element<'_>) -> Option<(u64, Vec<u8>)> {
    let kind = mapping.child(ids::BLOCK_ADD_ID_TYPE)?.unsigned().ok()?;
    Some((kind, kept(mapping.child(ids::BLOCK_ADD_ID_EXTRA_DATA)?.body)))
}

/// Returns a copy of a decoder's configuration. Of one that is too long a byte too many is kept, so that it is refused.
fn kept(body: &[u8]) -> Vec<u8> {
    body.get(..=MOST_CONFIGURATION).unwrap_or(body).to_vec()
}

/// Reads how frames are stored. Several encodings of one track are not supported.
fn encoding(encodings: &Element<'_>) -> Result<Result<BlockEncoding, &'static str>, MediaError> {
    let mut found = BlockEncoding::Plain;
    for encoding in encodings.children().filter(|element| element.id == ids::CONTENT_ENCODING) {
        if encoding.child(ids::CONTENT_ENCRYPTION).is_some() {
            return Ok(Err("encrypted frames"));
        }
        // All frames, if no scope is stated; private data and next encodings don't matter.
        let scope = encoding.child(ids::CONTENT_ENCODING_SCOPE).map_or(Ok(1), |scope| scope.unsigned())?;
        let Some(compression) = encoding.child(ids::CONTENT_COMPRESSION).filter(|_| scope & 1 != 0) else { continue };
        let algorithm = compression.child(ids::CONTENT_COMP_ALGO).map_or(Ok(ZLIB), |algorithm| algorithm.unsigned())?;
        let prefix = compression.child(ids::CONTENT_COMP_SETTINGS).map_or(&[][..], |settings| settings.body);
        found = match (algorithm, prefix) {
            (HEADER_STRIPPING, []) => continue,
            _ if found != BlockEncoding::Plain => return Ok(Err("frames that are encoded twice")),
            (HEADER_STRIPPING, _) => BlockEncoding::Stripped(kept(prefix)),
            (ZLIB, _) => BlockEncoding::Zlib,
            _ => return Ok(Err("compressed frames")),
        };
    }
    Ok(Ok(found))
}

fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the entry of a track with one field of eight bytes.
    fn entry(id: &[u8], value: u64) -> TrackEntry {
        let body = [&[0xd7, 0x81, 1][..], id, &[0x88], &value.to_be_bytes()].concat();
        TrackEntry::read(&Element { id: ids::TRACK_ENTRY, body: &body, offset: 0 }).unwrap()
    }

    #[test]
    fn absurd_durations_of_frames_are_unknown() {
        let duration = |value: u64| entry(&[0x23, 0xe3, 0x83], value).default_duration;
        for known in [1_000, 833_333, 40_000_000, 3_600_000_000_000] {
            assert_eq!(duration(known), Some(known));
        }
        for absurd in [0, 1, 999, 3_600_000_000_001, 1 << 62, u64::MAX] {
            assert_eq!(duration(absurd), None, "{absurd}");
        }
    }

    #[test]
    fn absurd_delays_are_none() {
        let delay = |value: u64| entry(&[0x56, 0xaa], value).codec_delay;
        assert_eq!([delay(6_500_000), delay(1 << 62), delay(u64::MAX)], [6_500_000, 0, 0]);
    }
}
