//! Parameter sets in the header of a stream.

use crate::{
    codec::nal::{self, NalSyntax, set_kind::SetKind},
    ts::{TsConfiguration, byte_stream_units, find_start_code},
};

/// Most NAL units of a header: H.264 has 32 sequence and 256 picture parameter sets.
const MOST_UNITS: usize = 512;

/// Reads the parameter sets in a byte stream (Annex B of H.264 and H.265). `None` if a kind of them is missing, or too many NAL units
/// are there: the frames may have the sets.
pub(super) fn of_byte_stream(syntax: NalSyntax, bytes: &[u8]) -> Option<TsConfiguration> {
    let units: Vec<_> = byte_stream_units(bytes).take(MOST_UNITS + 1).collect();
    if units.len() > MOST_UNITS { None } else { configuration(syntax, &units) }
}

/// Returns the configuration with the parameter sets among `units`; `None` if a kind of sets is missing.
pub(super) fn configuration(syntax: NalSyntax, units: &[impl AsRef<[u8]>]) -> Option<TsConfiguration> {
    let of = |kind| -> Vec<Vec<u8>> {
        let units = units.iter().map(AsRef::as_ref);
        units.filter(|unit| SetKind::of(syntax, unit) == Some(kind)).map(<[u8]>::to_vec).collect()
    };
    let (vps, sps, pps) = (of(SetKind::Video), of(SetKind::Sequence), of(SetKind::Picture));
    if sps.is_empty() || pps.is_empty() {
        return None;
    }
    match syntax {
        NalSyntax::Avc => Some(TsConfiguration::Avc { sps, pps }),
        NalSyntax::Hevc => (!vps.is_empty()).then_some(TsConfiguration::Hevc { vps, sps, pps }),
    }
}

/// Whether a chunk is a part of a byte stream. Otherwise each NAL unit follows a length of `length_size` bytes.
///
/// The bytes `00 00 01` are a start code, or the beginning of a length of 256 to 511 bytes. So lengths that hold for the whole chunk
/// are lengths.
pub(super) fn is_byte_stream((syntax, length_size): (NalSyntax, u8), chunk: &[u8]) -> bool {
    let begins = chunk.starts_with(&[0, 0, 1]) || chunk.starts_with(&[0, 0, 0, 1]);
    begins && !has_lengths((syntax, length_size), chunk)
}

/// Whether a chunk consists of NAL units that each follow their length.
fn has_lengths((syntax, length_size): (NalSyntax, u8), chunk: &[u8]) -> bool {
    let mut end = 0;
    for unit in nal::units(length_size, chunk) {
        end += usize::from(length_size) + unit.len();
        // `forbidden_zero_bit`, and `nuh_temporal_id_plus1` of H.265, which is not 0. No start code is within a unit.
        let is_unit = match (syntax, unit) {
            (NalSyntax::Avc, [first, ..]) => first & 0x80 == 0,
            (NalSyntax::Hevc, [first, second, ..]) => first & 0x80 == 0 && second & 7 != 0,
            _ => false,
        };
        if !is_unit || find_start_code(unit, 0).is_some() {
            return false;
        }
    }
    end == chunk.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_split_at_start_codes() {
        let bytes = [0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x68, 3, 0, 0, 1, 6, 9];
        let expected = TsConfiguration::Avc { sps: vec![vec![0x67, 1, 2]], pps: vec![vec![0x68, 3]] };
        assert_eq!(of_byte_stream(NalSyntax::Avc, &bytes), Some(expected));
        assert_eq!(of_byte_stream(NalSyntax::Avc, &bytes[..7]), None);
        assert_eq!(of_byte_stream(NalSyntax::Hevc, &bytes), None);
        assert_eq!(of_byte_stream(NalSyntax::Avc, &[]), None);
    }

    #[test]
    fn a_header_of_start_codes_has_no_sets() {
        let sets = [0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x68, 3];
        let many = [&sets[..], &[0, 0, 1, 0x67].repeat(MOST_UNITS)].concat();
        assert!(of_byte_stream(NalSyntax::Avc, &sets).is_some() && of_byte_stream(NalSyntax::Avc, &many).is_none());
    }

    #[test]
    fn the_whole_chunk_shows_whether_its_units_have_lengths() {
        let is_stream = |chunk: &[u8]| is_byte_stream((NalSyntax::Avc, 4), chunk);
        let unit = [&[0x65][..], &[0x88; 360]].concat();
        let lengths = [&[0, 0, 1, 0x69][..], &unit].concat();
        assert!(!is_stream(&lengths));
        assert!(!is_stream(&[&lengths[..], &[0, 0, 0, 2, 0x41, 9]].concat()), "two units");
        assert!(is_stream(&lengths[..300]) && is_stream(&[&lengths[..], &[0; 3]].concat()), "no length of the whole");
        // The first length holds by chance, but start codes follow.
        let mut sets = [&[0, 0, 1, 0x67][..], &[0x42; 0x167]].concat();
        sets[20..24].copy_from_slice(&[0, 0, 1, 0x68]);
        assert!(is_stream(&sets));
        assert!(is_stream(&[0, 0, 0, 1, 0x67, 0x42, 0, 0x1e]) && !is_stream(&[0, 0, 2, 0]) && !is_stream(&[]));
        // The type of a unit of H.265 has a second byte.
        let unit = [&[0x26, 1][..], &[0x88; 359]].concat();
        assert!(!is_byte_stream((NalSyntax::Hevc, 4), &[&[0, 0, 1, 0x69][..], &unit].concat()));
        assert!(is_byte_stream((NalSyntax::Hevc, 4), &[&[0, 0, 1, 0x69, 0x26, 0][..], &unit[2..]].concat()));
    }
}
