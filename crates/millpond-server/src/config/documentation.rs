//! Tests that keep the documentation of settings and their declarations together.

use super::{show::toml_literal, *};
use std::{collections::HashMap, fmt::Write as _, fs, path::PathBuf};

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

A change of a setting takes effect at a reload ([operations](../handbook/operations.md#reload)), or where the last column says so at the next start.
A reload names the settings that wait for a restart.

`just settings` writes this page from the declarations in the source; a test fails when they differ.

";

/// The head of a part's table.
const TABLE: &str = "| setting | value | default | is | a change is applied at |\n|---|---|---|---|---|\n";

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
    let mut page = HEAD.to_owned();
    let mut part = "";
    for setting in Config::settings() {
        if setting.part != part {
            part = setting.part;
            page = format!("{}\n\n## {part}\n\n{TABLE}", page.trim_end());
        }
        let (value, default) = (form(setting.form), cell(setting.default));
        let at = if setting.needs_restart { "restart" } else { "reload" };
        writeln!(page, "| `{}` | {value} | {default} | {} | {at} |", setting.name, cell(&setting.about())).unwrap();
    }
    page += "\n## Options of one place\n\nThey stand below `[places.NAME]`, beside the place's `url`. A reload applies all of them. ";
    let own = Config::settings().into_iter().filter(|setting| setting.is_of_places);
    page += "A place may also have its own value of these settings:\n\n";
    for setting in own {
        writeln!(page, "- `{}`", setting.name).unwrap();
    }
    page += "\n| option | value | is |\n|---|---|---|\n";
    for option in PLACE_SETTINGS {
        writeln!(page, "| `{}` | {} | {} |", option.name, form(option.form), cell(option.help)).unwrap();
    }
    page
}

/// The text before the settings of a package's configuration file.
const FILE_HEAD: &str = "\
# Settings of Millpond. All are commented out: they have their defaults.
# After a change: `millpond check --config /etc/millpond/millpond.toml`, then `systemctl reload millpond`; the log names settings that need a restart.
# `man millpond-serve` lists the options of places. /etc/millpond/environment holds secrets in lines of NAME=value.

";

/// The text behind them: a table must stand behind all keys of the file.
const FILE_END: &str = "
# Places of media. Without one, a small sample is served. The user `millpond` must be able to read the folder.
#[places.films]
#url = \"/srv/films\"

#[places.bucket]
#url = \"s3://bucket/prefix\"
#endpoint = \"http://minio:9000\"

#[places.cams]
#url = \"rtsp://user:password@10.0.0.7/\"
";

/// The default of a setting as TOML, where the declaration has it as a value and not in words.
fn default_literal(setting: &Declaration) -> Option<String> {
    let text = match setting.form {
        Form::Address => setting.default,
        _ => setting.default.split([':', ';']).next().unwrap_or_default(),
    };
    let mut config = Config::new(&Host { machine: machine::Machine::detect(), variable: &|_| None });
    let is_off = ["none", "off"].contains(&text) && setting.form.choices().is_empty();
    let is_value = setting.form != Form::Path && !text.contains(' ') && !is_off;
    (is_value && config.apply(setting.name, text)?.is_ok()).then(|| toml_literal(setting.form, text))
}

/// The configuration file of packages.
fn configuration_file() -> String {
    let mut file = FILE_HEAD.trim_end().to_owned() + "\n";
    let mut part = "";
    for setting in Config::settings() {
        if setting.part != part {
            part = setting.part;
            write!(file, "\n# {part}\n# {}\n", "-".repeat(part.len())).unwrap();
        }
        match default_literal(&setting) {
            Some(literal) => writeln!(file, "# {}\n#{} = {literal}", setting.about(), setting.name).unwrap(),
            None => {
                let (name, form) = (setting.name, setting.form.placeholder());
                writeln!(file, "# {} (default: {})\n#{name} = {form}", setting.about(), setting.default).unwrap();
            }
        }
    }
    file + FILE_END
}

/// Fails where a file is not what the declarations make it. With MILLPOND_WRITE_DOCS it is written.
fn assert_written(name: &str, text: &str) {
    let path = file(name);
    if std::env::var_os("MILLPOND_WRITE_DOCS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "{name} differs from the declarations: run `just settings`");
}

#[test]
fn the_page_of_settings_is_that_of_the_declarations() {
    assert_written("docs/reference/settings.md", &page());
}

#[test]
fn the_configuration_file_of_packages_is_that_of_the_declarations() {
    let text = configuration_file();
    assert_written("packaging/millpond.toml", &text);
    // Its examples are those of the defaults: without their comment signs they are a configuration.
    let is_example = |line: &&str| !line.starts_with("# ") && !line.ends_with(|c: char| c.is_ascii_uppercase());
    let lines: Vec<_> = text.lines().filter(is_example).map(|line| line.strip_prefix('#').unwrap_or(line)).collect();
    let lines: Vec<_> = lines.into_iter().filter(|line| !line.contains("/srv/films")).collect();
    let text = lines.join("\n").replace("[places.films]", "");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("millpond.toml");
    fs::write(&path, &text).unwrap();
    let inputs = Inputs { file: Some(path), environment: HashMap::new(), ..Inputs::default() };
    let loaded = load(&inputs).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    assert_eq!(loaded.config.places.len(), 2);
}

/// The names in the first column of a page's tables of settings.
fn names_in_tables(page: &str) -> Vec<String> {
    let tables = page.split("| setting | default | is |").skip(1);
    let rows = tables.flat_map(|table| table.lines().skip(2).take_while(|line| line.starts_with('|')));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(','));
    names.map(|name| name.trim().trim_matches('`').to_owned()).collect()
}

#[test]
fn tables_of_the_handbook_name_settings() {
    let mut seen = 0;
    for entry in fs::read_dir(file("docs/handbook")).unwrap() {
        let path = entry.unwrap().path();
        let page = if path.extension().is_some_and(|ending| ending == "md") {
            fs::read_to_string(&path).unwrap()
        } else {
            continue;
        };
        for name in names_in_tables(&page) {
            assert!(Config::find(&name).is_some(), "{}: {name} is not a setting", path.display());
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen} names");
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
