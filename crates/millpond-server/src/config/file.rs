//! The configuration file: TOML whose keys are the names of the flags.

use std::path::Path;

use millpond_place::{SEVERAL, several};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::found::{explained, found};
use super::{
    BadValue, Config, ConfigError, Declaration, Form, Given, GivenKey, OwnSettings, PLACE_SETTINGS, PlaceOptions,
    PlaceSetting, Source,
};
use millpond_settings::{nearest, value::joined};

/// Cure for an option of places that stands outside of a place.
const OF_PLACE: &str = "is an option of a place: write it below [places.NAME]";
/// Cure for a setting of the server inside a place. In TOML, all keys below a section's header belong to the section.
const OF_SERVER: &str =
    "is a setting of the server, not of a place: move it to the top of the file, before the first section";

/// Reads the text of a configuration file into `config` and `given`; returns all that is wrong with it.
///
/// `path` is only named in errors.
pub fn read(path: &Path, text: &str, config: &mut Config, given: &mut Given) -> Vec<ConfigError> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { path, text, config, given, errors: Vec::new() };
    for error in errors {
        let at = reader.at(error.span().map_or(0, |span| span.start));
        let reason = error.message().replace('\n', ", ");
        reader.errors.push(ConfigError::Syntax { at, reason });
    }
    // A broken file would be said to have unknown keys that are only halves of known ones.
    if reader.errors.is_empty() {
        reader.top(table.get_ref());
    }
    reader.errors
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    config: &'a mut Config,
    given: &'a mut Given,
    errors: Vec<ConfigError>,
}

impl Reader<'_> {
    fn top(&mut self, table: &DeTable<'_>) {
        for (key, value) in in_order(table) {
            let at = self.at(key.span().start);
            let name: &str = key.get_ref();
            match Config::find(name) {
                Some(setting) => self.setting(setting, value, at),
                None if name == "places" => self.places(value, at),
                None if is_of_places(name) => self.misplaced(at, name, OF_PLACE),
                None if value.get_ref().as_table().is_some_and(has_settings) => {
                    let cure =
                        "is no section: settings of the server stand at the top of the file, before the first section";
                    self.misplaced(at, name, cure);
                }
                None => self.unknown(at, name, Config::settings().iter().map(|s| s.name).chain(["places"])),
            }
        }
    }

    fn setting(&mut self, setting: Declaration, value: &Spanned<DeValue<'_>>, at: Source) {
        if self.given.sources.has(setting.name) {
            self.errors.push(ConfigError::Twice { at, key: setting.name.to_owned() });
            return;
        }
        let Some(text) = self.text_of(setting.name, setting.form, value, &at) else {
            return;
        };
        match self.config.apply(setting.name, &text) {
            Some(Err(bad)) => {
                self.bad_value((setting.name, setting.form), explained(&setting, bad, &text), value, at);
            }
            Some(Ok(())) => self.given.sources.insert(setting.name, at),
            None => {}
        }
    }

    /// `places = ["films=/data/films"]`, `[places] films = "/data/films"` or `[places.films] url = "/data/films"`.
    fn places(&mut self, value: &Spanned<DeValue<'_>>, at: Source) {
        match value.get_ref() {
            DeValue::Array(items) => {
                for item in items.iter() {
                    let at = self.at(item.span().start);
                    match item.get_ref().as_str() {
                        Some(text) => self.given.places.push(PlaceOptions::new(text, at)),
                        None => self.not_places(at, item.get_ref()),
                    }
                }
            }
            DeValue::Table(table) => {
                for (name, place) in in_order(table) {
                    let at = self.at(name.span().start);
                    self.place(name.get_ref(), place.get_ref(), at);
                }
            }
            other => self.not_places(at, other),
        }
    }

    fn not_places(&mut self, at: Source, value: &DeValue<'_>) {
        self.errors.push(ConfigError::Value {
            at,
            key: "places".to_owned(),
            expected: "places such as [\"films=/data/films\"], or a table [places.films] with a url".to_owned(),
            found: found(value),
            nearest: None,
        });
    }

    fn place(&mut self, name: &str, value: &DeValue<'_>, at: Source) {
        let table = match value {
            DeValue::String(url) => {
                self.given.places.push(PlaceOptions::named(name, url.to_string(), at));
                return;
            }
            DeValue::Table(table) => table,
            other => return self.not_places(at, other),
        };
        let mut place = PlaceOptions::named(name, "", at.clone());
        for (key, value) in in_order(table) {
            let at = self.at(key.span().start);
            let key: &str = key.get_ref();
            if key == "url" {
                let text = self.url(value, &at);
                place.keys.extend(text.clone().map(|text| GivenKey {
                    name: "url",
                    form: Form::Text,
                    text,
                    source: at,
                }));
                place.text = text.unwrap_or_default();
            } else if let Some(setting) = PlaceSetting::find(key) {
                self.place_setting(setting, &mut place, value, at);
            } else if let Some(setting) = OwnSettings::find(key) {
                self.own_setting(setting, &mut place, value, at);
            } else if Config::find(key).is_some() || key == "places" {
                self.misplaced(at, key, OF_SERVER);
            } else {
                let own = Config::settings().into_iter().filter(|setting| setting.is_of_places).map(|s| s.name);
                self.unknown(at, key, PLACE_SETTINGS.iter().map(|s| s.name).chain(own).chain(["url"]));
            }
        }
        if table.contains_key("url") {
            self.given.places.push(place);
        } else {
            let reason = format!("place {name:?} needs a url such as \"s3://bucket/films\" or \"/data/films\"");
            self.errors.push(ConfigError::Place { at, reason });
        }
    }

    /// The text of a place's location; of several servers of live streams their URLs with commas between them.
    fn url(&mut self, value: &Spanned<DeValue<'_>>, at: &Source) -> Option<String> {
        let DeValue::Array(items) = value.get_ref() else { return self.text_of("url", Form::Text, value, at) };
        let urls: Option<Vec<_>> = items.iter().map(|item| item.get_ref().as_str()).collect();
        if let Some(text) = urls.and_then(|urls| several(&urls)) {
            return Some(text);
        }
        self.errors.push(ConfigError::Value {
            at: at.clone(),
            key: "url".to_owned(),
            expected: SEVERAL.to_owned(),
            found: found(value.get_ref()),
            nearest: None,
        });
        None
    }

    fn place_setting(
        &mut self,
        setting: &PlaceSetting,
        place: &mut PlaceOptions,
        value: &Spanned<DeValue<'_>>,
        at: Source,
    ) {
        let Some(text) = self.text_of(setting.name, setting.form, value, &at) else {
            return;
        };
        match (setting.apply)(place, &text) {
            Ok(()) => place.keys.push(GivenKey { name: setting.name, form: setting.form, text, source: at }),
            Err(bad) => self.bad_value((setting.name, setting.form), bad, value, at),
        }
    }

    /// Sets a place's own value of a setting of the server.
    fn own_setting(
        &mut self,
        Declaration { name, form, .. }: Declaration,
        place: &mut PlaceOptions,
        value: &Spanned<DeValue<'_>>,
        at: Source,
    ) {
        let Some(text) = self.text_of(name, form, value, &at) else { return };
        match place.own.set(name, &text) {
            Some(Ok(())) | None => place.keys.push(GivenKey { name, form, text, source: at }),
            Some(Err(bad)) => self.bad_value((name, form), bad, value, at),
        }
    }

    fn bad_value(&mut self, (key, form): (&str, Form), bad: BadValue, value: &Spanned<DeValue<'_>>, at: Source) {
        let bad = bad.for_text(form, value.get_ref().as_str().unwrap_or_default());
        let BadValue { expected, nearest } = bad;
        let found = found(value.get_ref());
        self.errors.push(ConfigError::Value { at, key: key.to_owned(), expected, found, nearest });
    }

    /// The value as the text that a flag would have, where its type fits the form.
    fn text_of(&mut self, key: &str, form: Form, value: &Spanned<DeValue<'_>>, at: &Source) -> Option<String> {
        let text = match (form, value.get_ref()) {
            (Form::List, DeValue::Array(items)) => {
                let items: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
                items.map(joined)
            }
            (Form::Switch | Form::Output | Form::Address, DeValue::Boolean(value)) => Some(value.to_string()),
            (Form::Switch | Form::Count, DeValue::String(_)) => None,
            (_, DeValue::String(text)) => Some(text.to_string()),
            (Form::Count | Form::Size | Form::Duration | Form::Address, DeValue::Integer(number)) => {
                i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
            }
            (Form::Duration, DeValue::Float(number)) => Some(number.as_str().to_owned()),
            _ => None,
        };
        if text.is_none() {
            self.errors.push(ConfigError::Value {
                at: at.clone(),
                key: key.to_owned(),
                expected: form.expected(),
                found: found(value.get_ref()),
                nearest: None,
            });
        }
        text
    }

    fn misplaced(&mut self, at: Source, key: &str, cure: &str) {
        self.errors.push(ConfigError::Misplaced { at, key: key.to_owned(), cure: cure.to_owned() });
    }

    fn unknown<'k>(&mut self, at: Source, key: &str, known: impl Iterator<Item = &'k str>) {
        self.errors.push(ConfigError::UnknownKey { at, key: key.to_owned(), nearest: nearest(key, known) });
    }

    /// Line and column of a byte offset.
    fn at(&self, offset: usize) -> Source {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Source::File {
            path: self.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Whether a key is an option of places only.
fn is_of_places(key: &str) -> bool {
    key == "url" || PlaceSetting::find(key).is_some()
}

/// Whether a table has settings of the server.
fn has_settings(table: &DeTable<'_>) -> bool {
    table.iter().any(|(key, _)| Config::find(key.get_ref()).is_some())
}

/// The entries of a table as they stand in the file, so that errors come in the order of reading.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Spanned<std::borrow::Cow<'i, str>>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}
