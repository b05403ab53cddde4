//! Formats whose parameter sets are in band: pictures of several streams can follow each other in one track.

use crate::Format;
use bytes::Bytes;
use millpond_media::{
    codec::{AvcConfig, Codec, HevcConfig},
    sets_with_lengths,
};

/// Position of the type in a sample entry (ISO/IEC 14496-12 8.5.2.2).
const TYPE: std::ops::Range<usize> = 4..8;

/// Returns a format of pictures whose sample entry allows parameter sets in frames (ISO/IEC 14496-15 5.4.2, 8.4.1), and the sets in
/// the form of frames. `None` for codecs that need more than that.
pub(super) fn in_band(format: &Format) -> Option<(Format, Bytes)> {
    let (fourcc, codec, sets) = match &format.track.codec {
        Codec::Avc(config) => {
            let sets = sets_with_lengths(&format.track.codec)?.into();
            (Some(*b"avc3"), Codec::Avc(AvcConfig { fourcc: *b"avc3", ..config.clone() }), sets)
        }
        Codec::Hevc(config) => {
            let sets = sets_with_lengths(&format.track.codec)?.into();
            (Some(*b"hev1"), Codec::Hevc(HevcConfig { fourcc: *b"hev1", ..config.clone() }), sets)
        }
        // Key frames tell their size.
        Codec::Vp9(_) => (None, format.track.codec.clone(), Bytes::new()),
        _ => return None,
    };
    let mut format = format.clone();
    if let Some((place, fourcc)) = format.track.sample_entry.get_mut(TYPE).zip(fourcc) {
        place.copy_from_slice(&fourcc);
    }
    format.track.codec = codec;
    Some((format, sets))
}

/// Whether pictures of one format can replace pictures of another format in a track.
pub(super) fn follows(format: &Format, other: &Format) -> bool {
    let lengths = |codec: &Codec| match codec {
        Codec::Avc(config) => config.nal_length_size,
        Codec::Hevc(config) => config.nal_length_size,
        _ => 0,
    };
    let profile = |codec: &Codec| match codec {
        Codec::Vp9(config) => Some((config.fourcc, config.profile, config.bit_depth)),
        _ => None,
    };
    let (a, b) = (&format.track.codec, &other.track.codec);
    std::mem::discriminant(a) == std::mem::discriminant(b)
        && lengths(a) == lengths(b)
        && profile(a) == profile(b)
        && !format.is_encrypted
        && !other.is_encrypted
}
