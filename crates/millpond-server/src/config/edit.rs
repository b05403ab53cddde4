//! Changes of the configuration file's text, with its comments and order kept.

use super::{Config, Form, PLACE_SETTINGS, Settings as _};
use crate::{http::Lifetimes, live::LiveSettings};
use millpond_access::AccessSettings;
use std::collections::BTreeMap;
use toml_edit::{Array, Decor, DocumentMut, Item, RawString, Table, Value, value};

/// Why a text can't be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The text is not TOML.
    #[error("the configuration file is not valid TOML: {0}")]
    Syntax(#[from] toml_edit::TomlError),
    /// No such setting.
    #[error("there is no setting {0:?}")]
    Unknown(String),
    /// The file has its places as a list of texts, which has no room for settings of one.
    #[error("places are a list in the configuration file: write a table [places.NAME] for each of them first")]
    ListedPlaces,
    /// The file has no such place.
    #[error("the configuration file has no place {0:?}")]
    NoPlace(String),
}

/// Sets and unsets settings.
///
/// # Errors
/// The text is not TOML, or there is no such setting. Values are not checked.
pub(crate) fn settings(text: &str, set: &BTreeMap<String, String>, unset: &[String]) -> Result<String, EditError> {
    let mut document: DocumentMut = text.parse()?;
    for (name, text) in set {
        let setting = Config::find(name).ok_or_else(|| EditError::Unknown(name.clone()))?;
        put(document.as_table_mut(), name, literal(setting.form, text));
    }
    for name in unset {
        Config::find(name).ok_or_else(|| EditError::Unknown(name.clone()))?;
        take(&mut document, name);
    }
    Ok(document.to_string())
}

/// Writes a place, whose other settings leave the file.
///
/// # Errors
/// The text is not TOML, has a list of places, or a setting is none of a place.
pub(crate) fn place(text: &str, name: &str, url: &str, own: &BTreeMap<String, String>) -> Result<String, EditError> {
    let mut document: DocumentMut = text.parse()?;
    let places = document.entry("places").or_insert_with(|| {
        let mut places = Table::new();
        places.set_implicit(true);
        Item::Table(places)
    });
    let Some(places) = places.as_table_like_mut() else { return Err(EditError::ListedPlaces) };
    let known = places.get_mut(name).and_then(Item::as_table_mut).map(std::mem::take);
    let mut place = known.unwrap_or_default();
    let wanted = |key: &str| key == "url" || own.keys().any(|name| is_same(name, key));
    let gone: Vec<String> = place.iter().map(|(key, _)| key.to_owned()).filter(|key| !wanted(key)).collect();
    gone.iter().for_each(|key| _ = place.remove(key));
    put(&mut place, "url", Value::from(url));
    for (key, text) in own {
        let form = place_form(key).ok_or_else(|| EditError::Unknown(key.clone()))?;
        put(&mut place, key, literal(form, text));
    }
    places.insert(name, Item::Table(place));
    Ok(document.to_string())
}

/// Removes a place.
///
/// # Errors
/// The text is not TOML, has a list of places, or has no such place.
pub(crate) fn without_place(text: &str, name: &str) -> Result<String, EditError> {
    let mut document: DocumentMut = text.parse()?;
    let absent = || EditError::NoPlace(name.to_owned());
    let places = document.get_mut("places").ok_or_else(absent)?;
    let places = places.as_table_like_mut().ok_or(EditError::ListedPlaces)?;
    let behind = places.iter().map(|(key, _)| key.to_owned()).skip_while(|key| key != name).nth(1);
    let place = places.remove(name).ok_or_else(absent)?;
    if let Some(apart) = place.as_table().and_then(|place| apart(place.decor().prefix())) {
        let next = behind.and_then(|behind| places.get_mut(&behind)).and_then(Item::as_table_mut);
        match next {
            Some(next) => put_before(next.decor_mut(), &apart),
            None => put_at_end(&mut document, &apart),
        }
    }
    Ok(document.to_string())
}

/// The form of a setting of a place.
fn place_form(name: &str) -> Option<Form> {
    let name = name.replace('_', "-");
    let own = PLACE_SETTINGS.iter().find(|setting| setting.name == name).map(|setting| setting.form);
    own.or_else(|| Lifetimes::find(&name).map(|setting| setting.form))
        .or_else(|| AccessSettings::find(&name).map(|setting| setting.form))
        .or_else(|| LiveSettings::find(&name).map(|setting| setting.form))
}

/// Whether two keys name the same setting: underscores stand for dashes.
fn is_same(one: &str, other: &str) -> bool {
    one.replace('_', "-") == other.replace('_', "-")
}

/// Sets a key. Where it stands already, its comments stay.
fn put(table: &mut Table, name: &str, new: Value) {
    let known = table.iter().map(|(key, _)| key.to_owned()).find(|key| is_same(key, name));
    let Some(known) = known else {
        table.insert(name, value(new));
        return;
    };
    if let Some(item) = table.get_mut(&known) {
        let decor = item.as_value().map(|value| value.decor().clone());
        *item = value(new);
        if let Some((decor, value)) = decor.zip(item.as_value_mut()) {
            *value.decor_mut() = decor;
        }
    }
}

/// Removes a key with the comment above it.
fn take(document: &mut DocumentMut, name: &str) {
    let table = document.as_table_mut();
    let mut keys = table.iter().map(|(key, _)| key.to_owned()).skip_while(|key| !is_same(key, name));
    let (Some(known), behind) = (keys.next(), keys.next()) else { return };
    drop(keys);
    let apart = table.key(&known).and_then(|key| apart(key.leaf_decor().prefix()));
    table.remove(&known);
    let Some(apart) = apart else { return };
    let is_value = |name: &String| table.get(name).is_some_and(Item::is_value);
    match behind.filter(is_value).and_then(|behind| table.key_mut(&behind)) {
        Some(mut next) => put_before(next.leaf_decor_mut(), &apart),
        None => match first_table(table) {
            Some(next) => put_before(next.decor_mut(), &apart),
            None => put_at_end(document, &apart),
        },
    }
}

/// Comments before a key or table that a blank line parts from it: they belong to the file, and stay without it.
fn apart(prefix: Option<&RawString>) -> Option<String> {
    let prefix = prefix?.as_str()?;
    let comments = &prefix[..prefix.rfind("\n\n")? + 2];
    (!comments.trim().is_empty()).then(|| comments.to_owned())
}

fn put_before(decor: &mut Decor, comments: &str) {
    let rest = decor.prefix().and_then(RawString::as_str).unwrap_or_default().trim_start_matches('\n').to_owned();
    decor.set_prefix(format!("{comments}{rest}"));
}

fn put_at_end(document: &mut DocumentMut, comments: &str) {
    let rest = document.trailing().as_str().unwrap_or_default().to_owned();
    document.set_trailing(format!("{comments}{rest}"));
}

/// The first table below a table that has a head of its own.
fn first_table(table: &mut Table) -> Option<&mut Table> {
    let mut tables = table.iter_mut().filter_map(|(_, item)| item.as_table_mut());
    tables.find_map(|table| if table.is_implicit() { first_table(table) } else { Some(table) })
}

/// A value of a form, as the file would have it. A text that does not fit the form stays text: reading the file then tells the error.
fn literal(form: Form, text: &str) -> Value {
    match form {
        Form::Switch => text.parse::<bool>().map_or_else(|_| Value::from(text), Value::from),
        Form::Count => text.replace('_', "").parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
        Form::List => {
            let items = super::value::list(text);
            Value::Array(items.iter().map(String::as_str).collect::<Array>())
        }
        _ => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# The edge of Oslo.
http = \"0.0.0.0:80\" # behind the balancer

# Half of the machine.
memory = \"512MiB\"
hidden_files = false

[places.films]
# The bucket of 2024.
url = \"s3://bucket/films\"
file-lifetime = \"60s\" # short

[places.cams]
url = \"rtsp://10.0.0.7/\"
";

    fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn comments_and_order_stay() {
        let changed = settings(FILE, &pairs(&[("memory", "1GiB"), ("hidden-files", "true")]), &[]).unwrap();
        let expected = FILE.replace("512MiB", "1GiB").replace("hidden_files = false", "hidden_files = true");
        assert_eq!(changed, expected);
        let changed = settings(
            FILE,
            &pairs(&[("workers", "4"), ("admin-hosts", "a.internal,b.internal")]),
            &["memory".to_owned()],
        );
        let changed = changed.unwrap();
        assert!(changed.contains("workers = 4"), "{changed}");
        assert!(changed.contains("admin-hosts = [\"a.internal\", \"b.internal\"]"), "{changed}");
        assert!(!changed.contains("memory = ") && changed.contains("# behind the balancer"), "{changed}");
        assert!(changed.find("workers") < changed.find("[places.films]"), "{changed}");
        assert!(settings("", &pairs(&[("log", "debug")]), &[]).unwrap().contains("log = \"debug\""));
    }

    #[test]
    fn comments_of_the_file_stay_without_their_neighbours() {
        let head = "# Managed by the team of Oslo.\n\n";
        let file = format!("{head}{FILE}");
        let unset = |text: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            settings(text, &BTreeMap::new(), &names).unwrap()
        };
        let changed = unset(&file, &["http"]);
        assert!(changed.starts_with(&format!("{head}# Half of")) && !changed.contains("Oslo.\nhttp"), "{changed}");
        let changed = unset(&file, &["http", "memory", "hidden-files"]);
        assert!(changed.starts_with(&format!("{head}[places.films]")), "{changed}");
        assert_eq!(unset(&format!("{head}memory = \"1GiB\"\n"), &["memory"]), head);
        let places =
            format!("[places.a]\nurl = \"/a\"\n\n{head}[places.b]\nurl = \"/b\"\n\n[places.c]\nurl = \"/c\"\n");
        let changed = without_place(&places, "b").unwrap();
        assert_eq!(changed, format!("[places.a]\nurl = \"/a\"\n\n{head}[places.c]\nurl = \"/c\"\n"));
        let changed = without_place(&changed, "c").unwrap();
        assert!(changed.contains(head.trim_end()) && !changed.contains("places.c"), "{changed}");
    }

    #[test]
    fn places_are_written_and_removed() {
        let changed = place(FILE, "films", "/data/films", &pairs(&[("file-lifetime", "5m")])).unwrap();
        let expected = FILE.replace("s3://bucket/films", "/data/films").replace("60s", "5m");
        assert_eq!(changed, expected);
        let changed = place(FILE, "news", "/data/news", &BTreeMap::new()).unwrap();
        assert!(changed.starts_with(FILE) && changed.contains("[places.news]\nurl = \"/data/news\""), "{changed}");
        let first = place("http = \":80\"\n", "a", "/a", &BTreeMap::new()).unwrap();
        assert!(first.contains("[places.a]\nurl = \"/a\"") && !first.contains("[places]"), "{first}");
        let without = without_place(FILE, "films").unwrap();
        assert!(!without.contains("films") && without.contains("[places.cams]"), "{without}");
        assert!(!place(FILE, "films", "/a", &BTreeMap::new()).unwrap().contains("file-lifetime"));
    }

    #[test]
    fn wrong_changes_are_refused() {
        let none = BTreeMap::new();
        assert!(matches!(settings(FILE, &pairs(&[("memroy", "1")]), &[]), Err(EditError::Unknown(_))));
        assert!(matches!(settings(FILE, &none, &["memroy".to_owned()]), Err(EditError::Unknown(_))));
        assert!(matches!(settings("a = ", &none, &[]), Err(EditError::Syntax(_))));
        assert!(matches!(place(FILE, "a", "/a", &pairs(&[("memory", "1")])), Err(EditError::Unknown(_))));
        assert!(matches!(place("places = [\"a=/a\"]", "a", "/a", &none), Err(EditError::ListedPlaces)));
        assert!(matches!(without_place("places = [\"a=/a\"]", "a"), Err(EditError::ListedPlaces)));
        assert!(matches!(without_place(FILE, "none"), Err(EditError::NoPlace(_))));
    }
}
