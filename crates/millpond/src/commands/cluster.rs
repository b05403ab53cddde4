//! `millpond cluster`: the nodes of a cluster, by the admin address of one of them.

mod drain;
mod emptying;
mod interrupt;
mod roll;
mod seen;

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_terminal::{out, say};
use serde_json::Value;
use std::{collections::BTreeMap, error::Error, time::Duration};

/// Interval between two looks at the cluster.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn command() -> Command {
    let status = Command::new("status")
        .about("Shows the nodes, their load, and the state of this node's connection to etcd")
        .arg(json());
    let assign = Command::new("assign")
        .about(
            "Explains which nodes serve an asset or stream, and why. Shows whether their free bandwidth suffices for \
             one more stream",
        )
        .arg(Arg::new("path").required(true).value_name("PATH").help("Path as in URLs, such as /films/ducks.mp4"))
        .arg(json());
    let watch = Command::new("watch").about("Prints a line for each change of the nodes, until Ctrl-C");
    Command::new("cluster")
        .about("Shows and steers the cluster of a running server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(
            [status, assign, watch, drain::command(), roll::command()].map(|command| command.args(admin::address())),
        )
}

fn json() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints JSON")
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    match matches.subcommand() {
        Some(("status", matches)) => status(matches),
        Some(("assign", matches)) => assign(matches),
        Some(("watch", matches)) => watch(matches),
        Some(("drain", matches)) => drain::run(matches),
        Some(("roll", matches)) => roll::run(matches),
        _ => Err("no such command".into()),
    }
}

/// The state of the cluster.
fn state(matches: &ArgMatches) -> Result<Value, Box<dyn Error>> {
    let all = Admin::of(matches).get("cluster", &[])?;
    if all["node"].is_null() {
        return Err(
            "this server is no node of a cluster: set cluster, the addresses of etcd, or cluster-nodes, those of the nodes".into()
        );
    }
    Ok(all)
}

fn status(matches: &ArgMatches) -> Outcome {
    let all = state(matches)?;
    if matches.get_flag("json") {
        return out::json(&format!("{all:#}"));
    }
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let mut etcd = text(&all["etcd"]["state"]);
    if let Some(error) = all["etcd"]["error"].as_str() {
        etcd = format!("away for {} s: {error}", all["etcd"]["seconds"]);
    }
    let cluster = all["cluster-id"].as_str().map(|id| format!(" of {id}")).unwrap_or_default();
    let (node, membership, revision) = (text(&all["node"]), text(&all["membership"]), &all["revision"]);
    let registry = match &all["registry"] == "cluster-nodes" {
        true => peers_line(&all),
        false => format!("etcd: {etcd}"),
    };
    say!("node {node}{cluster}: {membership}; {registry}; revision {revision}")?;
    // Without zones there is no column of them.
    let has_zones = all["nodes"].as_array().into_iter().flatten().any(|node| node["zone"].is_string());
    let zone = |name: &str| if has_zones { format!("{name:<12} ") } else { String::new() };
    say!(
        "{:<20} {}{:>10} {:>10} {:>8} {:<10} {:<28} {:<28} ROLES",
        "NODE",
        zone("ZONE"),
        "LOAD",
        "CAPACITY",
        "SESSIONS",
        "VERSION",
        "HTTP",
        "RTSP"
    )?;
    let last = last_purge(&all);
    for node in all["nodes"].as_array().into_iter().flatten() {
        let mbps = |name: &str| format!("{:.1}M", node[name].as_f64().unwrap_or(0.0) / 1e6);
        let roles: Vec<_> = node["roles"].as_array().into_iter().flatten().map(text).collect();
        let mut roles = roles.join(",");
        if node["draining"] == true {
            roles.push_str(" (drains)");
        }
        if node["reachable"] == false {
            roles.push_str(" (does not answer)");
        }
        if purged(node) < last {
            roles.push_str(" (behind in purges)");
        }
        let (load, capacity, sessions) = (mbps("load-bps"), mbps("capacity-bps"), &node["sessions"]);
        let (name, http, rtsp) = (text(&node["name"]), text(&node["http"]), text(&node["rtsp"]));
        let version = node["version"].as_str().unwrap_or("–");
        let zone = zone(node["zone"].as_str().unwrap_or("–"));
        say!("{name:<20} {zone}{load:>10} {capacity:>10} {sessions:>8} {version:<10} {http:<28} {rtsp:<28} {roles}")?;
    }
    for peer in all["peers"].as_array().into_iter().flatten().filter(|peer| peer["state"] == "unreachable") {
        say!("peer {}: {}, for {} s", text(&peer["url"]), text(&peer["error"]), peer["seconds"])?;
    }
    if all["unlisted"] == true {
        say!(
            "this node is in cluster-nodes of no other node: they don't hear of it, nor of its drains and purges. Add its address there"
        )?;
    }
    for peer in all["peers"].as_array().into_iter().flatten().filter(|peer| peer["asks"] == false) {
        say!("peer {}: node {} lacks this node in its cluster-nodes", text(&peer["url"]), text(&peer["node"]))?;
    }
    for difference in all["differences"].as_array().into_iter().flatten() {
        say!("{}", difference_line(difference))?;
    }
    for home in all["failing-homes"].as_array().into_iter().flatten() {
        let [place, at, error] = ["place", "home", "error"].map(|name| text(&home[name]));
        let place = if place.is_empty() { String::new() } else { format!(" of {place}") };
        say!("the home {at}{place} fails since {} s: {error}", home["seconds"])?;
    }
    for problem in all["problems"].as_array().into_iter().flatten() {
        say!("no node: {}", text(problem))?;
    }
    Ok(())
}

fn assign(matches: &ArgMatches) -> Outcome {
    let path = matches.get_one::<String>("path").map(String::as_str).unwrap_or_default();
    let answer = Admin::of(matches).get("cluster/assign", &[("path", path)])?;
    if matches.get_flag("json") {
        return out::json(&format!("{answer:#}"));
    }
    say_assignment(&answer)
}

/// Prints which nodes serve an object, and whether a stream of it fits.
pub(super) fn say_assignment(answer: &Value) -> Outcome {
    let text = |name: &str| answer[name].as_str().unwrap_or("").to_owned();
    let homes: Vec<_> = answer["homes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    say!("{} ({}, {}, revision {})", text("object"), text("kind"), text("assignment"), answer["revision"])?;
    // A line for each dispenser.
    for line in text("text").lines() {
        say!("{line}")?;
    }
    say!("homes of its first bytes: {}", if homes.is_empty() { "none".to_owned() } else { homes.join(", ") })?;
    if let Some(home) = answer["zone-home"].as_str() {
        say!("home of them in this node's zone: {home}")?;
    }
    for room in answer["book"].as_array().into_iter().flatten() {
        say!("{}", room_line(room))?;
    }
    Ok(())
}

/// A line for settings that are not the same on all nodes.
fn difference_line(difference: &Value) -> String {
    let [text, version] = ["text", "version"].map(|name| difference[name].as_str().unwrap_or_default());
    format!("nodes differ ({version}): {text}")
}

/// A line of the book: what a stream would have of a node or a storage.
fn room_line(room: &Value) -> String {
    let mbps = |name: &str| room[name].as_f64().map(|bps| format!("{:.1}M", bps / 1e6));
    let [wanted, booked] = ["wanted-bps", "booked-bps"].map(|name| mbps(name).unwrap_or_default());
    let resource = room["resource"].as_str().unwrap_or("");
    let fits = if room["fits"] == true { "fits" } else { "does not fit" };
    match (mbps("bound-bps"), mbps("free-bps")) {
        (Some(bound), Some(free)) => {
            format!("{resource}: {booked} booked of {bound}, {free} free; a stream of {wanted} {fits}")
        }
        _ => format!("{resource}: {booked} booked, not limited; a stream of {wanted} {fits}"),
    }
}

/// The last purge that a node has applied; 0 where its version knows none.
fn purged(node: &Value) -> u64 {
    node["purged"].as_u64().unwrap_or(0)
}

/// The peers that answer, in words.
fn peers_line(all: &Value) -> String {
    let peers = || all["peers"].as_array().into_iter().flatten().filter(|peer| peer["state"] != "own");
    let answering = peers().filter(|peer| peer["state"] == "answers").count();
    format!("{answering} of {} peers answer", peers().count())
}

/// The last purge that any node has applied.
fn last_purge(all: &Value) -> u64 {
    all["nodes"].as_array().into_iter().flatten().map(purged).max().unwrap_or(0)
}

/// The lines that `watch` compares: the state of this node, one for each node, and one for each difference.
fn lines(all: &Value) -> BTreeMap<String, String> {
    let registry = match &all["registry"] == "cluster-nodes" {
        true => peers_line(all),
        false => format!("etcd {}", all["etcd"]["state"].as_str().unwrap_or("")),
    };
    let own = format!("{}, {registry}", all["membership"].as_str().unwrap_or(""));
    let node = |node: &Value| {
        let state = match (&node["draining"], &node["reachable"]) {
            (_, Value::Bool(false)) => "does not answer",
            (Value::Bool(true), _) => "drains",
            _ => "takes work",
        };
        let address = node["http"].as_str().unwrap_or("no HTTP");
        (format!("node {}", node["name"].as_str().unwrap_or("")), format!("{state}, {address}"))
    };
    let difference =
        |(number, difference): (usize, &Value)| (format!("difference {}", number + 1), difference_line(difference));
    let differences = all["differences"].as_array().into_iter().flatten().enumerate().map(difference);
    let nodes = all["nodes"].as_array().into_iter().flatten().map(node);
    nodes.chain(differences).chain([("this node".to_owned(), own)]).collect()
}

fn watch(matches: &ArgMatches) -> Outcome {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let now = lines(&state(matches)?);
        for (what, state) in &now {
            if known.get(what) != Some(state) {
                say!("{what}: {state}")?;
            }
        }
        for gone in known.keys().filter(|what| !now.contains_key(*what)) {
            say!("{gone}: gone")?;
        }
        known = now;
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_lines() {
        let all = json!({
            "membership": "member", "etcd": { "state": "following" }, "nodes": [],
            "differences": [{ "subject": "place", "place": "cams", "version": "1.0", "text": "place cams: missing at c" }],
        });
        let lines = lines(&all);
        assert_eq!(lines["difference 1"], "nodes differ (1.0): place cams: missing at c");
    }

    #[test]
    fn nodes_are_behind_those_that_have_applied_more() {
        let all = json!({ "nodes": [{ "purged": 7 }, { "purged": 9 }, { "purged": null }, {}] });
        assert_eq!(last_purge(&all), 9);
        let behind: Vec<_> = all["nodes"].as_array().unwrap().iter().map(|node| purged(node) < 9).collect();
        assert_eq!(behind, [true, false, true, true]);
        assert_eq!(last_purge(&json!({ "nodes": [{}] })), 0);
    }

    #[test]
    fn a_line_of_the_book_tells_what_is_free() {
        let room = |bound: Option<u64>, free: Option<u64>, fits| {
            room_line(&json!({
                "resource": "storage:films/a", "wanted-bps": 2_000_000, "booked-bps": 9_500_000, "bound-bps": bound, "free-bps": free, "fits": fits
            }))
        };
        let line = room(Some(10_000_000), Some(500_000), false);
        assert_eq!(line, "storage:films/a: 9.5M booked of 10.0M, 0.5M free; a stream of 2.0M does not fit");
        assert_eq!(room(None, None, true), "storage:films/a: 9.5M booked, not limited; a stream of 2.0M fits");
    }
}
