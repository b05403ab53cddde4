//! Findings about a configuration that holds, here and now: parts of it that will not work.

mod useless;

use crate::{
    config::{Loaded, PlaceConfig},
    library::{PlacePath, Places},
    live::ChannelConfig,
};
use millpond_connections::tls::{Certificates, TlsSource};
use rustix::fs::{Access, access};
use std::{path::Path, time::SystemTime};

/// Returns warnings of channels that no place has, of a folder of recordings that can't be written, of a certificate that is not valid
/// now, and of settings without effect. Origins are not asked.
pub fn doubts(loaded: &Loaded) -> Vec<String> {
    let config = &loaded.config;
    let assets = config.rtsp.channels.iter().flat_map(|channel| &channel.assets);
    let channels = assets.filter_map(|asset| channel_doubt(asset, &config.places));
    let hiding = config.rtsp.channels.iter().filter_map(|channel| hiding_doubt(channel, &config.places));
    let folder = config.record.folder.as_deref().and_then(folder_doubt);
    let is_live = !config.rtsp.channels.is_empty() || config.places.iter().any(|place| place.spec.is_live());
    let pointless = (config.record.folder.is_some() && !is_live).then(|| {
        "record-folder is set, but there is nothing to record: no channel (rtsp-channels) and no place with live streams"
            .to_owned()
    });
    let certificate = config.tls.source().and_then(|source| certificate_doubt(&source));
    channels.chain(hiding).chain(folder).chain(pointless).chain(certificate).chain(useless::warnings(loaded)).collect()
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
        return Some(format!("rtsp-channels: {channel}: no place has this path (places: {})", names.join(", ")));
    };
    let spec = &places[index].spec;
    if spec.is_live() {
        return Some(format!("rtsp-channels: {channel}: the place {name:?} has live streams, not assets"));
    }
    let folder = spec.folder().filter(|folder| !has_asset(folder, inside))?;
    Some(format!("rtsp-channels: {channel}: there is no such file or folder in {}", folder.display()))
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
