//! `millpond insert`: clips in the live streams of a running server.

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_terminal::say;
use reqwest::Method;
use serde_json::{Map, Value, json};

pub(crate) fn command() -> Command {
    Command::new("insert")
        .about(
            "Inserts a stored clip into a live stream or channel of a running server, at the next key frame. \
                Prints the clip's number",
        )
        .arg_required_else_help(true)
        .arg(
            Arg::new("path")
                .required_unless_present_any(["list", "cancel"])
                .requires("clip")
                .value_name("PATH")
                .help("Path of the live stream or channel, as its URL has it"),
        )
        .arg(Arg::new("clip").value_name("CLIP").help("Path of the clip, which is an asset of any place of the server"))
        .arg(
            Arg::new("at")
                .long("at")
                .value_name("TIME")
                .requires("path")
                .help("Earliest time of the clip, such as 2026-11-22T10:00:00Z, or a delay from now, such as 90s"),
        )
        .arg(Arg::new("session").long("session").value_name("NUMBER").requires("path").help(
            "Shows the clip to one viewer only. NUMBER is the id of the viewer's module in `millpond \
                       streams graph`: a transmission, multicast or viewing",
        ))
        .arg(
            Arg::new("list")
                .long("list")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["path", "cancel"])
                .help("Lists the clips that wait or play, and the last clips that ended"),
        )
        .arg(
            Arg::new("cancel")
                .long("cancel")
                .value_name("NUMBER")
                .conflicts_with("path")
                .help("Cancels a clip. If the clip plays, the stream returns at its next key frame"),
        )
        .args(admin::address())
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let admin = Admin::of(matches);
    if matches.get_flag("list") {
        return list(&admin);
    }
    if let Some(id) = matches.get_one::<String>("cancel") {
        return admin.print(Method::DELETE, &format!("insertions/{}", admin::component(id)), None);
    }
    let text = |name: &'static str| Some((name.to_owned(), json!(matches.get_one::<String>(name)?)));
    let mut given: Map<_, _> = ["path", "clip", "at"].into_iter().filter_map(text).collect();
    if let Some(session) = matches.get_one::<String>("session") {
        let number: u64 = session.parse().map_err(|_| format!("--session {session}: expected a number"))?;
        given.insert("session".to_owned(), json!(number));
    }
    admin.print(Method::POST, "insertions", Some(given.into()))
}

fn list(admin: &Admin<'_>) -> Outcome {
    let all: Value = admin.get("insertions", &[])?;
    say!("{:>6} {:>8} {:>8} {:<12} {:<24} CLIP", "NUMBER", "FRAMES", "SECONDS", "STATE", "STREAM")?;
    for insertion in all["items"].as_array().into_iter().flatten() {
        let text = |name: &str| insertion[name].as_str().unwrap_or("");
        let number = |name: &str| insertion[name].as_u64().unwrap_or(0);
        let seconds = insertion["seconds"].as_f64().unwrap_or(0.0);
        let (id, frames, state, path) = (number("id"), number("frames"), text("state"), text("path"));
        say!("{id:>6} {frames:>8} {seconds:>8.1} {state:<12} {path:<24} {}", text("clip"))?;
    }
    Ok(())
}
