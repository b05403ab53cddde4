//! The byte stream format of H.264 and H.265 (Annex B of both standards).

use super::access_unit::Role;
use crate::codec::nal::NalSyntax;

/// Bytes of a start code without the zeros that may precede it.
pub(super) const START_CODE: usize = 3;

/// Returns the offset of the first start code at `from` or after it.
pub(crate) fn find_start_code(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match bytes.get(at..at + START_CODE)? {
            [0, 0, 1] => return Some(at),
            [_, _, last] if *last > 0 => at += START_CODE,
            _ => at += 1,
        }
    }
}

/// Returns a NAL unit without `trailing_zero_8bits` (B.1). It may be empty then.
pub(super) fn trimmed(unit: &[u8]) -> &[u8] {
    let length = unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    unit.get(..length).unwrap_or_default()
}

/// Appends a NAL unit after its length in 4 bytes.
pub(super) fn put(unit: &[u8], data: &mut Vec<u8>) {
    // Units are limited to far less than 32 bits.
    data.extend_from_slice(&(unit.len() as u32).to_be_bytes());
    data.extend_from_slice(unit);
}

/// Returns the NAL units of a byte stream, from the first start code on.
pub(crate) fn byte_stream_units(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut code = find_start_code(bytes, 0);
    std::iter::from_fn(move || {
        let begin = code? + START_CODE;
        code = find_start_code(bytes, begin);
        Some(trimmed(bytes.get(begin..code.unwrap_or(bytes.len())).unwrap_or_default()))
    })
}

/// Returns the NAL units of a picture, each after its length, without those that MP4 samples don't hold. `bytes` begin with a start
/// code.
pub(super) fn picture(syntax: NalSyntax, bytes: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(bytes.len() + START_CODE);
    for unit in byte_stream_units(bytes) {
        if !unit.is_empty() && Role::of(syntax, unit).is_in_samples() {
            put(unit, &mut data);
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_codes_are_found() {
        assert_eq!(find_start_code(&[0, 0, 0, 1, 5], 0), Some(1));
        assert_eq!(find_start_code(&[0, 1, 0, 0, 1], 0), Some(2));
        assert_eq!(find_start_code(&[0, 0, 1, 0, 0, 1], 1), Some(3));
        assert_eq!(find_start_code(&[7, 0, 0], 0), None);
        assert_eq!(find_start_code(&[0, 0, 2, 0, 0], 0), None);
        assert_eq!(find_start_code(&[], 9), None);
    }

    #[test]
    fn pictures_lose_delimiters_sets_and_zeros() {
        let bytes = [0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x65, 0x88, 0, 0, 0, 1, 0, 0, 1, 0x65, 0x48, 2, 0];
        assert_eq!(picture(NalSyntax::Avc, &bytes), [0, 0, 0, 2, 0x65, 0x88, 0, 0, 0, 3, 0x65, 0x48, 2]);
    }
}
