//! The `millpond-lab` command: load generators, simulators and the papers' figures, to measure a server.

#[cfg(test)]
mod documentation;
mod load;
mod paper;
mod simulate;

use clap::{ArgMatches, Command};
use millpond_terminal::{
    Outcome, completions, man,
    program::{self, runtime},
};
use std::process::ExitCode;

/// Name of the program, as its pages have it.
const NAME: &str = "millpond-lab";

fn main() -> ExitCode {
    program::run(cli(), std::env::args_os().collect(), |_| None, run)
}

/// The whole command line.
fn cli() -> Command {
    program::with_negative_numbers(
        Command::new(NAME)
            .about("Load generators for HLS, DASH, RTSP and WebRTC servers, and simulators of caches and clusters")
            .version(env!("CARGO_PKG_VERSION"))
            .subcommand_required(true)
            .arg_required_else_help(true)
            .max_term_width(100)
            .subcommands([
                load::command(),
                simulate::command(),
                paper::command(),
                completions::command(NAME),
                man::command(NAME),
            ]),
    )
}

fn run(matches: &ArgMatches) -> Outcome {
    match matches.subcommand() {
        Some(("load", matches)) => load::run(matches),
        Some(("simulate", matches)) => simulate::run_command(matches),
        Some(("paper", matches)) => paper::run(matches),
        Some(("completions", matches)) => completions::run(cli(), matches),
        Some(("man", matches)) => man::run(cli(), matches),
        _ => Err("no such command".into()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_well_formed() {
        super::cli().debug_assert();
    }
}
