//! Recognises files in formats that are not read, and suggests a command that converts them.

/// A format that is recognised but not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Foreign {
    /// MPEG program stream, or MPEG video alone (`.mpg`, `.vob`).
    MpegPs,
    /// Windows Media (ASF).
    Asf,
    /// RealMedia.
    RealMedia,
    /// Material Exchange Format.
    Mxf,
    /// AC-3 or E-AC-3 frames.
    Ac3,
    /// Sony Wave64, whose chunks have GUIDs.
    Wave64,
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
            "mpg" | "mpeg" | "m2p" | "vob" => Self::MpegPs,
            "wmv" | "wma" | "asf" => Self::Asf,
            "rm" | "rmvb" | "ra" => Self::RealMedia,
            "mxf" => Self::Mxf,
            "ac3" | "eac3" | "ec3" => Self::Ac3,
            "w64" => Self::Wave64,
            _ => return None,
        })
    }

    /// Returns the format of a file that begins with `head`. 400 bytes are enough.
    #[must_use]
    pub fn of_bytes(head: &[u8]) -> Option<Self> {
        let at = |offset: usize, text: &[u8]| head.get(offset..).is_some_and(|rest| rest.starts_with(text));
        Some(match head {
            _ if at(0, b"RIFF") && at(8, b"WEBP") => Self::Image,
            _ if at(0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11") => Self::Asf,
            _ if at(0, b".RMF") => Self::RealMedia,
            _ if at(0, b"\x06\x0e\x2b\x34") => Self::Mxf,
            _ if at(0, b"riff\x2e\x91\xcf\x11") => Self::Wave64,
            _ if at(0, b"\0\0\x01\xba") || at(0, b"\0\0\x01\xb3") => Self::MpegPs,
            _ if at(0, b"\x0b\x77") => Self::Ac3,
            _ if at(0, b"\xff\xd8\xff") || at(0, b"\x89PNG") || at(0, b"GIF8") => Self::Image,
            _ if at(0, b"PK\x03\x04") || at(0, b"\x1f\x8b") => Self::Archive,
            _ if at(0, b"#EXTM3U") => Self::Playlist,
            _ if is_html(head) => Self::Html,
            _ if is_text(head) => Self::Text,
            _ => return None,
        })
    }

    /// Name of the format, for use in a sentence.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MpegPs => "an MPEG program stream",
            Self::Asf => "Windows Media (ASF)",
            Self::RealMedia => "RealMedia",
            Self::Mxf => "MXF",
            Self::Ac3 => "raw AC-3",
            Self::Wave64 => "Sony Wave64",
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
            Self::Ac3 => "-map 0:a -c copy",
            Self::Wave64 => "-map 0:a -c:a aac",
            Self::MpegPs | Self::Asf | Self::RealMedia | Self::Mxf => ENCODED,
            Self::Playlist | Self::Html | Self::Image | Self::Archive | Self::Text => return None,
        };
        Some(command(file, codecs))
    }
}

/// Options of ffmpeg that encode pictures and sound.
const ENCODED: &str = "-map '0:V?' -map '0:a?' -c:v libx264 -pix_fmt yuv420p -c:a aac";

/// Returns the command that encodes the file `file` to MP4.
#[must_use]
pub fn encoding_command(file: &str) -> String {
    command(file, ENCODED)
}

/// Returns the command that copies the pictures and the sound of the file `file` into MP4 without encoding.
#[must_use]
pub fn copying_command(file: &str) -> String {
    command(file, "-map '0:V?' -map '0:a?' -c copy")
}

fn command(file: &str, codecs: &str) -> String {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    // The command must not overwrite its input, which may have an MP4 name in spite of its content.
    let target = if file.ends_with(".mp4") { format!("{stem}.new.mp4") } else { format!("{stem}.mp4") };
    format!("ffmpeg -i {} {codecs} -movflags +faststart {}", quoted(file), quoted(&target))
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
        let table: [(&str, &[u8], Foreign); 3] = [
            ("a.mpg", b"\0\0\x01\xba\x44", Foreign::MpegPs),
            ("a.wmv", b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9", Foreign::Asf),
            ("a.w64", b"riff\x2e\x91\xcf\x11\xa5\xd6", Foreign::Wave64),
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
        assert_eq!(["mxf", ".mxf", "a.mp4", "a.mp3", "a.flv", "a.avi"].map(Foreign::of_name), [None; 6]);
        for bytes in [&b""[..], b"\xff", b"\0\0\0\x20ftypisom", b"\x47 text", b"plain\0text"] {
            assert_eq!(Foreign::of_bytes(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn commands_are_of_one_word_a_name() {
        let command = Foreign::Mxf.command("it's a film.mxf").unwrap();
        assert!(command.starts_with(r"ffmpeg -i 'it'\''s a film.mxf' ") && command.ends_with(r"'it'\''s a film.mp4'"));
        assert!(Foreign::MpegPs.command("-y.vob").unwrap().contains("-i ./-y.vob "));
        assert!(encoding_command("a.mp4").ends_with(" a.new.mp4"));
        assert_eq!(Foreign::Html.command("a.mp4"), None);
    }
}
