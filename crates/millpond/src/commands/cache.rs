//! `millpond cache`: the cache of a running server, and changes of it.

use super::{
    Outcome,
    admin::{self, Admin},
    every_node,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_library::uri;
use millpond_store::schedule::Mode;
use millpond_terminal::{note, out, say};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::{borrow::Cow, collections::BTreeSet};

pub(crate) fn command() -> Command {
    let object = || {
        let help = "Paths of files or assets as in their URLs, such as films/a.mp4 or films/a%20b.mp4: %25 is a percent \
                    sign. purge accepts folders too, and tags with --tag";
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
                .arg(
                    Arg::new("path")
                        .required(true)
                        .value_name("PATH")
                        .help("Path of a file or asset, as its URL has it: %25 is a percent sign"),
                )
                .args(admin::address()),
            Command::new("stat")
                .about("Prints the cache's contents and counters as JSON")
                .arg(every_node::flag())
                .args(admin::address()),
            purge(of("purge", "Removes the cached slices of an object or folder, or of all objects with a tag")),
            of("pin", "Protects present and future slices of an object from eviction, until the server stops")
                .arg(Arg::new("first").long("first").value_name("DURATION").help(
                    "Fetches the index and the first part of a title, such as 30s, and protects only these \
                           slices",
                ))
                .arg(every_node::flag()),
            of("unpin", "Ends the protection that `pin` began").arg(every_node::flag()),
            of("warm", "Fetches a whole object, or a stored title of an RTSP server, in the background")
                .arg(every_node::flag()),
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

/// Adds the flags of `purge`.
fn purge(command: Command) -> Command {
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    let all = "Purges all nodes of the cluster. Ends with an error if a node, or every node, has not confirmed it within \
               two seconds";
    let pattern = "Takes PATH as a pattern: * and ? match within a component, ** across components. Other characters, \
                   also [ and {, stand for themselves";
    let soft = "Keeps bytes whose version is the same at the origin when they are needed next";
    let tag = "Takes PATH as a tag: purges all objects for which the origin states it in Surrogate-Key or Cache-Tag";
    let place = "Purges only objects of this place, by its name";
    let place = Arg::new("place").long("place").value_name("NAME").requires("tag").help(place);
    command
        .args([flag("cluster", all), flag("pattern", pattern).conflicts_with("tag"), flag("soft", soft)])
        .args([flag("tag", tag), place])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else { return Err("no such command".into()) };
    let admin = Admin::of(matches);
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    match name {
        "ls" => list(&admin),
        "stat" if matches.get_flag("cluster") => {
            every_node::outcome(every_node::ask(&admin, Method::GET, "cache", (&[], None))?.into_iter().collect())
        }
        "stat" => admin.print(Method::GET, "cache", None),
        "map" => map(&admin, &decoded(text("path").unwrap_or_default())?),
        "set" => {
            let given = ["size", "policy", "memory", "prefetch"].into_iter();
            let given: Map<_, _> = given.filter_map(|name| Some((name.to_owned(), json!(text(name)?)))).collect();
            admin.print(Method::PATCH, "cache", Some(given.into()))
        }
        "purge" => purge_all(&admin, matches),
        action => change(&admin, action, matches),
    }
}

/// Pins, unpins or fetches paths, at one node or at all.
fn change(admin: &Admin<'_>, action: &str, matches: &ArgMatches) -> Outcome {
    let (is_cluster, mut undone) = (matches.get_flag("cluster"), Vec::new());
    for path in matches.get_many::<String>("path").into_iter().flatten() {
        let path = &*decoded(path)?;
        let mut body = Map::from_iter([("path".to_owned(), json!(path))]);
        if action == "pin" {
            let first = matches.get_one::<String>("first");
            body.extend(first.map(|first| ("first".to_owned(), json!(first))));
        }
        let (method, of_node, of_cluster) = match action {
            "pin" => (Method::POST, "cache/pins", "pin"),
            "unpin" => (Method::DELETE, "cache/pins", "pin"),
            _ => (Method::POST, "cache/warm", "warm"),
        };
        let query = [("path", path)];
        let sent = match action {
            "unpin" => (&query[..], None),
            _ => (&[][..], Some(Value::from(body))),
        };
        match is_cluster {
            true => undone.extend(every_node::ask(admin, method, of_cluster, sent)?),
            false => out::json(&admin.send(method, of_node, sent)?)?,
        }
    }
    every_node::outcome(undone)
}

/// Decodes a path as URLs are decoded: names are the same in both.
fn decoded(path: &str) -> Result<Cow<'_, str>, String> {
    uri::decode_path(path).ok_or_else(|| format!("{path}: expected UTF-8 text, percent-encoded as in a URL"))
}

/// A warning about a path that looks like a pattern; `None` for others.
fn doubt(path: &str, is_pattern: bool) -> Option<String> {
    let is_doubtful = !is_pattern && path.contains('*');
    is_doubtful.then(|| format!("millpond: {path}: without --pattern, * stands for itself"))
}

/// Why a purge of the cluster is not known to be done; `None` where all nodes have confirmed it.
fn unconfirmed(is_confirmed: bool, missing: BTreeSet<String>, status: &str) -> Option<String> {
    if !missing.is_empty() {
        let names = missing.into_iter().collect::<Vec<_>>().join(", ");
        return Some(format!("not confirmed by {names}: each of them purges before it serves again"));
    }
    let why = || format!("no node has confirmed it: `{status}` shows the nodes");
    (!is_confirmed).then(why)
}

/// Purges paths, patterns or tags, of one node or of all.
fn purge_all(admin: &Admin<'_>, matches: &ArgMatches) -> Outcome {
    let [cluster, pattern, tag, soft] = ["cluster", "pattern", "tag", "soft"].map(|name| matches.get_flag(name));
    let call = if cluster { "cluster/purge" } else { "cache/purge" };
    let field = if tag {
        "tag"
    } else if pattern {
        "pattern"
    } else {
        "path"
    };
    let (mut missing, mut is_confirmed) = (BTreeSet::new(), true);
    for path in matches.get_many::<String>("path").into_iter().flatten() {
        // Tags are no part of URLs, and are taken as they are.
        let path = if tag { Cow::Borrowed(path.as_str()) } else { decoded(path)? };
        if let Some(doubt) = doubt(&path, pattern || tag) {
            note!("{doubt}");
        }
        let mut body = Map::from_iter([(field.to_owned(), json!(path))]);
        let place = matches.get_one::<String>("place");
        body.extend(place.map(|place| ("place".to_owned(), json!(place))));
        if soft {
            body.insert("soft".to_owned(), json!(true));
        }
        let reply = admin.send(Method::POST, call, (&[], Some(body.into())))?;
        out::json(&reply)?;
        let reply: Value = serde_json::from_str(&reply)?;
        let names = |field: &str| reply[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        is_confirmed &= !cluster || names("confirmed").next().is_some();
        missing.extend(names("missing").map(str::to_owned));
    }
    unconfirmed(is_confirmed, missing, &admin.command("cluster status")).map_or(Ok(()), |why| Err(why.into()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_as_in_urls() {
        for (path, expected) in [
            ("films/a%20b.mp4", "films/a b.mp4"),
            ("films/a b.mp4", "films/a b.mp4"),
            ("films/100%25.mp4", "films/100%.mp4"),
            ("films/100%.mp4", "films/100%.mp4"),
            ("films/%C3%A9/**/*.ts", "films/é/**/*.ts"),
        ] {
            assert_eq!(decoded(path).as_deref(), Ok(expected));
        }
        for path in ["films/%ff", "films/%00"] {
            assert!(decoded(path).unwrap_err().starts_with(path));
        }
    }

    #[test]
    fn stars_of_paths_are_doubtful() {
        assert!(doubt("films/*.ts", false).unwrap().contains("--pattern"));
        assert_eq!((doubt("films/*.ts", true), doubt("films/a.ts", false)), (None, None));
    }

    #[test]
    fn a_purge_that_nobody_confirms_is_an_error() {
        let missing = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(unconfirmed(true, missing(&[]), "status"), None);
        assert!(unconfirmed(false, missing(&[]), "status").unwrap().contains("no node has confirmed"));
        for is_confirmed in [true, false] {
            assert!(
                unconfirmed(is_confirmed, missing(&["b", "a"]), "status")
                    .unwrap()
                    .starts_with("not confirmed by a, b:")
            );
        }
    }
}
