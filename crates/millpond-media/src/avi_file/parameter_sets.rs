//! Parameter sets in the header of a stream.

use crate::{
    codec::nal::{NalSyntax, set_kind::SetKind},
    ts::TsConfiguration,
};

/// Reads the parameter sets in a byte stream (Annex B of H.264 and H.265); `None` if a kind of them is missing.
pub(super) fn of_byte_stream(syntax: NalSyntax, bytes: &[u8]) -> Option<TsConfiguration> {
    let mut units = Vec::new();
    let mut rest = after_start_code(bytes);
    while let Some(unit) = rest {
        rest = after_start_code(unit);
        let length = rest.map_or(unit.len(), |rest| unit.len() - rest.len() - 3);
        let end = unit.get(..length)?.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        units.push(unit.get(..end)?);
    }
    configuration(syntax, &units)
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

/// Whether bytes begin with a start code. A NAL unit of 256 to 511 bytes after a length of 4 bytes looks the same.
pub(super) fn is_byte_stream(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0, 0, 1]) || bytes.starts_with(&[0, 0, 0, 1])
}

fn after_start_code(bytes: &[u8]) -> Option<&[u8]> {
    let at = bytes.windows(3).position(|window| window == [0, 0, 1])?;
    bytes.get(at + 3..)
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
}
