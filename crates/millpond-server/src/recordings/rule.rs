//! The streams that are always recorded, as the setting `record` names them.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use super::Schedule;
use millpond_settings::value::{self, BadValue};
use std::{fmt, time::Duration};

/// Most rules of a configuration.
const MOST: usize = 1000;

/// Streams that are recorded whenever they are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRule {
    /// Path of one channel or live stream, which is opened and kept open. With `/*` at its end, or as `*`, all streams of publishers below it.
    streams: String,
    /// The times at which they are recorded; `None` for always.
    schedule: Option<Schedule>,
}

/// Parses `cams/door`, `live/*` or `*`. Returns it without slashes around it.
fn streams(text: &str) -> Option<String> {
    let trimmed = text.trim_matches('/');
    let path = match trimmed.strip_suffix('*') {
        Some("") => return Some(trimmed.to_owned()),
        Some(above) => above.strip_suffix('/')?,
        None => trimmed,
    };
    (!path.is_empty() && !path.contains('*')).then(|| trimmed.to_owned())
}

impl RecordRule {
    /// Parses `cams/door`, `live/*` or `*`, and times of the week such as `08:00-18:00 mon-fri` behind it.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let streams = streams(words.next()?)?;
        let schedule = match words.next() {
            Some(times) => Some(Schedule::parse(times, words.next())?),
            None => None,
        };
        words.next().is_none().then_some(Self { streams, schedule })
    }

    /// Parses the rules of a setting.
    ///
    /// # Errors
    /// A text that is no rule, or too many rules.
    pub(super) fn list(text: &str) -> Result<Vec<Self>, BadValue> {
        let mut rules = Vec::new();
        for text in value::list(text) {
            let bad = || {
                BadValue::new(format!(
                    "paths of streams, such as \"cams/door\", \"live/*\" or \"cams/door 08:00-18:00 mon-fri\" ({text:?} is none)"
                ))
            };
            let rule = Self::parse(&text).ok_or_else(bad)?;
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        if rules.len() > MOST {
            return Err(BadValue::new(format!("at most {MOST} paths of streams")));
        }
        Ok(rules)
    }

    /// Whether the streams are recorded at a time since the Unix epoch.
    pub(crate) fn is_active(&self, wall: Duration) -> bool {
        self.schedule.as_ref().is_none_or(|schedule| schedule.covers(wall))
    }

    /// The path of the stream, or the pattern of the streams of publishers.
    pub(crate) fn streams(&self) -> &str {
        &self.streams
    }
}

/// The text that is parsed to it.
impl fmt::Display for RecordRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.streams)?;
        self.schedule.as_ref().map_or(Ok(()), |schedule| write!(f, " {schedule}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_parsed_and_shown() {
        let rules = RecordRule::list("cams/door, /live/* ,*, live/*,live/* 22:00-06:00 fri-sun").unwrap();
        let shown: Vec<_> = rules.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["cams/door", "live/*", "*", "live/* 22:00-06:00 fri-sun"]);
        for text in ["/", "live/x*", "live/*/x", "a b", "**", "live/**", "a 08:00-09:00 mon x", "08:00-09:00 mon"] {
            let error = RecordRule::list(text).unwrap_err();
            assert!(error.expected.contains("paths of streams"), "{text}: {error:?}");
        }
        assert_eq!(RecordRule::list(""), Ok(Vec::new()));
    }
}
