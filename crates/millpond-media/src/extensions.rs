//! Extensions of file names: the kind of media that a file holds.

/// Extensions of media files with video, or with any kind of track.
const MEDIA: &[&str] = &[
    "mp4", "m4v", "mov", "qt", "mp4v", "3gp", "3gpp", "3g2", "3gpp2", "f4v", "mj2", "cmfv", "cmft", "ismv", "ismt",
    "lrv", "insv", "mkv", "mk3d", "webm", "ts", "m2ts", "mts", "m2t", "trp", "flv", "avi", "divx",
];
/// Extensions of media files with sound alone.
const SOUND: &[&str] = &[
    "m4a", "m4b", "m4r", "f4a", "f4b", "mp4a", "cmfa", "isma", "mka", "weba", "mp3", "mp2", "mp1", "mpga", "aac",
    "adts", "flac", "wav", "rf64", "bw64", "aif", "aiff", "aifc", "ogg", "oga", "opus",
];

/// Returns whether files with an extension, without its dot, hold media that is indexed.
#[must_use]
pub fn is_media_extension(extension: &str) -> bool {
    is_among(extension, MEDIA) || is_sound_extension(extension)
}

/// Returns whether files with an extension, without its dot, hold sound without video.
#[must_use]
pub fn is_sound_extension(extension: &str) -> bool {
    is_among(extension, SOUND)
}

fn is_among(extension: &str, known: &[&str]) -> bool {
    known.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_tell_the_kind_of_a_file_in_either_case() {
        for (extension, kinds) in [
            ("mp4", (true, false)),
            ("MKV", (true, false)),
            ("Opus", (true, true)),
            ("m3u8", (false, false)),
            ("", (false, false)),
            (".mp4", (false, false)),
        ] {
            assert_eq!((is_media_extension(extension), is_sound_extension(extension)), kinds, "{extension}");
        }
    }
}
