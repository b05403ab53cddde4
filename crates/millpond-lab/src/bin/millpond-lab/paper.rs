//! `millpond-lab paper`: figures of five papers, measured by the benches of a checkout.

use super::Outcome;
use clap::{Arg, ArgAction, ArgMatches, Command, builder::ValueParser};
use std::{
    ffi::OsString,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command as Process,
};

/// The program, below a checkout.
const PROGRAM: &str = "bench/paper.py";

pub(crate) fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    let folder = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FOLDER").value_parser(ValueParser::path_buf()).help(help)
    };
    Command::new("paper")
        .about("Measures figures of the papers that Millpond follows. Needs a checkout of Millpond")
        .long_about(
            "Measures figures of the five papers that Millpond follows, and plots the paper's values beside ours. It runs \
             bench/paper.py of a checkout of Millpond by Python 3.11 or later. A figure whose needs are missing says what \
             to install. The exit code is 1 if a figure could not be measured.",
        )
        .arg(Arg::new("names").value_name("NAME").num_args(1..).required(true).help(
            "Figures such as sproxy-9, papers (sproxy, amps, srinilta, espeland, kylili), or all; list prints the names",
        ))
        .arg(flag("quick", "Measures fewer and shorter runs, to see the shape").conflicts_with("full"))
        .arg(flag("full", "Measures the paper's sizes, which is the default"))
        .arg(flag("record", "Writes records and plots into docs/measured/papers, and the page papers.md"))
        .arg(folder("out", "Folder of records and plots [default: target/bench/paper-figures/results of the checkout]"))
        .arg(folder("checkout", "The checkout [default: the current folder, those above it, or those above this program]"))
}

/// Replaces this process by the program of the checkout.
pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let own = std::env::current_exe()?;
    let program = match matches.get_one::<PathBuf>("checkout") {
        Some(folder) => program_below(folder)
            .ok_or_else(|| format!("{}: no checkout of Millpond, as it has no {PROGRAM}", folder.display()))?,
        None => {
            let current = std::env::current_dir()?;
            current.ancestors().chain(own.ancestors()).find_map(program_below).ok_or_else(|| {
                format!(
                    "this command needs a checkout of Millpond, as it runs {PROGRAM}: none in {} and the folders above it; run the \
                     command in a checkout, or give --checkout FOLDER",
                    current.display()
                )
            })?
        }
    };
    let error = Process::new("python3").arg(&program).args(arguments(matches, &own)).exec();
    Err(format!("python3: {error}; {PROGRAM} needs Python 3.11 or later").into())
}

/// The program below a folder, where there is one.
fn program_below(folder: &Path) -> Option<PathBuf> {
    let program = folder.join(PROGRAM);
    program.is_file().then_some(program)
}

/// Arguments of the program: the names and flags, and the server beside this program.
fn arguments(matches: &ArgMatches, own: &Path) -> Vec<OsString> {
    let mut all: Vec<OsString> =
        matches.get_many::<String>("names").into_iter().flatten().map(OsString::from).collect();
    let flags = ["quick", "full", "record"].into_iter().filter(|flag| matches.get_flag(flag));
    all.extend(flags.map(|flag| OsString::from(format!("--{flag}"))));
    all.extend(["--bin".into(), own.with_file_name("millpond").into()]);
    if let Some(folder) = matches.get_one::<PathBuf>("out") {
        all.extend(["--out".into(), folder.into()]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_flags_reach_the_program_with_the_server_beside() {
        let matches = command().get_matches_from(["paper", "sproxy-9", "amps", "--quick", "--out", "/plots"]);
        let expected = ["sproxy-9", "amps", "--quick", "--bin", "/opt/millpond", "--out", "/plots"];
        assert_eq!(arguments(&matches, Path::new("/opt/millpond-lab")), expected.map(OsString::from));
    }

    #[test]
    fn the_program_is_found_below_a_checkout_only() {
        let checkout = tempfile::tempdir().unwrap();
        assert_eq!(program_below(checkout.path()), None);
        std::fs::create_dir(checkout.path().join("bench")).unwrap();
        std::fs::write(checkout.path().join(PROGRAM), "").unwrap();
        assert_eq!(program_below(checkout.path()), Some(checkout.path().join(PROGRAM)));
    }
}
