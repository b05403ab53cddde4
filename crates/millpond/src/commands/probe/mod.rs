//! `millpond probe`: the tracks of a file, their segments, and the outputs that can carry them; the titles of a folder.

mod folder;
mod outputs;

use super::{Outcome, runtime};
use crate::target::{self, Opened};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_library::{
    Asset, Detail, Library, LibraryOptions, Purpose, is_manifest, is_playlist, programme_of,
    work::{PoolOptions, WorkPool},
};
use millpond_media::{Chapter, FileProgramme, Movie, Orientation, Track, TrackKind, spans};
use millpond_package::{PresentedTrack, TrackCoding};
use millpond_terminal::{out, say};
use serde_json::{Value, json};
use std::{collections::HashMap, error::Error, ops::RangeInclusive, sync::Arc, time::Duration};

/// Bounds of the duration of segments, in seconds.
const SEGMENT: RangeInclusive<f64> = 0.5..=60.0;

pub(crate) fn command() -> Command {
    Command::new("probe")
        .about(
            "Shows the tracks of a media file, playlist or server manifest, and the outputs that carry them. For a folder it \
                shows which files are one title",
        )
        .arg(
            Arg::new("target").value_name("FILE|FOLDER|URL").required(true).help(
                "A path, http(s)://..., s3://..., gs://... or az://...; PATH/7 is programme 7 of a transport stream",
            ),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints JSON"))
        .arg(
            Arg::new("segment-duration")
                .long("segment-duration")
                .value_name("SECONDS")
                .value_parser(clap::value_parser!(f64))
                .default_value("4")
                .help("Target duration of segments"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let report = runtime()?.block_on(report(matches))?;
    if matches.get_flag("json") {
        return out::json(&format!("{report:#}"));
    }
    if report["folder"].is_string() { folder::print_text(&report) } else { print_text(&report) }
}

async fn report(matches: &ArgMatches) -> Result<Value, Box<dyn Error>> {
    let name = matches.get_one::<String>("target").map(String::as_str).unwrap_or_default();
    let target_duration = matches.get_one::<f64>("segment-duration").copied().unwrap_or(4.0);
    if !SEGMENT.contains(&target_duration) {
        let (least, most) = (*SEGMENT.start(), *SEGMENT.end());
        return Err(format!("--segment-duration {target_duration:?}: expected {least} to {most} seconds").into());
    }
    // A file may have a path such as `film.ts/7` by itself.
    let of_programme = programme_of(name).filter(|_| !std::path::Path::new(name).exists());
    let (file, programme) = of_programme.map_or((name, None), |(file, number)| (file, Some(number)));
    let opened = target::open(file)?;
    if opened.path.is_root() {
        return folder::report(name, &opened).await;
    }
    if is_playlist(opened.path.file_name()) || is_manifest(opened.path.file_name()) {
        let asset = ProbedAsset::open(&opened, programme, target_duration).await?;
        return Ok(json!({
            "file": name,
            "objects": asset.outlined.objects.len(),
            "chapters": asset.outlined.presentation.chapters().iter().map(chapter).collect::<Vec<_>>(),
            "presentation": asset.presentation(),
            "outputs": asset.outputs(),
        }));
    }
    let object = opened.store.open("", &opened.path).await?;
    let indexed = target::index_of_programme(&opened.store, &object, programme).await?;
    let movie = indexed.movie;
    // The media of an index file may be out of reach.
    let asset = match ProbedAsset::open(&opened, programme, target_duration).await {
        Err(error) if movie.external_media.is_some() => Err(error.to_string()),
        asset => Ok(asset?),
    };
    let absent = |error: &String| json!({ "duration": null, "tracks": [], "warnings": [error] });
    Ok(json!({
        "file": name,
        "bytes": object.meta().len,
        "layout": if movie.fragmented { "fragmented" } else { "progressive" },
        "external-media": movie.external_media,
        "index": {
            "ranges": indexed.ranges,
            "round-trips": indexed.batches,
            "bytes-read": indexed.bytes,
            "bytes-in-memory": movie.heap_bytes(),
        },
        "tracks": movie.tracks.iter().map(|t| track(t, &movie)).collect::<Vec<_>>(),
        "tags": movie.tags,
        "chapters": movie.chapters.iter().map(chapter).collect::<Vec<_>>(),
        "programmes": movie.programmes.iter().map(programme_of_file).collect::<Vec<_>>(),
        "left-out": movie.skipped.iter().map(|s| json!({ "id": s.id, "reason": s.reason })).collect::<Vec<_>>(),
        "presentation": asset.as_ref().map_or_else(absent, ProbedAsset::presentation),
        "outputs": asset.as_ref().map_or_else(|error| outputs::none(error), ProbedAsset::outputs),
    }))
}

/// An asset as a server opens it.
struct ProbedAsset {
    /// The asset with the index for manifests and fragmented MP4.
    outlined: Arc<Asset>,
    /// The asset with the index for all other outputs.
    whole: Arc<Asset>,
}

impl ProbedAsset {
    async fn open(opened: &Opened, programme: Option<u16>, target_duration: f64) -> Result<Self, Box<dyn Error>> {
        let options = LibraryOptions {
            segment_duration: Duration::from_secs_f64(target_duration),
            index_folder: None,
            cache_size: 0,
            lists_thumbnails: false,
            places: HashMap::new(),
        };
        let pool = Arc::new(WorkPool::new(PoolOptions { threads: 2 }, opened.store.memory())?);
        let library = Arc::new(Library::new(opened.store.clone(), pool, options));
        let path = programme.map_or_else(|| opened.path.to_string(), |number| format!("{}/{number}", opened.path));
        let place = "".into();
        let outlined = library.open_for(&place, &path, Purpose::Playback, Detail::Outline).await?;
        let whole = library.open(&place, &path).await?;
        Ok(Self { outlined, whole })
    }

    fn presentation(&self) -> Value {
        let presentation = &self.outlined.presentation;
        let tracks = presentation.tracks().iter().map(|track| presented(track, presentation.coding(track)));
        json!({
            "duration": presentation.duration(),
            "tracks": tracks.collect::<Vec<_>>(),
            "warnings": presentation.warnings().iter().chain(&self.outlined.left_out).collect::<Vec<_>>(),
        })
    }

    fn outputs(&self) -> Value {
        outputs::report(&self.outlined, &self.whole)
    }
}

fn chapter(chapter: &Chapter) -> Value {
    json!({ "start": chapter.start.as_secs_f64(), "title": chapter.title })
}

fn programme_of_file(programme: &FileProgramme) -> Value {
    let FileProgramme { number, name, streams, is_playable, is_chosen, .. } = programme;
    json!({ "number": number, "name": name, "streams": streams, "playable": is_playable, "chosen": is_chosen })
}

/// Returns a line about a programme.
fn programme_line(programme: &Value) -> String {
    let name = programme["name"].as_str().map_or_else(String::new, |name| format!(" ({name})"));
    let streams = programme["streams"].as_str().unwrap_or_default();
    let fate = match (programme["chosen"] == true, programme["playable"] == true) {
        (true, _) => "this one",
        (false, true) => "can be chosen",
        (false, false) => "can't be played",
    };
    format!("programme {}{name}: {streams}; {fate}", programme["number"])
}

fn track(track: &Track, movie: &Movie) -> Value {
    let seconds = track.timescale.seconds(track.samples.end_dts() - track.samples.start_dts());
    let what = match track.kind {
        TrackKind::Video { width, height, orientation, .. } if orientation != Orientation::UPRIGHT => {
            let mirrored = if orientation.is_mirrored() { ", mirrored" } else { "" };
            format!("{width}x{height}{mirrored}, rotated {}", orientation.degrees())
        }
        TrackKind::Video { width, height, .. } => format!("{width}x{height}"),
        TrackKind::Audio { channels, sample_rate } => format!("{channels} channels, {sample_rate} Hz"),
        TrackKind::Text => "text".to_owned(),
    };
    let shown: Vec<Value> = spans(track, movie.timescale)
        .iter()
        .map(|s| json!({ "samples": [s.samples.start, s.samples.end], "start": track.timescale.seconds(s.start), "end": track.timescale.seconds(s.end) }))
        .collect();
    json!({
        "id": track.id,
        "codec": track.codec.name(),
        "parameter": track.codec.parameter(),
        "what": what,
        "encryption": track.protection.as_ref().map(|p| format!("{} with key {}", p.scheme.name(), p.parameters.key_id)),
        "language": track.language,
        "samples": track.samples.len(),
        "sync-samples": if track.samples.all_sync() { track.samples.len() as usize } else { track.samples.sync_samples().count() },
        "timescale": track.timescale.get(),
        "seconds": seconds,
        "bits-per-second": if seconds > 0.0 { (track.samples.total_bytes() as f64 * 8.0 / seconds) as u64 } else { 0 },
        "shown": shown,
    })
}

fn presented(track: &PresentedTrack, coding: TrackCoding) -> Value {
    let lengths: Vec<f64> =
        (1..=track.segment_count()).filter_map(|n| track.segment(n)).map(|s| s.timescale.seconds(s.duration)).collect();
    let (least, most) = lengths.iter().fold((f64::MAX, 0.0f64), |(a, b), d| (a.min(*d), b.max(*d)));
    json!({
        "name": track.name(),
        "label": track.label(),
        "language": track.language(),
        "codec": coding.parameter,
        "codec-name": coding.name,
        "stored-codec": coding.stored,
        "becomes-flac": coding.becomes_flac,
        "listed": coding.is_listed,
        "peak-bandwidth": track.bandwidth().peak,
        "alternative": track.is_alternative(),
        "segments": lengths.len(),
        "shortest": if lengths.is_empty() { 0.0 } else { least },
        "longest": most,
    })
}

/// Returns the number of a track's segments and their durations.
fn segments(track: &Value) -> String {
    let (shortest, longest) = (track["shortest"].as_f64().unwrap_or(0.0), track["longest"].as_f64().unwrap_or(0.0));
    match track["segments"].as_u64().unwrap_or(0) {
        1 => format!("1 segment of {longest:.3} s"),
        count if format!("{shortest:.3}") == format!("{longest:.3}") => format!("{count} segments of {longest:.3} s"),
        count => format!("{count} segments of {shortest:.3} to {longest:.3} s"),
    }
}

/// Returns how HLS with fMP4 and DASH deliver a track, where this is not as it is stored.
fn delivery(track: &Value) -> String {
    let manifests = "in HLS fMP4 and DASH";
    match (track["listed"] == true, track["becomes-flac"] == true) {
        (false, _) => format!(", not listed {manifests}"),
        (true, true) => format!(", FLAC ({}) {manifests}", track["codec"].as_str().unwrap_or_default()),
        (true, false) => String::new(),
    }
}

fn print_text(report: &Value) -> Outcome {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    if let Some(objects) = report["objects"].as_u64() {
        say!("{}: refers to media, as {objects} objects", text(&report["file"]))?;
        return print_presentation(report);
    }
    say!("{}: {} bytes, {}", text(&report["file"]), report["bytes"], text(&report["layout"]))?;
    if let Some(location) = report["external-media"].as_str() {
        say!("  media in {location}")?;
    }
    let index = &report["index"];
    say!(
        "  index: {} ranges in {} round trips, {} bytes read, {} bytes in memory",
        index["ranges"],
        index["round-trips"],
        index["bytes-read"],
        index["bytes-in-memory"]
    )?;
    for t in report["tracks"].as_array().into_iter().flatten() {
        say!(
            "  track {}: {} ({}), {}, {}, {:.3} s, {} samples ({} sync), {} kbit/s",
            t["id"],
            text(&t["codec"]),
            text(&t["parameter"]),
            text(&t["what"]),
            text(&t["language"]),
            t["seconds"].as_f64().unwrap_or(0.0),
            t["samples"],
            t["sync-samples"],
            t["bits-per-second"].as_u64().unwrap_or(0) / 1000
        )?;
        if let Some(encryption) = t["encryption"].as_str() {
            say!("    encrypted: {encryption}")?;
        }
        for s in t["shown"].as_array().into_iter().flatten() {
            say!(
                "    shown: samples {} from {:.3} s to {:.3} s",
                s["samples"],
                s["start"].as_f64().unwrap_or(0.0),
                s["end"].as_f64().unwrap_or(0.0)
            )?;
        }
    }
    for name in ["title", "artist", "album"] {
        if let Some(tag) = report["tags"][name].as_str() {
            say!("  {name}: {tag}")?;
        }
    }
    let programmes = report["programmes"].as_array().filter(|all| all.len() > 1);
    for p in programmes.into_iter().flatten() {
        say!("  {}", programme_line(p))?;
    }
    for s in report["left-out"].as_array().into_iter().flatten() {
        say!("  track {} left out: {}", s["id"], text(&s["reason"]))?;
    }
    print_presentation(report)
}

fn print_presentation(report: &Value) -> Outcome {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    for c in report["chapters"].as_array().into_iter().flatten() {
        say!("  chapter at {:.3} s: {}", c["start"].as_f64().unwrap_or(0.0), text(&c["title"]))?;
    }
    for t in report["presentation"]["tracks"].as_array().into_iter().flatten() {
        say!(
            "  {} {}: {}, peak {} kbit/s{}",
            text(&t["name"]),
            text(&t["label"]),
            segments(t),
            t["peak-bandwidth"].as_u64().unwrap_or(0) / 1000,
            delivery(t)
        )?;
    }
    // Tracks that are left out are printed already.
    let left_out: Vec<&str> =
        report["left-out"].as_array().into_iter().flatten().filter_map(|left| left["reason"].as_str()).collect();
    for warning in report["presentation"]["warnings"].as_array().into_iter().flatten().map(text) {
        if !left_out.iter().any(|reason| warning.ends_with(*reason)) {
            say!("  warning: {warning}")?;
        }
    }
    outputs::print_text(&report["outputs"])
}
