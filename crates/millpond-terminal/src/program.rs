//! A program: its command line, and the exit code of its commands.

use crate::{Outcome, note, out};
use clap::{
    ArgMatches, Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{ffi::OsString, io, process::ExitCode};
use tokio::runtime::{Builder, Runtime};

/// Lets options take negative numbers, which they refuse in words of their own.
#[must_use]
pub fn with_negative_numbers(command: Command) -> Command {
    let options = command.mut_args(|arg| match arg.is_positional() || !arg.get_action().takes_values() {
        true => arg,
        false => arg.allow_negative_numbers(true),
    });
    options.mut_subcommands(with_negative_numbers)
}

/// Makes a runtime for commands, which work for one person.
///
/// # Errors
/// The system gives no event queue.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Runs the command that the arguments name. The exit code is 0 after success, 1 after a failure, 2 where the arguments can't be
/// read, and 141 where standard output was closed. `tip` knows what to write in place of an unknown argument.
pub fn run(
    cli: Command,
    arguments: Vec<OsString>,
    tip: impl Fn(&str) -> Option<String>,
    command: impl FnOnce(&ArgMatches) -> Outcome,
) -> ExitCode {
    let matches = match cli.try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(mut error) => {
            if error.kind() == ErrorKind::UnknownArgument {
                advise(&mut error, tip);
            }
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match command(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        // `millpond probe FILE | head -1`: the reader has what it wants.
        Err(error) if error.is::<out::OutputClosed>() => ExitCode::from(out::CLOSED),
        Err(error) => {
            note!("millpond: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Replaces the tips of an error of an unknown argument, where there is a better one.
fn advise(error: &mut Error, tip: impl Fn(&str) -> Option<String>) {
    // The advice to write `-- --x`: words that begin with a hyphen are nowhere values here.
    error.remove(ContextKind::Suggested);
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return };
    if let Some(tip) = tip(argument) {
        error.remove(ContextKind::SuggestedArg);
        // It shows the argument that looks similar.
        error.remove(ContextKind::Usage);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}
