//! Tests that keep the documentation of settings and their declarations together.

use super::*;
use std::{fmt::Write as _, fs, path::PathBuf};

/// The text before the table.
const HEAD: &str = "\
# Settings

A setting has the same name as a flag, as an environment variable (`MILLPOND_` and the name in capitals) and as a key of the TOML file
(`--config FILE`). A flag overrides the environment, and the environment overrides the file. `millpond check` shows each value and its
source.

| form | is written |
|---|---|
| ADDRESS | `0.0.0.0:8080`, `[::]:8080`, `:8080` or `8080` |
| SIZE | `256MiB`, `2G`, `500MB`, or a number of bytes |
| DURATION | `4s`, `500ms`, `1m30s`, `2h`, `365d`, or a number of seconds |
| NUMBER | a whole number |
| BOOL | `true` or `false` |
| LIST | `a,b`; in the file also `[\"a\", \"b\"]` |
| PATH, TEXT | text |

`just settings` writes this page from the declarations in the source; a test fails when they differ.

";

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn form(form: Form) -> String {
    match form.choices() {
        [] => form.placeholder().to_owned(),
        words => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
    }
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*")
}

fn page() -> String {
    let mut page = format!("{HEAD}| setting | value | default | is |\n|---|---|---|---|\n");
    for setting in Config::settings() {
        let (value, default) = (form(setting.form), cell(setting.default));
        writeln!(page, "| `{}` | {value} | {default} | {} |", setting.name, cell(setting.help)).unwrap();
    }
    page += "\n## Options of one place\n\nThey stand below `[places.NAME]`, beside the place's `url`. ";
    let own = Lifetimes::LIST.iter().map(|setting| setting.name);
    let own = own.chain(AccessSettings::LIST.iter().map(|setting| setting.name));
    let own = own.chain(LiveSettings::LIST.iter().map(|setting| setting.name));
    let own: Vec<_> = own.map(|name| format!("`{name}`")).collect();
    writeln!(page, "A place may also have its own {}.\n", own.join(", ")).unwrap();
    page += "| option | value | is |\n|---|---|---|\n";
    for option in PLACE_SETTINGS {
        writeln!(page, "| `{}` | {} | {} |", option.name, form(option.form), cell(option.help)).unwrap();
    }
    page
}

#[test]
fn the_page_of_settings_is_that_of_the_declarations() {
    let (path, page) = (file("docs/settings.md"), page());
    if std::env::var_os("MILLPOND_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/settings.md differs from the declarations: run `just settings`");
}

#[test]
fn the_table_of_the_readme_names_settings() {
    let readme = fs::read_to_string(file("README.md")).unwrap();
    let table = readme.split("| setting | default | is |").nth(1).unwrap();
    let rows: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 20, "{rows:?}");
    for row in rows {
        let names = row.split('|').nth(1).unwrap();
        for name in names.split(',').map(|name| name.trim().trim_matches('`')) {
            assert!(Config::find(name).is_some(), "README.md: {name} is not a setting");
        }
    }
}

#[test]
fn defaults_are_the_declared_ones() {
    let host = Host { machine: machine::Machine::detect(), variable: &|_| None };
    let config = Config::new(&host);
    let mut compared = 0;
    for setting in Config::settings() {
        let shown = config.value(setting.name).filter(|value| !value.is_empty());
        let declared = setting.default.split([':', ';']).next().unwrap();
        match shown {
            None => assert!(
                ["none", "off"].iter().any(|word| setting.default.contains(word)),
                "{}: {} is declared, but it is off",
                setting.name,
                setting.default
            ),
            Some(shown) => {
                let mut given = config.clone();
                // Addresses hold colons; words such as "one for each core" are no values.
                let text = if setting.form == Form::Address { setting.default } else { declared };
                if setting.form != Form::Path && given.apply(setting.name, text).unwrap().is_ok() {
                    assert_eq!(given.value(setting.name).unwrap(), shown, "{}", setting.name);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 25, "{compared} defaults compared");
}
