//! Codecs by their identifiers (Matroska Codec Specifications) to sample entries.

use super::track_entry::{EntryKind, Picture, Sound, TrackEntry};
use crate::{
    boxes::FourCc,
    codec::{
        BlockEncoding, ByteOrder, Codec, MatroskaText, Medium, PcmCoding, TextForm, TrackKind,
        make::{self, Made, Pictures},
    },
    error::MediaError,
    units::Timescale,
};

/// Identifiers of codecs that no output carries, with their names. A longer identifier begins with one of them.
const NAMED: [(&str, &str); 36] = [
    ("V_MS/VFW/FOURCC", "Video for Windows"),
    ("V_MPEG1", "MPEG-1 video"),
    ("V_MPEG2", "MPEG-2 video"),
    ("V_MPEG4/ISO/", "MPEG-4 Part 2 video"),
    ("V_MPEG4/MS/V3", "Microsoft MPEG-4 video"),
    ("V_MPEGI/ISO/VVC", "VVC"),
    ("V_AVS", "AVS video"),
    ("V_CAVS", "AVS video"),
    ("V_THEORA", "Theora"),
    ("V_PRORES", "ProRes"),
    ("V_FFV1", "FFV1"),
    ("V_MJPEG", "Motion JPEG"),
    ("V_QUICKTIME", "QuickTime video"),
    ("V_REAL/", "RealVideo"),
    ("V_UNCOMPRESSED", "uncompressed video"),
    ("V_DIRAC", "Dirac"),
    ("A_VORBIS", "Vorbis"),
    ("A_DTS", "DTS"),
    ("A_TRUEHD", "Dolby TrueHD"),
    ("A_MLP", "MLP"),
    ("A_WAVPACK4", "WavPack"),
    ("A_TTA1", "TTA"),
    ("A_REAL/", "RealAudio"),
    ("A_QUICKTIME", "QuickTime audio"),
    ("A_MS/ACM", "Audio Compression Manager"),
    ("A_ATRAC/", "ATRAC"),
    ("A_MPC", "Musepack"),
    ("S_TEXT/USF", "Universal Subtitle Format"),
    ("D_WEBVTT/METADATA", "metadata in WebVTT"),
    ("S_VOBSUB", "VobSub pictures"),
    ("S_HDMV/PGS", "Blu-ray subtitle pictures"),
    ("S_HDMV/TEXTST", "Blu-ray text subtitles"),
    ("S_DVBSUB", "DVB subtitle pictures"),
    ("S_ARIBSUB", "ARIB captions"),
    ("S_KATE", "Kate"),
    ("S_IMAGE/BMP", "subtitle pictures"),
];
/// Longest common beginning of frames that is restored. Muxers leave out a few bytes.
const MOST_PREFIX: usize = 256;
/// Tags of `WAVEFORMATEX`.
const WAVE_PCM: u16 = 1;
const WAVE_FLOAT: u16 = 3;
const WAVE_ALAW: u16 = 6;
const WAVE_MULAW: u16 = 7;
const WAVE_MP3: u16 = 0x55;
/// Types of block additions whose extra data are boxes of the sample entry (Dolby Vision in Matroska).
const DOLBY_VISION: [FourCc; 3] = [*b"dvcC", *b"dvvC", *b"dvwC"];

/// A way to the sample entry of a track.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Way {
    Made(Made),
    /// The first frame tells it.
    FirstFrame(FirstFrame),
}

/// A codec whose frames describe themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstFrame {
    Vp8,
    Vp9,
    Av1,
    Ac3,
    Eac3,
    MpegAudio,
}

/// Returns the way to a track's sample entry.
///
/// # Errors
/// No output carries the codec, its frames are encoded once more, or its configuration is damaged.
pub(super) fn way(entry: &TrackEntry) -> Result<Way, MediaError> {
    let unsupported = |what: String| MediaError::unsupported("Tracks/TrackEntry", entry.offset, what);
    let is_text = matches!(entry.kind, EntryKind::Text);
    match &entry.encoding {
        Err(why) => return Err(unsupported((*why).to_owned())),
        Ok(BlockEncoding::Zlib) if !is_text => return Err(unsupported("compressed frames".to_owned())),
        Ok(_) if entry.prefix().len() > MOST_PREFIX => {
            let what = format!("frames without a common beginning of more than {MOST_PREFIX} bytes (header stripping)");
            return Err(unsupported(what));
        }
        Ok(_) => {}
    }
    let (medium, way) = match &entry.kind {
        EntryKind::Video(picture) => (Medium::Video, video(entry, picture)),
        EntryKind::Audio(sound) => (Medium::Audio, audio(entry, sound)),
        EntryKind::Text => (Medium::Text, text(entry)),
        EntryKind::Other(kind) => return Err(unsupported(format!("a track of type {kind}"))),
    };
    way.unwrap_or_else(|| {
        let id = &entry.codec_id;
        let name = NAMED.iter().find(|(prefix, _)| id.starts_with(prefix)).map(|(_, name)| *name);
        let id = id.escape_debug();
        let error = unsupported(name.map_or_else(|| format!("codec {id}"), |name| format!("{name} ({id})")));
        Err(error.of_codec(medium, name.map_or_else(|| id.to_string(), str::to_owned)))
    })
}

impl FirstFrame {
    /// Makes the sample entry from the beginning of a frame.
    ///
    /// # Errors
    /// The frame is of another codec, or no key frame.
    pub(super) fn made(self, frame: &[u8], entry: &TrackEntry) -> Result<Made, MediaError> {
        let made = match self {
            Self::Vp8 => make::vp8(frame),
            Self::Vp9 => make::vp9_stated(frame, entry.color()),
            Self::Av1 => make::av1(frame),
            Self::Ac3 => make::ac3(frame),
            Self::Eac3 => make::eac3(frame),
            Self::MpegAudio => make::mpeg_audio(frame),
        }?;
        Ok(match &entry.kind {
            EntryKind::Video(picture) => {
                make::shown(made, picture.pixel_aspect(), picture.color, picture.light.boxes())?
            }
            _ => made,
        })
    }
}

fn video(entry: &TrackEntry, picture: &Picture) -> Option<Result<Way, MediaError>> {
    let boxes: Vec<(FourCc, Vec<u8>)> = entry
        .additions
        .iter()
        .filter_map(|(kind, data)| Some((u32::try_from(*kind).ok()?.to_be_bytes(), data.clone())))
        .filter(|(kind, _)| DOLBY_VISION.contains(kind))
        .chain(picture.light.boxes())
        .collect();
    let pictures =
        Pictures { size: picture.size, pixel_aspect: picture.pixel_aspect(), color: picture.color, boxes: &boxes };
    let record = &entry.codec_private[..];
    let configured = |kind: &FourCc, of: &FourCc| Some(make::configured(kind, (of, record), &pictures).map(Way::Made));
    match entry.codec_id.as_str() {
        "V_MPEG4/ISO/AVC" => configured(b"avc1", b"avcC"),
        "V_MPEGH/ISO/HEVC" => configured(b"hvc1", b"hvcC"),
        "V_AV1" if record.is_empty() => Some(Ok(Way::FirstFrame(FirstFrame::Av1))),
        "V_AV1" => configured(b"av01", b"av1C"),
        "V_VP8" => Some(Ok(Way::FirstFrame(FirstFrame::Vp8))),
        "V_VP9" => Some(Ok(Way::FirstFrame(FirstFrame::Vp9))),
        _ => None,
    }
}

fn text(entry: &TrackEntry) -> Option<Result<Way, MediaError>> {
    let form = match entry.codec_id.as_str() {
        "S_TEXT/UTF8" | "S_TEXT/ASCII" => TextForm::SubRip,
        "S_TEXT/ASS" | "S_TEXT/SSA" | "S_ASS" | "S_SSA" => TextForm::Ssa,
        "S_TEXT/WEBVTT" => TextForm::WebVtt,
        "D_WEBVTT/SUBTITLES" | "D_WEBVTT/CAPTIONS" | "D_WEBVTT/DESCRIPTIONS" => TextForm::WebmVtt,
        _ => return None,
    };
    let header = match form {
        TextForm::Ssa => String::from_utf8_lossy(&entry.codec_private).into_owned(),
        _ => String::new(),
    };
    let encoding = entry.encoding.clone().unwrap_or_default();
    let codec = Codec::MatroskaText(MatroskaText { form, track: entry.number, header, encoding });
    Some(Ok(Way::Made(Made { codec, kind: TrackKind::Text, sample_entry: Vec::new() })))
}

fn audio(entry: &TrackEntry, sound: &Sound) -> Option<Result<Way, MediaError>> {
    let record = &entry.codec_private[..];
    let made = |made: Result<Made, MediaError>| Some(made.map(Way::Made));
    match entry.codec_id.as_str() {
        "A_OPUS" | "A_OPUS/EXPERIMENTAL" => made(make::opus_head(record)),
        "A_FLAC" => made(make::flac_head(record)),
        "A_ALAC" => made(make::alac_cookie(record, sound.channels, sound.rate()?)),
        "A_MPEG/L1" | "A_MPEG/L2" | "A_MPEG/L3" => Some(Ok(Way::FirstFrame(FirstFrame::MpegAudio))),
        "A_EAC3" => Some(Ok(Way::FirstFrame(FirstFrame::Eac3))),
        id if id == "A_AC3" || id.starts_with("A_AC3/") => Some(Ok(Way::FirstFrame(FirstFrame::Ac3))),
        "A_AAC" if !record.is_empty() => made(make::aac(record)),
        id if id == "A_AAC" || id.starts_with("A_AAC/") => made(make::aac_lc(sound.channels, core_rate(id, sound)?)),
        "A_PCM/INT/LIT" => pcm(sound, integer(sound.bits?, ByteOrder::Little)?),
        "A_PCM/INT/BIG" => pcm(sound, integer(sound.bits?, ByteOrder::Big)?),
        "A_PCM/FLOAT/IEEE" => pcm(sound, float(sound.bits?)?),
        "A_MS/ACM" => wave(record, sound),
        _ => None,
    }
}

/// Sampling rate of the core coder; with SBR half of that which the track states as its output.
fn core_rate(id: &str, sound: &Sound) -> Option<u32> {
    let rate = sound.rate()?;
    Some(if id.ends_with("/SBR") && rate > 24_000 { rate / 2 } else { rate })
}

/// Reads `WAVEFORMATEX`.
fn wave(record: &[u8], sound: &Sound) -> Option<Result<Way, MediaError>> {
    let field = |at: usize| Some(u16::from_le_bytes(*record.get(at..)?.first_chunk()?));
    let bits = field(14);
    match field(0)? {
        WAVE_PCM => pcm(sound, integer(bits?, ByteOrder::Little)?),
        WAVE_FLOAT => pcm(sound, float(bits?)?),
        WAVE_ALAW => pcm(sound, PcmCoding::ALaw),
        WAVE_MULAW => pcm(sound, PcmCoding::MuLaw),
        WAVE_MP3 => Some(Ok(Way::FirstFrame(FirstFrame::MpegAudio))),
        _ => None,
    }
}

fn pcm(sound: &Sound, coding: PcmCoding) -> Option<Result<Way, MediaError>> {
    let rate = sound.rate().and_then(Timescale::new)?;
    Some(make::pcm(coding, sound.channels, rate).map(Way::Made))
}

fn integer(bits: u16, order: ByteOrder) -> Option<PcmCoding> {
    match bits {
        8 => Some(PcmCoding::Unsigned8),
        16 => Some(PcmCoding::Signed16(order)),
        24 => Some(PcmCoding::Signed24(order)),
        32 => Some(PcmCoding::Signed32(order)),
        _ => None,
    }
}

fn float(bits: u16) -> Option<PcmCoding> {
    match bits {
        32 => Some(PcmCoding::Float32(ByteOrder::Little)),
        64 => Some(PcmCoding::Float64(ByteOrder::Little)),
        _ => None,
    }
}
