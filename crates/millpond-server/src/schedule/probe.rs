//! Looks at the assets of a schedule before they play: their durations, their titles, and whether they are there.

use super::{
    ScheduleState,
    state::Known,
    timetable::{Content, Entry},
};
use crate::live::Sources;
use arc_swap::ArcSwap;
use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::{sleep, timeout};

/// Time between two looks at all assets.
const AGAIN: Duration = Duration::from_secs(3600);
/// Time between two assets.
const PAUSE: Duration = Duration::from_millis(20);
/// Most assets that are looked at.
const MOST: usize = 1000;

/// Whether a path is that of a live stream or channel.
pub(super) fn is_stream(sources: &Sources, path: &str) -> bool {
    let is_live = |place: Arc<str>| sources.is_live(&place);
    sources.find(path).list().is_some() || sources.is_channel(path) || sources.place(path).is_some_and(is_live)
}

/// Looks at an asset that begins to play at a time, and tells the state of its schedule.
///
/// # Errors
/// It can't be opened.
pub(super) async fn examine(
    state: &ScheduleState,
    sources: &Sources,
    path: &str,
    from: Duration,
) -> Result<(), String> {
    let known = look_at(sources, path, from).await;
    let fault = known.fault.clone();
    if state.learn(path, from, known)
        && let Some(why) = &fault
    {
        tracing::warn!(stream = state.stream(), asset = path, why, "an asset of a schedule can't be played");
    }
    fault.map_or(Ok(()), Err)
}

/// Opens an asset, and tells what is known of it.
async fn look_at(sources: &Sources, path: &str, from: Duration) -> Known {
    let failed = |why: String| Known { fault: Some(why), ..Known::default() };
    let asset = match sources.open(path).await {
        Ok((asset, _)) => asset,
        Err(error) => return failed(error.to_string()),
    };
    let media = sources.media(&asset);
    let duration = Duration::try_from_secs_f64(media.duration()).unwrap_or_default();
    if !duration.is_zero() && from >= duration {
        let [from, end] = [from, duration].map(|time| time.as_secs_f64());
        return failed(format!("from is {from:.1} s, and the asset ends after {end:.1} s"));
    }
    let length = duration.saturating_sub(media.begins_at(from));
    let title = asset.presentation.tags().and_then(|tags| tags.title.clone());
    Known { length: Some(length).filter(|length| !length.is_zero()), title, fault: None }
}

/// Looks at the assets of the days ahead: now, each hour, and when the file changes.
pub(super) async fn probe(state: Arc<ScheduleState>, sources: Arc<ArcSwap<Sources>>) {
    let mut timetables = state.timetable();
    loop {
        let timetable = timetables.borrow_and_update().clone();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let slots = state.ahead(&timetable, now);
        let asset = |entry: &Entry| match &entry.content {
            Content::Asset(path) => Some((path.clone(), entry.from)),
            Content::Stream(_) => None,
        };
        let assets = slots.iter().filter_map(|slot| asset(timetable.entry(slot)?));
        let mut seen = HashSet::new();
        for (path, from) in assets.filter(|asset| seen.insert(asset.clone())).take(MOST) {
            let sources = sources.load_full();
            // It tells its failure.
            let _ = examine(&state, &sources, &path, from).await;
            sleep(PAUSE).await;
        }
        if let Ok(Err(_)) = timeout(AGAIN, timetables.changed()).await {
            return;
        }
    }
}
