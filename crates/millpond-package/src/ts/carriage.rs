//! How a codec is carried in a transport stream.

use super::{Unit, nal, packet, pes};
use millpond_media::{AacConfig, Codec};

/// What is done to a stream's units.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// Lengths of NAL units become start codes; a delimiter comes first, parameter sets before sync samples.
    Nal {
        /// Which standard.
        kind: nal::Kind,
        /// Bytes of a NAL unit's length in the sample.
        length_size: u8,
        /// Parameter sets with start codes.
        parameter_sets: Vec<u8>,
    },
    /// Each frame gets an ADTS header.
    Adts(AacConfig),
    /// Frames go as they are.
    Whole,
}

impl Form {
    /// The codec's form, or `None` where a transport stream doesn't carry it.
    pub(super) fn of(codec: &Codec) -> Option<Self> {
        Some(match codec {
            _ if !codec.fits_ts() => return None,
            Codec::Avc(c) => Self::Nal {
                kind: nal::Kind::Avc,
                length_size: c.nal_length_size,
                parameter_sets: with_start_codes(c.parameter_sets()),
            },
            Codec::Hevc(c) => Self::Nal {
                kind: nal::Kind::Hevc,
                length_size: c.nal_length_size,
                parameter_sets: with_start_codes(c.parameter_sets()),
            },
            Codec::Aac(c) => Self::Adts(c.clone()),
            Codec::Mp3(_) | Codec::Ac3(_) | Codec::Eac3(_) => Self::Whole,
            _ => return None,
        })
    }

    /// Whether packet counts follow from sample sizes.
    pub(super) fn exact(&self) -> bool {
        !matches!(self, Self::Nal { length_size, .. } if *length_size != 4)
    }
}

fn with_start_codes<'a>(sets: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    sets.flat_map(|set| nal::START_CODE.into_iter().chain(set.iter().copied())).collect()
}

/// `stream_type` of the codec: ISO/IEC 13818-1 Table 2-34, for Dolby's codecs ATSC A/53 part 3 and A/52 annex G.
/// `None` where a transport stream doesn't carry it.
pub(super) fn stream_type(codec: &Codec) -> Option<u8> {
    match codec {
        Codec::Avc(_) => Some(0x1b),
        Codec::Hevc(_) => Some(0x24),
        Codec::Aac(_) => Some(0x0f),
        // ISO/IEC 11172-3 has 32 kHz and up, the lower rates are of ISO/IEC 13818-3.
        Codec::Mp3(c) => Some(if c.sample_rate < 32_000 { 0x04 } else { 0x03 }),
        Codec::Ac3(_) => Some(0x81),
        Codec::Eac3(_) => Some(0x87),
        _ => None,
    }
}

/// Format identifier for the registration descriptor.
pub(super) fn registration(codec: &Codec) -> Option<[u8; 4]> {
    match codec {
        Codec::Hevc(_) => Some(*b"HEVC"),
        Codec::Ac3(_) => Some(*b"AC-3"),
        Codec::Eac3(_) => Some(*b"EAC3"),
        _ => None,
    }
}

/// `stream_id` of PES packets (Table 2-22) for the stream in the given place among those of its kind.
pub(super) fn stream_id(codec: &Codec, place: u8) -> u8 {
    match codec {
        Codec::Avc(_) | Codec::Hevc(_) => 0xe0 | place & 0x0f,
        Codec::Ac3(_) | Codec::Eac3(_) => 0xbd,
        _ => 0xc0 | place & 0x1f,
    }
}

/// Whether the codec is video, with each unit in a PES packet of its own.
pub(super) fn is_video(codec: &Codec) -> bool {
    matches!(codec, Codec::Avc(_) | Codec::Hevc(_))
}

/// Payload that a unit of `size` bytes makes, a delimiter and the parameter sets included; an estimate
/// where NAL unit lengths have other than 4 bytes.
pub(super) fn payload_size(codec: &Codec, size: u64, sync: bool) -> u64 {
    let added = match codec {
        Codec::Avc(c) => nal::Kind::Avc.delimiter().len() + sets_size(sync, c.parameter_sets()),
        Codec::Hevc(c) => nal::Kind::Hevc.delimiter().len() + sets_size(sync, c.parameter_sets()),
        Codec::Aac(_) => AacConfig::ADTS_HEADER,
        _ => 0,
    };
    size.saturating_add(added as u64)
}

/// Bytes of the parameter sets with start codes, in front of sync samples.
fn sets_size<'a>(sync: bool, sets: impl Iterator<Item = &'a [u8]>) -> usize {
    if sync { sets.map(|set| nal::START_CODE.len() + set.len()).sum() } else { 0 }
}

/// Payload of the PES packet that the units share.
pub(super) fn group_payload(codec: &Codec, units: &[Unit]) -> u64 {
    units.iter().fold(0, |sum: u64, u| sum.saturating_add(payload_size(codec, u.range.len(), u.sync)))
}

/// Transport packets of the PES packet that the units share.
pub(super) fn group_packets(codec: &Codec, units: &[Unit]) -> u32 {
    packet::count(group_payload(codec, units).saturating_add(pes::header_len(codec)))
}
