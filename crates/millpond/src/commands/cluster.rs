//! `millpond cluster`: the nodes of a cluster, by the admin address of one of them.

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_terminal::{out, say};
use reqwest::Method;
use serde_json::Value;
use std::{collections::BTreeMap, error::Error, time::Duration};

/// Interval between two requests of `watch`.
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
    let drain = Command::new("drain")
        .about("Drains a node: it finishes its streams, and gets no new viewers")
        .arg(Arg::new("node").required(true).value_name("NODE").help("Name of the node"))
        .arg(Arg::new("undo").long("undo").action(ArgAction::SetTrue).help("Ends the drain of the node"));
    Command::new("cluster")
        .about("Shows and steers the cluster of a running server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([status, assign, watch, drain].map(|command| command.args(admin::address())))
}

fn json() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints JSON")
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    match matches.subcommand() {
        Some(("status", matches)) => status(matches),
        Some(("assign", matches)) => assign(matches),
        Some(("watch", matches)) => watch(matches),
        Some(("drain", matches)) => {
            let node = matches.get_one::<String>("node").map(String::as_str).unwrap_or_default();
            let method = if matches.get_flag("undo") { Method::DELETE } else { Method::PUT };
            Admin::of(matches).print(method, &format!("cluster/nodes/{}/drain", admin::component(node)), None)
        }
        _ => Err("no such command".into()),
    }
}

/// The state of the cluster.
fn state(matches: &ArgMatches) -> Result<Value, Box<dyn Error>> {
    let all = Admin::of(matches).get("cluster", &[])?;
    if all["node"].is_null() {
        return Err("this server is no node of a cluster: set cluster, the addresses of etcd".into());
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
    say!("node {}: {}; etcd: {etcd}; revision {}", text(&all["node"]), text(&all["membership"]), all["revision"])?;
    say!("{:<20} {:>10} {:>10} {:>8} {:<28} {:<28} ROLES", "NODE", "LOAD", "CAPACITY", "SESSIONS", "HTTP", "RTSP")?;
    for node in all["nodes"].as_array().into_iter().flatten() {
        let mbps = |name: &str| format!("{:.1}M", node[name].as_f64().unwrap_or(0.0) / 1e6);
        let roles: Vec<_> = node["roles"].as_array().into_iter().flatten().map(text).collect();
        let mut roles = roles.join(",");
        if node["draining"] == true {
            roles.push_str(" (drains)");
        }
        let (load, capacity, sessions) = (mbps("load-bps"), mbps("capacity-bps"), &node["sessions"]);
        let (name, http, rtsp) = (text(&node["name"]), text(&node["http"]), text(&node["rtsp"]));
        say!("{name:<20} {load:>10} {capacity:>10} {sessions:>8} {http:<28} {rtsp:<28} {roles}")?;
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
    for room in answer["book"].as_array().into_iter().flatten() {
        say!("{}", room_line(room))?;
    }
    Ok(())
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

/// The lines that `watch` compares: the state of this node, and one for each node.
fn lines(all: &Value) -> BTreeMap<String, String> {
    let own =
        format!("{}, etcd {}", all["membership"].as_str().unwrap_or(""), all["etcd"]["state"].as_str().unwrap_or(""));
    let node = |node: &Value| {
        let state = if node["draining"] == true { "drains" } else { "takes work" };
        let address = node["http"].as_str().unwrap_or("no HTTP");
        (format!("node {}", node["name"].as_str().unwrap_or("")), format!("{state}, {address}"))
    };
    let nodes = all["nodes"].as_array().into_iter().flatten().map(node);
    nodes.chain([("this node".to_owned(), own)]).collect()
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
