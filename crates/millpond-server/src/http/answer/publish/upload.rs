//! Bodies of requests, and the format of the media in them.

/// Length of a packet of MPEG-TS (ISO/IEC 13818-1 2.4.3.2), and its first byte.
const PACKET: usize = 188;
const SYNC: u8 = 0x47;
/// Types of the boxes that fragmented MP4 begins with.
const FIRST: [&[u8; 4]; 8] = [b"ftyp", b"styp", b"moov", b"moof", b"sidx", b"emsg", b"prft", b"free"];
/// Bytes of an unknown format that are shown.
const SHOWN: usize = 16;

/// A format that is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UploadFormat {
    Transport,
    Fragments,
}

/// Tells the format of a body by its first bytes; `None` where more are needed. `is_whole` tells that there are no more.
///
/// # Errors
/// What the bytes are instead.
pub(super) fn format(bytes: &[u8], is_whole: bool) -> Result<Option<UploadFormat>, String> {
    let is_box = |kind: &[u8]| FIRST.iter().any(|first| kind == *first);
    match bytes {
        [SYNC, ..] if bytes.get(PACKET) == Some(&SYNC) => Ok(Some(UploadFormat::Transport)),
        [SYNC, ..] if bytes.len() <= PACKET && !is_whole => Ok(None),
        [_, _, _, _, kind @ ..] if kind.len() >= 4 && is_box(&kind[..4]) => Ok(Some(UploadFormat::Fragments)),
        _ if bytes.len() < 8 && !is_whole => Ok(None),
        [] => Err("no bytes".to_owned()),
        _ => Err(format!("\"{}\"", bytes[..bytes.len().min(SHOWN)].escape_ascii())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_format() {
        let packets = [[&[SYNC][..], &[0; PACKET - 1]].concat(), vec![SYNC]].concat();
        assert_eq!(format(&packets, false), Ok(Some(UploadFormat::Transport)));
        assert_eq!(format(&packets[..PACKET], false), Ok(None));
        assert!(format(&packets[..PACKET], true).is_err());
        assert_eq!(format(b"\0\0\0\x18ftypiso6", false), Ok(Some(UploadFormat::Fragments)));
        assert_eq!(format(b"\0\0\0\x18fty", false), Ok(None));
        assert_eq!(format(b"", false), Ok(None));
        assert_eq!(format(b"", true), Err("no bytes".to_owned()));
        assert_eq!(format(b"RIFF\x01\0AVI", false), Err(r#""RIFF\x01\x00AVI""#.to_owned()));
        // The first letter is a sync byte too.
        assert_eq!(format(b"GIF89a\x01\0", false), Ok(None));
        assert!(format(b"G: no packet", true).is_err());
    }
}
