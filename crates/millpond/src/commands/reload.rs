//! `millpond reload`: loads the configuration of a running server again.

use super::{
    Outcome,
    admin::{Admin, address},
};
use clap::{ArgMatches, Command};
use reqwest::Method;

pub(crate) fn command() -> Command {
    let about =
        "Loads the configuration of a running server again, and tells what has changed and what needs a restart";
    Command::new("reload").about(about).args(address())
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    Admin::of(matches).print(Method::POST, "reload", None)
}
