//! Names of a server on the local network.

use millpond_settings::value::BadValue;
use std::sync::Arc;

/// Most bytes of a label (RFC 1035 2.3.4). An instance name is one label (RFC 6763 4.1.1).
const LONGEST: usize = 63;

/// A name that a person reads in a list of services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncedName(Arc<str>);

impl AnnouncedName {
    /// Reads a name of 1 to 63 bytes.
    ///
    /// # Errors
    /// The text is empty, too long, or has control characters.
    pub fn new(text: &str) -> Result<Self, BadValue> {
        let text = text.trim();
        match text {
            "" => Err(BadValue::new("a name")),
            _ if text.len() > LONGEST => Err(BadValue::new(format!("a name of at most {LONGEST} bytes"))),
            _ if text.chars().any(char::is_control) => Err(BadValue::new("a name without control characters")),
            _ => Ok(Self(text.into())),
        }
    }

    /// The name as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host name of the server below `local.`: letters and digits of the name, with dashes between (RFC 952).
    #[must_use]
    pub fn host(&self) -> String {
        let mut label = String::new();
        for letter in self.0.chars().map(|letter| letter.to_ascii_lowercase()) {
            match letter {
                'a'..='z' | '0'..='9' => label.push(letter),
                _ if label.is_empty() || label.ends_with('-') => {}
                _ => label.push('-'),
            }
        }
        let label = label.trim_end_matches('-');
        format!("{}.local.", if label.is_empty() { "millpond" } else { label })
    }
}

#[cfg(test)]
mod tests {
    use super::AnnouncedName;

    fn host(text: &str) -> String {
        AnnouncedName::new(text).unwrap().host()
    }

    #[test]
    fn a_host_has_letters_digits_and_dashes() {
        assert_eq!(host("Films"), "films.local.");
        assert_eq!(host("Living room's TV (2)"), "living-room-s-tv-2.local.");
        assert_eq!(host("映画"), "millpond.local.");
    }

    #[test]
    fn a_name_is_one_label() {
        for bad in ["", "  ", "a\nb", &"é".repeat(32)] {
            AnnouncedName::new(bad).unwrap_err();
        }
        assert_eq!(AnnouncedName::new(" Films. And more ").unwrap().as_str(), "Films. And more");
    }
}
