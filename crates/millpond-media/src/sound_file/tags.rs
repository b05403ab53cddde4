//! Tags before, between and behind frames: ID3 (id3.org, 2.4.0 section 3.1), APE and Lyrics3.

/// Bytes that tell the size of a tag.
pub(super) const HEADER: u64 = 32;
/// Bytes of the header of ID3v2, and of its footer.
const ID3_HEADER: u64 = 10;
/// Flag of a footer.
const FOOTER: u8 = 0x10;
/// Bytes of an ID3v1 tag.
pub(super) const ID3V1: u64 = 128;
/// Flag of a header in the flags of an APE tag.
const APE_HEADER: u32 = 1 << 29;

/// Beginnings of tags behind the last frame.
const TAILS: [&[u8]; 5] = [b"TAG", b"APETAGEX", b"LYRICSBEGIN", b"ID3", b"3DI"];

/// Returns the bytes of the tag at the beginning of `bytes`, header and footer included; `None` where there is none whose header states
/// its size.
pub(super) fn front(bytes: &[u8]) -> Option<u64> {
    id3v2(bytes).or_else(|| ape(bytes))
}

/// Whether `bytes` begin with a tag that stands behind frames.
pub(super) fn begins_tail(bytes: &[u8]) -> bool {
    TAILS.iter().any(|tail| bytes.starts_with(tail))
}

/// Whether an ID3v1 tag is all that is left of a file.
pub(super) fn is_last(bytes: &[u8], left: u64) -> bool {
    left == ID3V1 && bytes.starts_with(b"TAG")
}

fn id3v2(bytes: &[u8]) -> Option<u64> {
    let [b'I', b'D', b'3', major, minor, flags, size @ ..] = bytes else { return None };
    let size = size.first_chunk::<4>().filter(|size| size.iter().all(|byte| byte & 0x80 == 0))?;
    if *major == 0xff || *minor == 0xff {
        return None;
    }
    // Seven bits a byte.
    let body = size.iter().fold(0, |size, byte| size << 7 | u64::from(*byte));
    Some(body + ID3_HEADER + if flags & FOOTER != 0 { ID3_HEADER } else { 0 })
}

/// Reads the header of an APE tag of version 2.
fn ape(bytes: &[u8]) -> Option<u64> {
    let rest = bytes.strip_prefix(b"APETAGEX")?;
    let field = |at: usize| Some(u32::from_le_bytes(*rest.get(at..)?.first_chunk()?));
    let (size, flags) = (field(4)?, field(12)?);
    // The size has the items and the footer. A footer stands behind what it describes.
    (flags & APE_HEADER != 0).then(|| u64::from(size) + HEADER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_state_sizes() {
        assert_eq!(front(b"ID3\x04\0\0\0\0\x02\x01rest"), Some(257 + 10));
        assert_eq!(front(b"ID3\x04\0\x10\0\0\x02\x01rest"), Some(257 + 20));
        assert_eq!(front(b"ID3\x03\0\0\x02\x31\x13\x40"), Some((2 << 21 | 0x31 << 14 | 0x13 << 7 | 0x40) + 10));
        for none in [&b"ID3\x04\0\0\0\0\x82\x01"[..], b"ID3\xff\0\0\0\0\0\0", b"ID3\x04\0\0\0\0\0", b"TAG", b""] {
            assert_eq!(front(none), None);
        }
        let mut ape = [&b"APETAGEX\xd0\x07\0\0"[..], &100_u32.to_le_bytes(), &[1, 0, 0, 0], &[0, 0, 0, 0xa0]].concat();
        assert_eq!(front(&ape), Some(132));
        ape[23] = 0x80;
        assert_eq!(front(&ape), None, "a footer");
        assert!(begins_tail(b"TAGtitle") && !begins_tail(b"TA"));
        assert!(is_last(b"TAG", 128) && !is_last(b"TAG", 129));
    }
}
