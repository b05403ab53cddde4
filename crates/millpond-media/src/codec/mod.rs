//! Parses sample entries to codec configurations for players and packagers.
//!
//! Each codec family has a file. The result is a [`Codec`]: its [`parameter`](Codec::parameter) is for manifests, its
//! configuration for transport streams. Init segments get their sample entry from `millpond-package`.
//!
//! A new codec is a variant of [`Codec`], a file in `audio/` or `video/`, and its sample entry in [`make`]. The table "Where
//! something new goes" of `docs/design/architecture.md` names the files of containers, RTP and packaging.

pub mod audio;
pub mod captions;
mod fields;
pub(crate) mod from_quicktime;
pub(crate) mod importance;
pub mod make;
pub mod nal;
pub(crate) mod orientation;
mod stream_form;
mod text;
mod track_kind;
mod unsupported;
pub(crate) mod video;

#[cfg(test)]
mod tests;

pub use crate::unread::{Medium, UnreadCodec};
pub(crate) use audio::{aac::AAC_SAMPLES, adts::AdtsHeader, asc::SAMPLE_RATES};
pub use audio::{
    aac::AacConfig,
    ac3::{Ac3Config, Eac3Config},
    ac3_frame::Ac3Frame,
    alac::AlacConfig,
    flac::FlacConfig,
    mpeg_audio::{MpegAudioConfig, MpegAudioHeader},
    opus::OpusConfig,
    pcm::{ByteOrder, PcmCoding, PcmConfig},
};
pub use stream_form::StreamForm;
pub use text::{BlockEncoding, MatroskaText, PrivateForm, PrivateText, StppConfig, TextForm, WvttConfig};
pub use track_kind::TrackKind;
pub use video::{
    av1::Av1Config, avc::AvcConfig, color::Color, dolby_vision::DolbyVision, hevc::HevcConfig, sps::PictureSequence,
    vp9::Vp9Config,
};

use crate::{
    boxes::{FourCc, Node, show},
    error::MediaError,
    protection,
};
use audio::{ac3, alac, esds, flac, mpeg_audio, opus, pcm, sound::Sound};
use serde::{Deserialize, Serialize};
use video::{av1, avc, hevc, visual::Visual, vp9};

/// A codec and its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Codec {
    /// H.264.
    Avc(AvcConfig),
    /// H.265.
    Hevc(HevcConfig),
    /// AV1.
    Av1(Av1Config),
    /// VP9 or VP8.
    Vp9(Vp9Config),
    /// AAC, from LC to xHE-AAC.
    Aac(AacConfig),
    /// MPEG audio: MP3, and layers I and II.
    MpegAudio(MpegAudioConfig),
    /// AC-3.
    Ac3(Ac3Config),
    /// E-AC-3.
    Eac3(Eac3Config),
    /// Opus.
    Opus(OpusConfig),
    /// FLAC.
    Flac(FlacConfig),
    /// Apple Lossless.
    Alac(AlacConfig),
    /// Linear PCM or G.711.
    Pcm(PcmConfig),
    /// 3GPP timed text.
    Tx3g,
    /// WebVTT.
    Wvtt(WvttConfig),
    /// TTML.
    Stpp(StppConfig),
    /// Text in blocks of Matroska.
    MatroskaText(MatroskaText),
    /// Teletext or DVB subtitles of a transport stream, as they are.
    PrivateText(PrivateText),
}

impl Codec {
    /// Returns the element of a `codecs` parameter (RFC 6381), such as `avc1.64001f` or `mp4a.40.2`.
    #[must_use]
    pub fn parameter(&self) -> String {
        match self {
            Self::Avc(config) => config.parameter(),
            Self::Hevc(config) => config.parameter(),
            Self::Av1(config) => config.parameter(),
            Self::Vp9(config) => config.parameter(),
            Self::Aac(config) => config.parameter(),
            Self::MpegAudio(config) => config.parameter(),
            Self::Ac3(_) => "ac-3".to_owned(),
            Self::Eac3(_) => "ec-3".to_owned(),
            Self::Opus(_) => "opus".to_owned(),
            Self::Flac(_) => "fLaC".to_owned(),
            Self::Alac(_) => "alac".to_owned(),
            Self::Pcm(config) => config.parameter(),
            Self::Tx3g => "tx3g".to_owned(),
            // It is delivered as WebVTT.
            Self::Wvtt(_) | Self::MatroskaText(_) => "wvtt".to_owned(),
            Self::Stpp(config) => config.parameter(),
            // No manifest lists them.
            Self::PrivateText(config) => config.form.name().to_owned(),
        }
    }

    /// Usual name of the codec.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Avc(_) => "H.264",
            Self::Hevc(_) => "HEVC",
            Self::Av1(_) => "AV1",
            Self::Vp9(config) if config.fourcc == *b"vp08" => "VP8",
            Self::Vp9(_) => "VP9",
            Self::Aac(config) => config.name(),
            Self::MpegAudio(config) => config.name(),
            Self::Ac3(_) => "AC-3",
            Self::Eac3(_) => "E-AC-3",
            Self::Opus(_) => "Opus",
            Self::Flac(_) => "FLAC",
            Self::Alac(_) => "Apple Lossless",
            Self::Pcm(config) => config.name(),
            Self::Tx3g => "3GPP timed text",
            Self::Wvtt(_) => "WebVTT",
            Self::Stpp(_) => "TTML",
            Self::MatroskaText(config) => config.form.name(),
            Self::PrivateText(config) => config.form.name(),
        }
    }

    /// Bytes of heap that the configuration holds, for memory budgets.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Avc(config) => config.heap_bytes(),
            Self::Hevc(config) => config.heap_bytes(),
            Self::Aac(config) => config.audio_specific_config.capacity(),
            Self::Opus(config) => config.mapping.capacity(),
            Self::Wvtt(config) => config.heap_bytes(),
            Self::Stpp(config) => config.heap_bytes(),
            Self::MatroskaText(config) => config.heap_bytes(),
            Self::PrivateText(config) => config.heap_bytes(),
            Self::Av1(_) | Self::Vp9(_) | Self::MpegAudio(_) | Self::Ac3(_) | Self::Eac3(_) => 0,
            Self::Flac(_) | Self::Alac(_) | Self::Pcm(_) | Self::Tx3g => 0,
        }
    }

    /// Whether HLS can carry the codec in an MPEG-2 transport stream (RFC 8216 3.2, HLS Authoring Specification 1 and
    /// 2).
    #[must_use]
    pub fn fits_ts(&self) -> bool {
        match self {
            Self::Avc(_) | Self::Hevc(_) | Self::MpegAudio(_) | Self::Ac3(_) | Self::Eac3(_) => true,
            Self::Aac(config) => config.fits_adts(),
            Self::Av1(_) | Self::Vp9(_) | Self::Opus(_) | Self::Flac(_) | Self::Alac(_) | Self::Pcm(_) => false,
            Self::Tx3g | Self::Wvtt(_) | Self::Stpp(_) | Self::MatroskaText(_) | Self::PrivateText(_) => false,
        }
    }

    /// Whether HLS and DASH can carry the codec in fragmented MP4: all but the PCM codings that ISO/IEC 23003-5 omits, and private data
    /// of transport streams.
    #[must_use]
    pub fn fits_fmp4(&self) -> bool {
        match self {
            Self::Pcm(config) => config.iso_type().is_some(),
            codec => !matches!(codec, Self::PrivateText(_)),
        }
    }

    /// Whether HLS and DASH list sound of the codec beside pictures: all but PCM and MPEG audio of layers I and II. No browser
    /// decodes those, but players choose them and then play nothing.
    #[must_use]
    pub fn fits_beside_video(&self) -> bool {
        match self {
            Self::MpegAudio(config) => config.layer == 3,
            codec => !matches!(codec, Self::Pcm(_)),
        }
    }

    /// Samples per channel of one frame, at the track's sample rate. `None` where frames differ in length, where the
    /// length is unknown, and for codecs other than audio.
    #[must_use]
    pub fn samples_per_frame(&self) -> Option<u32> {
        match self {
            Self::Aac(config) => config.samples_per_frame(),
            Self::MpegAudio(config) => Some(config.samples_per_frame()),
            Self::Ac3(_) | Self::Eac3(_) => Some(ac3::FRAME),
            Self::Flac(config) => (config.min_block == config.max_block).then(|| u32::from(config.max_block)),
            Self::Alac(config) => Some(config.frame_length),
            _ => None,
        }
        .filter(|&samples| samples > 0)
    }

    /// Dolby Vision of the pictures, where the sample entry states it.
    #[must_use]
    pub fn dolby_vision(&self) -> Option<&DolbyVision> {
        match self {
            Self::Hevc(config) => config.dolby_vision.as_ref(),
            Self::Av1(config) => config.dolby_vision.as_ref(),
            _ => None,
        }
    }

    /// Returns what decoders of Dolby Vision show in place of the codec that [`parameter`](Self::parameter) states: the element of a
    /// `codecs` parameter, such as `dvh1.08.07`, and the brand of the pictures, such as `db4h`.
    #[must_use]
    pub fn supplement(&self) -> Option<(String, &'static str)> {
        let vision = self.dolby_vision().filter(|vision| !vision.stands_alone())?;
        let name = if matches!(self, Self::Av1(_)) { "dav1" } else { "dvh1" };
        Some((vision.parameter(name), vision.brand()?))
    }

    /// Returns the type of the sample entry in init segments, if it may differ from the file's type. Pictures that devices
    /// without Dolby Vision can show have `hvc1`; other pictures have `dvh1`.
    pub(crate) fn entry_type(&self) -> Option<FourCc> {
        match self {
            Self::Avc(config) => Some(config.fourcc),
            Self::Hevc(config) => Some(config.entry_type()),
            Self::Av1(config) => Some(config.entry_type()),
            _ => None,
        }
    }

    /// Colours of a video codec, where the sample entry states them.
    #[must_use]
    pub fn color(&self) -> Option<Color> {
        if let Some(color) = self.dolby_vision().and_then(DolbyVision::color) {
            return Some(color);
        }
        match self {
            Self::Avc(config) => config.color,
            Self::Hevc(config) => config.color,
            Self::Av1(config) => config.color,
            Self::Vp9(config) => Some(config.color),
            _ => None,
        }
        .filter(|&color| color != Color::UNSPECIFIED)
    }
}

/// Content of a sample entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SampleEntry {
    /// Codec and its configuration.
    pub(crate) codec: Codec,
    /// Kind of the track. Pictures are upright: the track header states their orientation.
    pub(crate) kind: TrackKind,
}

/// Parses a whole sample entry with its header, at `offset` of the object.
///
/// `handler` is the track's `handler_type`. It must match the kind of the sample entry, so that an auxiliary picture
/// track (such as an alpha plane) is not mistaken for video.
pub(crate) fn parse_sample_entry(
    entry: &[u8],
    handler: FourCc,
    path: &str,
    offset: u64,
) -> Result<SampleEntry, MediaError> {
    let node = Node::new(entry, offset, path).ok_or_else(|| match entry.len() {
        found @ ..8 => MediaError::truncated(path, offset, found as u64, 8),
        found => MediaError::invalid(path, offset, "a size smaller than the header", format!("8 to {found}")),
    })?;
    let node = protection::clear_format(node)?;
    let video = |parse: fn(&Visual<'_, '_>) -> Result<SampleEntry, MediaError>| {
        expect_handler(&node, handler, &[*b"vide"])?;
        parse(&Visual::parse(&node)?).map_err(|error| unsupported::form_of(error, Medium::Video))
    };
    let audio = |parse: fn(&Sound<'_, '_>) -> Result<SampleEntry, MediaError>| {
        expect_handler(&node, handler, &[*b"soun"])?;
        parse(&Sound::parse(&node)?).map_err(|error| unsupported::form_of(error, Medium::Audio))
    };
    let text = |parse: fn(&Node<'_>) -> Result<SampleEntry, MediaError>| {
        expect_handler(&node, handler, &[*b"text", *b"subt", *b"sbtl"])?;
        parse(&node)
    };
    match &node.kind {
        b"avc1" | b"avc3" | b"dva1" | b"dvav" => video(avc::parse),
        b"hvc1" | b"hev1" | b"dvh1" | b"dvhe" => video(hevc::parse),
        b"av01" | b"dav1" => video(av1::parse),
        b"vp09" | b"vp08" => video(vp9::parse),
        b"mp4a" => audio(esds::parse),
        b".mp3" => audio(|sound| Ok(mpeg_audio::entry(sound))),
        b"ac-3" => audio(ac3::parse),
        b"ec-3" => audio(ac3::parse_enhanced),
        b"Opus" => audio(opus::parse),
        b"fLaC" => audio(flac::parse),
        b"alac" => audio(alac::parse),
        b"twos" | b"sowt" | b"in24" | b"in32" | b"fl32" | b"fl64" | b"lpcm" => audio(pcm::parse),
        b"ulaw" | b"alaw" | b"ipcm" | b"fpcm" => audio(pcm::parse),
        // The same types are used for uncompressed pictures.
        b"raw " | b"NONE" if &handler == b"soun" => audio(pcm::parse),
        b"tx3g" => text(text::tx3g),
        b"wvtt" => text(text::wvtt),
        b"stpp" => text(text::stpp),
        b"enct" | b"encs" | b"drms" | b"drmi" => Err(unsupported::encrypted(&node)),
        _ => Err(unsupported::unknown(&node, handler)),
    }
}

fn expect_handler(node: &Node<'_>, handler: FourCc, expected: &[FourCc]) -> Result<(), MediaError> {
    if expected.contains(&handler) {
        return Ok(());
    }
    Err(node.unsupported(format!("'{}' in a track with handler '{}'", show(node.kind), show(handler))))
}

/// Returns the error for a missing configuration box.
fn missing(entry: &Node<'_>, kind: &FourCc) -> MediaError {
    entry.invalid(format!("no {} box", show(*kind)), "one")
}

/// Bytes of heap that a list of byte strings holds.
fn nested_bytes(list: &Vec<Vec<u8>>) -> usize {
    list.capacity() * size_of::<Vec<u8>>() + list.iter().map(Vec::capacity).sum::<usize>()
}
