//! `millpond settings`: settings of a running server, and changes of its configuration file.

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_terminal::say;
use reqwest::Method;
use serde_json::{Map, Value, json};

pub(crate) fn command() -> Command {
    let dry = || {
        Arg::new("dry-run").long("dry-run").action(ArgAction::SetTrue).help(
            "Checks the change without \
                                                                                      making it",
        )
    };
    Command::new("settings")
        .about("Shows the settings of a running server, and changes its configuration file")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("ls")
                .about("Lists the settings with their values and sources")
                .arg(Arg::new("find").long("find").value_name("TEXT").help(
                    "Lists only settings with TEXT in their \
                                                                            name or help",
                ))
                .arg(
                    Arg::new("given")
                        .long("given")
                        .action(ArgAction::SetTrue)
                        .help("Lists only settings that were given a value"),
                )
                .args(admin::address()),
            Command::new("set")
                .about("Sets settings in the configuration file, and keeps its comments")
                .arg(
                    Arg::new("setting")
                        .required(true)
                        .num_args(1..)
                        .value_name("NAME=VALUE")
                        .help("Setting and value, such as memory=1GiB"),
                )
                .arg(dry())
                .args(admin::address()),
            Command::new("unset")
                .about("Removes settings from the configuration file, so that their defaults apply again")
                .arg(Arg::new("setting").required(true).num_args(1..).value_name("NAME").help("Name of the setting"))
                .arg(dry())
                .args(admin::address()),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else { return Err("no such command".into()) };
    let admin = Admin::of(matches);
    if name == "ls" {
        return list(&admin, matches);
    }
    let given = matches.get_many::<String>("setting").into_iter().flatten();
    let change = if name == "set" {
        let pair = |text: &String| {
            let (name, value) = text.split_once('=').ok_or(format!("{text}: expected NAME=VALUE"))?;
            Ok::<_, String>((name.to_owned(), json!(value)))
        };
        json!({ "set": given.map(pair).collect::<Result<Map<_, _>, _>>()?, "dry-run": matches.get_flag("dry-run") })
    } else {
        json!({ "unset": given.collect::<Vec<_>>(), "dry-run": matches.get_flag("dry-run") })
    };
    admin.print(Method::PATCH, "settings", Some(change))
}

fn list(admin: &Admin<'_>, matches: &ArgMatches) -> Outcome {
    let query: Vec<_> = matches.get_one::<String>("find").map(|text| ("q", text.as_str())).into_iter().collect();
    let all = admin.get("settings", &query)?;
    for setting in all["settings"].as_array().into_iter().flatten() {
        let text = |name: &str| setting[name].as_str();
        if matches.get_flag("given") && text("from") == Some("default") {
            continue;
        }
        let wait = if setting["needs-restart"] == true { waiting(&setting["in-force"]) } else { String::new() };
        let (name, value, source) =
            (text("name").unwrap_or(""), text("value").unwrap_or("off"), text("source").unwrap_or(""));
        say!("{name:<28} {value:<32} {source}{wait}")?;
    }
    Ok(())
}

fn waiting(in_force: &Value) -> String {
    format!(" (waits for a restart; {} is in force)", in_force.as_str().unwrap_or("off"))
}
