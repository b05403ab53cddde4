//! Searches of the web page, over all folders of all places.

use super::{
    super::Front,
    seen::{SeenPlace, sees},
    streams as live_streams,
};
use crate::library::{LibraryError, NameRow, Names, Query, search as search_names};
use futures_util::future::join_all;
use millpond_access::Sight;
use millpond_library::uri::parameter;
use millpond_media::Work;
use serde_json::{Value, json};

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
    let seen = SeenPlace::all(front, sights);
    let refused = front.places.iter().count() - seen.len();
    let streams = if offset == 0 { streams(front, &seen, &words) } else { Vec::new() };
    let stored: Vec<SeenPlace> = seen.into_iter().filter(|place| !front.sources.is_live(&place.name)).collect();
    let names = join_all(stored.iter().map(|place| front.catalogue.names(&place.name, &place.prefix))).await;
    let sum = |of: fn(&Names) -> usize| names.iter().map(|names| of(names)).sum::<usize>();
    let facts = json!({
        "folders": sum(|names| names.folders),
        "failed": sum(|names| names.failed),
        "refused": refused,
        "is-cut": names.iter().any(|names| names.is_cut),
        "is-reading": names.iter().any(|names| !names.is_read),
    });
    let is_visible = move |path: &str| sees(&stored, path);
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
fn streams(front: &Front, seen: &[SeenPlace], words: &Query) -> Vec<Value> {
    live_streams::matching(front, |path| words.matches(path) && sees(seen, path), PAGE.1)
}
