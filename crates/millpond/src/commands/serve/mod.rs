//! `millpond serve`: the server.

mod bases;
mod found;
mod greeting;
mod heap;
mod live;
mod signals;

use super::Outcome;
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_logging::LogError;
use millpond_server::{
    config::{self, Config, Inputs, PLACE_SETTINGS, PlaceSetting},
    doubts, priority,
    serve::{Orders, Server},
    upgrade::{Predecessor, Program},
};
use millpond_settings::{
    Source,
    value::{self, Form},
};
use millpond_terminal::out;
use std::{collections::HashMap, ffi::OsString, path::PathBuf, time::Instant};
use tokio::sync::watch;

/// Forms of places, for the help.
const PLACES: &str = "\
A place is a folder, a file, http(s)://host/base, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix.
Several places get a name each: films=/data/films cams=s3://bucket/cams";

/// Settings that `-h` shows: those that most people need first.
const COMMON: [&str; 13] = [
    "http",
    "rtsp",
    "rtmp",
    "admin",
    "segment-duration",
    "access-users",
    "publish-users",
    "cache",
    "cache-size",
    "memory",
    "log",
    "tls-cert",
    "tls-key",
];

pub(crate) fn command() -> Command {
    let about = "Serves the media of places. Without a place, it serves a small sample";
    let command = settings(Command::new("serve").about(about));
    let more = format!("`millpond serve --help` lists all {} settings.", Config::settings().len());
    command.after_help(PLACES.to_owned() + "\n\n" + &more).after_long_help(
        PLACES.to_owned()
            + "\n\nOptions of one place stand in the configuration file, below [places.NAME]:\n"
            + &place_options(),
    )
}

/// The options of a place, as help shows them.
fn place_options() -> String {
    // As options of the command are shown.
    let line = |s: &PlaceSetting| format!("      {} <{}>\n          {}", s.name, s.form.placeholder(), s.help);
    let lines: Vec<_> = PLACE_SETTINGS.iter().map(line).collect();
    lines.join("\n")
}

/// Returns how to set an option of places, if an argument has the name of one.
pub(super) fn option_of_places(argument: &str) -> Option<String> {
    let option = PlaceSetting::find(argument.strip_prefix("--")?)?;
    let (name, expected) = (option.name, option.form.expected());
    Some(format!(
        "{name} is an option of one place. Write it below [places.NAME], beside the url of the place, in the file of --config: \
         expected {expected}"
    ))
}

/// The arguments that make up a configuration, made from the table of settings.
pub(super) fn settings(command: Command) -> Command {
    let command = command
        .arg(
            Arg::new("place")
                .value_name("PLACE")
                .num_args(0..)
                .help("Place of media: [NAME=]FOLDER, [NAME=]FILE or [NAME=]URL"),
        )
        .arg(Arg::new("config").long("config").value_name("FILE").help("Reads settings from a TOML file"));
    Config::settings().into_iter().fold(command, |command, setting| {
        let mut help = setting.about();
        // Settings check their values themselves: all errors of a configuration are told at once.
        let choices = setting.form.choices();
        if !choices.iter().all(|word| help.contains(word)) {
            help.push_str(&format!(" [possible values: {}]", choices.join(", ")));
        }
        if !setting.default.is_empty() {
            help.push_str(&format!(" [default: {}]", setting.default));
        }
        let mut arg = Arg::new(setting.name)
            .long(setting.name)
            .value_name(setting.form.placeholder())
            .help(help)
            .help_heading(setting.part)
            .hide_short_help(!COMMON.contains(&setting.name))
            .action(ArgAction::Set);
        if setting.form == Form::Switch {
            // A value behind a space is joined to it before (`with_joined_switches`): a place that follows is none.
            arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
        }
        command.arg(arg)
    })
}

/// Joins switches to the words behind them that are values of switches: `--access-log false` is `--access-log=false`, and
/// `--hidden-files /data` keeps its place.
pub(crate) fn with_joined_switches(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let settings = Config::settings();
    let is_switch = |argument: &OsString| {
        let name = argument.to_str().and_then(|text| text.strip_prefix("--"));
        name.is_some_and(|name| settings.iter().any(|s| s.name == name && s.form == Form::Switch))
    };
    let mut arguments = arguments.peekable();
    let mut joined = Vec::new();
    while let Some(mut argument) = arguments.next() {
        if argument == "--" {
            joined.push(argument);
            break;
        }
        let is_value = |word: &OsString| word.to_str().is_some_and(|word| value::switch(word).is_ok());
        if is_switch(&argument)
            && let Some(word) = arguments.next_if(is_value)
        {
            argument.push("=");
            argument.push(word);
        }
        joined.push(argument);
    }
    joined.extend(arguments);
    joined
}

/// The configuration that arguments, environment and file make.
pub(super) fn inputs(matches: &ArgMatches) -> Inputs {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    Inputs {
        flags: Config::settings().into_iter().filter_map(|s| Some((s.name.to_owned(), text(s.name)?))).collect(),
        places: matches.get_many::<String>("place").into_iter().flatten().cloned().collect(),
        file: text("config").map(PathBuf::from),
        environment: std::env::vars().collect::<HashMap<_, _>>(),
        text: None,
    }
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let started = Instant::now();
    millpond_settings::machine::raise_open_files();
    let inputs = inputs(matches);
    let loaded = config::load(&inputs)?;
    let config = &loaded.config;
    millpond_logging::init(&config.log, &config.traces).map_err(|error| {
        match (&error, loaded.source("access-log")) {
            (LogError::File { .. }, at @ Source::File { .. }) => format!("{at}: {error}"),
            _ => error.to_string(),
        }
    })?;
    let doubts = doubts(&loaded);
    // The server itself warns of its certificate, when it reads that.
    let doubts = doubts.iter().filter(|doubt| !doubt.starts_with("tls-cert: "));
    for warning in loaded.warnings.iter().chain(doubts) {
        tracing::warn!("{warning}");
    }
    let (stop, stopped) = watch::channel(false);
    let ((reload, reloads), (upgrade, upgrades)) = (watch::channel(0), watch::channel(0));
    let program =
        Program::of_this_process().inspect_err(|error| tracing::warn!(%error, "no other process can take over")).ok();
    let (grace, graces) = watch::channel(config.limits.shutdown_grace);
    let orders = Orders { stop: stopped, reload: reloads, upgrade: upgrades, grace, program };
    let inherited = Predecessor::inherit()?;
    signals::watch(signals::Signalled { reload, upgrade }, graces, stop)?;
    heap::watch()?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let (start, starting) = priority::of_runtime(config.limits.workers);
    runtime.worker_threads(config.limits.workers).on_thread_start(start).enable_all();
    let runtime = runtime.build()?;
    starting.wait();
    let done = runtime.block_on(async {
        let server = Server::bind(loaded, inputs, Vec::new(), inherited).await?;
        let greeting = greeting::greeting(&server, || started.elapsed()).await?;
        // On a thread of its own: serving neither waits for the reader of this nor ends with it.
        std::thread::spawn(move || out::lines(&greeting).is_ok());
        server.run(orders).await;
        Ok(())
    });
    // Every response had its grace: running tasks are not waited for.
    runtime.shutdown_background();
    millpond_logging::flush();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_help_has_the_common_settings_and_long_help_has_all_by_area() {
        let settings = Config::settings();
        let (short, long) = (command().render_help().to_string(), command().render_long_help().to_string());
        for setting in &settings {
            let flag = format!("--{}", setting.name);
            let is_in = |help: &str| help.split_whitespace().any(|word| word.split(['[', '=']).next() == Some(&flag));
            assert_eq!((is_in(&short), is_in(&long)), (COMMON.contains(&setting.name), true), "{flag}");
            assert!(long.contains(&format!("\n{}:\n", setting.part)), "{}", setting.part);
        }
        assert!(COMMON.iter().all(|name| settings.iter().any(|setting| setting.name == *name)));
        assert!(short.lines().count() < 80, "{short}");
    }

    #[test]
    fn switches_take_values_behind_a_space_and_leave_places_alone() {
        for (given, joined) in [
            ("millpond serve --hidden-files false /data", "millpond serve --hidden-files=false /data"),
            ("millpond serve --hidden-files /data", "millpond serve --hidden-files /data"),
            ("millpond serve --access-log off /data", "millpond serve --access-log off /data"),
            ("millpond serve --log info on", "millpond serve --log info on"),
            ("millpond serve -- --hidden-files false", "millpond serve -- --hidden-files false"),
        ] {
            let words = given.split(' ').map(OsString::from);
            assert_eq!(with_joined_switches(words), joined.split(' ').map(OsString::from).collect::<Vec<_>>());
        }
    }
}
