//! The `millpond` command.

mod commands;
mod target;

use std::process::ExitCode;

fn main() -> ExitCode {
    millpond_terminal::program::run(commands::cli(), commands::arguments(std::env::args_os()), commands::run)
}
