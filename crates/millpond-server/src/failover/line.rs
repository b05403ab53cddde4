//! A failover as operators write it.

use crate::live::Sources;
use millpond_settings::value::BadValue;
use std::fmt;

/// Most inputs of an output.
const MOST: usize = 16;

/// A stream, and the streams that it takes its frames from, the preferred one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailoverLine {
    /// Path of the stream, in a place of publishers.
    pub to: String,
    /// Paths of live streams, channels and assets.
    pub inputs: Vec<String>,
}

impl FailoverLine {
    /// Parses `live/main=live/cam1 cams/door films/wait.mp4`.
    ///
    /// # Errors
    /// It has another form.
    pub fn parse(text: &str) -> Result<Self, BadValue> {
        let bad =
            || BadValue::new("a path and 2 to 16 inputs, such as \"live/main=live/cam1 cams/door films/wait.mp4\"");
        let (to, inputs) = text.split_once('=').ok_or_else(bad)?;
        let path = |text: &str| text.trim().trim_matches('/').to_owned();
        let (to, inputs): (_, Vec<_>) = (path(to), inputs.split_whitespace().map(path).collect());
        if let Some(input) = inputs.iter().find(|input| input.ends_with(',')) {
            return Err(BadValue::new(format!("spaces between inputs, and no comma as behind {input:?}")));
        }
        if to.is_empty() || !(2..=MOST).contains(&inputs.len()) || inputs.iter().any(String::is_empty) {
            return Err(bad());
        }
        if inputs.contains(&to) {
            return Err(BadValue::new(format!("other streams as inputs, and {to} is its own input")));
        }
        match inputs.iter().enumerate().find(|(place, input)| inputs[..*place].contains(input)) {
            Some((_, input)) => Err(BadValue::new(format!("each input once, and {input} stands in {to} twice"))),
            None => Ok(Self { to, inputs }),
        }
    }

    /// Index of the first input that is an asset. It is always there; inputs behind it are never used.
    pub(super) fn slate(&self, sources: &Sources) -> Option<usize> {
        let is_stored = |path: &String| {
            let at = sources.find(path);
            at.list().is_none()
                && !sources.is_channel(path)
                && sources.place(path).is_some_and(|place| !sources.is_live(&place))
        };
        self.inputs.iter().position(is_stored)
    }
}

/// The text that is parsed to it.
impl fmt::Display for FailoverLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.to, self.inputs.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_and_shown() {
        let line = FailoverLine::parse(" /live/main = live/a  /cams/b/ films/wait.mp4").unwrap();
        assert_eq!(
            (&*line.to, &*line.inputs),
            ("live/main", &["live/a", "cams/b", "films/wait.mp4"].map(String::from)[..])
        );
        assert_eq!(FailoverLine::parse(&line.to_string()), Ok(line));
        for (text, words) in [
            ("live/main", "a path and 2 to 16 inputs"),
            ("live/main=live/a", "a path and 2 to 16 inputs"),
            ("=live/a live/b", "a path and 2 to 16 inputs"),
            ("live/main=live/a live/main", "other streams as inputs, and live/main is its own input"),
            ("live/main=live/a, live/b", "spaces between inputs, and no comma as behind \"live/a,\""),
            ("live/main=live/a live/b live/a", "each input once, and live/a stands in live/main twice"),
        ] {
            assert!(FailoverLine::parse(text).unwrap_err().expected.starts_with(words), "{text}");
        }
    }
}
