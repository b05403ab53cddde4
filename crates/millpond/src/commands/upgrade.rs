//! `millpond upgrade`: a new process takes over from a running server.

use super::{
    Outcome,
    admin::{Admin, address},
};
use clap::{ArgMatches, Command};
use reqwest::Method;

pub(crate) fn command() -> Command {
    let about = "Starts the program of a running server anew, from the same path; the new process takes over without a failed request";
    Command::new("upgrade").about(about).args(address())
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    Admin::of(matches).print(Method::POST, "upgrade", None)
}
