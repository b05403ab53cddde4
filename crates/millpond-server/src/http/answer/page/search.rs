//! Searches of the web page, over all folders of all places.

use super::{super::Front, streams as live_streams};
use crate::library::{LibraryError, NameRow, Names, Query, search as search_names};
use futures_util::future::join_all;
use millpond_access::Sight;
use millpond_library::uri::parameter;
use millpond_media::Work;
use serde_json::{Value, json};
use std::sync::Arc;

/// Rows of a page of the result where the request names no number, and at most.
const PAGE: (usize, usize) = (100, 200);
/// Rows that can be reached by pages.
const REACH: usize = 10_000;

/// Searches the names of all places for the words of `q`. `sights` has what the client may see of each place.
pub(super) async fn search(front: &Front, query: &str, sights: &[Option<Sight>]) -> Result<String, LibraryError> {
    let text = parameter(query, "q");
    let number = |name| parameter(query, name).parse::<usize>().ok();
    let offset = number("offset").unwrap_or(0).min(REACH);
    let limit = number("limit").unwrap_or(PAGE.0).clamp(1, PAGE.1);
    let Some(words) = Query::parse(&text) else {
        return Ok(json!({ "q": text, "offset": 0, "total": 0, "assets": [], "streams": [] }).to_string());
    };
    // More places than rules: all of them are open.
    let sight = |place: usize| sights.get(place).map_or(Some(Sight::Whole), Clone::clone);
    let seen: Vec<(String, Sight, &Arc<str>)> = front
        .places
        .iter()
        .enumerate()
        .filter_map(|(index, place)| Some((prefix(place), sight(index)?, place)))
        .collect();
    let refused = front.places.iter().count() - seen.len();
    let streams = if offset == 0 { streams(front, &seen, &words) } else { Vec::new() };
    let stored: Vec<_> = seen.into_iter().filter(|(_, _, place)| !front.sources.is_live(place)).collect();
    let names = join_all(stored.iter().map(|(prefix, _, place)| front.catalogue.names(place, prefix))).await;
    let sum = |of: fn(&Names) -> usize| names.iter().map(|names| of(names)).sum::<usize>();
    let facts = json!({
        "folders": sum(|names| names.folders),
        "failed": sum(|names| names.failed),
        "refused": refused,
        "is-cut": names.iter().any(|names| names.is_cut),
        "is-reading": names.iter().any(|names| !names.is_read),
    });
    let sights: Vec<(String, Sight)> = stored.into_iter().map(|(prefix, sight, _)| (prefix, sight)).collect();
    let is_visible = move |path: &str| {
        let own = sights.iter().find(|(prefix, _)| is_in(prefix, path));
        own.is_some_and(|(_, sight)| sight.has(path))
    };
    let work = Work::unlimited();
    let spent = work.clone();
    let job = move || search_names(&names, &words, offset..offset.saturating_add(limit), is_visible, &spent);
    let refused = |error| LibraryError::Refused { asset: "search".to_owned(), error };
    let found = front.library.pool().run(&work, job).await.map_err(refused)?;
    // The job is cancelled only when nobody waits for it.
    let found = found.unwrap_or_default();
    let assets: Vec<Value> = found.rows.iter().map(row).collect();
    let reply = json!({
        "q": text, "offset": offset, "total": found.total, "reach": REACH, "assets": assets, "streams": streams, "of": facts,
    });
    Ok(reply.to_string())
}

/// Text that the paths of a place begin with.
fn prefix(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("{place}/") }
}

/// Whether a path is that of a place or lies in it. `prefix` is that of the place.
fn is_in(prefix: &str, path: &str) -> bool {
    path.starts_with(prefix) || path == prefix.trim_end_matches('/')
}

/// Describes a row of the result.
fn row(row: &NameRow) -> Value {
    let mut value = json!({ "path": row.path, "kind": row.kind.name(), "bytes": row.bytes });
    if let Some((number, title)) = &row.list {
        value["title"] = json!(title);
        value["number"] = json!(number);
    }
    value
}

/// Lists the live streams that match, within the places that are seen.
fn streams(front: &Front, seen: &[(String, Sight, &Arc<str>)], words: &Query) -> Vec<Value> {
    let is_seen = |path: &str| {
        let own = seen.iter().find(|(prefix, ..)| is_in(prefix, path));
        own.is_some_and(|(_, sight, _)| sight.has(path))
    };
    live_streams::matching(front, |path| words.matches(path) && is_seen(path), PAGE.1)
}
