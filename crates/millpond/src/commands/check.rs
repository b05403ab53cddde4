//! `millpond check`: errors of a configuration, obstacles to serving it here, and its values.

use super::{Outcome, runtime, serve};
use clap::{ArgMatches, Command};
use millpond_server::{config, doubts, serve::obstacles};
use millpond_terminal::{out, say};

pub(crate) fn command() -> Command {
    serve::settings(Command::new("check").about(
        "Checks a configuration. Prints all errors, missing folders and taken ports; if there are none, each \
         setting's value and its source",
    ))
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let inputs = serve::inputs(matches);
    let loaded = config::load(&inputs)?;
    let mut warnings = [loaded.warnings.clone(), doubts(&loaded)].concat();
    // Clients of origins are made, and they belong to a runtime; none of them is used.
    let runtime = runtime()?;
    let entered = runtime.enter();
    let (wrong, taken) = obstacles(&loaded);
    drop(entered);
    // A server of this configuration that runs already has them.
    warnings.extend(taken.iter().map(ToString::to_string));
    for warning in &warnings {
        say!("# warning: {warning}")?;
    }
    out::lines(&config::show(&loaded, inputs.file.as_deref()))?;
    if wrong.is_empty() {
        return match warnings.len() {
            0 => say!("# ok"),
            1 => say!("# ok, with the warning above"),
            count => say!("# ok, with the {count} warnings above"),
        };
    }
    Err(wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n").into())
}
