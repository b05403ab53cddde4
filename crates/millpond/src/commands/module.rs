//! `millpond module`: modules that are attached to channels and live streams of a running server.

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgMatches, Command};
use millpond_terminal::say;
use reqwest::Method;
use serde_json::{Map, Value, json};

pub(crate) fn command() -> Command {
    Command::new("module")
        .about("Attaches modules, such as tee and recorder, to channels and live streams of a running server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("kinds")
                .about("Lists the kinds of modules that can be attached, with their options")
                .args(admin::address()),
            Command::new("ls")
                .about("Lists the modules that are wanted or run, and the last modules that ended")
                .args(admin::address()),
            Command::new("add")
                .about("Attaches a module to a channel or live stream, and prints its number")
                .arg(
                    Arg::new("path")
                        .required(true)
                        .value_name("PATH")
                        .help("Path of a channel (rtsp-channels) or live stream, as its URL has it"),
                )
                .arg(Arg::new("kind").required(true).value_name("KIND").help("Kind of the module that `kinds` shows"))
                .arg(
                    Arg::new("options")
                        .num_args(0..)
                        .value_name("NAME=VALUE")
                        .help("Options of the module, such as to=live/copy"),
                )
                .args(admin::address()),
            Command::new("rm")
                .about("Detaches a module that `add` attached")
                .arg(Arg::new("id").required(true).value_name("NUMBER").help("Number of the module that `ls` shows"))
                .args(admin::address()),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else { return Err("no such command".into()) };
    let (admin, text) = (Admin::of(matches), |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default());
    match name {
        "kinds" => kinds(&admin),
        "ls" => list(&admin),
        "add" => {
            let words = matches.get_many::<String>("options").into_iter().flatten();
            let body = json!({ "stream": text("path"), "kind": text("kind"), "options": options(words)? });
            admin.print(Method::POST, "modules", Some(body))
        }
        _ => admin.print(Method::DELETE, &format!("modules/{}", admin::component(&text("id"))), None),
    }
}

/// The options that words state.
fn options<'a>(words: impl Iterator<Item = &'a String>) -> Result<Map<String, Value>, String> {
    let pair = |word: &String| {
        let pair = word.split_once('=').filter(|(name, _)| !name.is_empty());
        pair.map(|(name, value)| (name.to_owned(), json!(value)))
            .ok_or_else(|| format!("expected NAME=VALUE, such as to=live/copy, found {word:?}"))
    };
    words.map(pair).collect()
}

fn kinds(admin: &Admin<'_>) -> Outcome {
    let all: Value = admin.get("modules", &[])?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for kind in all["kinds"].as_array().into_iter().flatten() {
        say!("{}: {} (takes {})", text(&kind["name"]), text(&kind["about"]), text(&kind["input"]))?;
        for option in kind["options"].as_array().into_iter().flatten() {
            let given = format!("{}={}", text(&option["name"]), text(&option["form"]));
            let default = match (option["is-required"] == true, option["default"].as_str().unwrap_or_default()) {
                (true, _) => " [required]".to_owned(),
                (false, "") => String::new(),
                (false, default) => format!(" [default: {default}]"),
            };
            say!("  {given:<20} {}{default}", text(&option["help"]))?;
        }
    }
    Ok(())
}

fn list(admin: &Admin<'_>) -> Outcome {
    let all: Value = admin.get("modules", &[])?;
    say!("{:>6} {:<9} {:<6} {:<24} MODULE", "NUMBER", "STATE", "FROM", "STREAM")?;
    for module in all["items"].as_array().into_iter().flatten() {
        let text = |name: &str| module[name].as_str().unwrap_or_default();
        let id = module["id"].as_u64().unwrap_or(0);
        let from = if module["is-configured"] == true { "config" } else { "api" };
        let options = module["options"].as_object().into_iter().flatten();
        let options: Vec<_> =
            options.map(|(name, value)| format!(" {name}={}", value.as_str().unwrap_or_default())).collect();
        let why = module["error"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
        let (state, stream, kind) = (text("state"), text("stream"), text("kind"));
        say!("{id:>6} {state:<9} {from:<6} {stream:<24} {kind}{}{why}", options.concat())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_names_and_values() {
        let words = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            options(texts.iter())
        };
        assert_eq!(Value::from(words(&["to=live/a=b", "delay="]).unwrap()), json!({ "to": "live/a=b", "delay": "" }));
        assert_eq!(words(&["copy"]).unwrap_err(), "expected NAME=VALUE, such as to=live/copy, found \"copy\"");
    }
}
