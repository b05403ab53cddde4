//! The `millpond` command.

mod commands;
mod target;

use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = match commands::cli().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match commands::run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millpond: {error}");
            ExitCode::FAILURE
        }
    }
}
