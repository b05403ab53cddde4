//! `millpond record`: recordings of a running server's channels.

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgMatches, Command};
use millpond_terminal::say;
use reqwest::Method;
use serde_json::{Map, Value, json};

pub(crate) fn command() -> Command {
    let limit = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("record")
        .about("Records channels and live streams of a running server as MP4 files in its record-folder")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("ls")
                .about("Lists the running recordings, and the last recordings that ended")
                .args(admin::address()),
            Command::new("files")
                .about("Lists the files of continuous recordings, and the times that they hold")
                .arg(Arg::new("stream").value_name("PATH").help("Path of one stream"))
                .arg(limit("from", "TIME", "Files that end after this time, such as 2026-11-22T10:00:00Z"))
                .arg(limit("to", "TIME", "Files that begin before this time"))
                .args(admin::address()),
            Command::new("start")
                .about("Starts a recording of a channel or live stream, and prints its number and file")
                .arg(
                    Arg::new("path")
                        .required(true)
                        .value_name("PATH")
                        .help("Path of a channel (rtsp-channels) or live stream, as its URL has it"),
                )
                .arg(limit("duration", "TIME", "Longest duration, such as 90s or 1h, at most record-duration"))
                .arg(limit("size", "SIZE", "Highest size, such as 1GiB, at most record-size"))
                .args(admin::address()),
            Command::new("stop")
                .about("Stops a recording and completes its file")
                .arg(Arg::new("id").required(true).value_name("NUMBER").help("Number of the recording that `ls` shows"))
                .args(admin::address()),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else { return Err("no such command".into()) };
    let (admin, text) = (Admin::of(matches), |name: &str| matches.get_one::<String>(name));
    match name {
        "ls" => list(&admin),
        "files" => {
            let given = ["stream", "from", "to"].into_iter().filter_map(|name| Some((name, text(name)?.as_str())));
            files(&admin, &given.collect::<Vec<_>>())
        }
        "start" => {
            let given = ["path", "duration", "size"].into_iter();
            let given: Map<_, _> = given.filter_map(|name| Some((name.to_owned(), json!(text(name)?)))).collect();
            admin.print(Method::POST, "recordings", Some(given.into()))
        }
        _ => {
            let id = text("id").map(String::as_str).unwrap_or_default();
            admin.print(Method::DELETE, &format!("recordings/{}", admin::component(id)), None)
        }
    }
}

fn list(admin: &Admin<'_>) -> Outcome {
    let all: Value = admin.get("recordings", &[])?;
    if all["is-on"] == false {
        return Err("recording is off: set record-folder, the folder of recordings".into());
    }
    say!("{:>6} {:>14} {:>10} {:>8} {:>8} {:<17} FILE", "NUMBER", "BYTES", "FRAMES", "LOST", "SECONDS", "STATE")?;
    for recording in all["items"].as_array().into_iter().flatten() {
        let number = |name: &str| recording[name].as_u64().unwrap_or(0);
        let (id, bytes, frames, lost) = (number("id"), number("bytes"), number("frames"), number("lost-frames"));
        let seconds = recording["seconds"].as_f64().unwrap_or(0.0);
        let state = recording["ended"].as_str().unwrap_or("runs");
        let file = recording["file"].as_str().unwrap_or("");
        let more = match number("files") {
            0 | 1 => String::new(),
            files => format!(" to -{files}"),
        };
        say!("{id:>6} {bytes:>14} {frames:>10} {lost:>8} {seconds:>8.1} {state:<17} {file}{more}")?;
    }
    Ok(())
}

/// Lists recorded files, page after page, and the times that they hold.
fn files(admin: &Admin<'_>, given: &[(&str, &str)]) -> Outcome {
    say!("{:<24} {:>10} {:>14} {:>8} {:<9} FILE", "FROM", "SECONDS", "BYTES", "LOST", "STATE")?;
    let mut skip = 0;
    let all = loop {
        let number = skip.to_string();
        let page = [("limit", "1000"), ("skip", &number)];
        let all: Value = admin.get("recorded-files", &[given, &page].concat())?;
        let items = all["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        for item in items {
            let (text, number) =
                (|name: &str| item[name].as_str().unwrap_or(""), |name: &str| item[name].as_u64().unwrap_or(0));
            let seconds = item["seconds"].as_f64().unwrap_or(0.0);
            let (from, bytes, lost, state, file) =
                (text("from"), number("bytes"), number("lost-frames"), text("state"), text("file"));
            say!("{from:<24} {seconds:>10.1} {bytes:>14} {lost:>8} {state:<9} {file}")?;
        }
        skip += items.len();
        if items.len() < 1000 {
            break all;
        }
    };
    for stream in all["streams"].as_array().into_iter().flatten() {
        let name = stream["stream"].as_str().unwrap_or("");
        for time in stream["times"].as_array().into_iter().flatten() {
            let text = |field: &str| time[field].as_str().unwrap_or("");
            say!("{} to {} {name}", text("from"), text("to"))?;
        }
    }
    Ok(())
}
