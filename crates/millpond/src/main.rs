//! The `millpond` command.

mod commands;
mod target;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = commands::arguments(std::env::args_os());
    millpond_terminal::program::run(commands::cli(), arguments, commands::tip, commands::run)
}
