//! Streams that play at given times.

use super::{super::AdminState, Reply, show};
use crate::schedule::{OnAirReport, Programme, ScheduleState};
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// Streams that play at given times.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ScheduleList {
    /// Schedules, in the order of the setting `schedule`.
    items: Vec<ListedSchedule>,
}

/// A stream that plays at given times.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ListedSchedule {
    /// Path of the stream.
    stream: String,
    /// Name of the channel.
    title: String,
    /// File of the schedule.
    file: String,
    /// Number of entries in the file.
    entries: usize,
    /// Why the file was not taken when it changed last. The earlier entries play.
    error: Option<String>,
    /// Path of the asset or stream that is on the air; null before the first one.
    plays: Option<String>,
    /// Whether that is the filler.
    is_filler: bool,
    /// Time since which that is so.
    since: Option<String>,
    /// Why the filler plays instead of an entry.
    why: Option<String>,
    /// Entry of now; null between entries.
    now: Option<ListedProgramme>,
    /// Entry that begins next.
    next: Option<ListedProgramme>,
}

/// An entry of a schedule.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ListedProgramme {
    title: String,
    /// Beginning.
    start: String,
    /// End; null where it is unknown.
    stop: Option<String>,
    /// Whether it is a live stream.
    is_live: bool,
}

impl ListedSchedule {
    fn of(state: &ScheduleState) -> Self {
        let (guide, OnAirReport { plays, is_filler, since, why }) = (state.guide(), state.on_air());
        Self {
            stream: state.stream().to_owned(),
            file: state.file().display().to_string(),
            entries: state.entries(),
            error: state.fault(),
            plays,
            is_filler,
            since: since.map(time),
            why,
            now: guide.now().map(ListedProgramme::of),
            next: guide.next().map(ListedProgramme::of),
            title: guide.title,
        }
    }
}

impl ListedProgramme {
    fn of(programme: &Programme) -> Self {
        let Programme { at, until, title, is_live, .. } = programme;
        Self { title: title.clone(), start: time(*at), stop: until.map(time), is_live: *is_live }
    }
}

fn time(wall: Duration) -> String {
    let mut text = String::new();
    millpond_utc::push(&mut text, wall);
    text
}

/// Lists the streams that play at given times.
#[utoipa::path(get, path = "/api/v1/schedules", tag = "streams", responses((status = 200, body = ScheduleList)))]
pub(super) fn list_schedules(state: &AdminState) -> Reply {
    show(&ScheduleList { items: state.schedules.list().iter().map(|state| ListedSchedule::of(state)).collect() })
}
