//! Observations of once a second for events: viewers of live streams, and free space of disks.

use super::Running;
use crate::{
    config::Config,
    events::{DiskWatch, Events, Kind, Low, ViewerChange, ViewerWatch},
    statistics::ViewerProtocol,
};
use millpond_settings::machine::{existing, free_bytes};
use serde_json::json;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

/// Interval between two looks at viewers.
const VIEWERS: Duration = Duration::from_secs(1);
/// Looks at viewers for each look at disks.
const DISKS: u64 = 10;

/// Emits events of viewers and disks until `stop` turns true.
pub(super) async fn observe(running: Arc<Running>, mut stop: watch::Receiver<bool>) {
    let (mut viewers, mut disks) = (ViewerWatch::default(), DiskWatch::default());
    let mut ticks = interval(VIEWERS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0_u64.. {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            _ = ticks.tick() => {}
        }
        let events = running.parts.events.clone();
        for change in viewers.look(events.now(), &running.live_viewers()) {
            tell_viewers(&events, change);
        }
        if number.is_multiple_of(DISKS) {
            let (bound, folders) = {
                let generation = running.generation.load();
                (generation.config.hooks.disk_low, folders(&generation.config))
            };
            // A disk that hangs holds the thread that looks at it, and further looks.
            let looked = spawn_blocking(move || {
                for (setting, folder) in folders {
                    let Some(free) = existing(&folder).map(free_bytes) else { continue };
                    if let Some(low) = disks.look(setting, free, bound) {
                        tell_disk(&events, low, bound, &folder);
                    }
                }
                disks
            });
            let Ok(known) = looked.await else { return };
            disks = known;
        }
    }
}

impl Running {
    /// Shows each viewer of each protocol to `seen`: the protocol, a number that no other viewer of the protocol has, and the path of the title
    /// or stream.
    pub(super) fn each_viewer(&self, seen: &mut dyn FnMut(ViewerProtocol, u64, &str)) {
        use ViewerProtocol::{Http, Rtmp, Rtsp, Srt, WebRtc};
        self.parts.audience.each_viewer(&mut |number, title| seen(Http, number, title));
        self.generation.load().rtsp.each_viewer(&mut |number, title| seen(Rtsp, number, title));
        self.rtmp.load().each_viewer(&mut |number, title| seen(Rtmp, number, title));
        if let Some(webrtc) = &self.parts.webrtc {
            webrtc.each_viewer(&mut |number, title| seen(WebRtc, number, title));
        }
        if let Some(srt) = &self.parts.srt {
            srt.each_viewer(&mut |number, title| seen(Srt, number, title));
        }
    }

    /// The viewers of each live stream, by all protocols.
    fn live_viewers(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::<String, usize>::new();
        self.each_viewer(&mut |_, _, title| match counts.get_mut(title) {
            Some(count) => *count += 1,
            None => _ = counts.insert(title.to_owned(), 1),
        });
        let generation = self.generation.load();
        let sources = &generation.sources;
        counts.retain(|path, _| sources.live(&sources.find(path)).is_ok_and(|stream| stream.is_some()));
        counts
    }
}

/// The folders that a server of a configuration writes, by their settings.
fn folders(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let keeps_past = config.places.iter().any(|place| !place.live.shift.is_zero());
    let shift = keeps_past.then(|| ("time-shift-folder", config.storage.shift_folder.clone()));
    let record = config.record.folder.clone().map(|folder| ("record-folder", folder));
    let cache = ("cache", config.storage.folder.clone());
    [Some(cache), record, shift].into_iter().flatten().collect()
}

fn tell_viewers(events: &Events, change: ViewerChange) {
    match change {
        ViewerChange::Began { path, viewers } => events.emit(Kind::ViewersBegan, &path, json!({ "viewers": viewers })),
        ViewerChange::Ended { path, lasted } => {
            events.emit(Kind::ViewersEnded, &path, json!({ "seconds": lasted.as_secs_f64() }));
        }
    }
}

fn tell_disk(events: &Events, Low { setting, free }: Low, bound: u64, folder: &std::path::Path) {
    let folder = folder.display().to_string();
    tracing::warn!(setting, folder, free, bound, "a disk has little free space");
    let data = json!({ "folder": folder, "free-bytes": free, "disk-low-bytes": bound });
    events.emit(Kind::DiskLow, setting, data);
}
