//! The mapping of a stream's chunks to samples, by the format in the stream's header.

use super::{header::Stream, named, pace::Pace, parameter_sets};
use crate::{
    boxes::FourCc,
    codec::{
        AAC_SAMPLES, ByteOrder, Medium, PcmCoding,
        make::{self, Made, Pictures},
        nal::NalSyntax,
    },
    error::MediaError,
    ts::{StreamCoding, TsConfiguration},
    units::Timescale,
};

/// Bytes of `BITMAPINFOHEADER` and of `WAVEFORMATEX`. The codec's own data follow.
pub(super) const BITMAP: usize = 40;
const WAVE: usize = 18;
/// `WAVE_FORMAT_EXTENSIBLE`, whose GUID begins with the codec's tag, and the GUID's offset in the format.
const EXTENSIBLE: u16 = 0xfffe;
const GUID: usize = 24;
/// First bytes of a FLAC stream, and the size of its STREAMINFO.
const FLAC: &[u8] = b"fLaC";
const STREAM_INFO: usize = 34;

/// The mapping of chunks to samples.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// All chunks together are an elementary stream in which frames are found. The configuration is from the header, if stated there.
    Stream(StreamCoding, Option<TsConfiguration>),
    /// A chunk is a picture of NAL units with lengths, or a part of a byte stream. The first chunk shows which.
    Units(NalSyntax, Box<Made>),
    /// A chunk is a picture, and key frames describe themselves.
    Picture(SelfDescribed),
    /// A chunk is a frame of sound with this number of samples.
    Sound(Box<Made>, u32),
    /// Chunks have whole frames of PCM.
    Pcm(Box<Made>),
}

/// Pictures whose key frames describe themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SelfDescribed {
    Vp8,
    Vp9,
    Av1,
}

impl SelfDescribed {
    /// Makes the sample entry from the beginning of a key frame.
    ///
    /// # Errors
    /// The frame is of another codec, or no key frame.
    pub(super) fn made(self, frame: &[u8]) -> Result<Made, MediaError> {
        match self {
            Self::Vp8 => make::vp8(frame),
            Self::Vp9 => make::vp9(frame),
            Self::Av1 => make::av1(frame),
        }
    }

    /// Name of the codec.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Vp8 => "VP8",
            Self::Vp9 => "VP9",
            Self::Av1 => "AV1",
        }
    }
}

impl Form {
    /// Reads the format of a stream.
    ///
    /// # Errors
    /// No output carries the codec, or the header is damaged.
    pub(super) fn of(stream: &Stream) -> Result<Self, MediaError> {
        match &stream.kind {
            b"vids" => Pace::of(stream).and_then(|_| pictures(stream)),
            b"auds" => sound(stream),
            b"txts" => Err(unsupported(stream, "a stream of text".to_owned())),
            b"iavs" => Err(unsupported(stream, "DV with sound in one stream".to_owned())),
            other => Err(unsupported(stream, format!("a stream of type {}", other.escape_ascii()))),
        }
    }

    /// Whether the index and the first frames describe all samples.
    pub(super) fn is_told_by_index(&self) -> bool {
        matches!(self, Self::Picture(_) | Self::Sound(..) | Self::Pcm(_))
    }
}

fn unsupported(stream: &Stream, found: String) -> MediaError {
    MediaError::unsupported("strf", stream.format.0, found)
}

fn pictures(stream: &Stream) -> Result<Form, MediaError> {
    let compression = stream.long(16).unwrap_or(0).to_le_bytes();
    let is_code = compression.iter().all(|byte| (b' '..=b'~').contains(byte));
    let code: FourCc = if is_code { compression } else { stream.handler };
    let extra = stream.format.1.get(BITMAP..).unwrap_or_default();
    match &code.map(|byte| byte.to_ascii_uppercase()) {
        b"H264" | b"X264" | b"AVC1" | b"DAVC" | b"VSSH" => units(stream, NalSyntax::Avc, extra),
        b"HEVC" | b"H265" | b"X265" | b"HVC1" | b"HEV1" => units(stream, NalSyntax::Hevc, extra),
        b"AV01" => Ok(Form::Picture(SelfDescribed::Av1)),
        b"VP90" | b"VP09" => Ok(Form::Picture(SelfDescribed::Vp9)),
        b"VP80" | b"VP08" => Ok(Form::Picture(SelfDescribed::Vp8)),
        _ => {
            let (name, found) = named::pictures(if is_code { code } else { compression });
            Err(unsupported(stream, found).of_codec(Medium::Video, name))
        }
    }
}

/// Reads the configuration of H.264 or HEVC: a configuration record, parameter sets in a byte stream, or nothing.
fn units(stream: &Stream, syntax: NalSyntax, extra: &[u8]) -> Result<Form, MediaError> {
    let (coding, kind, of): (_, &FourCc, &FourCc) = match syntax {
        NalSyntax::Avc => (StreamCoding::Avc, b"avc1", b"avcC"),
        NalSyntax::Hevc => (StreamCoding::Hevc, b"hvc1", b"hvcC"),
    };
    if extra.first() != Some(&1) {
        return Ok(Form::Stream(coding, parameter_sets::of_byte_stream(syntax, extra)));
    }
    let length = |at| u16::try_from(stream.long(at).unwrap_or(0).cast_signed().unsigned_abs()).unwrap_or(0);
    let pictures = Pictures { size: (length(4), length(8)), pixel_aspect: None, color: None, boxes: &[] };
    // Padding to an even size may follow the record. If the record is damaged, the frames may have the parameter sets.
    let made = make::configured(kind, (of, extra), &pictures);
    Ok(made.map_or(Form::Stream(coding, None), |made| Form::Units(syntax, Box::new(made))))
}

fn sound(stream: &Stream) -> Result<Form, MediaError> {
    let damaged = || {
        let found = format!("{} bytes", stream.format.1.len());
        MediaError::invalid("strf", stream.format.0, found, "a format of sound of at least 14 bytes")
    };
    let tag = match stream.short(0).ok_or_else(damaged)? {
        EXTENSIBLE => stream.short(GUID).ok_or_else(damaged)?,
        tag => tag,
    };
    let (channels, rate) = (stream.short(2).ok_or_else(damaged)?, stream.long(4).ok_or_else(damaged)?);
    let block = stream.short(12).ok_or_else(damaged)?;
    // PCM values may use fewer bits than their bytes have, so the block size counts.
    let bits = block.checked_div(channels).map_or(0, |bytes| bytes.saturating_mul(8));
    let extra = stream.format.1.get(WAVE..).unwrap_or_default();
    let extra = extra.get(..stream.short(16).unwrap_or(0).into()).unwrap_or(extra);
    let little = ByteOrder::Little;
    let coding = match (tag, bits) {
        (0x50 | 0x55, _) => return Ok(Form::Stream(StreamCoding::MpegAudio, None)),
        (0x2000, _) => return Ok(Form::Stream(StreamCoding::Ac3, None)),
        (0x1600, _) => return Ok(Form::Stream(StreamCoding::Adts, None)),
        (0xff | 0x706d | 0x4143, _) if extra.len() < 2 => return Ok(Form::Stream(StreamCoding::Adts, None)),
        (0xff | 0x706d | 0x4143, _) => return frames(stream, make::aac(extra)?, Some(AAC_SAMPLES)),
        (0xf1ac, _) => return frames(stream, flac(stream, extra)?, None),
        (0x01, 8) => PcmCoding::Unsigned8,
        (0x01, 16) => PcmCoding::Signed16(little),
        (0x01, 24) => PcmCoding::Signed24(little),
        (0x01, 32) => PcmCoding::Signed32(little),
        (0x03, 32) => PcmCoding::Float32(little),
        (0x03, 64) => PcmCoding::Float64(little),
        (0x06, 8) => PcmCoding::ALaw,
        (0x07, 8) => PcmCoding::MuLaw,
        _ => {
            let (name, found) = named::sound(tag, bits);
            return Err(unsupported(stream, found).of_codec(Medium::Audio, name));
        }
    };
    let no_rate = || MediaError::invalid("strf", stream.format.0, "a rate of 0", "a sampling rate");
    let rate = Timescale::new(rate).ok_or_else(no_rate)?;
    Ok(Form::Pcm(Box::new(make::pcm(coding, channels, rate)?)))
}

/// Returns the form of sound whose chunks are single frames. `usual` is the number of samples if the codec states none.
fn frames(stream: &Stream, made: Made, usual: Option<u32>) -> Result<Form, MediaError> {
    let length = made.codec.samples_per_frame().or(usual);
    let length = length.ok_or_else(|| unsupported(stream, "FLAC with frames of several lengths".to_owned()))?;
    Ok(Form::Sound(Box::new(made), length))
}

/// Reads STREAMINFO (RFC 9639 8.2), which may follow the first bytes of a FLAC stream.
fn flac(stream: &Stream, extra: &[u8]) -> Result<Made, MediaError> {
    let info = match extra.strip_prefix(FLAC) {
        Some(rest) => rest.get(4..).unwrap_or_default(),
        None => extra,
    };
    let found = || format!("{} bytes of configuration", info.len());
    let info = info.first_chunk::<STREAM_INFO>();
    make::flac(info.ok_or_else(|| MediaError::invalid("strf", stream.format.0, found(), "STREAMINFO of FLAC"))?)
}
