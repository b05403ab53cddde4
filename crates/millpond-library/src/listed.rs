//! A folder as its viewers see it: what can be played, what can be opened, and what is left out.

use crate::{
    folder::{FolderContent, LeftOut},
    names::{is_manifest, is_media},
};
use millpond_store::{Entry, Titles};
use std::collections::HashMap;

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
    /// Names of the files, where the kind is [`RowKind::List`].
    pub files: Vec<String>,
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
    /// A server manifest.
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
        let mut rows = Vec::new();
        // Its own manifest says so; else one of the titles has the path of the folder.
        let is_manifested = content.is_asset && content.titles.iter().all(|title| title.path.as_deref() != Some(""));
        if is_manifested && !folder.is_empty() {
            let bytes = content.titles.iter().map(|title| sum(&title.files)).fold(0, u64::saturating_add);
            rows.push(ListedRow { path: folder.to_owned(), kind: RowKind::Whole, bytes, files: Vec::new() });
        }
        for title in content.titles.iter().filter(|title| title.files.len() > 1) {
            let (path, kind) = match title.path.as_deref() {
                Some("") if !folder.is_empty() => (folder.to_owned(), RowKind::Whole),
                Some("") | None => continue,
                Some(list) => (format!("{prefix}{list}"), RowKind::List),
            };
            rows.push(ListedRow { path, kind, bytes: sum(&title.files), files: title.files.clone() });
        }
        rows.extend(entries.iter().filter(|entry| !entry.folder).filter_map(|entry| {
            let kind = match &entry.name {
                name if is_media(name) => RowKind::File,
                name if is_manifest(name) => RowKind::Manifest,
                _ => return None,
            };
            Some(ListedRow { path: format!("{prefix}{}", entry.name), kind, bytes: entry.len, files: Vec::new() })
        }));
        let folders = content.folders.iter().map(|name| format!("{prefix}{name}/")).collect();
        Self { prefix, rows, folders, left_out: content.left_out }
    }
}
