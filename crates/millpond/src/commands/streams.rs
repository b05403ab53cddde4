//! `millpond streams`: live streams of a running server.

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_terminal::{out, say};
use reqwest::Method;

pub(crate) fn command() -> Command {
    let path = || Arg::new("path").required(true).value_name("PATH").help("Path of the stream, as its URL has it");
    Command::new("streams")
        .about("Lists, shows and stops live streams of a running server, and prints the graph of its stream engine")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("ls")
                .about("Lists live streams")
                .arg(
                    Arg::new("state")
                        .long("state")
                        .value_name("STATE")
                        .help("Lists only the streams in one state: waiting, running, lost, failed or copy"),
                )
                .args(admin::address()),
            Command::new("show").about("Prints the figures of a stream as JSON").arg(path()).args(admin::address()),
            Command::new("stop")
                .about(
                    "Stops a stream: closes its source, and disconnects its publisher and viewers. The next viewer or \
                     publisher starts it again",
                )
                .arg(path())
                .arg(
                    Arg::new("publisher")
                        .long("publisher")
                        .action(ArgAction::SetTrue)
                        .help("Disconnects the publisher only"),
                )
                .args(admin::address()),
            Command::new("graph")
                .about("Prints the modules and pipes of the stream engine as JSON")
                .arg(
                    Arg::new("dot")
                        .long("dot")
                        .action(ArgAction::SetTrue)
                        .help("Prints the graph in the language of Graphviz, for dot -Tsvg"),
                )
                .args(admin::address()),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else { return Err("no such command".into()) };
    let admin = Admin::of(matches);
    let path = || admin::component(matches.get_one::<String>("path").map(String::as_str).unwrap_or_default());
    match name {
        "ls" => list(&admin, matches.get_one::<String>("state").map(String::as_str)),
        "show" => admin.print(Method::GET, &format!("streams/{}", path()), None),
        "stop" if matches.get_flag("publisher") => {
            admin.print(Method::DELETE, &format!("streams/{}/publisher", path()), None)
        }
        "stop" => admin.print(Method::DELETE, &format!("streams/{}", path()), None),
        _ if matches.get_flag("dot") => out::lines(&admin.send(Method::GET, "graph.dot", (&[], None))?),
        _ => out::json(&admin.send(Method::GET, "graph", (&[], None))?),
    }
}

fn list(admin: &Admin<'_>, state: Option<&str>) -> Outcome {
    let head = || {
        let [state, kind, viewers, rate, frames, lost] = ["STATE", "KIND", "VIEWERS", "RATE", "FRAMES", "LOST"];
        say!("{state:<8} {kind:<10} {viewers:>7} {rate:>9} {frames:>10} {lost:>8} PATH")
    };
    let query: Vec<_> = state.map(|state| ("state", state)).into_iter().collect();
    admin.each(("streams", &query), head, |stream| {
        let text = |name: &str| stream[name].as_str().unwrap_or("");
        let number = |name: &str| stream[name].as_u64().unwrap_or(0);
        let viewers = stream["viewers"].as_object().into_iter().flat_map(|kinds| kinds.values());
        let viewers: u64 = viewers.filter_map(serde_json::Value::as_u64).sum();
        let rate = stream["bit-rate"].as_f64().map_or_else(String::new, |bps| format!("{:.2}M", bps / 1e6));
        let (state, kind, frames, lost) = (text("state"), text("kind"), number("frames"), number("lost-packets"));
        say!("{state:<8} {kind:<10} {viewers:>7} {rate:>9} {frames:>10} {lost:>8} {}", text("path"))
    })
}
