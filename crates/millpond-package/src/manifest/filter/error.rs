//! Errors of filters.

use super::parameter::Parameter;

/// Most characters of a found text in a message.
const SHOWN: usize = 64;

/// The reason why a filter can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parameter {name}: found {found}, expected {expected}")]
pub struct BadTrackFilter {
    /// Name of the parameter.
    pub name: String,
    /// Value found, in quotes.
    pub found: String,
    /// Values allowed, with an example.
    pub expected: String,
}

impl BadTrackFilter {
    /// The error of an invalid value.
    pub(super) fn value(parameter: Parameter, value: &str) -> Self {
        Self::of(parameter, shown(value), parameter.expected().to_owned())
    }

    /// The error of a second value.
    pub(super) fn second(parameter: Parameter, value: &str) -> Self {
        let found = format!("{} as a second value", shown(value));
        Self::of(parameter, found, format!("one value: {}", parameter.expected()))
    }

    /// The error of a parameter that filters don't have.
    pub(super) fn unknown(name: &str, value: &str) -> Self {
        let known = Parameter::ALL.map(Parameter::name).join(", ");
        let expected = format!("a parameter of filters ({known}), such as max-height=720");
        Self { name: shown(name), found: shown(value), expected }
    }

    fn of(parameter: Parameter, found: String, expected: String) -> Self {
        Self { name: parameter.name().to_owned(), found, expected }
    }
}

/// Quotes the beginning of a text, without control characters.
fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(SHOWN).collect::<String>())
}
