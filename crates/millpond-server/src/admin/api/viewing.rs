//! Statistics of viewing, by day and by title.

use super::{
    super::AdminState,
    Outcome, bad,
    page::{Page, fits, page},
    request::ApiRequest,
    show,
};
use crate::{
    problem::Problem,
    statistics::{DayCounts, UtcDay, ViewerProtocol, ViewingCounts, ViewingTally},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};
use utoipa::{IntoParams, ToSchema};

/// The word for the present day.
const TODAY: &str = "today";

/// Statistics of viewing. Days are those of UTC.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ViewingPage {
    /// The present day, such as `2026-11-30`.
    today: String,
    /// Viewers of all titles now.
    viewers: u64,
    /// The days that had viewers, thirty at most, the oldest first.
    days: Vec<ViewingDay>,
    /// Titles of days, the oldest day first.
    items: Vec<ViewingTitle>,
    /// Titles that fit the filters, on all pages.
    total: usize,
    /// `cursor` of the next page; null on the last page.
    next_cursor: Option<String>,
}

/// Viewing of a day.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ViewingDay {
    /// The day, such as `2026-11-30`.
    day: String,
    /// Titles that have figures of their own.
    titles: usize,
    /// Figures of all titles.
    #[serde(flatten)]
    figures: ViewingFigures,
}

/// Viewing of a title on a day.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ViewingTitle {
    /// The day, such as `2026-11-30`.
    day: String,
    /// Path of the asset or stream; null for all titles without figures of their own.
    title: Option<String>,
    /// Viewers of the title now; 0 on earlier days, and for titles without figures of their own.
    viewers: u64,
    /// Figures of the title.
    #[serde(flatten)]
    figures: ViewingFigures,
}

/// Figures of viewing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ViewingFigures {
    /// Most viewers at the same time.
    peak: u64,
    /// Time of all viewers together.
    viewer_seconds: f64,
    /// Viewers that have begun.
    starts: u64,
    /// Requests whose player reports that its buffer ran empty.
    rebuffers: u64,
    /// Figures by protocol: `http`, `rtsp`, `webrtc` and `srt`.
    protocols: BTreeMap<&'static str, ProtocolFigures>,
}

/// Figures of one protocol.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ProtocolFigures {
    /// Time of all viewers together.
    viewer_seconds: f64,
    /// Viewers that have begun.
    starts: u64,
}

/// Filters of titles.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ViewingQuery {
    /// A day in UTC such as `2026-11-30`, or `today`.
    day: Option<String>,
    /// Path of one title.
    title: Option<String>,
    /// Part of the title.
    q: Option<String>,
    /// Most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next-cursor` of the page before.
    cursor: Option<String>,
}

impl From<&ViewingCounts> for ViewingFigures {
    fn from(counts: &ViewingCounts) -> Self {
        let of = |protocol: ViewerProtocol| {
            let at = protocol as usize;
            let viewer_seconds = counts.watched[at].as_secs_f64();
            (protocol.name(), ProtocolFigures { viewer_seconds, starts: counts.starts[at] })
        };
        Self {
            peak: counts.peak,
            viewer_seconds: counts.watched().as_secs_f64(),
            starts: counts.starts(),
            rebuffers: counts.rebuffers,
            protocols: ViewerProtocol::ALL.into_iter().map(of).collect(),
        }
    }
}

impl ViewingTitle {
    /// Key in the order of the list. The titles without figures of their own come first.
    fn key(&self) -> String {
        let Self { day, title, .. } = self;
        title.as_ref().map_or_else(|| day.clone(), |title| format!("{day} {title}"))
    }
}

/// Shows viewers, viewer hours, starts and rebuffers of the last days, by title.
#[utoipa::path(get, path = "/api/v1/viewing", tag = "sessions", params(ViewingQuery), responses((status = 200, body = ViewingPage)))]
pub(super) fn viewing(request: &ApiRequest, state: &AdminState) -> Outcome {
    let query: ViewingQuery = request.query()?;
    let today = UtcDay::of_wall(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let wanted = query.day.as_deref().map(|text| day(text, today)).transpose()?;
    let read = |tally: &ViewingTally| {
        let mut titles = Vec::new();
        for (day, counts) in tally.days().iter().filter(|(day, _)| wanted.is_none_or(|wanted| wanted == *day)) {
            titles_of(tally, (day, counts), &query, &mut titles);
        }
        let days = tally.days().iter().map(|(day, counts)| ViewingDay {
            day: day.to_string(),
            titles: counts.titles.len(),
            figures: (&counts.all).into(),
        });
        (tally.all_present(today), days.collect(), titles)
    };
    let (viewers, days, titles) = state.statistics.read(read);
    let Page { items, total, next_cursor } = page(titles, ViewingTitle::key, (query.limit, query.cursor.as_deref()))?;
    Ok(show(&ViewingPage { today: today.to_string(), viewers, days, items, total, next_cursor }))
}

/// Adds the titles of a day that fit the filters.
fn titles_of(
    tally: &ViewingTally,
    (day, counts): (UtcDay, &DayCounts),
    query: &ViewingQuery,
    titles: &mut Vec<ViewingTitle>,
) {
    let is_wanted = |title: &str| {
        query.title.as_deref().is_none_or(|wanted| wanted.trim_matches('/') == title)
            && fits(query.q.as_deref(), [title])
    };
    if query.title.is_none() && query.q.is_none() && counts.others != ViewingCounts::default() {
        titles.push(ViewingTitle { day: day.to_string(), title: None, viewers: 0, figures: (&counts.others).into() });
    }
    let found = counts.titles.iter().filter(|(title, _)| is_wanted(title));
    titles.extend(found.map(|(title, counts)| ViewingTitle {
        day: day.to_string(),
        title: Some(title.clone()),
        viewers: tally.present(day, title),
        figures: counts.into(),
    }));
}

fn day(text: &str, today: UtcDay) -> Result<UtcDay, Problem> {
    match text {
        TODAY => Ok(today),
        text => text.parse().map_err(|_| bad("day: a date such as 2026-11-30, or today")),
    }
}
