//! `millpond cluster`: the nodes of a cluster, by the admin address of one of them.

mod answers;
mod assign;
mod count;
mod drain;
mod emptying;
mod interrupt;
mod order;
mod roll;
mod seen;
mod status;
mod table;

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
        .arg(ask())
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

fn ask() -> Arg {
    let help = "Asks each node for its own state: viewers, sent bits, errors, and what it waits for. Ends with an error if a node does not answer";
    Arg::new("ask").long("ask").action(ArgAction::SetTrue).help(help)
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
    if matches.get_flag("ask") {
        return answers::run(&Admin::of(matches), matches.get_flag("json"));
    }
    let all = state(matches)?;
    if matches.get_flag("json") {
        return out::json(&format!("{all:#}"));
    }
    status::lines(&all).iter().try_for_each(|line| say!("{line}"))
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
    assign::lines(answer).iter().try_for_each(|line| say!("{line}"))
}

/// The lines that `watch` compares: the state of this node, one for each node, and one for each difference.
fn lines(all: &Value) -> BTreeMap<String, String> {
    let registry = match &all["registry"] == "cluster-nodes" {
        true => status::peers_line(all),
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
    let difference = |(number, difference): (usize, &Value)| {
        (format!("difference {}", number + 1), status::difference_line(difference))
    };
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
}
