//! `millpond explain`: what a request needs, what of it is cached, and what would be asked from the origin.

use super::{Outcome, admin};
use crate::out::{self, say};
use clap::{Arg, ArgAction, ArgMatches, Command};
use reqwest::Method;
use serde_json::Value;

pub(crate) fn command() -> Command {
    Command::new("explain")
        .about("Says what a request to a running server needs and where that would come from now")
        .arg(Arg::new("url").required(true).value_name("URL|PATH").help("The request: films/a.mp4/v1/3.m4s"))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON"))
        .arg(admin::address())
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let url = matches.get_one::<String>("url").map(String::as_str).unwrap_or_default();
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => url,
    };
    let text = admin::ask(matches, Method::GET, "/explain", &[("url", path)])?;
    if matches.get_flag("json") {
        return out::json(&text);
    }
    let told: Value = serde_json::from_str(&text)?;
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    match told["bytes"].as_u64() {
        Some(bytes) => say!("{path}: {bytes} bytes, {} of them made", number(&told["made-bytes"]))?,
        None => say!("{path}: length known when it is made")?,
    }
    if told["rewritten"] == true {
        say!("  samples are rewritten on the way")?;
    }
    for part in told["parts"].as_array().into_iter().flatten() {
        let (first, end) = (number(&part["first"]), number(&part["end"]));
        let (object, from) = (part["object"].as_str().unwrap_or(""), part["from"].as_str().unwrap_or(""));
        say!("  {from:<7} {:>12} bytes  {object} [{first}, {end})", end - first)?;
    }
    say!("  {} bytes would be asked from the origin now", number(&told["origin-bytes"]))?;
    if let Some(first) = told["origin"]["first-byte-seconds"].as_f64() {
        let last = told["origin"]["last-byte-seconds"].as_f64().unwrap_or(first);
        let siblings = if told["origin"]["siblings-first"] == true { ", after sibling caches" } else { "" };
        say!("  which takes about {first:.3} s to the first and {last:.3} s to the last of them{siblings}")?;
    }
    Ok(())
}
