//! `millpond load` and `millpond simulate`: words that run the program `millpond-lab`.

use super::Outcome;
use clap::{Arg, ArgMatches, Command};
use std::{ffi::OsString, os::unix::process::CommandExt as _, process::Command as Process};

pub(crate) fn load() -> Command {
    word("load", "Loads any HLS, DASH or RTSP server with many simulated clients: millpond-lab load")
}

pub(crate) fn simulate() -> Command {
    word("simulate", "Simulates a workload with the cache's policies and prefetch modes: millpond-lab simulate")
}

/// A word whose arguments, `--help` too, are the other program's.
fn word(name: &'static str, about: &'static str) -> Command {
    let arguments = Arg::new("arguments").value_name("ARGUMENTS").num_args(0..).trailing_var_arg(true);
    Command::new(name).about(about).disable_help_flag(true).arg(
        arguments.allow_hyphen_values(true).value_parser(clap::value_parser!(OsString)).help(
            "Arguments of the \
                                                                                              command of millpond-lab",
        ),
    )
}

/// Replaces this process by the other program.
pub(crate) fn run(word: &str, matches: &ArgMatches) -> Outcome {
    let arguments = matches.get_many::<OsString>("arguments").unwrap_or_default();
    let Some(program) = millpond_server::lab::program() else {
        return Err(
            "this command needs the program millpond-lab, which is not installed: install the package, or put millpond-lab beside millpond"
                .into(),
        );
    };
    let error = Process::new(&program).arg(word).args(arguments).exec();
    Err(format!("{}: {error}", program.display()).into())
}
