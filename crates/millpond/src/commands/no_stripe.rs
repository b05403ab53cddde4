//! `millpond stripe` and `millpond unstripe` of a program that was built without the feature `stripe`: both are refused.

use super::Outcome;
use clap::{Arg, ArgMatches, Command};
use std::ffi::OsString;

pub(crate) fn command() -> Command {
    refused("stripe")
}

pub(crate) fn undo_command() -> Command {
    refused("unstripe")
}

/// A command that help does not list, with any arguments.
fn refused(name: &'static str) -> Command {
    let arguments = Arg::new("arguments").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
    let arguments = arguments.value_parser(clap::value_parser!(OsString));
    Command::new(name).hide(true).disable_help_flag(true).arg(arguments)
}

pub(crate) fn run(_: &ArgMatches) -> Outcome {
    Err(millpond_settings::absent("millpond stripe", "stripe").into())
}

pub(crate) fn undo(_: &ArgMatches) -> Outcome {
    Err(millpond_settings::absent("millpond unstripe", "stripe").into())
}
