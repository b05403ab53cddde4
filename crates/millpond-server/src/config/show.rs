//! The effective configuration as text.

use super::{Form, Loaded};
use millpond_place::PlaceSpec;
use std::path::Path;

/// A place as it is written, without secrets.
pub(super) fn place_text(spec: &PlaceSpec) -> String {
    if spec.name.is_empty() { spec.source.to_string() } else { format!("{}={}", spec.name, spec.source) }
}

/// A value of a form as TOML.
pub(super) fn toml_literal(form: Form, text: &str) -> String {
    match form {
        Form::Count | Form::Switch => text.to_owned(),
        _ => toml::Value::String(text.to_owned()).to_string(),
    }
}

/// The effective configuration as a file that would bring it about, with the source of each value beside it.
pub fn show(loaded: &Loaded, file: Option<&Path>) -> String {
    let mut lines = Vec::new();
    if let Some(file) = file {
        lines.push((format!("# read {}", file.display()), String::new()));
    }
    let (places, settings): (Vec<_>, Vec<_>) = loaded.effective.iter().partition(|setting| setting.name == "places");
    for setting in settings {
        lines.push(match &setting.value {
            Some(value) => (format!("{} = {value}", setting.name), setting.source.to_string()),
            None => (format!("# {} is off", setting.name), String::new()),
        });
    }
    if loaded.own.iter().any(|keys| keys.len() > 1) {
        tables(loaded, &mut lines);
    } else if !places.is_empty() {
        lines.push(("places = [".to_owned(), String::new()));
        for place in places {
            let value = place.value.as_deref().unwrap_or_default();
            lines.push((format!("    {value},"), place.source.to_string()));
        }
        lines.push(("]".to_owned(), String::new()));
    }
    let width = lines.iter().map(|(left, _)| left.chars().count()).filter(|n| *n <= 60).max().unwrap_or(0);
    lines
        .into_iter()
        .map(|(left, right)| if right.is_empty() { left + "\n" } else { format!("{left:width$}  # {right}\n") })
        .collect()
}

/// The places as tables, each with its options.
fn tables(loaded: &Loaded, lines: &mut Vec<(String, String)>) {
    for (place, keys) in loaded.config.places.iter().zip(&loaded.own) {
        lines.push((format!("\n[places.{}]", place.spec.name), String::new()));
        let url = toml_literal(Form::Text, &place.spec.source.to_string());
        lines.push((format!("url = {url}"), place.at.0.to_string()));
        for key in keys.iter().filter(|key| key.name != "url") {
            lines
                .push((format!("{} = {}", key.name, key.value.as_deref().unwrap_or_default()), key.source.to_string()));
        }
    }
}
