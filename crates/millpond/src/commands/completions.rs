//! `millpond completions`: the completion script of a shell.

use super::{Outcome, cli};
use crate::out;
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::{Shell, generate};

pub(crate) fn command() -> Command {
    Command::new("completions")
        .about("Prints the completion script of a shell")
        .after_help("In bash: source <(millpond completions bash)")
        .arg(Arg::new("shell").required(true).value_name("SHELL").value_parser(value_parser!(Shell)))
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let shell = matches.get_one::<Shell>("shell").copied().ok_or("no shell")?;
    out::raw(&script(shell))
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    generate(shell, &mut cli(), "millpond", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    #[test]
    fn every_shell_has_a_script_with_every_command() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).unwrap();
            for command in cli().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }
}
