//! `millpond record`: recordings of a running server's channels.

use super::{Outcome, admin};
use crate::out::say;
use clap::{Arg, ArgMatches, Command};
use reqwest::Method;
use serde_json::Value;

pub(crate) fn command() -> Command {
    let limit = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("record")
        .about("Records channels and live streams of a running server into MP4 files of its record-folder")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("ls")
                .about("Lists the recordings that run, and the last ones that ended")
                .arg(admin::address()),
            Command::new("start")
                .about("Starts to record a channel or live stream; prints the recording's number and file")
                .arg(
                    Arg::new("path")
                        .required(true)
                        .value_name("PATH")
                        .help("Path of a channel (rtsp-channels) or live stream, as in its URL"),
                )
                .arg(limit("duration", "TIME", "Longest duration, such as 90s or 1h, at most record-duration"))
                .arg(limit("size", "SIZE", "Highest size, such as 1GiB, at most record-size"))
                .arg(admin::address()),
            Command::new("stop")
                .about("Stops a recording and completes its file")
                .arg(
                    Arg::new("id")
                        .required(true)
                        .value_name("NUMBER")
                        .help("Number of the recording, as `ls` shows it"),
                )
                .arg(admin::address()),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else { return Err("no such command".into()) };
    let given = |names: &[&'static str]| -> Vec<(&str, &str)> {
        let text = |name: &'static str| Some((name, matches.get_one::<String>(name)?.as_str()));
        names.iter().filter_map(|name| text(name)).collect()
    };
    match name {
        "ls" => list(matches),
        "start" => admin::print(matches, Method::POST, "/record", &given(&["path", "duration", "size"])),
        _ => admin::print(matches, Method::DELETE, "/record", &given(&["id"])),
    }
}

fn list(matches: &ArgMatches) -> Outcome {
    let all: Value = serde_json::from_str(&admin::ask(matches, Method::GET, "/record", &[])?)?;
    say!("{:>6} {:>14} {:>10} {:>8} {:>8} {:<17} FILE", "NUMBER", "BYTES", "FRAMES", "LOST", "SECONDS", "STATE")?;
    for recording in all.as_array().into_iter().flatten() {
        let number = |name: &str| recording[name].as_u64().unwrap_or(0);
        let (id, bytes, frames, lost) = (number("id"), number("bytes"), number("frames"), number("lost-frames"));
        let seconds = recording["seconds"].as_f64().unwrap_or(0.0);
        let state = recording["ended"].as_str().unwrap_or("runs");
        let file = recording["file"].as_str().unwrap_or("");
        say!("{id:>6} {bytes:>14} {frames:>10} {lost:>8} {seconds:>8.1} {state:<17} {file}")?;
    }
    Ok(())
}
