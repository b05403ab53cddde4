//! The command `man`: the man pages of all commands of a program.

use crate::{Outcome, out, say};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_mangen::Man;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Declares the command of `program`.
#[must_use]
pub fn command(program: &str) -> Command {
    Command::new("man")
        .about(format!("Prints the man page of {program}, or writes the man pages of all commands into a folder"))
        .arg(
            Arg::new("folder")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help(format!("Folder for {program}.1 and a page for each command")),
        )
}

/// Prints the page of a program, or writes all pages.
///
/// # Errors
/// The folder can't be written.
pub fn run(cli: Command, matches: &ArgMatches) -> Outcome {
    let pages = pages(whole(cli), &[])?;
    let Some(folder) = matches.get_one::<PathBuf>("folder") else {
        return out::raw(pages.first().map(|(_, page)| page.as_slice()).unwrap_or_default());
    };
    write(folder, &pages).map_err(|error| format!("{}: {error}", folder.display()))?;
    say!("{}: {} pages", folder.display(), pages.len())
}

/// The command line with what parsing adds to it, such as the arguments of `help`.
fn whole(cli: Command) -> Command {
    let mut command = cli.disable_help_subcommand(true);
    command.build();
    command
}

/// Returns the page of a command and those of the commands below it, each with its file name.
fn pages(command: Command, above: &[String]) -> io::Result<Vec<(String, Vec<u8>)>> {
    let names = [above, &[command.get_name().to_owned()]].concat();
    let name = names.join("-");
    let below: Vec<_> = command.get_subcommands().filter(|c| c.get_name() != "help").cloned().collect();
    let mut page = Vec::new();
    let command = command.version(env!("CARGO_PKG_VERSION")).display_name(&name);
    Man::new(command).title(&name).render(&mut page)?;
    let mut pages = vec![(format!("{name}.1"), page)];
    for command in below {
        pages.extend(self::pages(command, &names)?);
    }
    Ok(pages)
}

fn write(folder: &Path, pages: &[(String, Vec<u8>)]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    pages.iter().try_for_each(|(name, page)| fs::write(folder.join(name), page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_that_names_it() {
        let cli = Command::new("pond").subcommands([
            Command::new("cache").about("Shows the cache").subcommand(Command::new("pin").about("Keeps a file")),
            command("pond"),
        ]);
        let pages = pages(whole(cli), &[]).unwrap();
        let names: Vec<_> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["pond.1", "pond-cache.1", "pond-cache-pin.1", "pond-man.1"]);
        for (name, page) in &pages {
            let page = String::from_utf8_lossy(page);
            let title = name.trim_end_matches(".1").replace('-', "\\-");
            assert!(page.contains(&format!("{title} \\- ")) || name == "pond.1", "{name}: {page}");
        }
    }
}
