//! A schedule as the configuration names it.

use millpond_settings::value::BadValue;
use std::{fmt, path::PathBuf};

/// A stream, and the file of its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleLine {
    /// Path of the stream, in a place of publishers.
    pub to: String,
    /// The file.
    pub file: PathBuf,
}

impl ScheduleLine {
    /// Parses `live/tv=schedules/tv.toml`.
    ///
    /// # Errors
    /// It has another form.
    pub fn parse(text: &str) -> Result<Self, BadValue> {
        let parts = text.split_once('=').map(|(to, file)| (to.trim().trim_matches('/'), file.trim()));
        let parts = parts.filter(|(to, file)| !to.is_empty() && !file.is_empty());
        let (to, file) =
            parts.ok_or_else(|| BadValue::new("a path and a file, such as \"live/tv=schedules/tv.toml\""))?;
        Ok(Self { to: to.to_owned(), file: file.into() })
    }
}

/// The text that is parsed to it.
impl fmt::Display for ScheduleLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.to, self.file.display())
    }
}
