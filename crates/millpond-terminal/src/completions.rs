//! The command `completions`: the completion script of a shell.

use crate::{Outcome, out};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::{Shell, generate};

/// Declares the command of `program`.
#[must_use]
pub fn command(program: &str) -> Command {
    Command::new("completions")
        .about("Prints the completion script of a shell")
        .after_help(format!("In bash: source <({program} completions bash)"))
        .arg(Arg::new("shell").required(true).value_name("SHELL").value_parser(value_parser!(Shell)))
}

/// Prints the script of a program.
///
/// # Errors
/// Standard output can't be written.
pub fn run(cli: Command, matches: &ArgMatches) -> Outcome {
    let shell = matches.get_one::<Shell>("shell").copied().ok_or("no shell")?;
    out::raw(&script(cli, shell))
}

fn script(mut cli: Command, shell: Shell) -> Vec<u8> {
    let name = cli.get_name().to_owned();
    let mut script = Vec::new();
    generate(shell, &mut cli, name, &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    #[test]
    fn every_shell_has_a_script_with_every_command() {
        let cli = || Command::new("pond").subcommands([Command::new("cache"), command("pond")]);
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(cli(), *shell)).unwrap();
            for command in cli().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }
}
