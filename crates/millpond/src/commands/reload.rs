//! `millpond reload`: loads the configuration of a running server again.

use super::{
    Outcome,
    admin::{Admin, address},
    every_node,
};
use clap::{ArgMatches, Command};
use reqwest::Method;

pub(crate) fn command() -> Command {
    let about =
        "Reloads the configuration of a running server. Prints the changes, and the settings that need a restart";
    Command::new("reload").about(about).arg(every_node::flag()).args(address())
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let admin = Admin::of(matches);
    match matches.get_flag("cluster") {
        true => {
            every_node::outcome(every_node::ask(&admin, Method::POST, "reload", (&[], None))?.into_iter().collect())
        }
        false => admin.print(Method::POST, "reload", None),
    }
}
