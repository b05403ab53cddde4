//! The `millpond` command.

mod commands;
mod out;
mod target;
mod urls;

use clap::error::{ContextKind, ErrorKind};
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = match commands::cli().try_get_matches_from(commands::arguments(std::env::args_os())) {
        Ok(matches) => matches,
        Err(mut error) => {
            if error.kind() == ErrorKind::UnknownArgument {
                // The advice to write `-- --x`: words that begin with a hyphen are nowhere values here.
                error.remove(ContextKind::Suggested);
            }
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match commands::run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        // `millpond probe FILE | head -1`: the reader has what it wants.
        Err(error) if error.is::<out::Closed>() => ExitCode::from(out::CLOSED),
        Err(error) => {
            out::note!("millpond: {error}");
            ExitCode::FAILURE
        }
    }
}
