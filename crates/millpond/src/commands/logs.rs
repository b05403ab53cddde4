//! `millpond logs`: the last minutes of a running server's log.

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_terminal::say;
use serde_json::Value;
use std::time::Duration;

/// Interval between two requests of `--follow`.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("logs")
        .about("Prints the last lines of a running server's log, without the lines of single requests")
        .arg(option(
            "level",
            "LEVEL",
            "Prints only lines of this level and of more severe levels: error, warn, info, debug or trace",
        ))
        .arg(option("find", "TEXT", "Prints only lines with TEXT"))
        .arg(option("lines", "NUMBER", "Number of the newest lines to print [default: 100]"))
        .arg(Arg::new("follow").long("follow").action(ArgAction::SetTrue).help("Prints new lines too, until Ctrl-C"))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints one JSON object a line"))
        .args(admin::address())
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let admin = Admin::of(matches);
    let given = [("level", "level"), ("find", "q"), ("lines", "limit")];
    let mut query: Vec<(&str, &str)> =
        given.into_iter().filter_map(|(flag, name)| Some((name, matches.get_one::<String>(flag)?.as_str()))).collect();
    let mut after = None;
    loop {
        let last: Option<String> = after;
        let mut asked = query.clone();
        asked.extend(last.as_deref().map(|last| ("after", last)));
        let page = admin.get("logs", &asked)?;
        for line in page["items"].as_array().into_iter().flatten() {
            if matches.get_flag("json") { say!("{line}")? } else { say!("{}", text(line))? }
        }
        if !matches.get_flag("follow") {
            return Ok(());
        }
        query.retain(|(name, _)| *name != "limit");
        query.push(("limit", "1000"));
        after = page["next-after"].as_u64().map(|number| number.to_string());
        std::thread::sleep(LOOK);
    }
}

/// A line for people.
fn text(line: &Value) -> String {
    let fields = line["fields"].as_object().into_iter().flatten();
    let fields: String = fields
        .map(|(name, value)| format!(" {name}={}", value.as_str().map_or(value.to_string(), str::to_owned)))
        .collect();
    let (level, message) = (line["level"].as_str().unwrap_or(""), line["message"].as_str().unwrap_or(""));
    format!("{} {:<5} {message}{fields}", clock(line["time"].as_f64().unwrap_or(0.0)), level.to_uppercase())
}

/// The time of a day, UTC.
fn clock(time: f64) -> String {
    let seconds = time.max(0.0) as u64 % 86_400;
    let millis = (time.fract() * 1000.0) as u64;
    format!("{:02}:{:02}:{:02}.{millis:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_time_of_day() {
        assert_eq!(clock(1_795_342_412.25), "10:13:32.250Z");
        let line =
            serde_json::json!({ "time": 0.0, "level": "warn", "message": "slow", "fields": { "place": "a", "ms": 7 } });
        assert_eq!(text(&line), "00:00:00.000Z WARN  slow ms=7 place=a");
    }
}
