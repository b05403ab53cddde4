//! Live streams on the web page.

use super::{super::Front, description::rtsp};
use crate::{library::LibraryError, live::state, own_streams};
use millpond_library::uri::encode;
use millpond_media::movie::TrackKind;
use millpond_package::{MediaKind, live::FlacUnits};
use millpond_stream::{Format, Source, StreamReport};
use serde_json::{Value, json};
use std::sync::Arc;

/// Lists the streams of a place with live streams, those that are known now. `folder` has no slashes at its ends.
pub(super) fn folder(front: &Front, folder: &str) -> Value {
    let streams = front.sources.manager().streams();
    let is_inside = |path: &str| {
        let rest = path.strip_prefix(folder);
        !own_streams::is_own(path)
            && (folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    let streams: Vec<Value> = streams.iter().filter(|stream| is_inside(&stream.path)).map(shown).collect();
    let slash = if folder.is_empty() { "" } else { "/" };
    let is_published = front.place(folder).is_some_and(|place| front.sources.is_published(place.name));
    json!({
        "folder": format!("{folder}{slash}"), "assets": [], "folders": [], "left-out": [], "streams": streams,
        "is-published": is_published,
    })
}

/// Lists the live streams whose paths `is_wanted`, `most` of them.
pub(super) fn matching(front: &Front, is_wanted: impl Fn(&str) -> bool, most: usize) -> Vec<Value> {
    known(front, is_wanted).take(most).map(|stream| shown(&stream)).collect()
}

/// Returns the paths of the live streams that `is_wanted`, `most` of them.
pub(super) fn paths(front: &Front, is_wanted: impl Fn(&str) -> bool, most: usize) -> Vec<Arc<str>> {
    known(front, is_wanted).take(most).map(|stream| stream.path).collect()
}

/// Returns the live streams that are known now and whose paths `is_wanted`.
fn known(front: &Front, is_wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = StreamReport> {
    let is_live = move |path: &str| front.place(path).is_some_and(|place| front.sources.is_live(place.name));
    let streams = front.sources.manager().streams().into_iter();
    streams.filter(move |stream| is_live(&stream.path) && is_wanted(&stream.path))
}

/// Describes a stream and its URLs; `None` where the path is that of stored media. The stream is not opened.
///
/// # Errors
/// The path can't be the name of a stream.
pub(super) fn stream(front: &Front, path: &str) -> Result<Option<Value>, LibraryError> {
    let Some(request) = front.sources.live(&front.sources.find(path))? else { return Ok(None) };
    let known = front.sources.manager().streams().into_iter().find(|stream| *stream.path == *request.path);
    let formats = known.as_ref().and_then(|stream| stream.epoch.as_ref()).map(|epoch| epoch.formats.clone());
    let tracks: Vec<Value> = formats.iter().flat_map(|formats| formats.iter().flatten()).map(track).collect();
    let live = known.as_ref().map_or_else(|| json!({ "path": path, "state": "waiting" }), shown);
    Ok(Some(json!({
        "path": path, "duration": null, "live": live, "tracks": tracks, "outputs": outputs(front, path), "warnings": [],
        "left-out": [],
        "is-published": request.source == Source::Published,
    })))
}

/// Describes a stream. Addresses of sources are none of the viewers'.
fn shown(stream: &StreamReport) -> Value {
    let mut fields = state::fields(&stream.state);
    fields.insert("path".to_owned(), json!(*stream.path));
    fields.insert("bit-rate".to_owned(), json!(stream.bit_rate));
    Value::Object(fields)
}

/// Describes a track.
fn track(format: &Format) -> Value {
    // Browsers get PCM and G.711 as FLAC.
    let delivered = FlacUnits::delivered(&format.track);
    let delivered = delivered.as_ref().unwrap_or(&format.track);
    let (width, height) = match format.track.kind {
        TrackKind::Video { width, height, .. } => (Some(width), Some(height)),
        _ => (None, None),
    };
    json!({
        "name": format.name,
        "kind": match format.kind {
            MediaKind::Video => "video",
            MediaKind::Audio => "audio",
            MediaKind::Text => "text",
        },
        "codec": delivered.codec.parameter(),
        "stored-codec": format.track.codec.parameter(),
        "becomes-flac": delivered.codec != format.track.codec,
        "language": format.language,
        "width": width,
        "height": height,
    })
}

/// Returns the URLs of a stream, per protocol.
fn outputs(front: &Front, path: &str) -> Value {
    let encoded = encode(path);
    json!({
        "hls": below(path, "index.m3u8"),
        "dash": below(path, "index.mpd"),
        "stream": below(path, "stream.mp4"),
        "whep": front.webrtc().map(|_| below(path, "whep")),
        "rtsp": rtsp("rtsp", Some(front.rtsp_ports().0), &encoded),
        "rtsps": rtsp("rtsps", front.rtsp_ports().1, &encoded),
    })
}

/// Returns the URL of something that is made of a stream or channel.
pub(super) fn below(path: &str, name: &str) -> Value {
    let slash = if path.is_empty() { "" } else { "/" };
    json!({ "url": format!("/{}{slash}{name}", encode(path)) })
}
