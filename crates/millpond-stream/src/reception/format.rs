//! Formats of streams that are received by RTP.

use crate::Format;
use bytes::Bytes;
use millpond_media::{
    MediaError, NalSyntax, ParameterSets, Timescale, Track,
    codec::{
        ByteOrder, PcmCoding,
        make::{self, Made},
    },
};
use millpond_package::MediaKind;
use millpond_rtp::{
    payload::{Depacketizer, PayloadError, Unit, latm_configuration},
    sdp_reader::MediaDescription,
};
use std::time::Duration;

/// Language of a track whose language is not known (ISO 639-2).
const UNDETERMINED: &str = "und";

/// Length in bytes of NAL unit lengths, as [`Depacketizer::of`] writes them.
const LENGTH_SIZE: u8 = 4;

/// Makes a sample entry from an access unit.
type Maker = fn(&[u8]) -> Result<Made, MediaError>;

/// The format of a stream, from its description and from its units.
///
/// Pass each unit to [`unit`](Self::unit) before it becomes a frame.
#[derive(Debug)]
pub struct StreamFormat {
    outline: Outline,
    shown: Shown,
    format: Option<Format>,
}

/// The reason why a described stream can't be received.
#[derive(Debug, thiserror::Error)]
#[error("stream \"m={media} RTP {payload_type}\" ({encoding}/{clock_rate}): {why}")]
pub struct FormatError {
    /// `video`, `audio`, ...
    pub media: String,
    /// Payload type.
    pub payload_type: u8,
    /// Name of the payload format.
    pub encoding: String,
    /// Timestamp ticks per second.
    pub clock_rate: u32,
    /// What is wrong.
    pub why: Box<Unreceivable>,
}

/// The reason for which a stream can't be received.
#[derive(Debug, thiserror::Error)]
pub enum Unreceivable {
    /// It is neither video nor audio.
    #[error("expected m=video or m=audio")]
    Media,
    /// The payload format, or its mode, is not supported.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The configuration of its codec is invalid or not supported.
    #[error(transparent)]
    Configuration(#[from] MediaError),
}

/// A format without its codec.
#[derive(Debug)]
pub(super) struct Outline {
    pub(super) name: String,
    pub(super) kind: MediaKind,
    pub(super) id: u32,
    pub(super) is_default: bool,
    pub(super) language: Option<String>,
    pub(super) bandwidth: u64,
    pub(super) timescale: Timescale,
}

/// How units show the parameters that the description omits.
#[derive(Debug)]
enum Shown {
    /// They don't: the description states all.
    Nothing,
    /// They have parameter sets.
    Sets(ParameterSets),
    /// Each key frame shows all.
    KeyFrames(Maker),
    /// The first frame shows all.
    First(Maker),
    /// Units state the `AudioSpecificConfig`; the last one.
    Stated(Bytes),
}

impl StreamFormat {
    /// Reads the description of a stream. `id` is its `track_ID`, from 1. `number` counts from 1 among the streams of its
    /// media, and is part of its name: `v1`, `a1`, ... The first one is the default of its kind.
    ///
    /// # Errors
    /// The stream can't be received. A configuration that units repeat may be missing or unreadable.
    pub fn new(stream: &MediaDescription, id: u32, number: u16) -> Result<Self, FormatError> {
        Self::read(stream, id, number).map_err(|why| FormatError {
            media: stream.media.clone(),
            payload_type: stream.payload_type,
            encoding: stream.encoding.clone(),
            clock_rate: stream.clock_rate,
            why: Box::new(why),
        })
    }

    fn read(stream: &MediaDescription, id: u32, number: u16) -> Result<Self, Unreceivable> {
        let (kind, letter) = match stream.media.as_str() {
            "video" => (MediaKind::Video, 'v'),
            "audio" => (MediaKind::Audio, 'a'),
            _ => return Err(Unreceivable::Media),
        };
        Depacketizer::of(stream)?;
        let (shown, made) = described(stream)?;
        let outline = Outline {
            name: format!("{letter}{number}"),
            kind,
            id,
            is_default: number == 1,
            language: stream.language.clone(),
            bandwidth: stream.bandwidth.unwrap_or(0),
            timescale: timescale(stream),
        };
        let format = made.map(|made| outline.format(made));
        Ok(Self { outline, shown, format })
    }

    /// The format; `None` while parameter sets or a first frame are missing.
    #[must_use]
    pub fn format(&self) -> Option<&Format> {
        self.format.as_ref()
    }

    /// Takes a unit, and removes from it the parts that the sample entry has. A unit without bytes afterwards is no frame. `now`
    /// counts from any epoch. Returns whether the format became known or changed: it is then valid from this unit on.
    pub fn unit(&mut self, unit: &mut Unit, now: Duration) -> bool {
        let made = match &mut self.shown {
            Shown::Nothing => None,
            Shown::Sets(sets) => {
                let sifted = sets.frame(&unit.bytes, unit.is_key, now);
                unit.bytes = sifted.bytes;
                sifted.made
            }
            Shown::First(_) if self.format.is_some() => None,
            Shown::KeyFrames(_) if !unit.is_key => None,
            Shown::Stated(known) => {
                let new = unit.parameter_sets.first().filter(|config| *config != known).cloned();
                new.and_then(|config| {
                    *known = config;
                    make::aac(known).ok()
                })
            }
            Shown::First(make) | Shown::KeyFrames(make) => make(&unit.bytes).ok(),
        };
        let format = made.map(|made| self.outline.format(made));
        let is_new = format.is_some() && format != self.format;
        if is_new {
            self.format = format;
        }
        is_new
    }
}

impl Outline {
    /// Returns the format with this codec.
    pub(super) fn format(&self, made: Made) -> Format {
        let language = self.language.as_deref().unwrap_or(UNDETERMINED);
        Format {
            name: self.name.clone(),
            kind: self.kind,
            language: self.language.clone(),
            is_default: self.is_default,
            is_alternative: false,
            bandwidth: self.bandwidth,
            is_encrypted: false,
            track: Track::live(self.id, made, self.timescale, language),
        }
    }
}

/// Returns how units show the configuration, and the sample entry that the description states.
fn described(stream: &MediaDescription) -> Result<(Shown, Option<Made>), MediaError> {
    let stated = |made| Ok((Shown::Nothing, Some(made)));
    let channels = stream.channels.unwrap_or(1);
    let pcm = |coding| make::pcm(coding, channels, timescale(stream)).and_then(stated);
    match stream.encoding.as_str() {
        "h264" => Ok(sets(NalSyntax::Avc, stream)),
        "h265" => Ok(sets(NalSyntax::Hevc, stream)),
        "mpeg4-generic" => match stream.configuration() {
            Some(config) => make::aac(&config).and_then(stated),
            None => make::aac_lc(channels, stream.clock_rate).and_then(stated),
        },
        // A stereo decoder plays mono too (RFC 7587 7.1).
        "opus" => {
            let is_mono = stream.parameters.get("sprop-stereo").is_some_and(|value| value == "0");
            make::opus(if is_mono { 1 } else { 2 }).and_then(stated)
        }
        "av1" => Ok((Shown::KeyFrames(make::av1), None)),
        "vp8" => Ok((Shown::KeyFrames(make::vp8), None)),
        "vp9" => Ok((Shown::KeyFrames(make::vp9), None)),
        "mp4a-latm" => match latm_configuration(stream) {
            Ok(Some(mux)) => make::aac(&mux.audio_specific_config).and_then(stated),
            _ => Ok((Shown::Stated(Bytes::new()), None)),
        },
        "mpa" => Ok((Shown::First(make::mpeg_audio), None)),
        "ac3" => Ok((Shown::First(make::ac3), None)),
        "eac3" => Ok((Shown::First(make::eac3), None)),
        "l8" => pcm(PcmCoding::Unsigned8),
        "l16" => pcm(PcmCoding::Signed16(ByteOrder::Big)),
        "l24" => pcm(PcmCoding::Signed24(ByteOrder::Big)),
        "pcmu" => pcm(PcmCoding::MuLaw),
        "pcma" => pcm(PcmCoding::ALaw),
        other => Err(MediaError::unsupported("a=rtpmap", 0, other)),
    }
}

/// Reads the parameter sets of a description. Unreadable ones are ignored: key frames have them too.
fn sets(syntax: NalSyntax, stream: &MediaDescription) -> (Shown, Option<Made>) {
    let mut sets = ParameterSets::new(syntax, LENGTH_SIZE);
    let made = sets.describe(&stream.parameter_sets()).ok();
    (Shown::Sets(sets), made)
}

/// The clock of a stream. A description has no clock rate of 0.
fn timescale(stream: &MediaDescription) -> Timescale {
    Timescale::new(stream.clock_rate).unwrap_or(Timescale::MPEG)
}

#[cfg(test)]
mod tests;
