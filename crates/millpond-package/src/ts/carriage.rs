//! Carriage of codecs in transport streams.

use super::nal;
use millpond_media::{AacConfig, Codec, NalSyntax, Track, TrackKind};

/// Conversion of a stream's units.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// Lengths of NAL units become start codes, and each unit begins with a delimiter. Parameter sets are inserted
    /// where decoding may begin. There the display orientation precedes the first slice.
    Nal {
        /// Standard of the NAL units.
        kind: nal::NalCodec,
        /// Length in bytes of a NAL unit length in the sample.
        length_size: u8,
        /// Parameter sets with start codes, of each sample description.
        parameter_sets: Vec<Vec<u8>>,
        /// Display orientation message with a start code; empty for upright pictures.
        orientation: Vec<u8>,
    },
    /// Each frame gets an ADTS header.
    Adts(AacConfig),
    /// Frames are not changed.
    Whole,
}

impl Form {
    /// Returns the form for a track's codec; `None` where a transport stream doesn't carry it.
    pub(super) fn of(track: &Track) -> Option<Self> {
        let nal = |kind, length_size| Self::Nal {
            kind,
            length_size,
            parameter_sets: parameter_sets(track),
            orientation: orientation(track),
        };
        Some(match &track.codec {
            Codec::PrivateText(_) => Self::Whole,
            codec if !codec.fits_ts() => return None,
            Codec::Avc(c) => nal(nal::NalCodec::Avc, c.nal_length_size),
            Codec::Hevc(c) => nal(nal::NalCodec::Hevc, c.nal_length_size),
            Codec::Aac(c) => Self::Adts(c.clone()),
            Codec::MpegAudio(_) | Codec::Ac3(_) | Codec::Eac3(_) => Self::Whole,
            _ => return None,
        })
    }

    /// Whether packet counts follow from sample sizes.
    pub(super) fn exact(&self) -> bool {
        !matches!(self, Self::Nal { length_size, .. } if *length_size != 4)
    }
}

/// Returns the parameter sets of each sample description of a track, with start codes.
pub(super) fn parameter_sets(track: &Track) -> Vec<Vec<u8>> {
    let sets = |codec: &Codec| match codec {
        Codec::Avc(c) => with_start_codes(c.parameter_sets()),
        Codec::Hevc(c) => with_start_codes(c.parameter_sets()),
        _ => Vec::new(),
    };
    match &track.descriptions {
        Some(descriptions) => descriptions.entries().iter().map(|entry| sets(&entry.codec)).collect(),
        None => vec![sets(&track.codec)],
    }
}

fn with_start_codes<'a>(sets: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    sets.flat_map(|set| nal::START_CODE.into_iter().chain(set.iter().copied())).collect()
}

/// Returns the message that tells decoders to turn the track's pictures, with a start code; empty for upright ones.
pub(super) fn orientation(track: &Track) -> Vec<u8> {
    let TrackKind::Video { orientation, .. } = track.kind else { return Vec::new() };
    let unit = NalSyntax::of(&track.codec).and_then(|(syntax, _)| syntax.orientation(orientation));
    unit.map_or_else(Vec::new, |unit| with_start_codes(std::iter::once(&unit[..])))
}

/// Returns the `stream_type` of the codec: ISO/IEC 13818-1 Table 2-34, and for Dolby's codecs ATSC A/53 part 3 and A/52
/// annex G. `None` where a transport stream doesn't carry it.
pub(super) fn stream_type(codec: &Codec) -> Option<u8> {
    match codec {
        Codec::Avc(_) => Some(0x1b),
        Codec::Hevc(_) => Some(0x24),
        Codec::Aac(_) => Some(0x0f),
        // ISO/IEC 11172-3 has rates from 32 kHz up; the lower rates belong to ISO/IEC 13818-3.
        Codec::MpegAudio(c) => Some(if c.sample_rate < 32_000 { 0x04 } else { 0x03 }),
        Codec::Ac3(_) => Some(0x81),
        Codec::Eac3(_) => Some(0x87),
        Codec::PrivateText(_) => Some(0x06),
        _ => None,
    }
}

/// Returns the descriptors of subtitles, as their source states them; none for other codecs.
pub(super) fn stated_descriptors(codec: &Codec) -> &[u8] {
    match codec {
        Codec::PrivateText(config) => &config.descriptors,
        _ => &[],
    }
}

/// Returns the format identifier for the registration descriptor.
pub(super) fn registration(codec: &Codec) -> Option<[u8; 4]> {
    match codec {
        Codec::Hevc(_) => Some(*b"HEVC"),
        Codec::Ac3(_) => Some(*b"AC-3"),
        Codec::Eac3(_) => Some(*b"EAC3"),
        _ => None,
    }
}

/// Returns the `stream_id` of PES packets (Table 2-22) for stream number `place` of its kind.
pub(super) fn stream_id(codec: &Codec, place: u8) -> u8 {
    match codec {
        Codec::Avc(_) | Codec::Hevc(_) => 0xe0 | place & 0x0f,
        Codec::Ac3(_) | Codec::Eac3(_) | Codec::PrivateText(_) => 0xbd,
        _ => 0xc0 | place & 0x1f,
    }
}

/// Whether the codec is video.
pub(super) fn is_video(codec: &Codec) -> bool {
    matches!(codec, Codec::Avc(_) | Codec::Hevc(_))
}

/// Whether each unit has a PES packet of its own.
pub(super) fn stands_alone(codec: &Codec) -> bool {
    is_video(codec) || matches!(codec, Codec::PrivateText(_))
}
