//! Pictures that no other picture refers to.

use millpond_media::NalSyntax;

/// Whether a frame of NAL units, with lengths of `length_size` bytes, consists of slices of a picture that no other one
/// refers to: `nal_ref_idc` is 0 (H.264 7.4.1), or its type is that of a sub-layer non-reference picture (H.265 table 7-1).
pub(super) fn is_disposable(syntax: NalSyntax, length_size: u8, frame: &[u8]) -> bool {
    let mut slices = units(length_size, frame).filter(|unit| syntax.is_slice(unit)).peekable();
    slices.peek().is_some()
        && slices.all(|slice| match syntax {
            NalSyntax::Avc => slice[0] & 0x60 == 0,
            NalSyntax::Hevc => {
                let kind = slice[0] >> 1 & 0x3f;
                kind <= 14 && kind % 2 == 0
            }
        })
}

/// Returns the NAL units of a frame, up to the first one that is cut off.
fn units(length_size: u8, frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = frame;
    std::iter::from_fn(move || {
        let (length, after) =
            rest.split_at_checked(usize::from(length_size)).filter(|(length, _)| !length.is_empty())?;
        let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let (unit, after) = after.split_at_checked(length)?;
        rest = after;
        Some(unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_without_references_to_them_are_found() {
        let frame =
            |units: &[&[u8]]| units.iter().flat_map(|unit| [&[0, unit.len() as u8][..], unit].concat()).collect();
        let avc = |units: &[&[u8]]| {
            let frame: Vec<u8> = frame(units);
            is_disposable(NalSyntax::Avc, 2, &frame)
        };
        assert!(avc(&[&[0x01, 1], &[0x01, 2]]) && avc(&[&[0x06, 5], &[0x01, 1]]));
        assert!(!avc(&[&[0x41, 1]]) && !avc(&[&[0x01, 1], &[0x21, 1]]) && !avc(&[&[0x06, 5]]) && !avc(&[]));
        assert!(!is_disposable(NalSyntax::Avc, 2, &[0, 9, 1]), "cut off");
        let hevc = |kind: u8| is_disposable(NalSyntax::Hevc, 1, &[2, kind << 1, 1]);
        assert!(hevc(0) && hevc(8) && !hevc(1) && !hevc(19) && !hevc(16));
    }
}
