//! `millpond check`: is the configuration right, and what is in force?

use super::{Outcome, serve};
use crate::out::{self, say};
use clap::{ArgMatches, Command};
use millpond_server::config;

pub(crate) fn command() -> Command {
    serve::settings(
        Command::new("check").about("Checks a configuration: all errors with line and key, or what is in force"),
    )
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let inputs = serve::inputs(matches);
    let loaded = config::load(&inputs)?;
    for warning in &loaded.warnings {
        say!("# warning: {warning}")?;
    }
    out::lines(&config::check::show(&loaded.effective, inputs.file.as_deref()))?;
    say!("# ok")
}
