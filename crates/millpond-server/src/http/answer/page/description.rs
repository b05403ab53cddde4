//! Assets on the web page: what they are, and their URLs.

use super::{super::Front, streams};
use crate::{
    http::render::AnswerError,
    library::{Asset, Detail, LibraryError, PlacePath, Purpose, Resource, is_media, programme_of},
};
use millpond_library::uri::encode;
use millpond_media::{Chapter, FileProgramme, Movie, SkippedTrack, UnreadCodec};
use millpond_package::{MediaKind, PresentedTrack, TrackCoding, hls::Container, thumbnails::Thumbnails};
use serde_json::{Value, json};
use std::sync::Arc;

/// Opens the asset of a path.
async fn open(front: &Front, path: &str, purpose: Purpose) -> Result<Arc<Asset>, LibraryError> {
    let Some(PlacePath { name: place, inside, .. }) = front.place(path) else {
        return Err(LibraryError::NoAsset(path.to_owned()));
    };
    front.library.open_for(place, inside, purpose, Detail::Outline).await
}

/// Returns the facts of an asset for its row in a list: the duration in seconds, the picture in its file, and a poster. Nothing but
/// the asset's index is made.
pub(super) async fn brief(front: &Front, path: &str) -> Result<String, LibraryError> {
    let path = path.trim_matches('/');
    let asset = open(front, path, Purpose::Listing).await?;
    let mut poster = pictures(&asset, path);
    if let Some((poster, image)) = poster.as_mut().zip(made_poster(front, &asset, path)) {
        poster["image"] = json!(image);
    }
    let artwork = artwork(&asset, path);
    let value =
        json!({ "path": path, "duration": asset.presentation.duration(), "artwork": artwork, "poster": poster });
    Ok(value.to_string())
}

/// Returns the URL of an image of an asset: the picture in its file, else the poster that is made of a key frame.
pub(super) async fn image(front: &Front, path: &str) -> Option<String> {
    let asset = open(front, path, Purpose::Listing).await.ok()?;
    artwork(&asset, path).or_else(|| made_poster(front, &asset, path))
}

/// Returns the URL of the picture in the file of an asset.
fn artwork(asset: &Asset, path: &str) -> Option<String> {
    let artwork = asset.presentation.artwork()?;
    Some(below(asset, path, &format!("artwork.{}", artwork.kind().extension())))
}

/// Returns the URL of the poster that the server makes of a key frame of an asset.
fn made_poster(front: &Front, asset: &Asset, path: &str) -> Option<String> {
    let made = Thumbnails::of(&asset.presentation).filter(|_| front.has_thumbnails())?;
    Some(format!("{}/poster.jpg", below(asset, path, made.track())))
}

/// Returns the URL of a resource of an asset, with the asset's version.
fn below(asset: &Asset, path: &str, name: &str) -> String {
    format!("/{}/{}/{name}", encode(path), asset.version())
}

/// Describes where pictures of an asset are: the key frames of its smallest rendition, which a browser decodes. `None` where
/// it has none, or they are encrypted.
fn pictures(asset: &Asset, path: &str) -> Option<Value> {
    let mut tracks = asset.presentation.tracks().iter();
    let track = tracks.find(|t| t.kind() == MediaKind::Video && !t.is_alternative() && t.is_packaged())?;
    let codec = track.codec_parameter();
    let below = below(asset, path, track.name());
    track.protection().is_none().then(|| json!({ "url": format!("{below}/i1.mp4"), "below": below, "codec": codec }))
}

/// Describes an asset and its URLs.
pub(super) async fn asset(front: &Front, path: &str) -> Result<String, LibraryError> {
    let path = path.trim_matches('/');
    // A title that plays in phases is the stored title for HTTP.
    let path = front.sources.phased_asset(path).unwrap_or(path);
    if let Some(stream) = streams::stream(front, path)? {
        return Ok(stream.to_string());
    }
    let asset = open(front, path, Purpose::Playback).await?;
    let described = |of: &PresentedTrack| track(of, asset.presentation.coding(of));
    let tracks: Vec<Value> = asset.presentation.tracks().iter().map(described).collect();
    let value = json!({
        "path": path,
        "duration": asset.presentation.duration(),
        "tracks": tracks,
        "tags": asset.presentation.tags().cloned().unwrap_or_default(),
        "chapters": asset.presentation.chapters().iter().map(chapter).collect::<Vec<_>>(),
        "programmes": programmes(&asset, path),
        "outputs": outputs(front, &asset, path).await,
        "pictures": pictures(&asset, path),
        "left-out": left_out(&asset),
        "warnings": asset.presentation.warnings().iter().chain(&asset.left_out).collect::<Vec<_>>(),
    });
    Ok(value.to_string())
}

/// Describes a chapter, with its start in seconds.
fn chapter(chapter: &Chapter) -> Value {
    json!({ "start": chapter.start.as_secs_f64(), "title": chapter.title })
}

/// Describes the tracks that are left out because their codec is not read.
fn left_out(asset: &Asset) -> Vec<Value> {
    let mut movies: Vec<&Movie> = Vec::new();
    for movie in asset.presentation.tracks().iter().filter_map(PresentedTrack::movie) {
        if !movies.iter().any(|known| std::ptr::eq(*known, &**movie)) {
            movies.push(movie);
        }
    }
    let described = |track: &SkippedTrack| {
        let UnreadCodec { medium, name } = track.codec.as_ref()?;
        Some(json!({ "track": track.id, "kind": medium.name(), "codec": name }))
    };
    movies.iter().flat_map(|movie| &movie.skipped).filter_map(described).collect()
}

/// Describes the programmes of a transport stream, each with the path at which it plays. Empty for other files, and for assets of
/// several files.
fn programmes(asset: &Asset, path: &str) -> Vec<Value> {
    let file = programme_of(path).map_or(path, |(file, _)| file);
    let mut tracks = asset.presentation.tracks().iter();
    let movie = tracks.find_map(PresentedTrack::movie).filter(|_| asset.objects.len() == 1);
    let described = |programme: &FileProgramme| {
        let FileProgramme { number, name, streams, is_playable, is_chosen, is_default } = programme;
        let path = is_playable.then(|| match (is_chosen, is_default) {
            (true, _) => path.to_owned(),
            // The path with the number would have an index of its own.
            (false, true) => file.to_owned(),
            (false, false) => format!("{file}/{number}"),
        });
        json!({ "number": number, "name": name, "streams": streams, "chosen": is_chosen, "path": path })
    };
    movie.map_or_else(Vec::new, |movie| movie.programmes.iter().map(described).collect())
}

/// Describes a track and its coding.
fn track(track: &PresentedTrack, coding: TrackCoding) -> Value {
    let (width, height) = track.display_size().unzip();
    json!({
        "name": track.name(),
        "kind": match track.kind() {
            MediaKind::Video => "video",
            MediaKind::Audio => "audio",
            MediaKind::Text => "text",
        },
        "codec": coding.parameter,
        "codec-name": coding.name,
        "stored-codec": coding.stored,
        "becomes-flac": coding.becomes_flac,
        "language": track.language(),
        "label": track.label(),
        "width": width,
        "height": height,
        "bandwidth": track.bandwidth().peak,
        "segments": track.segment_count(),
        "alternative": track.is_alternative(),
        "listed": coding.is_listed,
    })
}

/// Returns the URLs of an asset, per protocol.
async fn outputs(front: &Front, asset: &Arc<Asset>, path: &str) -> Value {
    let encoded = encode(path);
    let output = async |resource, tail: &str| match front.lasting.renderer.body(asset, resource, false).await {
        Ok(_) => json!({ "url": format!("/{encoded}/{tail}") }),
        Err(AnswerError::Library(LibraryError::Package { error, .. })) => {
            json!({ "url": null, "reason": error.to_string() })
        }
        Err(error) => json!({ "url": null, "reason": error.for_viewers() }),
    };
    let thumbnails = Thumbnails::of(&asset.presentation).filter(|_| front.has_thumbnails());
    let of_thumbnails =
        |name: &str| thumbnails.map(|made| json!({ "url": format!("/{encoded}/{}/{name}", made.track()) }));
    let channel = |name: &str| front.sources.is_channel(path).then(|| streams::below(path, name));
    let whole = programme_of(path).map_or(path, |(file, _)| file);
    let file = if is_media(whole) { json!({ "url": format!("/{}", encode(whole)) }) } else { Value::Null };
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
        "poster": of_thumbnails("i1.jpg"),
        "thumbnails": of_thumbnails("thumbnails.vtt"),
    })
}

/// Returns an address of RTSP. Only the page knows the host name by which it was reached.
pub(super) fn rtsp(scheme: &str, port: Option<u16>, encoded: &str) -> Option<Value> {
    port.map(|port| json!({ "scheme": scheme, "port": port, "path": format!("/{encoded}") }))
}
