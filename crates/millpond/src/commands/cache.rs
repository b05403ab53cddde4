//! `millpond cache`: the cache of a running server, and changes of it.

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgMatches, Command};
use millpond_store::schedule::Mode;
use millpond_terminal::{out, say};
use reqwest::Method;
use serde_json::{Map, Value, json};

pub(crate) fn command() -> Command {
    let object = || {
        let help = "Paths of files or assets as in their URLs, such as films/a.mp4. purge accepts folders too";
        Arg::new("path").required(true).num_args(1..).value_name("PATH").help(help)
    };
    let of =
        |name: &'static str, about: &'static str| Command::new(name).about(about).arg(object()).args(admin::address());
    Command::new("cache")
        .about("Shows and changes the cache of a running server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("ls").about("Lists the objects that have cached slices").args(admin::address()),
            Command::new("map")
                .about("Shows which slices of a file or asset are cached")
                .arg(Arg::new("path").required(true).value_name("PATH").help(
                    "Path of a file or asset, as its URL has \
                                                                              it",
                ))
                .args(admin::address()),
            Command::new("stat").about("Prints the cache's contents and counters as JSON").args(admin::address()),
            of("purge", "Removes the cached slices of an object or folder"),
            of("pin", "Protects present and future slices of an object from eviction, until the server stops").arg(
                Arg::new("first").long("first").value_name("DURATION").help(
                    "Fetches the index and the first part of a title, such as 30s, and protects only these \
                           slices",
                ),
            ),
            of("unpin", "Ends the protection that `pin` began"),
            of("warm", "Fetches a whole object, or a stored title of an RTSP server, in the background"),
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
                .arg(Arg::new("prefetch").long("prefetch").value_name("MODE").help(Mode::HELP))
                .args(admin::address()),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else { return Err("no such command".into()) };
    let admin = Admin::of(matches);
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    match name {
        "ls" => list(&admin),
        "stat" => admin.print(Method::GET, "cache", None),
        "map" => map(&admin, text("path").unwrap_or_default()),
        "set" => {
            let given = ["size", "policy", "memory", "prefetch"].into_iter();
            let given: Map<_, _> = given.filter_map(|name| Some((name.to_owned(), json!(text(name)?)))).collect();
            admin.print(Method::PATCH, "cache", Some(given.into()))
        }
        action => {
            for path in matches.get_many::<String>("path").into_iter().flatten() {
                let reply = match action {
                    "pin" => {
                        let mut body = json!({ "path": path });
                        body.as_object_mut()
                            .zip(text("first"))
                            .map(|(body, first)| body.insert("first".to_owned(), json!(first)));
                        admin.send(Method::POST, "cache/pins", (&[], Some(body)))
                    }
                    "unpin" => admin.send(Method::DELETE, "cache/pins", (&[("path", path)], None)),
                    action => {
                        admin.send(Method::POST, &format!("cache/{action}"), (&[], Some(json!({ "path": path }))))
                    }
                };
                out::json(&reply?)?;
            }
            Ok(())
        }
    }
}

fn list(admin: &Admin<'_>) -> Outcome {
    let head = || {
        let names = ["BYTES", "SLICES", "MEMORY", "DISK", "HIT BYTES", "MISS BYTES"];
        let [bytes, slices, memory, disk, hit, miss] = names;
        say!("{bytes:>14} {slices:>8} {memory:>8} {disk:>8} {hit:>14} {miss:>14}      PATH")
    };
    admin.each(("cache/objects", &[]), head, |object: &Value| {
        let number = |name: &str| object[name].as_u64().unwrap_or(0);
        let text = |name: &str| object[name].as_str().unwrap_or("").to_owned();
        let pinned = if object["pinned"] == true { "pin" } else { "" };
        let path =
            [text("place"), text("path")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let (bytes, slices, memory, disk) = (number("bytes"), number("slices"), number("in-memory"), number("on-disk"));
        let (hit, miss) = (number("hit-bytes"), number("miss-bytes"));
        say!("{bytes:>14} {slices:>8} {memory:>8} {disk:>8} {hit:>14} {miss:>14} {pinned:>4} {path}")
    })
}

/// Prints which slices of a file or asset are cached.
fn map(admin: &Admin<'_>, path: &str) -> Outcome {
    let map = admin.get("cache/map", &[("path", path), ("cells", "1024")])?;
    say!("m in memory, d cached, p cached in part, c coming, . absent, f a local file")?;
    for object in map["objects"].as_array().into_iter().flatten() {
        let (path, cells) = (object["path"].as_str().unwrap_or(""), object["cells"].as_str().unwrap_or(""));
        say!(
            "{path}: {} bytes, {} slices, {} in a character",
            object["bytes"],
            object["slices"],
            object["slices-per-cell"]
        )?;
        for line in cells.as_bytes().chunks(64) {
            say!("  {}", String::from_utf8_lossy(line))?;
        }
    }
    Ok(())
}
