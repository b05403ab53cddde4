//! Codings of elementary streams, by stream type and descriptors.

use super::descriptor;
use crate::codec::{Medium, StreamForm};
use std::fmt;

/// Tags of descriptors that name the coding of private data (ETSI EN 300 468 6.1).
mod tag {
    pub(super) const AC3: u8 = 0x6a;
    pub(super) const ENHANCED_AC3: u8 = 0x7a;
    pub(super) const DTS: u8 = 0x7b;
    pub(super) const EXTENSION: u8 = 0x7f;
}

/// Names of codings of sound that are not supported.
const UNREAD_SOUND: [&str; 7] = [
    "AC-4",
    "DTS",
    "E-AC-3 of Blu-ray",
    "MPEG-4 audio without sync words",
    "MPEG-H 3D audio",
    "SMPTE 302M PCM",
    "TrueHD",
];
/// Names of codings of pictures that are not supported.
const UNREAD_PICTURES: [&str; 9] =
    ["AV1", "Dirac", "JPEG 2000", "JPEG XS", "MPEG-1 video", "MPEG-2 video", "MPEG-4 video", "VC-1", "VVC"];

/// Extension tag of ffmpeg's and others' Opus descriptor, which states the channels.
const OPUS_EXTENSION: u8 = 0x80;

/// Coding of an elementary stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamCoding {
    /// H.264 in the byte stream format of Annex B.
    Avc,
    /// H.265 in the byte stream format of Annex B.
    Hevc,
    /// AAC in ADTS (ISO/IEC 13818-7).
    Adts,
    /// AAC in LATM with LOAS sync (ISO/IEC 14496-3 1.7).
    Latm,
    /// MPEG-1 or MPEG-2 audio of any layer.
    MpegAudio,
    /// AC-3.
    Ac3,
    /// E-AC-3.
    Eac3,
    /// Opus; `channel_config_code` of its descriptor, 2 where there is none.
    Opus(u8),
    /// Splice information sections (SCTE 35).
    Cues,
    /// Teletext (ETSI EN 300 472), which may have pages of subtitles.
    Teletext,
    /// DVB subtitles (ETSI EN 300 743): pictures of text.
    DvbSubtitles,
    /// A coding that is not supported, with its name.
    Other(&'static str),
}

impl StreamCoding {
    /// Returns the coding by `stream_type`, and by the descriptors of the stream and its programme.
    pub(super) fn of(stream_type: u8, own: &[u8], programme: &[u8]) -> Self {
        match stream_type {
            0x03 | 0x04 => Self::MpegAudio,
            0x06 => Self::private(own),
            0x0f => Self::Adts,
            0x11 => Self::Latm,
            0x1b => Self::Avc,
            0x24 => Self::Hevc,
            0x81 => Self::Ac3,
            0x86 if descriptor::registration(programme) != Some(*b"HDMV") => Self::Cues,
            // 0xc1 and 0xc2 are encrypted.
            0x87 => Self::Eac3,
            _ => Self::Other(name(stream_type)),
        }
    }

    /// Returns the coding of private data in PES packets, which only descriptors name.
    fn private(own: &[u8]) -> Self {
        match descriptor::registration(own) {
            Some([b'O', b'p', b'u', b's']) => return Self::Opus(opus_channels(own).unwrap_or(2)),
            Some([b'A', b'C', b'-', b'3']) => return Self::Ac3,
            Some([b'E', b'A', b'C', b'3']) => return Self::Eac3,
            Some([b'H', b'E', b'V', b'C']) => return Self::Hevc,
            Some([b'A', b'C', b'-', b'4']) => return Self::Other("AC-4"),
            Some([b'A', b'V', b'0', b'1']) => return Self::Other("AV1"),
            Some([b'B', b'S', b'S', b'D']) => return Self::Other("SMPTE 302M PCM"),
            Some([b'K', b'L', b'V', b'A']) => return Self::Other("KLV metadata"),
            Some([b'I', b'D', b'3', b' ']) => return Self::Other("ID3 metadata"),
            Some([b'D', b'T', b'S', _]) => return Self::Other("DTS"),
            _ => {}
        }
        let by_tag = descriptor::all(own).find_map(|(tag, _)| match tag {
            tag::AC3 => Some(Self::Ac3),
            tag::ENHANCED_AC3 => Some(Self::Eac3),
            descriptor::TELETEXT => Some(Self::Teletext),
            descriptor::SUBTITLING => Some(Self::DvbSubtitles),
            tag::DTS => Some(Self::Other("DTS")),
            _ => None,
        });
        by_tag.unwrap_or(Self::Other("private data"))
    }

    /// Usual name of the coding.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Avc => "H.264",
            Self::Hevc => "HEVC",
            Self::Adts => "AAC in ADTS",
            Self::Latm => "AAC in LATM",
            Self::MpegAudio => "MPEG audio",
            Self::Ac3 => "AC-3",
            Self::Eac3 => "E-AC-3",
            Self::Opus(_) => "Opus",
            Self::Cues => "SCTE 35 cues",
            Self::Teletext => "teletext",
            Self::DvbSubtitles => "DVB subtitles",
            Self::Other(name) => name,
        }
    }

    /// Returns the form of its frames in PES packets; `None` for streams without frames.
    pub(crate) fn form(self) -> Option<StreamForm> {
        Some(match self {
            Self::Avc => StreamForm::Avc,
            Self::Hevc => StreamForm::Hevc,
            Self::Adts => StreamForm::Adts,
            Self::Latm => StreamForm::Latm,
            Self::MpegAudio => StreamForm::MpegAudio,
            Self::Ac3 | Self::Eac3 => StreamForm::Ac3,
            Self::Opus(_) => StreamForm::Opus,
            Self::Cues | Self::Teletext | Self::DvbSubtitles | Self::Other(_) => return None,
        })
    }

    /// Returns a coding whose PES packets are assembled as those of `form`.
    pub(crate) fn of_form(form: StreamForm) -> Self {
        match form {
            StreamForm::Avc => Self::Avc,
            StreamForm::Hevc => Self::Hevc,
            StreamForm::Adts => Self::Adts,
            StreamForm::MpegAudio => Self::MpegAudio,
            StreamForm::Ac3 => Self::Ac3,
            StreamForm::Opus => Self::Opus(2),
            StreamForm::Latm => Self::Latm,
            StreamForm::Plain => Self::Other("frames as they are"),
        }
    }

    /// Returns the medium of a coding that is not supported; `None` for supported ones, and for other data than media.
    pub(crate) fn unread_medium(self) -> Option<Medium> {
        let name = match self {
            // Pictures of text become no text track.
            Self::DvbSubtitles => return Some(Medium::Text),
            Self::Other(name) => name,
            _ => return None,
        };
        let is_any = |names: &[&str]| names.contains(&name);
        match () {
            () if is_any(&UNREAD_SOUND) => Some(Medium::Audio),
            () if is_any(&UNREAD_PICTURES) => Some(Medium::Video),
            () => None,
        }
    }

    /// Whether the stream has pictures.
    #[must_use]
    pub fn is_video(self) -> bool {
        matches!(self, Self::Avc | Self::Hevc)
    }

    /// Whether the stream has sound.
    #[must_use]
    pub fn is_audio(self) -> bool {
        !self.is_video() && self.form().is_some()
    }

    /// Whether the stream has subtitles, or may have some.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Self::Teletext | Self::DvbSubtitles)
    }
}

impl fmt::Display for StreamCoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn opus_channels(own: &[u8]) -> Option<u8> {
    descriptor::all(own).find_map(|(tag, body)| match body {
        [OPUS_EXTENSION, channels, ..] if tag == tag::EXTENSION => Some(*channels),
        _ => None,
    })
}

/// Returns the name of a stream type that is not supported (table 2-34, ATSC A/53, Blu-ray).
fn name(stream_type: u8) -> &'static str {
    match stream_type {
        0x01 => "MPEG-1 video",
        0x02 => "MPEG-2 video",
        0x05 => "private sections",
        0x0b..=0x0d => "DSM-CC",
        0x10 => "MPEG-4 video",
        0x15 => "metadata in PES packets",
        0x1c => "MPEG-4 audio without sync words",
        0x1f => "SVC",
        0x20 => "MVC",
        0x21 => "JPEG 2000",
        0x25 => "HEVC temporal layers",
        0x2d | 0x2e => "MPEG-H 3D audio",
        0x32 => "JPEG XS",
        0x33 => "VVC",
        0x80 => "private video or PCM",
        0x82 | 0x85 | 0x86 | 0x8a => "DTS",
        0x83 => "TrueHD",
        0x84 => "E-AC-3 of Blu-ray",
        0xc1 | 0xc2 | 0xcf | 0xdb => "encrypted media",
        0xd2 => "Dirac",
        0xea => "VC-1",
        _ => "an unknown stream type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_media_are_names_of_codings() {
        let types = (0..=u8::MAX).map(|stream_type| StreamCoding::of(stream_type, &[], &[]));
        let registered = [*b"AC-4", *b"AV01", *b"BSSD", *b"DTS1"].map(|code| [&[5, 4][..], &code].concat());
        let private = registered.iter().map(Vec::as_slice).chain([&[0x56, 0][..], &[0x59, 0]]);
        let codings: Vec<_> = types.chain(private.map(|own| StreamCoding::of(6, own, &[]))).collect();
        for (names, medium) in [(&UNREAD_SOUND[..], Medium::Audio), (&UNREAD_PICTURES, Medium::Video)] {
            for name in names {
                let coding = codings.iter().find(|coding| coding.name() == *name);
                assert_eq!(coding.and_then(|coding| coding.unread_medium()), Some(medium), "{name}");
            }
        }
        assert_eq!(StreamCoding::Adts.unread_medium(), None);
        assert_eq!(StreamCoding::Teletext.unread_medium(), None);
        assert_eq!(StreamCoding::DvbSubtitles.unread_medium(), Some(Medium::Text));
        assert_eq!(StreamCoding::Other("private data").unread_medium(), None);
    }
}
