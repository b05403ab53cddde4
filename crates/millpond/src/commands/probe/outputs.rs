//! The tracks of each output of an asset, and the reasons for missing tracks. The code that serves the outputs decides.

use crate::commands::Outcome;
use millpond_library::Asset;
use millpond_package::{
    PackageError, Presentation, dash,
    hls::{self, Container},
};
use millpond_stream::{Feed, StoredMedia};
use millpond_terminal::say;
use serde_json::{Value, json};

/// Keys of the outputs, and their names for people.
const NAMES: [(&str, &str); 4] = [("hls-fmp4", "HLS fMP4"), ("hls-ts", "HLS TS"), ("dash", "DASH"), ("rtsp", "RTSP")];

/// The fate of a track in an output.
enum Fate {
    /// Players find the track.
    Listed,
    /// Only a path of its own has the track.
    Apart,
    /// The output lacks the track, with the reason as the end of a sentence about the track.
    Absent(&'static str),
}

/// Reports all outputs of an asset. `outlined` has the index of fragments, `whole` that of all samples.
pub(super) fn report(outlined: &Asset, whole: &Asset) -> Value {
    let (fragments, all) = (&outlined.presentation, &whole.presentation);
    json!({
        "hls-fmp4": playlists(fragments, Container::Fmp4),
        "hls-ts": playlists(all, Container::Ts),
        "dash": manifest(fragments, dash::mpd(fragments), |place| of_dash(fragments, place)),
        "rtsp": rtsp(whole),
    })
}

/// Reports the outputs of an asset that can't be opened.
pub(super) fn none(why: &str) -> Value {
    NAMES.iter().map(|(key, _)| ((*key).to_owned(), unavailable(why))).collect()
}

fn unavailable(why: &str) -> Value {
    json!({ "available": "no", "why": why, "tracks": [], "apart": [], "without": [] })
}

fn playlists(presentation: &Presentation, container: Container) -> Value {
    manifest(presentation, hls::multivariant(presentation, container), |place| {
        let track = &presentation.tracks()[place];
        match hls::absence(presentation, track, container) {
            Some(why) => Fate::Absent(why),
            None if track.is_alternative() => Fate::Apart,
            None => Fate::Listed,
        }
    })
}

/// DASH has an adaptation set of its own for an alternative video.
fn of_dash(presentation: &Presentation, place: usize) -> Fate {
    let absence = hls::absence(presentation, &presentation.tracks()[place], Container::Fmp4);
    absence.map_or(Fate::Listed, Fate::Absent)
}

fn manifest(presentation: &Presentation, made: Result<String, PackageError>, fate: impl Fn(usize) -> Fate) -> Value {
    match made {
        Ok(_) => output(presentation, fate),
        Err(error) => unavailable(&error.to_string()),
    }
}

fn rtsp(asset: &Asset) -> Value {
    let (objects, presentation) = (asset.objects.clone(), asset.presentation.clone());
    let media = StoredMedia::new(asset.path.clone(), asset.id, objects, presentation);
    let feed: &(dyn Feed + 'static) = &media;
    let described: Vec<usize> = feed.chosen(None, None).iter().map(|(place, _)| *place).collect();
    output(&asset.presentation, |place| match media.format(place).map(|format| format.unsent()) {
        None => Fate::Absent("is not sent by RTSP, which has no subtitles"),
        Some(Some(why)) => Fate::Absent(why),
        Some(None) if described.contains(&place) => Fate::Listed,
        Some(None) => Fate::Apart,
    })
}

fn output(presentation: &Presentation, fate: impl Fn(usize) -> Fate) -> Value {
    let (mut tracks, mut apart, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for (place, track) in presentation.tracks().iter().enumerate() {
        match fate(place) {
            Fate::Listed => tracks.push(track.name()),
            Fate::Apart => apart.push(track.name()),
            Fate::Absent(why) => without.push(json!({ "track": track.name(), "why": why })),
        }
    }
    let available = match (tracks.is_empty(), without.is_empty()) {
        (true, _) => "no",
        (false, true) => "yes",
        (false, false) => "in part",
    };
    json!({ "available": available, "why": null, "tracks": tracks, "apart": apart, "without": without })
}

pub(super) fn print_text(outputs: &Value) -> Outcome {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let list = |v: &Value| v.as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(", ");
    for (key, name) in NAMES {
        let output = &outputs[key];
        let tracks = [list(&output["tracks"]), text(&output["why"])];
        let apart = list(&output["apart"]);
        let apart = if apart.is_empty() { apart } else { format!("by its own path: {apart}") };
        let without = output["without"].as_array().into_iter().flatten();
        let without = without.map(|absent| format!("{} {}", text(&absent["track"]), text(&absent["why"])));
        let parts = tracks.into_iter().chain([apart]).chain(without).filter(|part| !part.is_empty());
        say!("  {name}: {}: {}", text(&output["available"]), parts.collect::<Vec<_>>().join("; "))?;
    }
    Ok(())
}
