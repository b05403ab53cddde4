//! A folder as its viewers see it: what can be played, what can be opened, and what is left out.

use crate::{
    folder::{FolderContent, LeftOut, artwork::FolderArtwork, media},
    names::{is_manifest, is_playlist, stem},
    options::Titles,
    url_list::shared,
};
use millpond_store::Entry;
use std::collections::{HashMap, HashSet};

/// Content of a folder, with paths that viewers can open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedFolder {
    /// Path that the names below the folder begin with: empty, or with a slash at its end.
    pub prefix: String,
    /// Everything that can be played: titles of several files, then each file.
    pub rows: Vec<ListedRow>,
    /// Paths of the folders in it, each with a slash at its end.
    pub folders: Vec<String>,
    /// Media files that are not served.
    pub left_out: Vec<LeftOut>,
    /// Image files of the folder.
    pub artwork: ListedArtwork,
}

/// Names of the image files that belong to a title or to a folder, relative to the folder that is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedArtwork {
    /// Its picture: a poster or cover.
    pub picture: Option<String>,
    /// The picture that stands behind it.
    pub backdrop: Option<String>,
}

/// Something that can be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRow {
    /// Path, as it stands in URLs before percent-encoding.
    pub path: String,
    /// Kind.
    pub kind: RowKind,
    /// Sum of the lengths of its files, in bytes.
    pub bytes: u64,
    /// Names of the files, where the kind is [`RowKind::List`] or [`RowKind::Whole`].
    pub files: Vec<String>,
    /// Title for menus, where the kind is [`RowKind::List`]: what its names share. Each of its files has a row too.
    pub title: Option<String>,
    /// Image files of the title.
    pub artwork: ListedArtwork,
}

/// Kind of a row of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// A folder that is an asset.
    Whole,
    /// Several files of a folder that are one title, as a list in the URL.
    List,
    /// A media file.
    File,
    /// A server manifest, or an HLS playlist.
    Manifest,
    /// A folder that holds others.
    Folder,
}

impl RowKind {
    /// Name in the data of the page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "folder",
            Self::List => "list",
            Self::File => "file",
            Self::Manifest => "manifest",
            Self::Folder => "directory",
        }
    }
}

impl ListedFolder {
    /// Lists the entries of a folder, whose path has no slashes at its ends. Takes linear time, and reads no file.
    #[must_use]
    pub fn of(folder: &str, entries: &[Entry], grouped: Titles) -> Self {
        let content = FolderContent::of(entries, grouped);
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let lengths: HashMap<&str, u64> = entries.iter().map(|entry| (entry.name.as_str(), entry.len)).collect();
        let sum = |files: &[String]| {
            files.iter().filter_map(|name| lengths.get(name.as_str())).fold(0, |a: u64, b| a.saturating_add(*b))
        };
        let artwork = FolderArtwork::of(entries, content.is_asset);
        let artwork_of = |shown: Option<&str>, files: &[&str]| ListedArtwork {
            picture: artwork.of_title(shown, files).map(str::to_owned),
            backdrop: artwork.behind_title(shown, files).map(str::to_owned),
        };
        let mut rows = Vec::new();
        // Its own manifest says so; else one of the titles has the path of the folder.
        let is_manifested = content.is_asset && content.titles.iter().all(|title| title.path.as_deref() != Some(""));
        if is_manifested && !folder.is_empty() {
            let bytes = content.titles.iter().map(|title| sum(&title.files)).fold(0, u64::saturating_add);
            rows.push(ListedRow {
                path: folder.to_owned(),
                kind: RowKind::Whole,
                bytes,
                files: Vec::new(),
                title: None,
                artwork: artwork_of(None, &[]),
            });
        }
        for title in content.titles.iter().filter(|title| title.files.len() > 1) {
            let (path, kind, name) = match title.path.as_deref() {
                Some("") if !folder.is_empty() => (folder.to_owned(), RowKind::Whole, None),
                Some("") | None => continue,
                Some(list) => (format!("{prefix}{list}"), RowKind::List, Some(name(&title.files))),
            };
            let files: Vec<&str> = title.files.iter().map(String::as_str).collect();
            let artwork = artwork_of(name.as_deref(), &files);
            let (bytes, files) = (sum(&title.files), title.files.clone());
            rows.push(ListedRow { path, kind, bytes, files, title: name, artwork });
        }
        // A file that an index file replaces has no row.
        let shown: HashSet<&str> = media(entries).into_iter().collect();
        rows.extend(entries.iter().filter(|entry| !entry.folder).filter_map(|entry| {
            let kind = match &entry.name {
                name if shown.contains(name.as_str()) => RowKind::File,
                name if is_manifest(name) || is_playlist(name) => RowKind::Manifest,
                _ => return None,
            };
            let path = format!("{prefix}{}", entry.name);
            let artwork = artwork_of(None, &[entry.name.as_str()]);
            Some(ListedRow { path, kind, bytes: entry.len, files: Vec::new(), title: None, artwork })
        }));
        let folders = content.folders.iter().map(|name| format!("{prefix}{name}/")).collect();
        let artwork = ListedArtwork {
            picture: artwork.of_folder().map(str::to_owned),
            backdrop: artwork.behind_folder().map(str::to_owned),
        };
        Self { prefix, rows, folders, left_out: content.left_out, artwork }
    }
}

/// Returns the title of a list: the start that the names of its files share, else the name of the first file and how many
/// follow. It differs from the names of the files.
fn name(files: &[String]) -> String {
    let stems: Vec<&str> = files.iter().map(|name| stem(name)).collect();
    let length = shared(&stems);
    let begin = stems.first().and_then(|first| first.get(..length)).unwrap_or_default();
    // 1080 and 1440 begin alike.
    let is_digit = |c: char| c.is_ascii_digit();
    let is_cut = stems.iter().any(|name| name.get(length..).is_some_and(|rest| rest.starts_with(is_digit)));
    let begin = if is_cut { begin.trim_end_matches(is_digit) } else { begin };
    let begin = begin.trim_end_matches(|c: char| !c.is_alphanumeric() && !matches!(c, ')' | ']' | '!' | '?'));
    match files.first() {
        Some(first) if begin.is_empty() || files.iter().any(|file| file == begin) => {
            format!("{first} and {} more", files.len() - 1)
        }
        _ => begin.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_and_its_files_have_names_of_their_own() {
        let entry = |name: &&str| Entry { name: (*name).to_owned(), folder: false, len: 1, modified: None };
        let titles = |names: &[&str]| -> Vec<String> {
            let listed = ListedFolder::of("", &names.iter().map(entry).collect::<Vec<_>>(), Titles::Alike);
            listed.rows.into_iter().filter_map(|row| row.title).collect()
        };
        assert_eq!(titles(&["E01_360p.mp4", "E01_720p.mp4", "E02 (1080p).mp4", "E02 (144p).mp4"]), ["E01", "E02"]);
        assert_eq!(titles(&["film [7] 360p.mp4", "film [7] 720p.mp4", "E03.mp4"]), ["film [7]"]);
        assert_eq!(titles(&["720p film.mp4", "360p film.mp4", "E03.mp4"]), ["720p film.mp4 and 1 more"]);
    }

    #[test]
    fn image_files_belong_to_titles_and_are_none() {
        let entry = |name: &&str| Entry { name: (*name).to_owned(), folder: false, len: 1, modified: None };
        let listed = |names: &[&str]| {
            let entries: Vec<Entry> = names.iter().map(entry).collect();
            ListedFolder::of("tv", &entries, Titles::Alike)
        };
        let season = listed(&["E01_360p.mp4", "E01_720p.mp4", "E01.jpg", "E02.mp4", "folder.jpg", "fanart.png"]);
        let pictures: Vec<_> = season.rows.iter().map(|row| (row.kind, row.artwork.picture.as_deref())).collect();
        let file = (RowKind::File, None);
        assert_eq!(pictures, [(RowKind::List, Some("E01.jpg")), file, file, file]);
        assert_eq!(season.artwork.picture.as_deref(), Some("folder.jpg"));
        assert_eq!(season.artwork.backdrop.as_deref(), Some("fanart.png"));
        assert!(season.left_out.is_empty());
        let ladder = listed(&["240p.mp4", "480p.mp4", "folder.jpg"]);
        assert!(ladder.rows.iter().all(|row| row.artwork.picture.as_deref() == Some("folder.jpg")));
    }
}
