//! The page of a program's commands in docs/reference, from their declarations. Tests compare both.

use clap::{Arg, Command};
use std::{collections::HashSet, fmt::Write as _, fs, path::PathBuf};

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*").replace('<', "&lt;").replace('\n', " ")
}

fn row(page: &mut String, arg: &Arg) {
    let values: Vec<_> = arg.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
    let values = if arg.get_action().takes_values() { values.join(" ") } else { String::new() };
    let name = match (arg.get_long(), arg.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long} {values}"),
        (Some(long), None) => format!("--{long} {values}"),
        _ => values,
    };
    let mut help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        write!(help, " [default: {}]", defaults.join(", ")).unwrap();
    }
    writeln!(page, "| `{}` | {} |", name.trim().replace('|', "\\|"), cell(&help)).unwrap();
}

fn section(page: &mut String, command: &Command, above: &str, settings: &HashSet<&str>) {
    let name = format!("{above} {}", command.get_name());
    let depth = "#".repeat(name.split(' ').count());
    writeln!(page, "{depth} {name}\n\n{}.\n", cell(&command.get_about().map(ToString::to_string).unwrap_or_default()))
        .unwrap();
    let args: Vec<_> =
        command.get_arguments().filter(|arg| !["help", "version"].contains(&arg.get_id().as_str())).collect();
    // Other commands have flags of the same names, such as --admin.
    let takes_settings = args.iter().any(|arg| arg.get_id().as_str() == "config");
    let is_own = |arg: &&&Arg| !takes_settings || !settings.contains(arg.get_id().as_str());
    let own: Vec<_> = args.iter().filter(is_own).collect();
    if !own.is_empty() {
        page.push_str("| argument | is |\n|---|---|\n");
        own.iter().for_each(|arg| row(page, arg));
        page.push('\n');
    }
    if own.len() < args.len() {
        page.push_str("All [settings](settings.md) are flags too.\n\n");
    }
    for below in command.get_subcommands() {
        section(page, below, &name, settings);
    }
}

/// Compares the page `name` of docs/reference with the declarations of a program, or writes it where MILLPOND_WRITE_DOCS is set.
/// Arguments that are settings have a page of their own.
///
/// # Panics
/// If the page differs or can't be written.
pub fn compare(name: &str, head: &str, cli: &Command, settings: &HashSet<&str>) {
    let mut page = head.to_owned();
    for command in cli.get_subcommands() {
        section(&mut page, command, cli.get_name(), settings);
    }
    let page = format!("{}\n", page.trim_end());
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("MILLPOND_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/reference/{name} differs from the declarations: run `just settings`");
}
