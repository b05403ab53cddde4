//! The subcommands, a file each: `command()` declares its arguments, `run()` does it.

mod admin;
mod cache;
mod check;
mod cluster;
mod doctor;
#[cfg(test)]
mod documentation;
mod every_node;
mod explain;
mod export;
mod index;
mod insert;
mod lab;
mod logs;
mod module;
mod places;
mod probe;
mod record;
mod reload;
mod serve;
mod sessions;
mod settings;
mod shell_word;
mod sign;
mod stitch;
mod streams;
#[cfg(not(feature = "stripe"))]
#[path = "no_stripe.rs"]
mod stripe;
#[cfg(feature = "stripe")]
mod stripe;
mod upgrade;
mod viewing;

use clap::{ArgMatches, Command};
pub(crate) use millpond_terminal::Outcome;
use millpond_terminal::{
    completions, man,
    program::{runtime, with_negative_numbers},
};
use std::ffi::OsString;

/// Name of the program, as its pages have it.
const NAME: &str = "millpond";

/// The whole command line.
pub(crate) fn cli() -> Command {
    with_negative_numbers(commands())
}

fn commands() -> Command {
    Command::new(NAME)
        .about("A streaming media edge: MP4, Matroska, WebM, TS, AVI, FLV, sound files and live streams in, HLS, DASH and RTSP out")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(100)
        .subcommands([
            serve::command(),
            check::command(),
            doctor::command(),
            probe::command(),
            index::command(),
            cache::command(),
            sessions::command(),
            viewing::command(),
            streams::command(),
            logs::command(),
            settings::command(),
            places::command(),
            cluster::command(),
            module::command(),
            record::command(),
            reload::command(),
            upgrade::command(),
            insert::command(),
            export::command(),
            stripe::command(),
            sign::command(),
            stitch::command(),
            stripe::undo_command(),
            explain::command(),
            lab::load(),
            lab::simulate(),
            completions::command(NAME),
            man::command(NAME),
        ])
}

/// The arguments of the process as the command line takes them.
pub(crate) fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    serve::with_joined_switches(given)
}

/// Returns advice about an unknown argument, if there is any.
pub(crate) fn tip(argument: &str) -> Option<String> {
    serve::option_of_places(argument)
}

/// Runs the subcommand that was asked for.
pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("check", matches)) => check::run(matches),
        Some(("doctor", matches)) => doctor::run(matches),
        Some(("probe", matches)) => probe::run(matches),
        Some(("index", matches)) => index::run(matches),
        Some(("cache", matches)) => cache::run(matches),
        Some(("sessions", matches)) => sessions::run(matches),
        Some(("viewing", matches)) => viewing::run(matches),
        Some(("streams", matches)) => streams::run(matches),
        Some(("logs", matches)) => logs::run(matches),
        Some(("settings", matches)) => settings::run(matches),
        Some(("places", matches)) => places::run(matches),
        Some(("cluster", matches)) => cluster::run(matches),
        Some(("module", matches)) => module::run(matches),
        Some(("record", matches)) => record::run(matches),
        Some(("reload", matches)) => reload::run(matches),
        Some(("upgrade", matches)) => upgrade::run(matches),
        Some(("insert", matches)) => insert::run(matches),
        Some(("export", matches)) => export::run(matches),
        Some(("stripe", matches)) => stripe::run(matches),
        Some(("sign", matches)) => sign::run(matches),
        Some(("stitch", matches)) => stitch::run(matches),
        Some(("unstripe", matches)) => stripe::undo(matches),
        Some(("explain", matches)) => explain::run(matches),
        Some((word @ ("load" | "simulate"), matches)) => lab::run(word, matches),
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
