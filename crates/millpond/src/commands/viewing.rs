//! `millpond viewing`: statistics of viewing of a running server.

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_terminal::say;
use serde_json::Value;

/// Seconds of an hour.
const HOUR: f64 = 3600.0;

pub(crate) fn command() -> Command {
    let filter = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("viewing")
        .about("Prints viewer hours, most viewers, starts and rebuffers of the last days of a running server, by title")
        .arg(filter("day", "DAY", "Lists the titles of a day in UTC, such as 2026-11-30").default_value("today"))
        .arg(filter("find", "TEXT", "Lists only titles with TEXT in their path"))
        .arg(
            Arg::new("days")
                .long("days")
                .action(ArgAction::SetTrue)
                .help("Lists the sums of the last days, without titles"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints one JSON object a line"))
        .args(admin::address())
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let (admin, is_json) = (Admin::of(matches), matches.get_flag("json"));
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    if matches.get_flag("days") {
        let reply = admin.get("viewing", &[("day", "today"), ("limit", "1")])?;
        head(is_json, "DAY")?;
        return reply["days"].as_array().into_iter().flatten().try_for_each(|day| row(day, is_json, "day"));
    }
    let given = [("day", text("day")), ("q", text("find"))];
    let query: Vec<_> = given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    admin.each(("viewing", &query), || head(is_json, "TITLE"), |title| row(title, is_json, "title"))
}

fn head(is_json: bool, name: &str) -> Outcome {
    if is_json {
        return Ok(());
    }
    say!("{:>10} {:>7} {:>8} {:>9} {name}", "HOURS", "PEAK", "STARTS", "REBUFFERS")
}

fn row(item: &Value, is_json: bool, name: &str) -> Outcome {
    if is_json {
        return say!("{item}");
    }
    let number = |name: &str| item[name].as_u64().unwrap_or(0);
    let hours = item["viewer-seconds"].as_f64().unwrap_or(0.0) / HOUR;
    let name = item[name].as_str().unwrap_or("(other titles)");
    say!("{hours:>10.2} {:>7} {:>8} {:>9} {name}", number("peak"), number("starts"), number("rebuffers"))
}
