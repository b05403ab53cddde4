//! `millpond upgrade`: a new process takes over from a running server.

use super::{
    Outcome,
    admin::{Admin, address},
};
use clap::{ArgMatches, Command};
use reqwest::Method;

pub(crate) fn command() -> Command {
    let about = "Replaces the process of a running server by a new one from the same path, without a failed request";
    Command::new("upgrade").about(about).args(address())
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    Admin::of(matches).print(Method::POST, "upgrade", None)
}
