//! Artwork of a folder: image files that belong to titles, to the folder, or stand behind both, judged by names alone.

use crate::names::{is_image, is_sound, stem, title_stem};
use millpond_store::Entry;
use std::collections::HashMap;

/// Names of the picture of a folder without their extension, the best first.
const OF_FOLDER: [&str; 4] = ["poster", "folder", "cover", "default"];
/// Name of the picture that stands behind the titles of a folder.
const BACKDROP: &str = "fanart";

/// The image files of a folder.
#[derive(Debug, Default)]
pub(crate) struct FolderArtwork<'a> {
    /// Names of the files by their stems in lower case.
    images: HashMap<String, &'a str>,
    /// Whether the folder has one title, which takes the folder's picture.
    is_one_title: bool,
}

impl<'a> FolderArtwork<'a> {
    /// Finds the image files of a folder. If two differ in their extension alone, the first one counts.
    pub(crate) fn of(entries: &'a [Entry], is_one_title: bool) -> Self {
        let mut images = HashMap::new();
        for entry in entries.iter().filter(|entry| !entry.folder && is_image(&entry.name)) {
            images.entry(stem(&entry.name).to_lowercase()).or_insert(&*entry.name);
        }
        Self { images, is_one_title }
    }

    /// Returns the picture of a title of these files: `NAME.jpg`, or `NAME-poster.jpg`; else the folder's picture, where the
    /// folder has one title or the files are sound. `shown` is the name of a title of several files.
    pub(crate) fn of_title(&self, shown: Option<&str>, files: &[&str]) -> Option<&'a str> {
        let takes_folder = self.is_one_title || files.iter().all(|file| is_sound(file));
        let own = self.own(shown, files, &["", "-poster"]);
        own.or_else(|| self.of_folder().filter(|_| takes_folder))
    }

    /// Returns the picture behind a title of these files: `NAME-fanart.jpg`.
    pub(crate) fn behind_title(&self, shown: Option<&str>, files: &[&str]) -> Option<&'a str> {
        self.own(shown, files, &["-fanart"])
    }

    /// Returns the picture of the folder.
    pub(crate) fn of_folder(&self) -> Option<&'a str> {
        OF_FOLDER.iter().find_map(|name| self.images.get(*name).copied())
    }

    /// Returns the picture behind the folder.
    pub(crate) fn behind_folder(&self) -> Option<&'a str> {
        self.images.get(BACKDROP).copied()
    }

    fn own(&self, shown: Option<&str>, files: &[&str], suffixes: &[&str]) -> Option<&'a str> {
        if self.images.is_empty() {
            return None;
        }
        let mut names = shown.into_iter().chain(files.iter().map(|file| title_stem(file)));
        names.find_map(|name| {
            let name = name.to_lowercase();
            suffixes.iter().find_map(|suffix| self.images.get(&format!("{name}{suffix}")).copied())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(names: &[&str]) -> Vec<Entry> {
        let entry = |name: &&str| Entry {
            name: name.trim_end_matches('/').to_owned(),
            folder: name.ends_with('/'),
            len: 1,
            modified: None,
        };
        names.iter().map(entry).collect()
    }

    #[test]
    fn titles_have_pictures_of_their_names() {
        let names = ["a.mp4", "A.JPG", "b-poster.webp", "b-fanart.png", "c.gif", "d.jpg/", "e.jpeg", "f.txt"];
        let entries = entries(&names);
        let artwork = FolderArtwork::of(&entries, false);
        let of = |file: &str| artwork.of_title(None, &[file]);
        let found = [of("a.mp4"), of("b.mkv"), of("e.dref.mp4")];
        assert_eq!(found, [Some("A.JPG"), Some("b-poster.webp"), Some("e.jpeg")]);
        assert_eq!([of("c.mp4"), of("d.mp4"), of("f.mp4")], [None; 3]);
        assert_eq!(of("e.mkv.dref.mp4"), Some("e.jpeg"));
        assert_eq!(artwork.of_title(Some("e"), &["e_240p.mp4", "e_480p.mp4"]), Some("e.jpeg"));
        assert_eq!(artwork.of_title(Some("e x"), &["e_240p.mp4", "a.mp4"]), Some("A.JPG"));
        let behind = |file: &str| artwork.behind_title(None, &[file]);
        assert_eq!([behind("b.mkv"), behind("a.mp4")], [Some("b-fanart.png"), None]);
        assert_eq!((artwork.of_folder(), artwork.behind_folder()), (None, None));
    }

    #[test]
    fn the_picture_of_a_folder_is_that_of_its_only_title_and_of_its_sound() {
        let entries = entries(&["Cover.jpg", "Folder.JPG", "fanart.jpg", "one.mp4", "01.mp3", "02.mp3", "02.png"]);
        let several = FolderArtwork::of(&entries, false);
        assert_eq!((several.of_folder(), several.behind_folder()), (Some("Folder.JPG"), Some("fanart.jpg")));
        let of = |file: &str| several.of_title(None, &[file]);
        assert_eq!([of("one.mp4"), of("01.mp3"), of("02.mp3")], [None, Some("Folder.JPG"), Some("02.png")]);
        assert_eq!(FolderArtwork::of(&entries, true).of_title(None, &["one.mp4"]), Some("Folder.JPG"));
        assert_eq!(FolderArtwork::of(&[], true).of_title(None, &["one.mp4"]), None);
    }
}
