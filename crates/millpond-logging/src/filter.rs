//! The level filter of the log, checked word by word: the library takes an unknown word as the name of a target, and then no line is
//! written.

use super::LogError;
use millpond_settings::{nearest, value::BadValue};
use tracing_subscriber::EnvFilter;

/// The levels, from few lines to many.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Libraries that log each damaged unit of a stream, unless the filter names them, and their directives: whoever uses them counts.
const QUIET: [(&str, &str); 2] =
    [("symphonia_codec_aac", "symphonia_codec_aac=off"), ("symphonia_core", "symphonia_core=off")];

/// Words for levels in other programs.
const SYNONYMS: [(&str, &str); 17] = [
    ("all", "trace"),
    ("critical", "error"),
    ("debugging", "debug"),
    ("emerg", "error"),
    ("err", "error"),
    ("false", "off"),
    ("fatal", "error"),
    ("finest", "trace"),
    ("no", "off"),
    ("none", "off"),
    ("notice", "info"),
    ("on", "info"),
    ("quiet", "warn"),
    ("silent", "off"),
    ("true", "info"),
    ("verbose", "debug"),
    ("warning", "warn"),
];

/// The crates of this program, whose names targets begin with.
const CRATES: [&str; 18] = [
    "millpond",
    "millpond_access",
    "millpond_cluster",
    "millpond_connections",
    "millpond_etcd",
    "millpond_http",
    "millpond_library",
    "millpond_logging",
    "millpond_media",
    "millpond_package",
    "millpond_picture",
    "millpond_rtmp",
    "millpond_rtp",
    "millpond_server",
    "millpond_settings",
    "millpond_srt",
    "millpond_store",
    "millpond_stream",
];

/// A filter that can't be used.
pub(super) struct BadFilter {
    expected: &'static str,
    /// The word of the filter that is wrong.
    word: String,
    nearest: Option<String>,
}

impl BadFilter {
    fn level(word: &str) -> Self {
        let lower = word.to_ascii_lowercase();
        let known = SYNONYMS.iter().find(|(synonym, _)| *synonym == lower).map(|(_, level)| (*level).to_owned());
        let nearest = known.or_else(|| nearest(&lower, LEVELS.into_iter()));
        Self { expected: "a level (off, error, warn, info, debug, trace)", word: word.to_owned(), nearest }
    }

    fn form(word: &str) -> Self {
        let expected = "a level such as \"info\", or a filter such as \"millpond_store=debug,info\"";
        Self { expected, word: word.to_owned(), nearest: None }
    }
}

impl BadFilter {
    /// The fault of a whole filter. A word that is all of it is not told twice.
    fn of(self, filter: &str) -> Self {
        let word = if self.word == filter.trim() { String::new() } else { self.word };
        Self { word, ..self }
    }
}

impl From<BadFilter> for BadValue {
    fn from(bad: BadFilter) -> Self {
        let expected = match bad.word.is_empty() {
            true => bad.expected.to_owned(),
            false => format!("{} in place of {:?}", bad.expected, bad.word),
        };
        Self { expected, nearest: bad.nearest }
    }
}

/// Checks a level filter: `info`, or targets as in `millpond_store=debug,info`.
pub(super) fn check(filter: &str) -> Result<(), BadFilter> {
    check_words(filter).map_err(|bad| bad.of(filter))
}

fn check_words(filter: &str) -> Result<(), BadFilter> {
    let directives: Vec<_> = divided(filter).map(str::trim).collect();
    let mut has_level = false;
    for directive in &directives {
        match directive.rsplit_once('=').filter(|(_, level)| !level.contains(']')) {
            Some((target, level)) if is_level(level) => check_target(target.trim())?,
            Some((_, level)) => return Err(BadFilter::level(level.trim())),
            None if is_level(directive) && has_level => {
                return Err(BadFilter::form(filter));
            }
            None if is_level(directive) => has_level = true,
            None if directive.starts_with("millpond") || directive.contains(['[', ':']) => check_target(directive)?,
            None if directive.is_empty() => return Err(BadFilter::form("")),
            None => return Err(BadFilter::level(directive)),
        }
    }
    Ok(())
}

/// Parses a level filter.
///
/// # Errors
/// A word is neither a level nor a target.
pub fn parse_filter(filter: &str) -> Result<EnvFilter, LogError> {
    let failed = |reason: String| LogError::Filter { filter: filter.to_owned(), reason };
    check(filter).map_err(|bad| failed(format!("expected {}", BadValue::from(bad).expected)))?;
    let bare = |directive: &str| directive.split('=').map(str::trim).collect::<Vec<_>>().join("=");
    let own =
        QUIET.into_iter().filter(|(target, _)| !filter.contains(target)).map(|(_, directive)| directive.to_owned());
    let directives: Vec<_> = own.chain(divided(filter).map(bare)).collect();
    EnvFilter::try_new(directives.join(",")).map_err(|error| failed(error.to_string()))
}

fn is_level(word: &str) -> bool {
    LEVELS.contains(&word.trim().to_ascii_lowercase().as_str())
}

/// Checks the name of a target. Those of libraries are not known here; those that look like one of this program are.
fn check_target(target: &str) -> Result<(), BadFilter> {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '-' | '.' | '/');
    let name = target.split('[').next().unwrap_or_default();
    if target.is_empty() || !name.chars().all(allowed) {
        return Err(BadFilter::form(target));
    }
    let first = name.split("::").next().unwrap_or_default();
    let is_ours = first.is_empty() || CRATES.contains(&first);
    let meant = CRATES.into_iter().find(|known| !is_ours && strsim::damerau_levenshtein(first, known) <= 2);
    match meant {
        Some(meant) => Err(BadFilter {
            expected: "a target such as \"millpond_store\"",
            word: first.to_owned(),
            nearest: Some(meant.to_owned()),
        }),
        None => Ok(()),
    }
}

/// Divides a filter at the commas that are outside of brackets, which hold fields of spans.
fn divided(filter: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    filter.split(move |c| {
        depth += i32::from(matches!(c, '[' | '{')) - i32::from(matches!(c, ']' | '}'));
        c == ',' && depth <= 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_that_are_taken() {
        for filter in [
            "info",
            "INFO",
            "off",
            "millpond_store=debug,warn",
            "warn, millpond_store = debug",
            "millpond_server",
            "millpond_server::http=trace,info",
            "h2=off,hyper_util::client=debug,info",
            "info,[request{id=1}]=debug",
        ] {
            assert!(parse_filter(filter).is_ok(), "{filter}");
        }
    }

    #[test]
    fn an_unknown_word_is_refused_with_the_nearest_one() {
        for (filter, meant) in [
            ("verbose", Some("debug")),
            ("warning", Some("warn")),
            ("inof", Some("info")),
            ("Debgu", Some("debug")),
            ("none", Some("off")),
            ("all", Some("trace")),
            ("true", None),
            ("millpond_store=loud", None),
            ("millpond_store=verbose", Some("debug")),
            ("milpond_store=debug,info", Some("millpond_store")),
            ("millpond-store=debug,info", Some("millpond_store")),
            ("", None),
            (",", None),
            ("info,", None),
            ("=info", None),
            ("millpond=", None),
            ("info debug", None),
            ("info,debug", None),
            ("a b=info", None),
            ("info;debug", None),
            ("[x=info", None),
        ] {
            let bad = check(filter).err().map(BadValue::from);
            let Some(bad) = bad else {
                assert!(parse_filter(filter).is_err(), "{filter}");
                continue;
            };
            assert!(meant.is_none() || bad.nearest.as_deref() == meant, "{filter}: {bad:?}");
        }
    }
}
