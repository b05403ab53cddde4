//! A place of one file that is no media.

use crate::{
    config::PlaceConfig,
    library::{is_manifest, is_media, is_playlist},
};
use millpond_media::Foreign;
use std::{fs::File, io::Read as _, path::Path};

/// Bytes that tell the format of a file.
const HEAD: u64 = 1024;

/// Returns why nothing of a place of one file plays; `None` for folders, and for files that may be media.
pub(super) fn doubt(place: &PlaceConfig) -> Option<String> {
    let file = place.spec.folder().filter(|path| path.is_file())?;
    let name = file.file_name()?.to_str()?;
    let head = head(file)?;
    let format = Foreign::of_bytes(&head);
    let found = match format {
        Some(Foreign::Text) if is_manifest(name) => return None,
        Some(Foreign::Playlist) if is_playlist(name) => return None,
        Some(format) => format.name(),
        None if head.is_empty() => "empty",
        None => return None,
    };
    let cure = match format.and_then(|format| format.command(name)) {
        Some(command) => format!("to make an MP4 file of it: {command}"),
        None if is_media(name) => "copy it again, or name another file".to_owned(),
        None => "name a media file, a playlist, a server manifest, or the folder that has them".to_owned(),
    };
    Some(format!("{}file {}: is {found}, so nothing of it plays: {cure}", place.in_errors(), file.display()))
}

/// Reads the beginning of a file.
fn head(file: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(file).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Inputs, load};

    #[test]
    fn a_file_that_is_no_media_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content, expected) in [
            (
                "notes.txt",
                &b"Shopping list: milk"[..],
                Some("is a text file, so nothing of it plays: name a media file"),
            ),
            ("film.mp4", b"<!doctype html><p>404", Some("plays: copy it again")),
            ("film.mkv", b"", Some("is empty, so nothing of it plays: copy it again")),
            ("a.wmv", b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", Some("plays: to make an MP4 file of it: ffmpeg -i a.wmv ")),
            ("film.smil", b"<smil><body></body></smil>", None),
            ("film.m3u8", b"#EXTM3U\n", None),
            ("film", b"\0\0\0\x18ftypisom", None),
        ] {
            let file = folder.path().join(name);
            std::fs::write(&file, content).unwrap();
            let inputs = Inputs { places: vec![file.display().to_string()], ..Inputs::default() };
            let config = load(&inputs).unwrap_or_else(|errors| panic!("{errors}")).config;
            let found = doubt(&config.places[0]);
            let is_told = match (&found, expected) {
                (Some(found), Some(expected)) => found.contains(expected) && found.contains(name),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(is_told, "{name}: {found:?}");
        }
    }
}
