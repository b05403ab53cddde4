//! `millpond reload`: loads the configuration of a running server again.

use super::{
    Outcome,
    admin::{Admin, address},
};
use clap::{ArgMatches, Command};
use reqwest::Method;

pub(crate) fn command() -> Command {
    let about =
        "Reloads the configuration of a running server. Prints the changes, and the settings that need a restart";
    Command::new("reload").about(about).args(address())
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    Admin::of(matches).print(Method::POST, "reload", None)
}
