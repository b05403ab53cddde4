//! `millpond cache`: what a running server has cached, and steering it.

use super::{Outcome, admin};
use crate::out::say;
use clap::{Arg, ArgMatches, Command};
use reqwest::Method;
use serde_json::Value;

pub(crate) fn command() -> Command {
    let object = || {
        let help = "Paths of files or assets, as in their URLs: films/a.mp4; purge accepts folders too";
        Arg::new("path").required(true).num_args(1..).value_name("PATH").help(help)
    };
    let of =
        |name: &'static str, about: &'static str| Command::new(name).about(about).arg(object()).arg(admin::address());
    Command::new("cache")
        .about("Shows and changes the cache of a running server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("ls").about("Lists the objects with cached slices").arg(admin::address()),
            Command::new("stat").about("Prints the cache's contents and counters as JSON").arg(admin::address()),
            of("purge", "Removes the cached slices of an object or folder"),
            of(
                "pin",
                "Protects the slices of an object from eviction, present and future ones, until the server stops",
            )
            .arg(
                Arg::new("first")
                    .long("first")
                    .value_name("DURATION")
                    .help("Protects only the index and the first media of a title, such as 30s, and fetches them now"),
            ),
            of("unpin", "Ends the protection of `pin`"),
            of("warm", "Fetches a whole object in the background"),
            Command::new("set")
                .about("Changes settings of the cache until the server stops")
                .arg(
                    Arg::new("size")
                        .long("size")
                        .value_name("SIZE")
                        .help("Limit of the disk cache, at most cache-size"),
                )
                .arg(Arg::new("policy").long("policy").value_name("NAME").help("Eviction policy of the disk cache"))
                .arg(
                    Arg::new("memory")
                        .long("memory")
                        .value_name("SIZE")
                        .help("Limit of the memory for slices, segments, indexes and playlists"),
                )
                .arg(Arg::new("prefetch").long("prefetch").value_name("MODE").help("When upcoming slices are fetched"))
                .arg(admin::address()),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else { return Err("no such command".into()) };
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    match name {
        "ls" => list(matches),
        "stat" => admin::print(matches, Method::GET, "/cache", &[]),
        "set" => {
            let given =
                ["size", "policy", "memory", "prefetch"].into_iter().filter_map(|name| Some((name, text(name)?)));
            admin::print(matches, Method::POST, "/cache/set", &given.collect::<Vec<_>>())
        }
        action => {
            let first = (action == "pin").then(|| text("first")).flatten().map(|first| ("first", first));
            for path in matches.get_many::<String>("path").into_iter().flatten() {
                let query: Vec<_> = first.into_iter().chain([("object", path.as_str())]).collect();
                admin::print(matches, Method::POST, &format!("/cache/{action}"), &query)?;
            }
            Ok(())
        }
    }
}

fn list(matches: &ArgMatches) -> Outcome {
    let objects: Value = serde_json::from_str(&admin::ask(matches, Method::GET, "/cache/objects", &[])?)?;
    say!(
        "{:>14} {:>8} {:>8} {:>8} {:>14} {:>14}      PATH",
        "BYTES",
        "SLICES",
        "MEMORY",
        "DISK",
        "HIT BYTES",
        "MISS BYTES"
    )?;
    for object in objects.as_array().into_iter().flatten() {
        let number = |name: &str| object[name].as_u64().unwrap_or(0);
        let text = |name: &str| object[name].as_str().unwrap_or("").to_owned();
        let pinned = if object["pinned"] == true { "pin" } else { "" };
        let path =
            [text("place"), text("path")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let (bytes, slices, memory, disk) = (number("bytes"), number("slices"), number("in-memory"), number("on-disk"));
        let (hit, miss) = (number("hit-bytes"), number("miss-bytes"));
        say!("{bytes:>14} {slices:>8} {memory:>8} {disk:>8} {hit:>14} {miss:>14} {pinned:>4} {path}")?;
    }
    Ok(())
}
