//! `millpond places`: places of a running server, and changes of its configuration file.

use super::{
    Outcome,
    admin::{self, Admin},
};
use clap::{Arg, ArgMatches, Command};
use millpond_terminal::say;
use reqwest::Method;
use serde_json::{Map, json};

pub(crate) fn command() -> Command {
    let name = || Arg::new("name").required(true).value_name("NAME").help("Name of the place");
    Command::new("places")
        .about("Lists the places of a running server, and changes the places in its configuration file")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("ls").about("Lists the places and their locations").args(admin::address()),
            Command::new("set")
                .about("Adds or replaces a place in the configuration file, and serves it")
                .arg(name())
                .arg(Arg::new("url").required(true).value_name("URL").help("Folder or URL of the place"))
                .arg(Arg::new("setting").num_args(0..).value_name("NAME=VALUE").help(
                    "Options of the place, such as retries=3. Options that are not given are removed from \
                               the file",
                ))
                .args(admin::address()),
            Command::new("rm")
                .about("Removes a place from the configuration file and from the server")
                .arg(name())
                .args(admin::address()),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((action, matches)) = matches.subcommand() else { return Err("no such command".into()) };
    let admin = Admin::of(matches);
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let path = |name: &str| format!("places/{}", admin::component(name));
    match action {
        "ls" => list(&admin),
        "rm" => admin.print(Method::DELETE, &path(text("name")), None),
        _ => {
            let pair = |text: &String| {
                let (name, value) = text.split_once('=').ok_or(format!("{text}: expected NAME=VALUE"))?;
                Ok::<_, String>((name.to_owned(), json!(value)))
            };
            let given = matches.get_many::<String>("setting").into_iter().flatten();
            let settings = given.map(pair).collect::<Result<Map<_, _>, _>>()?;
            let place = json!({ "url": text("url"), "settings": settings });
            admin.print(Method::PUT, &path(text("name")), Some(place))
        }
    }
}

fn list(admin: &Admin<'_>) -> Outcome {
    let all = admin.get("places", &[])?;
    for place in all["items"].as_array().into_iter().flatten() {
        let text = |name: &str| place[name].as_str().unwrap_or_default();
        let wait = if place["is-ready"] == true { "" } else { " (has not answered yet)" };
        say!("{:<20} {:<9} {:<40} {}{wait}", text("name"), text("kind"), text("location"), text("source"))?;
    }
    Ok(())
}
