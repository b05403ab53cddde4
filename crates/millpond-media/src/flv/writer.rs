//! FLV tags that are written: codecs and frames in, heads of bodies out (Video File Format 10, E.4; Enhanced RTMP 2).
//!
//! H.264, AAC, MP3 and G.711 have the form that all players know. Other codecs, and tracks after the first one of a kind, have a FourCC.

use super::{AUDIO, VIDEO, audio, packets, video};
use crate::{
    boxes::{FourCc, Node},
    codec::{Codec, OpusConfig, PcmCoding, PcmConfig},
};
use bytes::Bytes;

/// Bytes of a sample entry of pictures, and of one of sound, before its boxes (ISO/IEC 14496-12 12.1.3, 12.2.3).
const VISUAL: usize = 78;
const SOUND: usize = 28;
/// Version and flags of a full box.
const FULL: usize = 4;
/// Frame type of pictures that are no key frames.
const INTER: u8 = 2;
/// `SoundFormat` of G.711.
const A_LAW: u8 = 7;
const MU_LAW: u8 = 8;
/// The only sampling rate of G.711.
const TELEPHONE: u32 = 8000;
/// First bytes of an identification header of Opus (RFC 7845 5.1), and of a FLAC stream (RFC 9639 6).
const OPUS_HEAD: &[u8] = b"OpusHead";
const FLAC: &[u8] = b"fLaC";
/// Flag of the last metadata block of a FLAC stream.
const LAST_BLOCK: u8 = 0x80;

/// The body of a tag, in two parts, with its type and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlvMessage {
    /// Type of the tag: 8 is sound, 9 pictures, 18 metadata.
    pub kind: u8,
    /// Milliseconds. They wrap.
    pub timestamp: u32,
    /// The first bytes of the body.
    pub head: Vec<u8>,
    /// The other bytes of the body: the frame.
    pub data: Bytes,
}

/// How the tags of a track tell their codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// H.264 without a FourCC.
    Avc,
    /// AAC without a FourCC.
    Aac,
    /// Sound whose first byte tells all: MP3 and G.711.
    Sound(u8),
    /// Pictures with a FourCC. Those of some codecs have composition times.
    Pictures { code: FourCc, is_timed: bool },
    /// Sound with a FourCC. Tracks after the first one have a number.
    Numbered { code: FourCc, track: u8 },
}

/// Writes the tags of one track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlvWriter {
    form: Form,
    /// Configuration of the decoder; `None` for codecs that need none.
    configuration: Option<Bytes>,
}

impl FlvWriter {
    /// Creates the writer of a track with this codec and sample entry. `number` counts the tracks of sound from 0. `None` where tags have
    /// no form of the codec, and for pictures after the first track.
    #[must_use]
    pub fn of(codec: &Codec, entry: &[u8], number: u8) -> Option<Self> {
        let coded = |code: &FourCc, is_timed: bool| (number == 0).then_some(Form::Pictures { code: *code, is_timed });
        let numbered = |code: &FourCc| Form::Numbered { code: *code, track: number };
        let first = |form: Form, code: &FourCc| if number == 0 { form } else { numbered(code) };
        let (form, configuration) = match codec {
            Codec::Avc(_) => ((number == 0).then_some(Form::Avc)?, Some(child(entry, VISUAL, b"avcC")?)),
            Codec::Hevc(_) => (coded(b"hvc1", true)?, Some(child(entry, VISUAL, b"hvcC")?)),
            Codec::Av1(_) => (coded(b"av01", false)?, Some(child(entry, VISUAL, b"av1C")?)),
            Codec::Vp9(config) => {
                let code = if config.fourcc == *b"vp08" { b"vp08" } else { b"vp09" };
                (coded(code, false)?, Some(child(entry, VISUAL, b"vpcC")?.get(FULL..)?.to_vec()))
            }
            Codec::Aac(config) => (first(Form::Aac, b"mp4a"), Some(config.audio_specific_config.clone())),
            Codec::MpegAudio(config) if config.layer == 3 => {
                (first(Form::Sound(mp3(config.sample_rate, config.channels)), b".mp3"), None)
            }
            Codec::Pcm(config) if number == 0 => (Form::Sound(g711(config)?), None),
            Codec::Opus(config) => (numbered(b"Opus"), Some(opus_head(config))),
            Codec::Flac(_) => (numbered(b"fLaC"), Some(flac_head(&child(entry, SOUND, b"dfLa")?)?)),
            Codec::Ac3(_) => (numbered(b"ac-3"), None),
            Codec::Eac3(_) => (numbered(b"ec-3"), None),
            _ => return None,
        };
        Some(Self { form, configuration: configuration.map(Bytes::from) })
    }

    /// Returns the codec as metadata state it (`videocodecid`, `audiocodecid`): a number of the first specification, or a FourCC.
    #[must_use]
    pub fn codec_id(&self) -> u32 {
        match self.form {
            Form::Avc => video::AVC.into(),
            Form::Aac => audio::AAC.into(),
            Form::Sound(first) => u32::from(first >> 4),
            Form::Pictures { code, .. } | Form::Numbered { code, .. } => u32::from_be_bytes(code),
        }
    }

    /// Returns the message that configures the decoder; `None` for codecs that need none.
    #[must_use]
    pub fn configuration(&self, timestamp: u32) -> Option<FlvMessage> {
        let data = self.configuration.clone()?;
        let head = match self.form {
            Form::Avc => vec![video::KEY << 4 | video::AVC, packets::CONFIGURATION, 0, 0, 0],
            Form::Aac => vec![audio::AAC << 4 | 0xf, packets::CONFIGURATION],
            Form::Sound(_) => return None,
            Form::Pictures { code, .. } => pictures(code, video::KEY, packets::CONFIGURATION),
            Form::Numbered { code, track } => sound(code, track, packets::CONFIGURATION),
        };
        Some(FlvMessage { kind: self.kind(), timestamp, head, data })
    }

    /// Returns the message of a frame. `composition` are the milliseconds from decoding to presentation.
    #[must_use]
    pub fn frame(&self, timestamp: u32, composition: i32, is_key: bool, data: Bytes) -> FlvMessage {
        let [_, time @ ..] = composition.clamp(-(1 << 23), (1 << 23) - 1).to_be_bytes();
        let frame = if is_key { video::KEY } else { INTER };
        let head = match self.form {
            Form::Avc => [&[frame << 4 | video::AVC, packets::FRAME][..], &time].concat(),
            Form::Aac => vec![audio::AAC << 4 | 0xf, packets::FRAME],
            Form::Sound(first) => vec![first],
            Form::Pictures { code, is_timed: true } if composition == 0 => pictures(code, frame, video::FRAME_AT_ONCE),
            Form::Pictures { code, is_timed: true } => [&pictures(code, frame, packets::FRAME)[..], &time].concat(),
            Form::Pictures { code, is_timed: false } => pictures(code, frame, packets::FRAME),
            Form::Numbered { code, track } => sound(code, track, packets::FRAME),
        };
        FlvMessage { kind: self.kind(), timestamp, head, data }
    }

    fn kind(&self) -> u8 {
        if matches!(self.form, Form::Avc | Form::Pictures { .. }) { VIDEO } else { AUDIO }
    }
}

/// The head of a body of pictures with a FourCC.
fn pictures(code: FourCc, frame: u8, packet: u8) -> Vec<u8> {
    [&[video::EXTENDED | frame << 4 | packet][..], &code].concat()
}

/// The head of a body of sound with a FourCC. Several tracks are in messages of their own.
fn sound(code: FourCc, track: u8, packet: u8) -> Vec<u8> {
    if track == 0 {
        return [&[audio::EXTENDED << 4 | packet][..], &code].concat();
    }
    [&[audio::EXTENDED << 4 | audio::MULTITRACK, packet][..], &code, &[track]].concat()
}

/// The first byte of MP3: format, rate, size and channels. Rates that have no code count as the greatest one: frames state theirs.
fn mp3(sample_rate: u32, channels: u16) -> u8 {
    let (format, rate) = match sample_rate {
        8_000 => (audio::MP3_8K, 0),
        11_025 => (audio::MP3, 1),
        22_050 => (audio::MP3, 2),
        _ => (audio::MP3, 3),
    };
    format << 4 | rate << 2 | 2 | u8::from(channels > 1)
}

/// The first byte of G.711; `None` for other PCM and other rates.
fn g711(config: &PcmConfig) -> Option<u8> {
    let format = match config.coding {
        PcmCoding::ALaw => A_LAW,
        PcmCoding::MuLaw => MU_LAW,
        _ => return None,
    };
    (config.sample_rate == TELEPHONE && config.channels <= 2).then_some(format << 4 | 2 | u8::from(config.channels > 1))
}

/// The identification header of Opus, whose numbers begin with the least significant byte.
fn opus_head(config: &OpusConfig) -> Vec<u8> {
    let channels = u8::try_from(config.channels).unwrap_or(u8::MAX);
    let mut head = OPUS_HEAD.to_vec();
    head.extend_from_slice(&[1, channels]);
    head.extend_from_slice(&config.pre_skip.to_le_bytes());
    head.extend_from_slice(&config.input_sample_rate.to_le_bytes());
    head.extend_from_slice(&config.output_gain.to_le_bytes());
    head.push(config.mapping_family);
    head.extend_from_slice(&config.mapping);
    head
}

/// The signature and the first metadata block of a FLAC stream, from the body of `dfLa`.
fn flac_head(dfla: &[u8]) -> Option<Vec<u8>> {
    let block = dfla.get(FULL..)?;
    let length = u32::from_be_bytes([0, *block.get(1)?, *block.get(2)?, *block.get(3)?]) as usize;
    let mut head = FLAC.to_vec();
    head.push(block.first()? | LAST_BLOCK);
    head.extend_from_slice(block.get(1..4 + length)?);
    Some(head)
}

/// Returns the body of a box in a sample entry whose fields have `fields` bytes.
fn child(entry: &[u8], fields: usize, kind: &FourCc) -> Option<Vec<u8>> {
    let entry = Node::new(entry, 0, "sample entry")?;
    let found = entry.children_after(fields).find(|child| child.kind == *kind)?;
    Some(found.body.to_vec())
}
