//! A module as operators write it: the path of a stream, a kind, and options.

use millpond_settings::value::BadValue;
use millpond_stream::ModuleOptions;
use std::fmt;

/// A module that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleLine {
    /// Path of the channel or live stream.
    pub stream: String,
    /// Name of the kind.
    pub kind: String,
    /// Values of options.
    pub options: ModuleOptions,
}

impl ModuleLine {
    /// Makes that of a stream, a kind and options.
    pub(crate) fn new(stream: &str, kind: &str, options: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { stream: stream.trim_matches('/').to_owned(), kind: kind.to_owned(), options: ModuleOptions::of(options) }
    }

    /// Parses `cams/door tee to=live/copy`.
    ///
    /// # Errors
    /// It has another form.
    pub fn parse(text: &str) -> Result<Self, BadValue> {
        let bad = || BadValue::new("PATH KIND [NAME=VALUE ...], such as \"cams/door tee to=live/copy\"");
        let mut words = text.split_whitespace();
        let (stream, kind) = (words.next().ok_or_else(bad)?, words.next().ok_or_else(bad)?);
        let pair = |word: &str| {
            let (name, value) = word.split_once('=').filter(|(name, _)| !name.is_empty())?;
            Some((name.to_owned(), value.to_owned()))
        };
        let options: Vec<_> = words.map(pair).collect::<Option<_>>().ok_or_else(bad)?;
        // A kind with a sign of equality is an option whose kind is missing.
        if stream.trim_matches('/').is_empty() || kind.contains('=') {
            return Err(bad());
        }
        Ok(Self::new(stream, kind, options))
    }
}

/// The text that is parsed to it.
impl fmt::Display for ModuleLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, kind, options } = self;
        write!(f, "{stream} {kind}")?;
        options.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_and_shown() {
        let line = ModuleLine::parse("  /cams/door/  tee to=live/copy delay=30s").unwrap();
        assert_eq!((&*line.stream, &*line.kind, line.options.get("delay")), ("cams/door", "tee", Some("30s")));
        assert_eq!(line.to_string(), "cams/door tee delay=30s to=live/copy");
        assert_eq!(ModuleLine::parse(&line.to_string()), Ok(line));
        for text in ["", "cams/door", "cams/door to=live/copy", "cams/door tee copy", "/ tee", "cams/door tee =x"] {
            assert!(ModuleLine::parse(text).unwrap_err().expected.starts_with("PATH KIND"), "{text}");
        }
    }
}
