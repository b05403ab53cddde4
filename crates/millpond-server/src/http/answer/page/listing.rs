//! Folders on the web page.

use super::{super::Front, streams};
use crate::library::{LibraryError, ListedArtwork, ListedFolder, ListedRow, PlacePath, folder_path};
use millpond_library::uri::encode;
use millpond_media::Work;
use millpond_store::Entry;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    time::UNIX_EPOCH,
};

/// Lists a folder.
pub(super) async fn assets(front: &Front, folder: &str) -> Result<String, LibraryError> {
    let folder = folder.trim_matches('/');
    if front.places.are_named() && folder.is_empty() {
        let folders: Vec<String> = front.places.iter().map(|p| format!("{p}/")).collect();
        let live: Vec<String> =
            front.places.iter().filter(|p| front.sources.is_live(p)).map(|p| format!("{p}/")).collect();
        let list = json!({ "folder": "", "assets": [], "folders": folders, "left-out": [], "live": live });
        return Ok(list.to_string());
    }
    let Some(PlacePath { name: place, inside, .. }) = front.place(folder) else {
        return Err(LibraryError::NoAsset(folder.to_owned()));
    };
    if front.sources.is_live(place) {
        return Ok(streams::folder(front, folder).to_string());
    }
    let path =
        folder_path(inside).map_err(|e| LibraryError::BadPath { path: folder.to_owned(), why: e.to_string() })?;
    let entries = front.store.list(place, &path).await?;
    let (owned, owned_place) = (folder.to_owned(), place.clone());
    let catalogue = front.catalogue.clone();
    let refused = |error| LibraryError::Refused { asset: folder.to_owned(), error };
    let copied = front.library.being_copied(place, &path, &entries).await;
    let grouped = front.library.titles(place);
    let list = move || {
        let listed = ListedFolder::of(&owned, &entries, grouped);
        catalogue.learn(&owned_place, &listed);
        listing(&listed, &entries, &copied).to_string()
    };
    front.library.pool().run(&Work::unlimited(), list).await.map_err(refused)
}

/// Tells whether a path is that of a folder of stored media with something in it. An object store knows no empty folders.
pub(super) async fn is_folder(front: &Front, folder: &str) -> bool {
    let Some(PlacePath { name: place, inside, .. }) = front.place(folder) else { return false };
    let Ok(path) = folder_path(inside) else { return false };
    front.store.list(place, &path).await.is_ok_and(|entries| !entries.is_empty())
}

/// Lists titles of several files, then each file, then media that is not served.
fn listing(listed: &ListedFolder, entries: &[Entry], copied: &[String]) -> Value {
    let prefix = &listed.prefix;
    let dates = dates(entries);
    let copied: HashSet<&str> = copied.iter().map(String::as_str).collect();
    let asset = |row: &ListedRow| {
        let mut asset = json!({ "path": row.path, "kind": row.kind.name(), "bytes": row.bytes });
        if !row.files.is_empty() {
            asset["files"] = json!(row.files);
            asset["title"] = json!(row.title);
        }
        let name = row.path.strip_prefix(prefix.as_str());
        if name.is_some_and(|name| copied.contains(name)) {
            asset["state"] = "copying".into();
        }
        let names = name.into_iter().chain(row.files.iter().map(String::as_str));
        if let Some(modified) = names.filter_map(|name| dates.get(name)).max() {
            asset["modified"] = json!(modified);
        }
        put_artwork(&mut asset, prefix, &row.artwork);
        asset
    };
    let left_out = listed.left_out.iter().map(|left| {
        json!({
            "path": format!("{prefix}{}", left.name),
            "format": left.format.name(),
            "command": left.format.command(&left.name),
        })
    });
    let left_out: Vec<Value> = left_out.collect();
    let assets: Vec<Value> = listed.rows.iter().map(asset).collect();
    let mut list = json!({ "folder": prefix, "assets": assets, "folders": listed.folders, "left-out": left_out });
    put_artwork(&mut list, prefix, &listed.artwork);
    list
}

/// Adds the URLs of image files to a description.
fn put_artwork(described: &mut Value, prefix: &str, artwork: &ListedArtwork) {
    let files = [("artwork", &artwork.picture), ("backdrop", &artwork.backdrop)];
    for (field, name) in files.into_iter().filter_map(|(field, name)| Some((field, name.as_ref()?))) {
        described[field] = json!(format!("/{}", encode(&format!("{prefix}{name}"))));
    }
}

/// Returns the last modification of each file in seconds of Unix time, as far as the origin's listing has it.
fn dates(entries: &[Entry]) -> HashMap<&str, u64> {
    let date = |entry: &Entry| Some(entry.modified?.duration_since(UNIX_EPOCH).ok()?.as_secs());
    entries.iter().filter_map(|entry| Some((entry.name.as_str(), date(entry)?))).collect()
}
