//! Values that are wrong, as errors show them.

use super::{BadValue, Declaration, Form, value};
use millpond_logging::escape::without_user;
use std::net::{Ipv4Addr, SocketAddr};
use toml::de::DeValue;

/// Most characters of a text.
const MOST: usize = 60;

/// Describes a value of the file.
pub(super) fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => found_text(text),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(value) => format!("the date {value}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Describes a text. Users and passwords of URLs are left out: errors are lines of the log.
pub(super) fn found_text(text: &str) -> String {
    let shown: String = parts(text).map(without_user).collect();
    format!("{:?}", shown.chars().take(MOST).collect::<String>())
}

/// The value of a key without users, passwords and queries of URLs. The query of `key-uri` is public: players get it.
pub(super) fn without_secrets(key: &str, text: &str) -> String {
    let part = |part: &str| {
        let shown = without_user(part);
        match shown.find('?') {
            Some(query) if shown.contains("://") && key != "key-uri" => {
                let end = part.chars().last().filter(|c| matches!(c, ',' | ' '));
                format!("{}{}", &shown[..query], end.map(String::from).unwrap_or_default())
            }
            _ => shown,
        }
    };
    parts(text).map(part).collect()
}

/// Splits a list at commas and spaces, but not within the user and password of a URL.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_end = |&(at, _): &(usize, &str)| {
            let (part, next) = rest.split_at(at + 1);
            !part.contains("://") || next.split_once('@').is_none_or(|(user, _)| user.contains("://"))
        };
        let end = rest.match_indices([',', ' ']).find(is_end).map_or(rest.len(), |(at, _)| at + 1);
        let (part, next) = rest.split_at(end);
        rest = next;
        (!part.is_empty()).then_some(part)
    })
}

/// Returns the reason for a bad value. For a listener that somebody wants off, it says when the listener is off.
pub(super) fn explained(setting: &Declaration, bad: BadValue, text: &str) -> BadValue {
    if setting.form != Form::Address || value::switch(text) != Ok(false) {
        return bad;
    }
    // The default of some listeners depends on TLS: `0.0.0.0:8443 with TLS on, else off`.
    let default = setting.default.split(' ').next().and_then(|address| address.parse::<SocketAddr>().ok());
    BadValue::new(match default {
        Some(default) => {
            let local = SocketAddr::from((Ipv4Addr::LOCALHOST, default.port()));
            let when = if setting.default.contains("TLS") { " while TLS is on" } else { "" };
            format!(
                "an address and port: this listener can't be switched off{when}; with \"{local}\" only this machine reaches it"
            )
        }
        None => "an address and port: this listener is off where the setting is left out".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_no_passwords() {
        for (text, shown) in [
            ("much", "\"much\""),
            ("a@b", "\"a@b\""),
            ("https://auth.example/#x", "\"https://auth.example/#x\""),
            ("https://user:secret@auth.example/#x", "\"https://***@auth.example/#x\""),
            ("http://a:b,http://u:s@c@d,x", "\"http://a:b,http://***@d,x\""),
            ("https://u:hu,sh@h/,http://b", "\"https://***@h/,http://b\""),
        ] {
            assert_eq!(found_text(text), shown);
        }
        let text = "a=http://u:hush@h/x?token=hush,b=/data";
        assert_eq!(without_secrets("stripe-over", text), "a=http://***@h/x,b=/data");
        assert_eq!(without_secrets("key-uri", "https://k/{kid}?x=1"), "https://k/{kid}?x=1");
        assert_eq!(found_text(&"x".repeat(100)).len(), MOST + 2);
    }
}
