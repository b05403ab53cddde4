//! A module as operators write it: the path of a stream, a kind, and options.

use millpond_library::uri;
use millpond_settings::value::BadValue;
use millpond_stream::{ModuleOptions, shown_option};
use std::fmt;

/// A module that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleLine {
    /// Path of the channel or live stream. With `/*` at its end, all streams of publishers below it.
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
        Self::new(stream, kind, options).checked()
    }

    /// Checks that options have placeholders only where a star gives them a meaning.
    ///
    /// # Errors
    /// A placeholder would be taken as it stands.
    pub(crate) fn checked(self) -> Result<Self, BadValue> {
        let has_placeholder = |(_, value): (&str, &str)| value.contains("{path}") || value.contains("{name}");
        if !self.is_pattern() && self.options.iter().any(has_placeholder) {
            return Err(BadValue::new("{path} and {name} only where the path ends in a star, such as \"live/*\""));
        }
        Ok(self)
    }

    /// Whether it is for all streams of publishers below a path.
    pub(crate) fn is_pattern(&self) -> bool {
        self.below().is_some()
    }

    /// The path above the streams that it is for, with a slash at its end unless it is empty; `None` where it is for one stream.
    fn below(&self) -> Option<&str> {
        self.stream.strip_suffix('*').filter(|above| above.is_empty() || above.ends_with('/'))
    }

    /// Returns the module of one stream; `None` where it is not for that stream. In options, `{path}` is the stream's path, and `{name}`
    /// the part of it that the star stands for.
    pub(crate) fn of(&self, path: &str) -> Option<Self> {
        let name = path.strip_prefix(self.below()?).filter(|name| !name.is_empty())?;
        let filled = |(option, value): (&str, &str)| {
            let written =
                |text: &str| if value.contains("://") { uri::encode(text).to_string() } else { text.to_owned() };
            (option.to_owned(), value.replace("{path}", &written(path)).replace("{name}", &written(name)))
        };
        Some(Self::new(path, &self.kind, self.options.iter().map(filled)))
    }

    /// Its options without passwords, tokens and stream keys in URLs.
    pub(crate) fn shown_options(&self) -> impl Iterator<Item = (&str, String)> {
        self.options.iter().map(|(name, value)| (name, shown_option(value)))
    }
}

/// The text that is parsed to it, without secrets.
impl fmt::Display for ModuleLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, kind, .. } = self;
        write!(f, "{stream} {kind}")?;
        self.shown_options().try_for_each(|(name, value)| write!(f, " {name}={value}"))
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
        let bad = ModuleLine::parse("live/cam push url=srt://h:9000?streamid={name}").unwrap_err().expected;
        assert!(bad.contains("only where the path ends in a star"), "{bad}");
    }

    #[test]
    fn a_star_stands_for_the_streams_of_publishers() {
        let line = ModuleLine::parse("live/* push url=srt://h:9000?streamid=publish:{name} to=x/{path}").unwrap();
        assert!(line.is_pattern() && !ModuleLine::parse("live/a* tee").unwrap().is_pattern());
        let made = line.of("live/my cam/1").unwrap();
        assert_eq!(made.stream, "live/my cam/1");
        assert_eq!(made.options.get("url"), Some("srt://h:9000?streamid=publish:my%20cam/1"));
        assert_eq!(made.options.get("to"), Some("x/live/my cam/1"));
        assert!(!made.is_pattern());
        assert_eq!((line.of("live/"), line.of("other/a"), line.of("live")), (None, None, None));
        assert_eq!(ModuleLine::parse("* recorder").unwrap().of("a/b").unwrap().stream, "a/b");
    }

    #[test]
    fn secrets_are_not_shown() {
        for (url, expected) in [
            ("rtmps://u:p@a.example/live2/KEY", "rtmps://a.example/live2/***"),
            ("rtmp://a.example/live/KEY?auth=hush", "rtmp://a.example/live/***"),
            ("srt://h:9000?passphrase=hush", "srt://h:9000"),
            ("https://h/whip?token=hush", "https://h/whip"),
            ("live/copy", "live/copy"),
        ] {
            let line = ModuleLine::new("a", "push", [("url".to_owned(), url.to_owned())]);
            assert_eq!(line.to_string(), format!("a push url={expected}"));
        }
    }
}
