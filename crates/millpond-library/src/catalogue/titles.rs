//! Titles for lists of players: each title once, in the order of the paths. Heavy work: it looks at every row.

use super::names::{NameRow, Names};
use crate::{
    folder::{OWN_MANIFESTS, listed::RowKind},
    names::title_stem,
    url_list::UrlList,
};
use millpond_media::{Work, WorkError};
use std::{collections::HashSet, sync::Arc};

/// Rows for which a step of work is spent at a time.
const STEP: usize = 256;
/// Bytes of the paths of a list, at most. Percent-encoded they are three times as long.
const MOST_BYTES: usize = 2 << 20;

/// Titles of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayableTitles {
    /// Titles, in the order of their paths.
    pub titles: Vec<PlayableTitle>,
    /// Whether titles were left out because there are too many.
    pub is_cut: bool,
}

/// A title that players can open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayableTitle {
    /// Path, as it stands in URLs before percent-encoding.
    pub path: String,
    /// Name for viewers: the path below the folder of the list, without an extension.
    pub name: String,
}

/// Returns the titles of a folder and of all folders in it, `most` of them. `folder` has no slashes at its ends and is empty for all.
/// The files of a title with several files are left out.
///
/// # Errors
/// The end of `work`, which is spent for every 256 rows.
pub fn playable_titles(
    places: &[Arc<Names>],
    folder: &str,
    most: usize,
    is_visible: impl Fn(&str) -> bool,
    work: &Work,
) -> Result<PlayableTitles, WorkError> {
    let mut parts = Parts::default();
    let mut rows: Vec<&NameRow> = Vec::new();
    for chunk in places.iter().flat_map(|names| &names.chunks) {
        for batch in chunk.chunks(STEP) {
            work.spend(1)?;
            let inside = batch.iter().filter(|row| row.kind != RowKind::Folder && is_within(folder, &row.path));
            let seen = inside.filter(|row| is_visible(&row.path));
            rows.extend(seen.inspect(|row| parts.add(row)));
        }
    }
    let mut kept: Vec<&NameRow> = rows.into_iter().filter(|row| !parts.has(row)).collect();
    let mut is_cut = kept.len() > most;
    if is_cut && most > 0 {
        kept.select_nth_unstable_by(most - 1, |a, b| order(a, b));
    }
    kept.truncate(most);
    kept.sort_unstable_by(|a, b| order(a, b));
    let mut bytes = 0_usize;
    let mut titles = Vec::with_capacity(kept.len());
    for row in kept {
        bytes = bytes.saturating_add(row.path.len());
        if bytes > MOST_BYTES {
            is_cut = true;
            break;
        }
        titles.push(PlayableTitle { path: row.path.to_string(), name: name(folder, row) });
    }
    Ok(PlayableTitles { titles, is_cut })
}

fn order(a: &NameRow, b: &NameRow) -> std::cmp::Ordering {
    (&a.folded, &a.path).cmp(&(&b.folded, &b.path))
}

/// Tells whether a path is that of a folder or lies in it.
fn is_within(folder: &str, path: &str) -> bool {
    let rest = path.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the name of a title below a folder.
fn name(folder: &str, row: &NameRow) -> String {
    let path: &str = &row.path;
    let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
    let last = match (&row.list, row.kind) {
        (Some((_, title)), _) => &**title,
        (None, RowKind::Whole) => last,
        (None, _) => title_stem(last),
    };
    let below = parent.strip_prefix(folder).unwrap_or_default().trim_matches('/');
    if below.is_empty() { last.to_owned() } else { format!("{below}/{last}") }
}

/// Files that are parts of titles.
#[derive(Debug, Default)]
struct Parts<'a> {
    /// Folders that are one title.
    folders: HashSet<&'a str>,
    /// Files of lists.
    files: HashSet<String>,
}

impl<'a> Parts<'a> {
    fn add(&mut self, row: &'a NameRow) {
        match row.kind {
            RowKind::Whole => {
                self.folders.insert(&row.path);
            }
            RowKind::List => self.files.extend(UrlList::parse(&row.path).map(|list| list.files).unwrap_or_default()),
            RowKind::File | RowKind::Manifest | RowKind::Folder => {}
        }
    }

    fn has(&self, row: &NameRow) -> bool {
        let path: &str = &row.path;
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_in_title = || self.folders.contains(folder);
        match row.kind {
            RowKind::File => self.files.contains(path) || is_in_title(),
            RowKind::List => is_in_title(),
            RowKind::Manifest => OWN_MANIFESTS.contains(&name) && is_in_title(),
            RowKind::Whole | RowKind::Folder => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Titles, folder::listed::ListedFolder};
    use millpond_store::Entry;

    fn names(folders: &[(&str, &[&str])]) -> Arc<Names> {
        let entry = |name: &&str| Entry { name: (*name).to_owned(), folder: false, len: 7, modified: None };
        let mut names = Names::default();
        for (folder, entries) in folders {
            let entries: Vec<Entry> = entries.iter().map(entry).collect();
            names.add(&ListedFolder::of(folder, &entries, Titles::Alike));
        }
        Arc::new(names)
    }

    fn listed((folder, most): (&str, usize), is_visible: impl Fn(&str) -> bool) -> (Vec<(String, String)>, bool) {
        let places = [names(&[
            ("films", &["b, c.mp4", "Alps.mkv", "E01_360p.mp4", "E01_720p.mp4"]),
            ("films/ladder", &["240p.mp4", "480p.mp4"]),
            ("films/own", &["index.smil", "x 1.mp4", "y 2.mp4", "trailer.smil"]),
        ])];
        let found = playable_titles(&places, folder, most, is_visible, &Work::unlimited());
        let PlayableTitles { titles, is_cut } = found.unwrap();
        (titles.into_iter().map(|title| (title.path, title.name)).collect(), is_cut)
    }

    #[test]
    fn each_title_is_listed_once() {
        let row = |path: &str, name: &str| (path.to_owned(), name.to_owned());
        let expected = vec![
            row("films/Alps.mkv", "films/Alps"),
            row("films/b, c.mp4", "films/b, c"),
            row("films/E01_,360p,720p,.mp4.urlset", "films/E01"),
            row("films/ladder", "films/ladder"),
            row("films/own", "films/own"),
            row("films/own/trailer.smil", "films/own/trailer"),
        ];
        assert_eq!(listed(("", 100), |_| true), (expected.clone(), false));
        assert_eq!(listed(("", 2), |_| true), (expected[..2].to_vec(), true));
        assert_eq!(listed(("", 0), |_| true), (Vec::new(), true));
        let own = vec![row("films/own", "own"), row("films/own/trailer.smil", "trailer")];
        assert_eq!(listed(("films/own", 100), |_| true), (own, false));
        assert_eq!(listed(("film", 100), |_| true), (Vec::new(), false), "no folder of that name");
    }

    #[test]
    fn parts_of_titles_that_are_not_seen_are_listed() {
        let seen = |path: &str| path == "films/ladder/240p.mp4";
        let expected = vec![("films/ladder/240p.mp4".to_owned(), "films/ladder/240p".to_owned())];
        assert_eq!(listed(("", 100), seen), (expected, false));
    }
}
