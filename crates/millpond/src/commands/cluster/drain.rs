//! `millpond cluster drain`: takes a node out of service, and waits for its viewers.

use super::{LOOK, count::counted, emptying::Emptying, seen::SeenCluster};
use crate::commands::{
    Outcome,
    admin::{self, Admin},
    shell_word::shell_word,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_settings::value::{self, show_duration};
use millpond_terminal::say;
use reqwest::Method;
use std::time::{Duration, Instant};

/// Bounds of a time to wait.
const WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(7 * 24 * 3600));

pub(super) fn command() -> Command {
    Command::new("drain")
        .about("Drains a node: it finishes its streams, and gets no new viewers")
        .arg(Arg::new("node").required(true).value_name("NODE").help("Name of the node"))
        .arg(Arg::new("undo").long("undo").action(ArgAction::SetTrue).help("Ends the drain of the node"))
        .arg(
            Arg::new("wait")
                .long("wait")
                .action(ArgAction::SetTrue)
                .conflicts_with("undo")
                .help("Waits until the node has no sessions"),
        )
        .arg(limit("Longest time of that wait").requires("wait"))
}

/// The flag with the longest time for the sessions of a node.
pub(super) fn limit(help: &'static str) -> Arg {
    Arg::new("limit").long("limit").value_name("TIME").default_value("10m").help(help)
}

/// The value of a flag with a time.
///
/// # Errors
/// It is no time, or out of bounds.
pub(super) fn time(matches: &ArgMatches, name: &str) -> Result<Duration, String> {
    let text = matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    value::duration_in(text, WAIT.0, WAIT.1).map_err(|bad| format!("--{name} {text}: expected {}", bad.expected))
}

/// The path of a node's drain.
pub(super) fn path(node: &str) -> String {
    format!("cluster/nodes/{}/drain", admin::component(node))
}

/// The command that ends a node's drain.
pub(super) fn undo(admin: &Admin<'_>, node: &str) -> String {
    admin.command(&format!("cluster drain {} --undo", shell_word(node)))
}

pub(super) fn run(matches: &ArgMatches) -> Outcome {
    let node = matches.get_one::<String>("node").map(String::as_str).unwrap_or_default();
    let (admin, limit) = (Admin::of(matches), time(matches, "limit")?);
    let method = if matches.get_flag("undo") { Method::DELETE } else { Method::PUT };
    admin.print(method, &path(node), None)?;
    if !matches.get_flag("wait") {
        return Ok(());
    }
    let (began, mut emptying) = (Instant::now(), Emptying::default());
    loop {
        let seen = SeenCluster::read(&admin.get("cluster", &[])?)?;
        let found = seen.node(node)?;
        if emptying.is_empty(found, Instant::now()) {
            return say!("{node} has no sessions");
        }
        if began.elapsed() >= limit && found.is_busy() {
            let (sessions, limit) = (counted(found.sessions, "session"), show_duration(limit));
            let undo = undo(&admin, node);
            return Err(format!("{node} still has {sessions} after {limit}: it drains on. To end that: {undo}").into());
        }
        std::thread::sleep(LOOK);
    }
}
