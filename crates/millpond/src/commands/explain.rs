//! `millpond explain`: the ranges that a request needs, their locations, and the requests to the origin.

use super::{
    Outcome,
    admin::{self, Admin},
    cluster,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_access::token;
use millpond_library::uri::decode_path;
use millpond_terminal::{out, say};
use reqwest::Method;
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeMap};

pub(crate) fn command() -> Command {
    Command::new("explain")
        .about(
            "Shows which bytes a request to a running server needs, which of these are cached, and which requests \
                the origin would get",
        )
        .arg(Arg::new("url").required(true).value_name("URL|PATH").help(
            "URL or path of the request, percent-encoded as in a browser, such as films/a.mp4/v1/3.m4s or \
                'http://edge:8080/films/a.mp4/index.m3u8?max-height=720'",
        ))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints JSON"))
        .args(admin::address())
}

/// Lines of runs that are shown: they fit a screen with those around them.
const LINES: usize = 16;

/// A range of an object as the server tells it.
#[derive(Debug)]
struct Part {
    object: String,
    first: u64,
    end: u64,
    from: String,
}

impl Part {
    fn of(told: &Value) -> Self {
        let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| told[name].as_u64().unwrap_or_default();
        Self { object: text("object"), first: number("first"), end: number("end"), from: text("from") }
    }
}

/// Ranges of one object in a row that come from the same tier.
#[derive(Debug, PartialEq, Eq)]
struct Run<'a> {
    from: &'a str,
    object: &'a str,
    /// First byte of the lowest range, and the byte behind the highest one.
    first: u64,
    end: u64,
    /// Bytes of the ranges, without what lies between them.
    bytes: u64,
    parts: usize,
}

/// Joins what comes one after the other from the same tier.
fn runs(parts: &[Part]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for Part { object, first, end, from } in parts {
        let bytes = end.saturating_sub(*first);
        match runs.last_mut().filter(|run| run.object == object && run.from == from) {
            Some(run) => {
                run.first = run.first.min(*first);
                run.end = run.end.max(*end);
                run.bytes += bytes;
                run.parts += 1;
            }
            None => runs.push(Run { from, object, first: *first, end: *end, bytes, parts: 1 }),
        }
    }
    runs
}

/// Bytes of each tier.
fn totals(parts: &[Part]) -> BTreeMap<&str, u64> {
    let mut totals = BTreeMap::new();
    for part in parts {
        *totals.entry(part.from.as_str()).or_default() += part.end.saturating_sub(part.first);
    }
    totals
}

/// The target of a request.
#[derive(Debug, PartialEq, Eq)]
struct RequestTarget<'a> {
    /// Decoded path, without a leading slash and token.
    path: Cow<'a, str>,
    query: &'a str,
}

impl<'a> RequestTarget<'a> {
    /// Splits a URL, or a path with its query (RFC 3986 3). A URL without a path is refused: it is the gallery's.
    fn of(url: &'a str) -> Result<Self, String> {
        let plain = url.split_once('#').map_or(url, |(plain, _)| plain);
        let (path, query) = plain.split_once('?').unwrap_or((plain, ""));
        let path = match path.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("", |slash| &rest[slash..]),
            None => path,
        };
        let path = token::split(path).map_or(path, |(_, rest)| rest).trim_start_matches('/');
        let expected = "expected the path of a file, playlist or segment, such as films/a.mp4/index.m3u8";
        if path.is_empty() {
            return Err(format!("{url}: has no path, {expected}"));
        }
        let path = decode_path(path).ok_or_else(|| format!("{url}: its path is not UTF-8, {expected}"))?;
        Ok(Self { path, query })
    }
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let url = matches.get_one::<String>("url").map(String::as_str).unwrap_or_default();
    let RequestTarget { path, query } = RequestTarget::of(url)?;
    let query = Some(("query", query)).filter(|(_, query)| !query.is_empty());
    let parameters: Vec<_> = [("url", &*path)].into_iter().chain(query).collect();
    let text = Admin::of(matches).send(Method::GET, "explain", (&parameters[..], None))?;
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
    let parts: Vec<Part> = told["parts"].as_array().into_iter().flatten().map(Part::of).collect();
    let runs = runs(&parts);
    for run in runs.iter().take(LINES) {
        let Run { from, object, first, end, bytes, parts } = run;
        let parts = if *parts > 1 { format!(" in {parts} parts") } else { String::new() };
        say!("  {from:<7} {bytes:>12} bytes  {object} [{first}, {end}){parts}")?;
    }
    if let Some(rest) = runs.get(LINES..).filter(|rest| !rest.is_empty()) {
        say!("  and {} more runs; --json has all {} parts", rest.len(), parts.len())?;
        for (from, bytes) in totals(&parts) {
            say!("  {from:<7} {bytes:>12} bytes  in all")?;
        }
    }
    say!("  {} bytes would be asked from the origin now", number(&told["origin-bytes"]))?;
    if let Some(efficiency) = told["efficiency"].as_f64() {
        say!("  efficiency {efficiency:.2}: bytes of the reply for each of them")?;
    }
    if let Some(first) = told["origin"]["first-byte-seconds"].as_f64() {
        let last = told["origin"]["last-byte-seconds"].as_f64().unwrap_or(first);
        let siblings = if told["origin"]["siblings-first"] == true { ", after sibling caches" } else { "" };
        say!("  which takes about {first:.3} s to the first and {last:.3} s to the last of them{siblings}")?;
    }
    if !told["cluster"].is_null() {
        cluster::say_assignment(&told["cluster"])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_of_browsers() {
        for (url, path, query) in [
            ("films/a.mp4/v1/3.m4s", "films/a.mp4/v1/3.m4s", ""),
            ("/films/my%20film.mp4", "films/my film.mp4", ""),
            ("films/100 %.mp4", "films/100 %.mp4", ""),
            ("http://edge:8080/films/%C3%A9t%C3%A9%3F.mp4/index.m3u8", "films/été?.mp4/index.m3u8", ""),
            ("https://[::1]/a/index.m3u8?max-height=720&audio=de#t=9", "a/index.m3u8", "max-height=720&audio=de"),
            ("http://edge/~eyJ0.a.b/a.mp4", "a.mp4", ""),
            ("a/index.mpd?url=http://b/", "a/index.mpd", "url=http://b/"),
        ] {
            assert_eq!(RequestTarget::of(url), Ok(RequestTarget { path: path.into(), query }), "{url}");
        }
        for url in ["", "/", "http://edge:8080", "http://edge:8080/#play=a.mp4", "http://edge/~eyJ0.a.b", "%ff"] {
            let error = RequestTarget::of(url).unwrap_err();
            assert!(error.contains("such as films/a.mp4/index.m3u8"), "{error}");
        }
    }

    #[test]
    fn slices_in_a_row_are_one_run() {
        let part = |object: &str, first, end, from: &str| Part { object: object.into(), first, end, from: from.into() };
        let mut parts: Vec<Part> = (0..500).map(|n| part("a", n * 100, n * 100 + 100, "disk")).collect();
        parts.push(part("a", 50_100, 50_200, "origin"));
        parts.push(part("b", 0, 10, "origin"));
        let found = runs(&parts);
        let run = |from, object, first, end, bytes, parts| Run { from, object, first, end, bytes, parts };
        let expected = [
            run("disk", "a", 0, 50_000, 50_000, 500),
            run("origin", "a", 50_100, 50_200, 100, 1),
            run("origin", "b", 0, 10, 10, 1),
        ];
        assert_eq!(found, expected);
        assert_eq!(totals(&parts), BTreeMap::from([("disk", 50_000), ("origin", 110)]));
    }
}
