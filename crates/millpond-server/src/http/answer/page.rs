//! The web page at `/` and its data below `/.millpond/`.

use super::{
    Front, dates, page_streams,
    representation::{Negotiation, SelectedRepresentation, etag},
};
use crate::{
    http::{
        body::Body,
        render::{AnswerError, TextId},
        request::{
            Request,
            coding::Coding,
            uri::{encode, parameter},
        },
    },
    library::{Asset, FolderContent, LibraryError, Purpose, Resource, fingerprint, folder_path, is_manifest, is_media},
};
use bytes::Bytes;
use http::HeaderValue;
use millpond_media::Work;
use millpond_package::{MediaKind, PresentedTrack, hls::Container};
use millpond_store::{Entry, Titles};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::SystemTime,
};

/// Path of the server's time, with which players of live DASH compare their clocks.
pub(super) const TIME: &str = "/.millpond/time";
/// `Cache-Control` of data.
const NO_STORE: &str = "no-store";
/// `Cache-Control` of the files of the page.
const PAGE: &str = "no-cache";

macro_rules! embedded {
    ($($path:literal => $file:literal, $kind:literal;)*) => {
        /// Files of the page: path, media type, content.
        const FILES: &[(&str, &str, &[u8])] = &[$(($path, $kind, include_bytes!(concat!("../../../page/", $file)))),*];
    };
}

embedded! {
    "/" => "index.html", "text/html; charset=utf-8";
    "/.millpond/app.js" => "app.js", "text/javascript; charset=utf-8";
    "/.millpond/live.js" => "live.js", "text/javascript; charset=utf-8";
    "/.millpond/style.css" => "style.css", "text/css; charset=utf-8";
    "/.millpond/vendor/hls.min.js" => "vendor/hls.min.js", "text/javascript; charset=utf-8";
    "/.millpond/vendor/dash.all.min.js" => "vendor/dash.all.min.js", "text/javascript; charset=utf-8";
    "/.millpond/vendor/shaka-player.compiled.js" => "vendor/shaka-player.compiled.js", "text/javascript; charset=utf-8";
}

impl Front {
    /// Selects a resource of the page.
    pub(super) async fn page(
        &self,
        path: &str,
        query: &str,
        request: &Request,
    ) -> Result<SelectedRepresentation, AnswerError> {
        let (content_type, cache_control, bytes) = content(self, path, query).await?;
        let hash = fingerprint(&bytes);
        let mut selected = SelectedRepresentation {
            content_type: HeaderValue::from_static(content_type),
            cache_control: HeaderValue::from_static(cache_control),
            etag: etag(hash),
            modified: None,
            more: Vec::new(),
            negotiation: Negotiation::Uncoded,
            body: Body::bytes(bytes.clone()),
        };
        if let Some(coding) = Coding::preferred(request)
            && let Some(coded) = self.coded_texts.get(TextId::Hash(hash), coding, &bytes).await
        {
            (selected.negotiation, selected.body) = (Negotiation::Coded(coding), Body::bytes(coded));
        }
        Ok(selected)
    }
}

/// Returns media type, `Cache-Control` and content of a resource of the page.
async fn content(front: &Front, path: &str, query: &str) -> Result<(&'static str, &'static str, Bytes), LibraryError> {
    if let Some((_, kind, content)) = FILES.iter().find(|(p, ..)| *p == path) {
        return Ok((kind, PAGE, Bytes::from_static(content)));
    }
    if path == TIME {
        return Ok(("text/plain", NO_STORE, Bytes::from(dates::utc(SystemTime::now()))));
    }
    let text = match path {
        "/.millpond/assets" => assets(front, &parameter(query, "folder")).await?,
        "/.millpond/asset" => asset(front, &parameter(query, "path")).await?,
        "/.millpond/duration" => duration(front, &parameter(query, "path")).await?,
        _ => return Err(LibraryError::NoAsset(path.to_owned())),
    };
    Ok(("application/json", NO_STORE, Bytes::from(text)))
}

/// Lists a folder for the page.
async fn assets(front: &Front, folder: &str) -> Result<String, LibraryError> {
    let folder = folder.trim_matches('/');
    let named = front.places.are_named();
    if named && folder.is_empty() {
        let folders: Vec<String> = front.places.iter().map(|p| format!("{p}/")).collect();
        let live: Vec<String> =
            front.places.iter().filter(|p| front.sources.is_live(p)).map(|p| format!("{p}/")).collect();
        let list = json!({ "folder": "", "assets": [], "folders": folders, "left-out": [], "live": live });
        return Ok(list.to_string());
    }
    let Some((_, place, inside)) = front.place(folder) else { return Err(LibraryError::NoAsset(folder.to_owned())) };
    if front.sources.is_live(place) {
        return Ok(page_streams::folder(front, folder).to_string());
    }
    let path =
        folder_path(inside).map_err(|e| LibraryError::BadPath { path: folder.to_owned(), why: e.to_string() })?;
    let entries = front.store.list(place, &path).await?;
    let owned = folder.to_owned();
    let refused = |error| LibraryError::Refused { asset: folder.to_owned(), error };
    let copied = front.library.being_copied(place, &path, &entries).await;
    let grouped = front.library.titles(place);
    let list = move || listing(&owned, &entries, grouped, &copied).to_string();
    front.library.pool().run(&Work::unlimited(), list).await.map_err(refused)
}

/// Lists titles of several files, then each file, then media that is not served.
fn listing(folder: &str, entries: &[Entry], grouped: Titles, copied: &[String]) -> Value {
    let content = FolderContent::of(entries, grouped);
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let lengths: HashMap<&str, u64> = entries.iter().map(|entry| (entry.name.as_str(), entry.len)).collect();
    let whole = content.is_asset && content.titles.iter().all(|title| title.path.as_deref() != Some(""));
    let sum =
        || content.titles.iter().flat_map(|t| &t.files).filter_map(|name| lengths.get(name.as_str())).sum::<u64>();
    let manifest = (whole && !folder.is_empty()).then(|| json!({ "path": folder, "kind": "folder", "bytes": sum() }));
    let mut assets: Vec<Value> = manifest.into_iter().collect();
    for title in content.titles.iter().filter(|title| title.files.len() > 1) {
        let bytes: u64 = title.files.iter().filter_map(|name| lengths.get(name.as_str())).sum();
        let (path, kind) = match title.path.as_deref() {
            Some("") if folder.is_empty() => continue,
            Some("") => (folder.to_owned(), "folder"),
            Some(list) => (format!("{prefix}{list}"), "list"),
            None => continue,
        };
        assets.push(json!({ "path": path, "kind": kind, "bytes": bytes, "files": title.files }));
    }
    let copied: HashSet<&str> = copied.iter().map(String::as_str).collect();
    assets.extend(entries.iter().filter(|e| !e.folder).filter_map(|e| {
        let kind = if is_media(&e.name) {
            "file"
        } else if is_manifest(&e.name) {
            "manifest"
        } else {
            return None;
        };
        let mut asset = json!({ "path": format!("{prefix}{}", e.name), "kind": kind, "bytes": e.len });
        if copied.contains(e.name.as_str()) {
            asset["state"] = "copying".into();
        }
        Some(asset)
    }));
    let left_out = content.left_out.iter().map(|left| {
        json!({
            "path": format!("{prefix}{}", left.name),
            "format": left.format.name(),
            "command": left.format.command(&left.name),
        })
    });
    let left_out: Vec<Value> = left_out.collect();
    let folders: Vec<String> = content.folders.iter().map(|name| format!("{prefix}{name}/")).collect();
    json!({ "folder": prefix, "assets": assets, "folders": folders, "left-out": left_out })
}

/// Opens the asset of a path.
async fn open(front: &Front, path: &str, purpose: Purpose) -> Result<Arc<Asset>, LibraryError> {
    let Some((_, place, inside)) = front.place(path) else { return Err(LibraryError::NoAsset(path.to_owned())) };
    front.library.open_for(place, inside, purpose).await
}

/// Returns the duration of an asset, in seconds. Only its index is made for it.
async fn duration(front: &Front, path: &str) -> Result<String, LibraryError> {
    let path = path.trim_matches('/');
    let asset = open(front, path, Purpose::Listing).await?;
    Ok(json!({ "path": path, "duration": asset.presentation.duration() }).to_string())
}

/// Describes an asset and its URLs.
async fn asset(front: &Front, path: &str) -> Result<String, LibraryError> {
    let path = path.trim_matches('/');
    if let Some(stream) = page_streams::stream(front, path)? {
        return Ok(stream.to_string());
    }
    let asset = open(front, path, Purpose::Playback).await?;
    let tracks: Vec<Value> = asset.presentation.tracks().iter().map(track).collect();
    let value = json!({
        "path": path,
        "duration": asset.presentation.duration(),
        "tracks": tracks,
        "outputs": outputs(front, &asset, path).await,
        "warnings": asset.presentation.warnings().iter().chain(&asset.left_out).collect::<Vec<_>>(),
    });
    Ok(value.to_string())
}

/// Describes a track.
fn track(track: &PresentedTrack) -> Value {
    let (width, height) = track.display_size().unzip();
    json!({
        "name": track.name(),
        "kind": match track.kind() {
            MediaKind::Video => "video",
            MediaKind::Audio => "audio",
            MediaKind::Text => "text",
        },
        "codec": track.codec_parameter(),
        "language": track.language(),
        "label": track.label(),
        "width": width,
        "height": height,
        "bandwidth": track.bandwidth().peak,
        "segments": track.segment_count(),
        "alternative": track.is_alternative(),
    })
}

/// Returns the URLs of an asset, per protocol.
async fn outputs(front: &Front, asset: &Arc<Asset>, path: &str) -> Value {
    let encoded = encode(path);
    let output = async |resource, tail: &str| match front.renderer.body(asset, resource, false).await {
        Ok(_) => json!({ "url": format!("/{encoded}/{tail}") }),
        Err(AnswerError::Library(LibraryError::Package { error, .. })) => {
            json!({ "url": null, "reason": error.to_string() })
        }
        Err(error) => json!({ "url": null, "reason": error.to_string() }),
    };
    let channel = |name: &str| front.sources.is_channel(path).then(|| page_streams::below(path, name));
    let file = if is_media(path) { json!({ "url": format!("/{encoded}") }) } else { Value::Null };
    json!({
        "hls": output(Resource::Multivariant(Container::Fmp4), "index.m3u8").await,
        "hls-ts": output(Resource::Multivariant(Container::Ts), "ts/index.m3u8").await,
        "dash": output(Resource::Mpd, "index.mpd").await,
        "stream": channel("stream.mp4"),
        "hls-live": channel("live/index.m3u8"),
        "dash-live": channel("live/index.mpd"),
        "rtsp": rtsp("rtsp", Some(front.rtsp_ports().0), &encoded),
        "rtsps": rtsp("rtsps", front.rtsp_ports().1, &encoded),
        "file": file,
    })
}

/// Returns an address of RTSP. Only the page knows the host name by which it was reached.
pub(super) fn rtsp(scheme: &str, port: Option<u16>, encoded: &str) -> Option<Value> {
    port.map(|port| json!({ "scheme": scheme, "port": port, "path": format!("/{encoded}") }))
}
