//! All nodes of the cluster at once: their state, the titles that most viewers watch, and their last events.

use super::{
    super::AdminState,
    Outcome,
    cluster::cluster,
    nodes::{all, names},
    request::ApiRequest,
    show,
};
use crate::{
    events::Events,
    statistics::{UtcDay, ViewingTally},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use utoipa::ToSchema;

/// Most titles and events of one node, and of the fleet.
const OF_NODE: usize = 32;
const OF_FLEET: usize = 100;

/// The state of one node for the overview of the fleet. Rates are of the last second.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct NodeReport {
    /// Version of its program.
    version: String,
    /// Time since its start.
    uptime_seconds: f64,
    /// Conditions that are not met before new viewers may be sent to it.
    waiting_for: Vec<String>,
    /// Viewers by HTTP of the last minute, and long responses.
    viewers: u64,
    /// Sessions of RTSP.
    sessions: u64,
    /// Bits a second that it sends, by HTTP and RTSP.
    sent_bps: u64,
    /// Bits a second that it gets from origins.
    received_bps: u64,
    /// Requests answered, a second.
    requests_per_second: f64,
    /// Replies with a status of 5xx and responses broken off, a second.
    errors_per_second: f64,
    /// Share of hits in the bytes of the last minute; null where none were read.
    hit_ratio: Option<f64>,
    /// Processors in use.
    cpu: f64,
    /// Memory in use.
    memory_bytes: u64,
    /// Titles that most viewers watch now, and then those that were watched longest today.
    titles: Vec<HotTitle>,
    /// Its last events, as CloudEvents, the newest one first.
    #[schema(value_type = Vec<Object>)]
    events: Vec<Value>,
}

/// A title that many watch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct HotTitle {
    /// Path of the asset or stream.
    title: String,
    /// Viewers now.
    viewers: u64,
    /// Time of all viewers of this day together.
    viewer_seconds: f64,
    /// Viewers that have begun on this day.
    starts: u64,
}

/// All nodes of the cluster.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct FleetOverview {
    /// Name of the node that asked the others.
    node: String,
    /// The nodes, by their names.
    nodes: Vec<FleetNode>,
    /// Nodes that were not asked, because the cluster has more than 256.
    left_out: usize,
    /// Titles of all nodes that answered, those with most viewers first.
    titles: Vec<FleetTitle>,
    /// The last events of all nodes that answered, as CloudEvents, the newest one first.
    #[schema(value_type = Vec<Object>)]
    events: Vec<Value>,
}

/// A node of the fleet.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct FleetNode {
    /// Its name.
    name: String,
    /// Why it did not answer; null where it did.
    error: Option<String>,
    /// Its state; null where it did not answer.
    report: Option<NodeReport>,
}

/// A title of the fleet.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct FleetTitle {
    /// Figures of all nodes together.
    #[serde(flatten)]
    figures: HotTitle,
    /// Nodes that list it, the one with most viewers first.
    nodes: Vec<String>,
}

/// Shows the state of this node, as the overview of the fleet has it.
#[utoipa::path(get, path = "/api/v1/cluster/report", tag = "cluster", responses((status = 200, body = NodeReport)))]
pub(super) fn get_report(state: &AdminState) -> Outcome {
    cluster(state)?;
    let overview = state.desk.monitor.overview(state);
    let today = UtcDay::of_wall(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    Ok(show(&NodeReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_seconds: overview.uptime_seconds,
        waiting_for: state.waiting_for(),
        viewers: overview.http.viewers,
        sessions: overview.rtsp.sessions,
        sent_bps: overview.http.sent_bps + overview.rtsp.sent_bps,
        received_bps: overview.origins.received_bps,
        requests_per_second: overview.http.requests_per_second,
        errors_per_second: overview.http.errors_per_second,
        hit_ratio: overview.cache.hit_ratio,
        cpu: overview.process.cpu,
        memory_bytes: overview.process.memory_bytes,
        titles: state.statistics.read(|tally| hot(tally, today)),
        events: last(&state.events),
    }))
}

/// Asks all nodes at once. A node that does not answer within a second is listed with its error.
#[utoipa::path(get, path = "/api/v1/cluster/fleet", tag = "cluster", responses((status = 200, body = FleetOverview)))]
pub(super) async fn get_fleet(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    let cluster = cluster(state)?;
    request.check_direct()?;
    let (names, left_out) = names(cluster);
    let found = all(state, names, "/api/v1/cluster/report".to_owned()).await;
    let nodes: Vec<_> = found
        .into_iter()
        .map(|(name, asked)| match asked {
            Ok(report) => FleetNode { name, error: None, report: Some(report) },
            Err(error) => FleetNode { name, error: Some(error), report: None },
        })
        .collect();
    let reports = || nodes.iter().filter_map(|node| Some((node.name.as_str(), node.report.as_ref()?)));
    let (titles, events) = (merged(reports()), newest(reports().flat_map(|(_, report)| report.events.clone())));
    Ok(show(&FleetOverview { node: cluster.name().to_string(), left_out, titles, events, nodes }))
}

/// The titles of a day that most viewers watch.
fn hot(tally: &ViewingTally, today: UtcDay) -> Vec<HotTitle> {
    let days = tally.days();
    let Some((day, counts)) = days.iter().rfind(|(day, _)| *day == today) else { return Vec::new() };
    let titles = counts.titles.iter().map(|(title, counts)| HotTitle {
        title: title.clone(),
        viewers: tally.present(day, title),
        viewer_seconds: counts.watched().as_secs_f64(),
        starts: counts.starts(),
    });
    let mut titles: Vec<_> = titles.collect();
    titles.sort_by(by_viewers);
    titles.truncate(OF_NODE);
    titles
}

fn by_viewers(one: &HotTitle, other: &HotTitle) -> std::cmp::Ordering {
    let watched = other.viewer_seconds.total_cmp(&one.viewer_seconds);
    other.viewers.cmp(&one.viewers).then(watched).then_with(|| one.title.cmp(&other.title))
}

/// The last events of this node, the newest one first.
fn last(events: &Events) -> Vec<Value> {
    let mut position = events.newest().saturating_sub(OF_NODE as u64);
    let mut found = Vec::new();
    while let Some(next) = events.after(position) {
        position = next.event.number();
        found.extend(serde_json::from_slice::<Value>(next.event.json()).ok());
        if found.len() >= OF_NODE {
            break;
        }
    }
    found.reverse();
    found
}

/// The titles of all nodes.
fn merged<'a>(reports: impl Iterator<Item = (&'a str, &'a NodeReport)>) -> Vec<FleetTitle> {
    let mut listed: BTreeMap<&str, Vec<(&str, &HotTitle)>> = BTreeMap::new();
    for (node, title) in reports.flat_map(|(node, report)| report.titles.iter().map(move |title| (node, title))) {
        listed.entry(&title.title).or_default().push((node, title));
    }
    let mut titles: Vec<_> = listed.into_iter().map(|(title, by)| FleetTitle::of(title, by)).collect();
    titles.sort_by(|one, other| by_viewers(&one.figures, &other.figures));
    titles.truncate(OF_FLEET);
    titles
}

impl FleetTitle {
    /// Adds up the figures of a title at the nodes that list it.
    fn of(title: &str, mut listed: Vec<(&str, &HotTitle)>) -> Self {
        listed.sort_by(|one, other| by_viewers(one.1, other.1).then(one.0.cmp(other.0)));
        let mut figures = HotTitle { title: title.to_owned(), ..HotTitle::default() };
        for (_, of_node) in &listed {
            figures.viewers += of_node.viewers;
            figures.viewer_seconds += of_node.viewer_seconds;
            figures.starts += of_node.starts;
        }
        Self { figures, nodes: listed.into_iter().map(|(node, _)| node.to_owned()).collect() }
    }
}

/// The newest events of all nodes. Their times have one form, so that texts are compared.
fn newest(events: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut events: Vec<_> = events.collect();
    let time = |event: &Value| event["time"].as_str().unwrap_or_default().to_owned();
    events.sort_by_cached_key(|event| std::cmp::Reverse(time(event)));
    events.truncate(OF_FLEET);
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn title(name: &str, viewers: u64, viewer_seconds: f64) -> HotTitle {
        HotTitle { title: name.to_owned(), viewers, viewer_seconds, starts: 1 }
    }

    #[test]
    fn titles_of_nodes_are_added_up() {
        let a = NodeReport { titles: vec![title("films/x", 2, 10.0), title("films/y", 3, 5.0)], ..Default::default() };
        let b = NodeReport { titles: vec![title("films/x", 4, 1.0), title("films/z", 0, 9.0)], ..Default::default() };
        let titles = merged([("a", &a), ("b", &b)].into_iter());
        let shown = titles.iter().map(|one| (&*one.figures.title, one.figures.viewers, one.nodes.join(",")));
        let shown: Vec<_> = shown.collect();
        assert_eq!(
            shown,
            [("films/x", 6, "b,a".to_owned()), ("films/y", 3, "a".to_owned()), ("films/z", 0, "b".to_owned())]
        );
        assert_eq!((titles[0].figures.viewer_seconds, titles[0].figures.starts), (11.0, 2));
    }

    #[test]
    fn the_newest_events_come_first() {
        let event = |time: &str| json!({ "time": time, "type": "millpond.node.joined" });
        let all = newest([event("2026-11-30T10:00:00.100Z"), event("2026-11-30T10:00:01.000Z")].into_iter());
        assert_eq!(all[0]["time"], "2026-11-30T10:00:01.000Z");
        assert_eq!(newest((0..300).map(|_| event("x"))).len(), OF_FLEET);
    }

    #[test]
    fn reports_of_other_versions_are_read() {
        let report: NodeReport = serde_json::from_value(json!({ "version": "9.9", "unknown": 1 })).unwrap();
        assert_eq!((report.version.as_str(), report.viewers), ("9.9", 0));
    }
}
