//! `millpond man`: the man pages of all commands.

use super::{Outcome, cli};
use crate::out::{self, say};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_mangen::Man;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

pub(crate) fn command() -> Command {
    Command::new("man").about("Prints the man page of millpond, or writes those of all commands into a folder").arg(
        Arg::new("folder")
            .value_name("DIR")
            .value_parser(value_parser!(PathBuf))
            .help("Folder for millpond.1, millpond-serve.1 and so on"),
    )
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let pages = pages(whole(), &[])?;
    let Some(folder) = matches.get_one::<PathBuf>("folder") else {
        return out::raw(pages.first().map(|(_, page)| page.as_slice()).unwrap_or_default());
    };
    write(folder, &pages).map_err(|error| format!("{}: {error}", folder.display()))?;
    say!("{}: {} pages", folder.display(), pages.len())
}

/// The command line with what parsing adds to it, such as the arguments of `help`.
fn whole() -> Command {
    let mut command = cli().disable_help_subcommand(true);
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
        let pages = pages(whole(), &[]).unwrap();
        let names: Vec<_> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[0], "millpond.1");
        for command in cli().get_subcommands() {
            let name = format!("millpond-{}.1", command.get_name());
            assert!(names.contains(&name.as_str()), "{name} is not in {names:?}");
        }
        assert!(names.contains(&"millpond-cache-pin.1"), "{names:?}");
        for (name, page) in &pages {
            let page = String::from_utf8_lossy(page);
            let title = name.trim_end_matches(".1").replace('-', "\\-");
            assert!(page.contains(&format!("{title} \\- ")), "{name}: {}", page.get(..400).unwrap_or(&page));
        }
    }
}
