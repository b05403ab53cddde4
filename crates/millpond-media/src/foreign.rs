//! Recognises files in formats other than ISO base media and Matroska, and suggests a command that converts them.

/// A format that is recognised but not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Foreign {
    /// AVI (RIFF).
    Avi,
    /// MPEG-2 transport stream, plain or with time codes (`.ts`, `.m2ts`).
    MpegTs,
    /// MPEG program stream, or MPEG video alone (`.mpg`, `.vob`).
    MpegPs,
    /// Flash video.
    Flv,
    /// Windows Media (ASF).
    Asf,
    /// Ogg, whatever is in it.
    Ogg,
    /// RealMedia.
    RealMedia,
    /// Material Exchange Format.
    Mxf,
    /// MPEG audio, mostly MP3.
    MpegAudio,
    /// AAC in ADTS frames.
    Adts,
    /// AC-3 or E-AC-3 frames.
    Ac3,
    /// FLAC.
    Flac,
    /// WAVE (RIFF).
    Wave,
    /// AIFF.
    Aiff,
    /// An HLS playlist.
    Playlist,
    /// A web page.
    Html,
    /// A picture: JPEG, PNG, GIF or WebP.
    Image,
    /// A ZIP or gzip archive.
    Archive,
    /// Plain text.
    Text,
}

impl Foreign {
    /// Returns the media format that the extension of a file name stands for.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let (stem, extension) = name.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        Some(match extension.to_ascii_lowercase().as_str() {
            "avi" | "divx" => Self::Avi,
            "ts" | "m2ts" | "mts" | "m2t" | "trp" => Self::MpegTs,
            "mpg" | "mpeg" | "m2p" | "vob" => Self::MpegPs,
            "flv" => Self::Flv,
            "wmv" | "wma" | "asf" => Self::Asf,
            "ogg" | "ogv" | "oga" | "ogm" | "opus" | "spx" => Self::Ogg,
            "rm" | "rmvb" | "ra" => Self::RealMedia,
            "mxf" => Self::Mxf,
            "mp3" | "mp2" | "mpga" => Self::MpegAudio,
            "aac" | "adts" => Self::Adts,
            "ac3" | "eac3" | "ec3" => Self::Ac3,
            "flac" => Self::Flac,
            "wav" | "w64" => Self::Wave,
            "aif" | "aiff" | "aifc" => Self::Aiff,
            _ => return None,
        })
    }

    /// Returns the format of a file that begins with `head`. 400 bytes are enough.
    #[must_use]
    pub fn of_bytes(head: &[u8]) -> Option<Self> {
        let at = |offset: usize, text: &[u8]| head.get(offset..).is_some_and(|rest| rest.starts_with(text));
        let riff = |kind: &[u8]| at(0, b"RIFF") && at(8, kind);
        Some(match head {
            _ if riff(b"AVI ") => Self::Avi,
            _ if riff(b"WAVE") => Self::Wave,
            _ if riff(b"WEBP") => Self::Image,
            _ if at(0, b"FLV\x01") => Self::Flv,
            _ if at(0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11") => Self::Asf,
            _ if at(0, b"OggS") => Self::Ogg,
            _ if at(0, b".RMF") => Self::RealMedia,
            _ if at(0, b"\x06\x0e\x2b\x34") => Self::Mxf,
            _ if at(0, b"fLaC") => Self::Flac,
            _ if at(0, b"FORM") && (at(8, b"AIFF") || at(8, b"AIFC")) => Self::Aiff,
            _ if at(0, b"\0\0\x01\xba") || at(0, b"\0\0\x01\xb3") => Self::MpegPs,
            _ if is_transport_stream(head) => Self::MpegTs,
            _ if at(0, b"ID3") => Self::MpegAudio,
            _ if at(0, b"\x0b\x77") => Self::Ac3,
            _ if at(0, b"\xff\xd8\xff") || at(0, b"\x89PNG") || at(0, b"GIF8") => Self::Image,
            _ if at(0, b"PK\x03\x04") || at(0, b"\x1f\x8b") => Self::Archive,
            _ if at(0, b"#EXTM3U") => Self::Playlist,
            // Frames of MPEG audio begin with eleven set bits; layer 0 is ADTS (ISO/IEC 14496-3 1.A.2.2).
            [0xff, second, ..] if second & 0xf6 == 0xf0 => Self::Adts,
            [0xff, second, ..] if second & 0xe0 == 0xe0 && second & 0x06 != 0 => Self::MpegAudio,
            _ if is_html(head) => Self::Html,
            _ if is_text(head) => Self::Text,
            _ => return None,
        })
    }

    /// Name of the format, for use in a sentence.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Avi => "AVI",
            Self::MpegTs => "an MPEG transport stream",
            Self::MpegPs => "an MPEG program stream",
            Self::Flv => "Flash video (FLV)",
            Self::Asf => "Windows Media (ASF)",
            Self::Ogg => "Ogg",
            Self::RealMedia => "RealMedia",
            Self::Mxf => "MXF",
            Self::MpegAudio => "MPEG audio (MP3)",
            Self::Adts => "AAC in ADTS frames",
            Self::Ac3 => "raw AC-3",
            Self::Flac => "FLAC",
            Self::Wave => "WAVE",
            Self::Aiff => "AIFF",
            Self::Playlist => "an HLS playlist",
            Self::Html => "an HTML page",
            Self::Image => "a picture",
            Self::Archive => "an archive (ZIP or gzip)",
            Self::Text => "a text file",
        }
    }

    /// Returns the command that converts the file `file` to MP4; `None` where it has no media.
    ///
    /// Codecs that MP4 can mostly carry are copied, others are encoded.
    #[must_use]
    pub fn command(self, file: &str) -> Option<String> {
        let codecs = match self {
            Self::MpegTs | Self::Flv => "-map '0:V?' -map '0:a?' -c copy",
            Self::MpegAudio | Self::Adts | Self::Ac3 => "-map 0:a -c copy",
            // ffmpeg calls FLAC in MP4 experimental before version 6.
            Self::Flac => "-map 0:a -c copy -strict -2",
            Self::Avi | Self::MpegPs | Self::Asf | Self::RealMedia | Self::Mxf => {
                "-map '0:V?' -map '0:a?' -c:v libx264 -pix_fmt yuv420p -c:a aac"
            }
            Self::Ogg | Self::Wave | Self::Aiff => "-map '0:V?' -map '0:a?' -c:v libx264 -c:a aac",
            Self::Playlist | Self::Html | Self::Image | Self::Archive | Self::Text => return None,
        };
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        // The command must not overwrite its input, which may have an MP4 name in spite of its content.
        let target = if file.ends_with(".mp4") { format!("{stem}.new.mp4") } else { format!("{stem}.mp4") };
        Some(format!("ffmpeg -i {} {codecs} -movflags +faststart {}", quoted(file), quoted(&target)))
    }
}

/// Whether at least two packets follow one another: of 188 bytes (ISO/IEC 13818-1 2.4.3.2), or of 192 bytes with a time
/// code before each.
fn is_transport_stream(head: &[u8]) -> bool {
    let synced = |first: usize, length: usize| {
        let mut starts = head.iter().skip(first).step_by(length).take(3);
        head.len() > first + length && starts.all(|byte| *byte == 0x47)
    };
    synced(0, 188) || synced(4, 192)
}

fn is_html(head: &[u8]) -> bool {
    let start = head.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let text = head.get(start..).unwrap_or_default();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|tag| text.get(..tag.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(tag)))
}

/// Whether all bytes are text in UTF-8. The size of a box has a zero byte.
fn is_text(head: &[u8]) -> bool {
    let is_cut = |error: std::str::Utf8Error| error.error_len().is_none().then(|| error.valid_up_to());
    let end = std::str::from_utf8(head).map_or_else(is_cut, |text| Some(text.len()));
    let text = end.and_then(|end| std::str::from_utf8(head.get(..end)?).ok()).unwrap_or_default();
    text.len() >= LEAST_TEXT && !text.chars().any(|c| c.is_control() && !c.is_whitespace())
}

/// Bytes by which text is recognised.
const LEAST_TEXT: usize = 8;

/// Quotes a file name for a POSIX shell so that it is one word and no option.
fn quoted(name: &str) -> String {
    let name = if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '+' | ',' | '@' | '%');
    if name.chars().all(plain) { name } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_first_bytes() {
        let mut ts = vec![0; 400];
        (ts[0], ts[188], ts[376]) = (0x47, 0x47, 0x47);
        let mut m2ts = vec![0; 400];
        (m2ts[4], m2ts[196], m2ts[388]) = (0x47, 0x47, 0x47);
        let table: [(&str, &[u8], Foreign); 12] = [
            ("a.AVI", b"RIFF\0\0\0\0AVI LIST", Foreign::Avi),
            ("a.wav", b"RIFF\0\0\0\0WAVEfmt ", Foreign::Wave),
            ("a.ts", &ts, Foreign::MpegTs),
            ("a.m2ts", &m2ts, Foreign::MpegTs),
            ("a.flv", b"FLV\x01\x05", Foreign::Flv),
            ("a.mpg", b"\0\0\x01\xba\x44", Foreign::MpegPs),
            ("a.wmv", b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9", Foreign::Asf),
            ("a.ogv", b"OggS\0\x02", Foreign::Ogg),
            ("a.mp3", b"\xff\xfb\x90\x64", Foreign::MpegAudio),
            ("a.aac", b"\xff\xf1\x50\x80", Foreign::Adts),
            ("a.flac", b"fLaC\0", Foreign::Flac),
            ("a.aiff", b"FORM\0\0\0\0AIFFCOMM", Foreign::Aiff),
        ];
        for (name, bytes, format) in table {
            assert_eq!((Foreign::of_name(name), Foreign::of_bytes(bytes)), (Some(format), Some(format)), "{name}");
        }
        for (bytes, format) in [
            (&b"\n <!DOCTYPE HTML><title>"[..], Foreign::Html),
            (b"\xff\xd8\xff\xe0", Foreign::Image),
            (b"PK\x03\x04", Foreign::Archive),
            (b"#EXTM3U\n", Foreign::Playlist),
            (b"plain text\r\n", Foreign::Text),
            ("{\"na\": \"Straße\"}".as_bytes(), Foreign::Text),
            ("Straße und Straß".as_bytes().split_last().unwrap().1, Foreign::Text),
        ] {
            assert_eq!(Foreign::of_bytes(bytes), Some(format));
        }
        assert_eq!([Foreign::of_name("avi"), Foreign::of_name(".avi"), Foreign::of_name("a.mp4")], [None; 3]);
        for bytes in [&b""[..], b"\xff", b"\0\0\0\x20ftypisom", b"\x47 text", b"plain\0text"] {
            assert_eq!(Foreign::of_bytes(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn commands_are_of_one_word_a_name() {
        let command = Foreign::Flv.command("it's a film.flv").unwrap();
        assert!(command.starts_with(r"ffmpeg -i 'it'\''s a film.flv' ") && command.ends_with(r"'it'\''s a film.mp4'"));
        assert!(Foreign::MpegTs.command("-y.ts").unwrap().contains("-i ./-y.ts "));
        assert!(Foreign::Avi.command("a.mp4").unwrap().ends_with(" a.new.mp4"));
        assert_eq!(Foreign::Html.command("a.mp4"), None);
    }
}
