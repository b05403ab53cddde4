//! File names: kind, media type and language of a file.

use millpond_media::{is_media_extension, is_sound_extension};

/// Extensions of files that are the segments of a playlist beside them.
const SEGMENTS: &[&str] = &["ts", "aac", "adts"];

fn extension(name: &str) -> Option<String> {
    let (stem, extension) = name.rsplit_once('.')?;
    (!stem.is_empty() && !extension.contains('/')).then(|| extension.to_ascii_lowercase())
}

/// Whether a file of this name holds media that is indexed.
#[must_use]
pub fn is_media(name: &str) -> bool {
    extension(name).is_some_and(|e| is_media_extension(&e))
}

/// Whether a file of this name is a segment where its folder has a playlist, or the usual init section of its segments.
pub(crate) fn is_segment(name: &str) -> bool {
    extension(name).is_some_and(|e| SEGMENTS.contains(&e.as_str())) || name == "init.mp4"
}

/// Whether a file of this name is an HLS playlist.
#[must_use]
pub fn is_playlist(name: &str) -> bool {
    extension(name).is_some_and(|e| e == "m3u8")
}

/// Whether a file of this name holds sound without video.
pub(crate) fn is_sound(name: &str) -> bool {
    extension(name).is_some_and(|e| is_sound_extension(&e))
}

/// Whether a name has an extension, as files have and folders mostly don't.
pub(crate) fn has_extension(name: &str) -> bool {
    extension(name).is_some_and(|e| (1..=5).contains(&e.len()) && e.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Whether a file of this name is a server manifest.
#[must_use]
pub fn is_manifest(name: &str) -> bool {
    extension(name).is_some_and(|e| matches!(e.as_str(), "smil" | "ism"))
}

/// Splits a path with the number of a programme behind a transport stream or an HLS playlist (`films/mux.ts/7`) into the file and the
/// number. `None` for other paths.
#[must_use]
pub fn programme_of(path: &str) -> Option<(&str, u16)> {
    let (file, number) = path.rsplit_once('/')?;
    let is_plain = !number.starts_with('0') && number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse::<u16>().ok().filter(|_| is_plain)?;
    let name = file.rsplit('/').next().unwrap_or_default();
    let has_packets = is_playlist(name) || (is_media(name) && content_type(name) == "video/mp2t");
    has_packets.then_some((file, number))
}

/// Whether a name is a list of renditions in the URL.
pub(crate) fn is_url_set(name: &str) -> bool {
    extension(name).is_some_and(|e| e == "urlset")
}

/// Whether a file of this name holds subtitles.
pub(crate) fn is_subtitle(name: &str) -> bool {
    extension(name).is_some_and(|e| matches!(e.as_str(), "vtt" | "srt"))
}

/// Whether a file of this name is an image that all browsers show.
pub(crate) fn is_image(name: &str) -> bool {
    extension(name).is_some_and(|e| matches!(e.as_str(), "jpg" | "jpeg" | "png" | "webp"))
}

/// A file name without its extension.
pub(crate) fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Returns the stem of the media file that an index file stands for: `film` of `film.dref.mp4` and of `film.mkv.dref.mp4`. Other
/// names lose their extension.
pub(crate) fn title_stem(name: &str) -> &str {
    match name.strip_suffix(".dref.mp4") {
        Some(of) if is_media(of) => stem(of),
        Some(of) => of,
        None => stem(name),
    }
}

/// Properties of a subtitle file, read from its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubtitleName {
    /// Language tag; `und` where the name has none.
    pub(crate) language: String,
    /// Whether it holds forced subtitles only (`.forced.`).
    pub(crate) forced: bool,
}

/// Reads `TITLE.LANG.vtt`, `TITLE.LANG.forced.srt`, `LANG.vtt`; `title` is skipped where the name begins with it.
pub(crate) fn subtitle_name(name: &str, title: Option<&str>) -> SubtitleName {
    let stem = stem(name);
    let rest = match title {
        Some(title) => stem.strip_prefix(title).unwrap_or(stem),
        None => stem,
    };
    let mut forced = false;
    let mut language = None;
    for part in rest.split('.').rev().filter(|p| !p.is_empty()) {
        if part.eq_ignore_ascii_case("forced") {
            forced = true;
        } else if language.is_none() && is_language(part) {
            language = Some(part.to_owned());
        }
    }
    SubtitleName { language: language.unwrap_or_else(|| "und".to_owned()), forced }
}

/// Two or three letters, then subtags: the shape of a BCP 47 tag.
fn is_language(part: &str) -> bool {
    let mut subtags = part.split('-');
    let primary =
        subtags.next().is_some_and(|p| (2..=3).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_alphabetic()));
    primary && subtags.all(|s| (2..=8).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Returns the media type that a file name stands for; `application/octet-stream` where it stands for none.
#[must_use]
pub fn content_type(name: &str) -> &'static str {
    match extension(name).as_deref() {
        Some("mp4" | "m4v" | "mp4v" | "f4v" | "lrv" | "insv" | "cmfv" | "ismv") => "video/mp4",
        Some("m4a" | "m4b" | "m4r" | "mp4a" | "f4a" | "f4b" | "cmfa" | "isma") => "audio/mp4",
        Some("cmft" | "ismt") => "application/mp4",
        Some("mov" | "qt") => "video/quicktime",
        Some("3gp" | "3gpp") => "video/3gpp",
        Some("3g2" | "3gpp2") => "video/3gpp2",
        Some("mj2") => "video/mj2",
        Some("m4s") => "video/iso.segment",
        Some("ts" | "m2ts" | "mts" | "m2t" | "trp") => "video/mp2t",
        Some("flv") => "video/x-flv",
        Some("avi" | "divx") => "video/x-msvideo",
        Some("m3u8") => "application/vnd.apple.mpegurl",
        Some("mpd") => "application/dash+xml",
        Some("vtt") => "text/vtt; charset=utf-8",
        Some("srt") => "application/x-subrip",
        Some("smil" | "ism") => "application/smil+xml",
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("txt") => "text/plain; charset=utf-8",
        Some("json") => "application/json",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("png") => "image/png",
        Some("webp") => "image/webp",
        Some("mp3" | "mp2" | "mp1" | "mpga") => "audio/mpeg",
        Some("aac" | "adts") => "audio/aac",
        Some("flac") => "audio/flac",
        Some("wav" | "rf64" | "bw64") => "audio/wav",
        Some("aif" | "aiff" | "aifc") => "audio/aiff",
        Some("ogg" | "oga" | "opus") => "audio/ogg",
        Some("webm") => "video/webm",
        Some("weba") => "audio/webm",
        Some("mkv") => "video/matroska",
        Some("mk3d") => "video/matroska-3d",
        Some("mka") => "audio/matroska",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_of_subtitle_files() {
        let read = |name, title| {
            let s = subtitle_name(name, title);
            (s.language, s.forced)
        };
        assert_eq!(read("film.en.vtt", Some("film")), ("en".to_owned(), false));
        assert_eq!(read("film.pt-BR.forced.srt", Some("film")), ("pt-BR".to_owned(), true));
        assert_eq!(read("deu.vtt", None), ("deu".to_owned(), false));
        assert_eq!(read("film.vtt", Some("film")), ("und".to_owned(), false));
        assert_eq!(read("film.commentary.vtt", Some("film")), ("und".to_owned(), false));
    }

    #[test]
    fn programmes_stand_behind_transport_streams() {
        assert_eq!(programme_of("films/mux.ts/7"), Some(("films/mux.ts", 7)));
        assert_eq!(programme_of("mux.M2TS/65535"), Some(("mux.M2TS", 65_535)));
        assert_eq!(programme_of("show.m3u8/12"), Some(("show.m3u8", 12)));
        for path in
            ["mux.ts", "mux.ts/", "mux.ts/0", "mux.ts/07", "mux.ts/+7", "mux.ts/65536", "mux.ts/v1", "a.mp4/7", "7"]
        {
            assert_eq!(programme_of(path), None, "{path}");
        }
    }

    #[test]
    fn kinds() {
        assert!(is_media("a.MP4") && is_media("x/y.cmfv") && !is_media(".mp4") && !is_media("mp4"));
        assert!(is_manifest("a.ism") && is_manifest("a.smil") && !is_manifest("a.ismv"));
        assert!(is_playlist("x/a.M3U8") && !is_playlist("m3u8") && !is_manifest("a.m3u8") && !is_media("a.m3u8"));
        assert!(is_image("a.JPG") && is_image("a.b.webp") && !is_image(".jpg") && !is_image("a.svg"));
        assert!(is_segment("a0.TS") && is_segment("init.mp4") && !is_segment("film.mp4"));
    }
}
