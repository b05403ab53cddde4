//! Names of codecs that are not supported.

use crate::boxes::{FourCc, show};

/// Codes of video codecs (`biCompression`) in capitals, with the codecs' names.
const PICTURES: [(&[u8; 4], &str); 52] = [
    (b"XVID", "MPEG-4 Part 2 video"),
    (b"DIVX", "MPEG-4 Part 2 video"),
    (b"DX50", "MPEG-4 Part 2 video"),
    (b"FMP4", "MPEG-4 Part 2 video"),
    (b"MP4V", "MPEG-4 Part 2 video"),
    (b"MP4S", "MPEG-4 Part 2 video"),
    (b"M4S2", "MPEG-4 Part 2 video"),
    (b"3IV2", "MPEG-4 Part 2 video"),
    (b"RMP4", "MPEG-4 Part 2 video"),
    (b"DIV3", "Microsoft MPEG-4 video (DivX 3)"),
    (b"DIV4", "Microsoft MPEG-4 video (DivX 3)"),
    (b"MP43", "Microsoft MPEG-4 video"),
    (b"MP42", "Microsoft MPEG-4 video"),
    (b"MPG4", "Microsoft MPEG-4 video"),
    (b"MJPG", "Motion JPEG"),
    (b"AVRN", "Motion JPEG"),
    (b"JPEG", "Motion JPEG"),
    (b"DMB1", "Motion JPEG"),
    (b"MJ2C", "JPEG 2000"),
    (b"DVSD", "DV"),
    (b"DVHD", "DV"),
    (b"DV25", "DV"),
    (b"DV50", "DV"),
    (b"DVH1", "DV"),
    (b"CDVC", "DV"),
    (b"CVID", "Cinepak"),
    (b"IV31", "Indeo 3"),
    (b"IV32", "Indeo 3"),
    (b"IV41", "Indeo 4"),
    (b"IV50", "Indeo 5"),
    (b"MPEG", "MPEG video"),
    (b"MPG1", "MPEG-1 video"),
    (b"MPG2", "MPEG-2 video"),
    (b"WMV1", "Windows Media Video"),
    (b"WMV2", "Windows Media Video"),
    (b"WMV3", "Windows Media Video"),
    (b"WVC1", "VC-1"),
    (b"VP60", "On2 VP6"),
    (b"VP61", "On2 VP6"),
    (b"VP62", "On2 VP6"),
    (b"FLV1", "Sorenson H.263"),
    (b"H263", "H.263"),
    (b"S263", "H.263"),
    (b"HFYU", "Huffyuv"),
    (b"FFVH", "Huffyuv"),
    (b"FFV1", "FFV1"),
    (b"ULY0", "Ut Video"),
    (b"ULRG", "Ut Video"),
    (b"LAGS", "Lagarith"),
    (b"CRAM", "Microsoft Video 1"),
    (b"MSVC", "Microsoft Video 1"),
    (b"TSCC", "TechSmith screen capture"),
];

/// Format tags of sound (RFC 2361), with the codecs' names.
const SOUND: [(u16, &str); 20] = [
    (0x02, "Microsoft ADPCM"),
    (0x08, "DTS"),
    (0x11, "IMA ADPCM"),
    (0x22, "TrueSpeech"),
    (0x31, "GSM 6.10"),
    (0x40, "G.721 ADPCM"),
    (0x42, "G.723.1"),
    (0x45, "G.726 ADPCM"),
    (0x61, "DK4 ADPCM"),
    (0x62, "DK3 ADPCM"),
    (0x75, "Voxware"),
    (0x0160, "Windows Media Audio"),
    (0x0161, "Windows Media Audio"),
    (0x0162, "Windows Media Audio Professional"),
    (0x0163, "Windows Media Audio Lossless"),
    (0x1601, "AAC in LATM"),
    (0x1602, "AAC in LATM"),
    (0x2001, "DTS"),
    (0x566f, "Vorbis"),
    (0x674f, "Vorbis"),
];

/// Returns the name of a video codec, alone and with its code.
pub(super) fn pictures(code: FourCc) -> (String, String) {
    if code == [0; 4] {
        let name = "uncompressed video";
        return (name.to_owned(), name.to_owned());
    }
    let capitals = code.map(|byte| byte.to_ascii_uppercase());
    match PICTURES.iter().find(|(known, _)| **known == capitals) {
        Some((_, name)) => ((*name).to_owned(), format!("{name} ({})", show(code))),
        None => (show(code), format!("video codec {}", show(code))),
    }
}

/// Returns the name of a sound codec, alone and with its format tag. `bits` is the size of a value.
pub(super) fn sound(tag: u16, bits: u16) -> (String, String) {
    match SOUND.iter().find(|(known, _)| *known == tag) {
        Some((_, name)) => ((*name).to_owned(), format!("{name} (format {tag:#x})")),
        None => (format!("format {tag:#x}"), format!("sound of format {tag:#x} with {bits} bits per value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_in_either_case() {
        assert_eq!(pictures(*b"xvid").1, "MPEG-4 Part 2 video (xvid)");
        assert_eq!(pictures(*b"a\0b\xff").1, "video codec a\\x00b\\xff");
        let windows = "Windows Media Audio";
        assert_eq!(sound(0x161, 16), (windows.to_owned(), format!("{windows} (format 0x161)")));
        assert!(sound(0x9999, 4).1.contains("0x9999"));
    }
}
