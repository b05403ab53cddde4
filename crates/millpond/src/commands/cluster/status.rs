//! `millpond cluster status`: the nodes, and what is wrong with them, as lines of text.

use super::{
    count::counted,
    table::{Column, table},
};
use serde_json::Value;

/// Difference of a clock that is shown, in milliseconds: that from which nodes log it.
const CLOCK: i64 = 2000;

/// Columns of the nodes.
const COLUMNS: [Column; 9] = [
    Column::text("NODE"),
    Column::text("ZONE"),
    Column::number("LOAD"),
    Column::number("CAPACITY"),
    Column::number("SESSIONS"),
    Column::text("VERSION"),
    Column::text("HTTP"),
    Column::text("RTSP"),
    Column::text("ROLES"),
];

/// Returns the lines of a status.
pub(super) fn lines(all: &Value) -> Vec<String> {
    let mut lines = vec![head(all)];
    lines.extend(own_clock(all));
    let rows: Vec<_> = list(&all["nodes"]).map(|node| row(all, node)).collect();
    if !rows.is_empty() {
        lines.extend(table(&COLUMNS, &rows));
    }
    let is_silent = |peer: &&Value| peer["state"] == "unreachable";
    lines.extend(
        list(&all["peers"])
            .filter(is_silent)
            .map(|peer| format!("peer {}: {}, for {} s", text(&peer["url"]), text(&peer["error"]), peer["seconds"])),
    );
    if all["unlisted"] == true {
        lines.push(
            "this node is in cluster-nodes of no other node: they don't hear of it, nor of its drains and purges. Add its address there"
                .to_owned(),
        );
    }
    lines.extend(list(&all["peers"]).filter(|peer| peer["asks"] == false).map(|peer| {
        format!("peer {}: node {} lacks this node in its cluster-nodes", text(&peer["url"]), text(&peer["node"]))
    }));
    lines.extend(list(&all["differences"]).map(difference_line));
    lines.extend(list(&all["failing-homes"]).map(|home| {
        let [place, at, error] = ["place", "home", "error"].map(|name| text(&home[name]));
        let place = if place.is_empty() { String::new() } else { format!(" of {place}") };
        format!("the home {at}{place} fails since {} s: {error}", home["seconds"])
    }));
    lines.extend(list(&all["problems"]).map(|problem| format!("no node: {}", text(problem))));
    lines
}

/// Returns the line for settings that are not the same on all nodes.
pub(super) fn difference_line(difference: &Value) -> String {
    let [text, version] = ["text", "version"].map(|name| difference[name].as_str().unwrap_or_default());
    format!("nodes differ ({version}): {text}")
}

/// Returns the peers that answer, in words.
pub(super) fn peers_line(all: &Value) -> String {
    let peers = || list(&all["peers"]).filter(|peer| peer["state"] != "own");
    let answering = peers().filter(|peer| peer["state"] == "answers").count();
    let count = peers().count();
    format!("{answering} of {} {}", counted(count as u64, "peer"), if count == 1 { "answers" } else { "answer" })
}

/// The line of the asked node, and of its registry.
fn head(all: &Value) -> String {
    let mut etcd = text(&all["etcd"]["state"]);
    if let Some(error) = all["etcd"]["error"].as_str() {
        etcd = format!("away for {} s: {error}", all["etcd"]["seconds"]);
    }
    let cluster = all["cluster-id"].as_str().map(|id| format!(" of {id}")).unwrap_or_default();
    let (node, membership, revision) = (text(&all["node"]), text(&all["membership"]), &all["revision"]);
    let registry = match &all["registry"] == "cluster-nodes" {
        true => peers_line(all),
        false => format!("etcd: {etcd}"),
    };
    format!("node {node}{cluster}: {membership}; {registry}; revision {revision}")
}

/// The line of a clock of the asked node that is wrong.
fn own_clock(all: &Value) -> Option<String> {
    let ahead = all["clock-ahead-ms"].as_i64().filter(|ahead| is_wrong(*ahead))?;
    let node = text(&all["node"]);
    let of = if ahead > 0 { " of" } else { "" };
    Some(format!("the clock of {node} is {}{of} those of most nodes: set it, with NTP", shifted(ahead)))
}

/// The cells of a node.
fn row(all: &Value, node: &Value) -> Vec<String> {
    let mbps = |name: &str| format!("{:.1}M", node[name].as_f64().unwrap_or(0.0) / 1e6);
    let mut roles = list(&node["roles"]).map(text).collect::<Vec<_>>().join(",");
    for remark in remarks(all, node) {
        roles.push_str(&format!(" ({remark})"));
    }
    // Without zones there is no column of them.
    let has_zones = list(&all["nodes"]).any(|node| node["zone"].is_string());
    let zone = if has_zones { or_dash(&node["zone"]) } else { String::new() };
    vec![
        text(&node["name"]),
        zone,
        mbps("load-bps"),
        mbps("capacity-bps"),
        node["sessions"].to_string(),
        or_dash(&node["version"]),
        or_dash(&node["http"]),
        or_dash(&node["rtsp"]),
        roles.trim_start().to_owned(),
    ]
}

/// Facts of a node that an operator should know.
fn remarks(all: &Value, node: &Value) -> Vec<String> {
    let mut remarks = Vec::new();
    if node["draining"] == true {
        remarks.push("drains".to_owned());
    }
    if node["reachable"] == false {
        remarks.push("does not answer".to_owned());
    }
    // Nodes are compared with most of them: the asked one may be the only one whose clock is wrong.
    let own = all["clock-ahead-ms"].as_i64().unwrap_or(0);
    if let Some(ahead) = node["clock-ahead-ms"].as_i64().map(|ahead| ahead + own).filter(|ahead| is_wrong(*ahead)) {
        remarks.push(format!("clock {}", shifted(ahead)));
    }
    if purged(node) < last_purge(all) {
        remarks.push("behind in purges".to_owned());
    }
    remarks
}

fn is_wrong(ahead: i64) -> bool {
    ahead.abs() >= CLOCK
}

/// A difference of clocks, such as `2.5 s ahead`.
fn shifted(ahead: i64) -> String {
    let seconds = ahead.unsigned_abs() as f64 / 1000.0;
    format!("{seconds:.1} s {}", if ahead < 0 { "behind" } else { "ahead" })
}

/// The last purge that a node has applied; 0 where its version knows none.
fn purged(node: &Value) -> u64 {
    node["purged"].as_u64().unwrap_or(0)
}

/// The last purge that any node has applied.
fn last_purge(all: &Value) -> u64 {
    list(&all["nodes"]).map(purged).max().unwrap_or(0)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

fn or_dash(value: &Value) -> String {
    value.as_str().unwrap_or("–").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, more: &Value) -> Value {
        let mut node = json!({
            "name": name, "http": format!("http://{name}:8080"), "rtsp": null, "roles": ["manager", "dispenser"], "sessions": 1,
            "load-bps": 1_500_000, "capacity-bps": 1_000_000_000, "version": "0.1.0", "draining": false, "clock-ahead-ms": 0,
        });
        let more = more.as_object().unwrap().clone();
        node.as_object_mut().unwrap().extend(more);
        node
    }

    fn status(nodes: &[Value], ahead: i64) -> Value {
        json!({
            "node": "a", "membership": "member", "registry": "etcd", "etcd": { "state": "following" }, "revision": 7,
            "clock-ahead-ms": ahead, "nodes": nodes,
        })
    }

    #[test]
    fn nodes_with_long_names_are_aligned() {
        let long = "edge-of-the-second-rack-in-the-east";
        let all = status(&[node("a", &json!({})), node(long, &json!({ "zone": "eu-1a", "draining": true }))], 0);
        let lines = lines(&all);
        assert_eq!(lines[0], "node a: member; etcd: following; revision 7");
        let [title, a, b] = &lines[1..] else { panic!("{lines:?}") };
        assert!(title.starts_with("NODE ") && b.starts_with(long), "{lines:?}");
        let at = |line: &str, text: &str| line.find(text).map(|end| line[..end].chars().count());
        assert_eq!([at(title, "VERSION"), at(a, "0.1.0")], [at(b, "0.1.0"); 2]);
        assert_eq!([at(title, "ROLES"), at(a, "manager")], [at(b, "manager"); 2]);
        assert!(at(title, "ZONE") == at(b, "eu-1a") && b.ends_with("manager,dispenser (drains)"), "{lines:?}");
        assert!(!self::lines(&status(&[node("a", &json!({}))], 0))[1].contains("ZONE"));
    }

    #[test]
    fn clocks_are_told_where_they_are_wrong() {
        let nodes = [node("a", &json!({})), node("b", &json!({ "clock-ahead-ms": -3400 }))];
        let lines = lines(&status(&nodes, 0));
        assert!(lines[2].ends_with("dispenser") && lines[3].ends_with("(clock 3.4 s behind)"), "{lines:?}");
        // The clock of the asked node is the wrong one.
        let nodes = [node("a", &json!({})), node("b", &json!({ "clock-ahead-ms": -3400 }))];
        let lines = self::lines(&status(&nodes, 3400));
        assert_eq!(lines[1], "the clock of a is 3.4 s ahead of those of most nodes: set it, with NTP");
        assert!(lines[4].ends_with("dispenser"), "{lines:?}");
    }

    #[test]
    fn nodes_are_behind_those_that_have_applied_more() {
        let all = json!({ "nodes": [{ "purged": 7 }, { "purged": 9 }, { "purged": null }, {}] });
        assert_eq!(last_purge(&all), 9);
        let behind: Vec<_> = list(&all["nodes"]).map(|node| purged(node) < 9).collect();
        assert_eq!(behind, [true, false, true, true]);
        assert_eq!(last_purge(&json!({ "nodes": [{}] })), 0);
    }

    #[test]
    fn one_peer_answers_and_two_answer() {
        let peers = |states: &[&str]| {
            let peers: Vec<_> = states.iter().map(|state| json!({ "state": state })).collect();
            peers_line(&json!({ "peers": peers }))
        };
        assert_eq!(peers(&["own", "answers"]), "1 of 1 peer answers");
        assert_eq!(peers(&["own", "answers", "unreachable"]), "1 of 2 peers answer");
    }
}
