//! Lists of the assets of all places, one page at a time, from the names that searches use.

use super::super::Front;
use crate::library::{LibraryError, Names, Query, RowKind};
use futures_util::future::join_all;
use millpond_media::Work;
use std::{collections::BinaryHeap, sync::Arc};

/// Which assets are listed.
#[derive(Debug, Default)]
pub(crate) struct AssetFilter {
    /// Only those of this place.
    pub(crate) place: Option<String>,
    /// Only those below this folder, as a path without slashes at its ends.
    pub(crate) folder: Option<String>,
    /// Only those whose paths have these words.
    pub(crate) words: Option<Query>,
    /// Only those whose paths are behind this one.
    pub(crate) cursor: Option<String>,
    /// Most rows.
    pub(crate) limit: usize,
}

/// One page of the assets, in the order of their paths.
#[derive(Debug)]
pub(crate) struct AssetList {
    /// The page.
    pub(crate) rows: Vec<AssetRow>,
    /// Number of assets that fit the filter, on all pages.
    pub(crate) total: usize,
    /// Whether others follow.
    pub(crate) has_more: bool,
    /// Whether all folders have been read.
    pub(crate) is_complete: bool,
}

/// An asset.
#[derive(Debug)]
pub(crate) struct AssetRow {
    /// Path, as it stands in URLs before percent-encoding.
    pub(crate) path: String,
    /// Name of its place.
    pub(crate) place: Arc<str>,
    /// Name of its kind.
    pub(crate) kind: &'static str,
    /// Sum of the lengths of its files, in bytes.
    pub(crate) bytes: u64,
}

/// Lists assets of places with stored media. The first call reads the folders, for up to 3 s.
///
/// # Errors
/// The worker pool's, which takes no work.
pub(crate) async fn assets_of(front: &Front, filter: AssetFilter) -> Result<AssetList, LibraryError> {
    let is_asked = |place: &&Arc<str>| {
        !front.sources.is_live(place) && filter.place.as_deref().is_none_or(|name| name == &***place)
    };
    let names = front.places.iter().filter(is_asked).map(async |place| {
        let prefix = if place.is_empty() { String::new() } else { format!("{place}/") };
        (place.clone(), front.catalogue.names(place, &prefix).await)
    });
    let names = join_all(names).await;
    let refused = |error| LibraryError::Refused { asset: "assets".to_owned(), error };
    front.library.pool().run(&Work::unlimited(), move || select(&names, &filter)).await.map_err(refused)
}

/// Selects the page. Only its rows are sorted.
fn select(names: &[(Arc<str>, Arc<Names>)], filter: &AssetFilter) -> AssetList {
    let folder = filter.folder.as_deref().filter(|folder| !folder.is_empty()).map(|folder| format!("{folder}/"));
    let folder = folder.unwrap_or_default();
    let (mut total, mut least) = (0, BinaryHeap::new());
    for (index, row) in
        names.iter().enumerate().flat_map(|(index, (_, names))| names.iter().map(move |row| (index, row)))
    {
        let is_found = filter.words.as_ref().is_none_or(|words| words.matches(&row.path));
        if row.kind == RowKind::Folder || !row.path.starts_with(&folder) || !is_found {
            continue;
        }
        total += 1;
        if filter.cursor.as_deref().is_none_or(|cursor| *row.path > *cursor) {
            least.push((&*row.path, index, row.kind.name(), row.bytes));
            // One more than the page has tells whether others follow.
            if least.len() > filter.limit + 1 {
                least.pop();
            }
        }
    }
    let has_more = least.len() > filter.limit;
    let rows = least.into_sorted_vec().into_iter().take(filter.limit);
    let row = |(path, index, kind, bytes): (&str, usize, &'static str, u64)| AssetRow {
        path: path.to_owned(),
        place: names.get(index).map(|(place, _)| place.clone()).unwrap_or_default(),
        kind,
        bytes,
    };
    let is_complete = names.iter().all(|(_, names)| names.is_read && !names.is_cut && names.failed == 0);
    AssetList { rows: rows.map(row).collect(), total, has_more, is_complete }
}
