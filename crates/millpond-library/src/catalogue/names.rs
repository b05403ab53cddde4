//! The names of a place.

use crate::folder::listed::{ListedFolder, RowKind};
use std::sync::Arc;

/// Memory of a row beside its texts, in bytes.
const ROW: u64 = size_of::<NameRow>() as u64 + 32;

/// Something that a search can find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRow {
    /// Path, as it stands in URLs before percent-encoding. That of a folder has a slash at its end.
    pub path: Box<str>,
    /// Kind.
    pub kind: RowKind,
    /// Sum of the lengths of its files, in bytes.
    pub bytes: u64,
    /// Number of the files of a list, and its title.
    pub list: Option<(usize, Box<str>)>,
    /// The path in lower case, without a slash at its end.
    pub(super) folded: Box<str>,
}

/// The names of a place, as far as its folders were read. Cloning shares the rows.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Rows of each folder.
    pub(super) chunks: Vec<Arc<[NameRow]>>,
    /// Number of folders that were read.
    pub folders: usize,
    /// Number of folders that could not be listed.
    pub failed: usize,
    /// Whether some folders were not read because there are too many of them, or too many names in them.
    pub is_cut: bool,
    /// Whether reading has ended.
    pub is_read: bool,
    bytes: u64,
}

impl NameRow {
    fn new(path: String, kind: RowKind, bytes: u64, list: Option<(usize, Box<str>)>) -> Self {
        let folded = path.trim_end_matches('/').to_lowercase().into();
        Self { path: path.into(), kind, bytes, list, folded }
    }

    fn heap_bytes(&self) -> u64 {
        let title = self.list.as_ref().map_or(0, |(_, title)| title.len());
        ROW + (self.path.len() + self.folded.len() + title) as u64
    }
}

impl Names {
    /// Adds the content of a folder.
    pub(super) fn add(&mut self, listed: &ListedFolder) {
        let folders = listed.folders.iter().map(|path| NameRow::new(path.clone(), RowKind::Folder, 0, None));
        let rows = listed.rows.iter().map(|row| {
            let list = row.title.as_deref().map(|title| (row.files.len(), title.into()));
            NameRow::new(row.path.clone(), row.kind, row.bytes, list)
        });
        let rows: Arc<[NameRow]> = folders.chain(rows).collect();
        self.folders += 1;
        self.bytes = rows.iter().map(NameRow::heap_bytes).fold(self.bytes, u64::saturating_add);
        if !rows.is_empty() {
            self.chunks.push(rows);
        }
    }

    /// Returns all rows, in the order in which the folders were read.
    pub fn iter(&self) -> impl Iterator<Item = &NameRow> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Returns the memory that the names take, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.chunks.len() as u64 * 32 + 256)
    }
}
