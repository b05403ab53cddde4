//! `millpond sessions`: viewers and sessions of a running server.

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_terminal::{out, say};
use reqwest::Method;
use serde_json::Value;

pub(crate) fn command() -> Command {
    let id = || Arg::new("id").required(true).num_args(1..).value_name("ID").help("Id that `ls` shows");
    let filter = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("sessions")
        .about("Lists and ends HTTP viewers, long responses, RTSP sessions and publishers of a running server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("ls")
                .about("Lists HTTP viewers of the last minute, long responses, RTSP sessions and publishers")
                .arg(filter("kind", "KIND", "Lists one kind only: http, long, rtsp, webrtc, srt, rtmp or publish"))
                .arg(filter("find", "TEXT", "Lists only entries with TEXT in their client, program, asset or id"))
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints one JSON object a line"))
                .args(admin::address()),
            Command::new("kick")
                .about("Ends sessions and long responses, and refuses HTTP viewers for a time")
                .arg(id())
                .arg(filter("block", "DURATION", "Time for which HTTP viewers are refused [default: 60s]"))
                .args(admin::address()),
            Command::new("blocked").about("Lists the HTTP viewers that are refused").args(admin::address()),
            Command::new("unblock").about("Admits refused HTTP viewers again").arg(id()).args(admin::address()),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else { return Err("no such command".into()) };
    let admin = Admin::of(matches);
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    match name {
        "ls" => {
            let given = [("kind", text("kind")), ("q", text("find"))];
            let query: Vec<_> = given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            list(&admin, &query, matches.get_flag("json"))
        }
        "blocked" => blocked(&admin),
        name => {
            let block: Vec<_> = if name == "kick" {
                text("block").map(|time| ("block", time)).into_iter().collect()
            } else {
                Vec::new()
            };
            let noun = if name == "kick" { "sessions" } else { "blocks" };
            for id in matches.get_many::<String>("id").into_iter().flatten() {
                let path = format!("{noun}/{}", admin::component(id));
                out::json(&admin.send(Method::DELETE, &path, (&block, None))?)?;
            }
            Ok(())
        }
    }
}

fn list(admin: &Admin<'_>, query: &[(&str, &str)], is_json: bool) -> Outcome {
    let head = || {
        if is_json {
            return Ok(());
        }
        let [id, kind, state, bytes, rate] = ["ID", "KIND", "STATE", "BYTES", "RATE"];
        say!("{id:<19} {kind:<7} {state:<10} {bytes:>14} {rate:>9} {:<24} {:<32} AGENT", "CLIENT", "ASSET")
    };
    admin.each(("sessions", query), head, |session| {
        if is_json {
            return say!("{session}");
        }
        let text = |name: &str| session[name].as_str().unwrap_or("");
        let bytes = session["bytes"].as_u64().unwrap_or(0);
        let rate = session["bps"].as_f64().map_or_else(String::new, |bps| format!("{:.2}M", bps / 1e6));
        let (id, kind, state, client) = (text("id"), text("kind"), text("state"), text("client"));
        say!(
            "{id:<19} {kind:<7} {state:<10} {bytes:>14} {rate:>9} {client:<24} {:<32} {}",
            text("asset"),
            text("agent")
        )
    })
}

fn blocked(admin: &Admin<'_>) -> Outcome {
    let head = || say!("{:<19} {:>8} {:<24} {:<32} AGENT", "ID", "SECONDS", "CLIENT", "ASSET");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    admin.each(("blocks", &[]), head, |block: &Value| {
        let text = |name: &str| block[name].as_str().unwrap_or("");
        let left = block["until"].as_f64().map_or(0.0, |until| (until - now).max(0.0));
        say!("{:<19} {left:>8.0} {:<24} {:<32} {}", text("id"), text("client"), text("asset"), text("agent"))
    })
}
