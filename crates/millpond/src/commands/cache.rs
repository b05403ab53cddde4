//! `millpond cache`: what a running server has cached, and steering it.

use super::{Outcome, admin};
use crate::out::say;
use clap::{Arg, ArgMatches, Command};
use reqwest::Method;
use serde_json::Value;

pub(crate) fn command() -> Command {
    let object = || {
        let help = "Path of a file or an asset, as it is in its URL: films/a.mp4; for purge a folder too";
        Arg::new("path").required(true).value_name("PATH").help(help)
    };
    let of =
        |name: &'static str, about: &'static str| Command::new(name).about(about).arg(object()).arg(admin::address());
    Command::new("cache")
        .about("Shows and steers the cache of a running server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("ls").about("Objects of which slices are cached").arg(admin::address()),
            Command::new("stat").about("What the cache holds and did, as JSON").arg(admin::address()),
            of("purge", "Takes all slices of an object, or of all below a folder, out"),
            of(
                "pin",
                "Keeps the slices of an object on the disk, those there and those to come, until the server stops",
            ),
            of("unpin", "Lets them go again"),
            of("warm", "Fetches an object whole, in the background"),
            Command::new("set")
                .about("Changes the cache of a running server, until it stops")
                .arg(Arg::new("size").long("size").value_name("SIZE").help("Most bytes of slices, up to cache-size"))
                .arg(Arg::new("policy").long("policy").value_name("NAME").help("Which slice goes when it is full"))
                .arg(Arg::new("memory").long("memory").value_name("SIZE").help("Memory for all that is kept"))
                .arg(Arg::new("prefetch").long("prefetch").value_name("MODE").help("When slices are sent for"))
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
            let object = [("object", text("path").unwrap_or_default())];
            admin::print(matches, Method::POST, &format!("/cache/{action}"), &object)
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
