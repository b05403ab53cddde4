//! Findings about a configuration that holds, here and now: parts of it that will not work.

mod failovers;
mod lone_file;
mod nodes;
mod useless;

use crate::{
    config::{Config, Loaded, PlaceConfig},
    library::{PlacePath, Places, live_name},
    live::ChannelConfig,
    modules::ModuleLine,
};
use millpond_connections::tls::{Certificates, TlsSource};
use millpond_place::PlaceSpec;
use millpond_settings::nearest;
use millpond_stream::modules::TEE;
use rustix::fs::{Access, access};
use std::{path::Path, time::SystemTime};

/// Returns warnings of parts of a configuration that will not work. Origins are not asked.
///
/// Such parts are places of one file that is no media, channels that no place has, modules that will not run, a folder of recordings
/// that can't be written, a certificate that is not valid now or that other nodes refuse, and settings without effect.
pub fn doubts(loaded: &Loaded) -> Vec<String> {
    let config = &loaded.config;
    let assets = config.rtsp.channels.iter().flat_map(|channel| &channel.assets);
    let channels = assets.filter_map(|asset| channel_doubt(asset, &config.places));
    let hiding = config.rtsp.channels.iter().filter_map(|channel| hiding_doubt(channel, &config.places));
    let modules = config.modules.all().flat_map(|line| module_doubts(line, config));
    let failovers = config.failover.lines.iter().flat_map(|line| failovers::doubts(line, config));
    let schedules = config.schedule.lines.iter().flat_map(|line| output_doubts("schedule", &line.to, config));
    let names = config.places.iter().filter_map(name_doubt);
    let recorded = config.record.rules.iter().filter_map(|rule| recording_doubt(rule.streams(), config));
    let folder = config.record.folder.as_deref().and_then(folder_doubt);
    let is_live = !config.rtsp.channels.is_empty() || config.places.iter().any(|place| place.spec.is_live());
    let pointless = (config.record.folder.is_some() && !is_live).then(|| {
        "record-folder is set, but there is nothing to record: no channel (rtsp-channels) and no place with live streams"
            .to_owned()
    });
    let certificate = config.tls.source().and_then(|source| certificate_doubt(&source));
    let lone_files = config.places.iter().filter_map(lone_file::doubt);
    lone_files
        .chain(names)
        .chain(channels)
        .chain(hiding)
        .chain(modules)
        .chain(failovers)
        .chain(schedules)
        .chain(recorded)
        .chain(folder)
        .chain(pointless)
        .chain(certificate)
        .chain(nodes::doubts(config))
        .chain(useless::warnings(loaded))
        .collect()
}

/// Returns why paths of a place with live streams would be those of something else, such as `/ts/index.m3u8`.
fn name_doubt(place: &PlaceConfig) -> Option<String> {
    let name = &place.spec.name;
    let is_taken = place.spec.is_live() && live_name(name).is_err();
    is_taken
        .then(|| format!("place {name}: streams have something of this name: call the place {name}-live, or otherwise"))
}

/// Returns why the server can't publish the stream of a failover or schedule.
fn output_doubts(setting: &str, to: &str, config: &Config) -> Vec<String> {
    let names = Places::new(config.places.iter().map(|place| place.spec.name.as_str().into()));
    let found = names.find(to);
    let is_pushed = found.as_ref().is_some_and(|found| config.places[found.index].spec.is_pushed());
    let no_place =
        (!is_pushed).then(|| format!("{setting}: {to} is not in a place of publishers, such as live=publish:"));
    // The place itself is no stream.
    let is_bad = found.is_some_and(|found| found.inside.is_empty() || live_name(found.inside).is_err());
    let no_name = is_bad.then(|| format!("{setting}: no stream can have the name {to}: give it another one"));
    no_place.into_iter().chain(no_name).collect()
}

/// Returns why browsers refuse a certificate now, or will soon. One that can't be read is an obstacle.
fn certificate_doubt(source: &TlsSource) -> Option<String> {
    let TlsSource::Files { cert, .. } = source else { return None };
    let warning = Certificates::open(source).ok()?.date_warning(SystemTime::now())?;
    Some(format!("tls-cert: {}: {warning}: renew it, or browsers refuse the server", cert.display()))
}

/// Returns why a path can't be that of a channel. Without places the built-in sample is served.
fn channel_doubt(channel: &str, places: &[PlaceConfig]) -> Option<String> {
    if places.is_empty() {
        return None;
    }
    let names = Places::new(places.iter().map(|place| place.spec.name.as_str().into()));
    let Some(PlacePath { index, name, inside }) = names.find(channel) else {
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let hint = phases_hint(channel);
        return Some(format!("rtsp-channels: {channel}: no place has this path (places: {}){hint}", names.join(", ")));
    };
    let spec = &places[index].spec;
    if spec.is_live() {
        return Some(format!("rtsp-channels: {channel}: the place {name:?} has live streams, not assets"));
    }
    let folder = spec.folder().filter(|folder| !has_asset(folder, inside))?;
    Some(format!("rtsp-channels: {channel}: there is no such file or folder in {}", folder.display()))
}

/// Returns the end of a warning of a word that looks like a misspelt number of phases.
fn phases_hint(word: &str) -> String {
    let number = word.split_once('=').filter(|(name, _)| nearest(name, ["phases"].into_iter()).is_some());
    number.map_or_else(String::new, |(_, number)| format!("; did you mean phases={number}?"))
}

/// Returns why a path, or a pattern with `*`, is that of no stream. Without places the built-in sample is served. Intercepted streams
/// have paths in no place.
fn no_stream(stream: &str, config: &Config) -> Option<String> {
    let names = Places::new(config.places.iter().map(|place| place.spec.name.as_str().into()));
    let is_anything = config.places.is_empty() || config.intercept.address.is_some() || stream == "*";
    let mut channels = config.rtsp.channels.iter().flat_map(ChannelConfig::streams);
    let is_live = |found: PlacePath<'_>| config.places[found.index].spec.is_live();
    if is_anything || channels.any(|channel| stream.starts_with(&channel)) || names.find(stream).is_some_and(is_live) {
        return None;
    }
    Some(format!("{stream} is not a channel (rtsp-channels), and in no place of live streams"))
}

/// Returns why a rule of recordings finds nothing to record.
fn recording_doubt(stream: &str, config: &Config) -> Option<String> {
    no_stream(stream, config).map(|why| format!("record: {why}"))
}

/// Returns why a module of the configuration will not run: its stream, or the path that it publishes to.
fn module_doubts(line: &ModuleLine, config: &Config) -> Vec<String> {
    let places = &config.places;
    let names = Places::new(places.iter().map(|place| place.spec.name.as_str().into()));
    let spec = |path: &str| names.find(path).map(|PlacePath { index, .. }| &places[index].spec);
    let no_stream = no_stream(&line.stream, config).map(|why| format!("modules: {line}: {why}"));
    let mut doubts: Vec<String> = no_stream.into_iter().collect();
    let to = line.options.get("to").filter(|_| line.kind == TEE.kind.name).map(|to| to.trim_matches('/'));
    if let Some(to) = to.filter(|to| !spec(to).is_some_and(PlaceSpec::is_pushed)) {
        doubts.push(format!("modules: {line}: {to} is not in a place of publishers, such as live=publish:"));
    }
    doubts
}

/// Returns why a channel hides what has its name in a place: the place itself, or one of its folders and files.
fn hiding_doubt(channel: &ChannelConfig, places: &[PlaceConfig]) -> Option<String> {
    let ChannelConfig { name, assets, is_list: true, .. } = channel else { return None };
    let place = places.iter().find(|place| place.spec.name == *name)?;
    let (asset, place) = (assets.first().map_or("", String::as_str), &place.spec.name);
    Some(format!(
        "rtsp-channels: {name}: the channel has the name of the place {place:?} and hides its path /{name}: \
         give the channel another name, such as \"{name}-channel={asset}\""
    ))
}

/// Tells whether a folder may have an asset of this path.
fn has_asset(folder: &Path, path: &str) -> bool {
    // A list of files in one path is no file, and neither is a rendition of an asset. A place may be one file.
    let asset = path.rsplit_once('/').map_or("", |(asset, _)| asset);
    path.is_empty()
        || path.contains(',')
        || folder.join(path).exists()
        || folder.is_file()
        || folder.join(asset).is_file()
}

/// Returns why recordings can't be written into a folder. One that is missing is made when the server starts.
fn folder_doubt(folder: &Path) -> Option<String> {
    let doubt = |why: String| Some(format!("record-folder: {}: {why}", folder.display()));
    let mut all = folder.ancestors().map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
    let existing = all.find(|path| path.exists())?;
    if !existing.is_dir() {
        return doubt(format!("{} is no folder", existing.display()));
    }
    match access(existing, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => None,
        Err(error) => doubt(format!("{} can't be written: {error}", existing.display())),
    }
}
