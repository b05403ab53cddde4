//! Start codes of NAL units (H.264 and H.265, B.1).

/// A start code.
pub(super) const START_CODE: [u8; 3] = [0, 0, 1];

/// Returns the place of the first start code.
pub(super) fn find(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(window) = bytes.get(at..at + START_CODE.len()) {
        match window[2] {
            1 if window[..2] == [0, 0] => return Some(at),
            // The code may begin with this byte, or the one before.
            0 => at += 1,
            _ => at += START_CODE.len(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_is_found() {
        for (bytes, expected) in [
            (&[][..], None),
            (&[0, 0], None),
            (&[0, 0, 1], Some(0)),
            (&[0, 0, 0, 1], Some(1)),
            (&[1, 0, 0, 1], Some(1)),
            (&[1, 1, 0, 0, 1], Some(2)),
            (&[0, 0, 2, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1], Some(7)),
            (&[0, 0, 3, 1], None),
        ] {
            assert_eq!(find(bytes), expected, "{bytes:?}");
        }
    }
}
