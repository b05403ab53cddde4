//! The file of a schedule: TOML with a table for each entry.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use super::{
    Fault,
    timetable::{At, Content, Entry, Timetable},
};
use crate::week::{DAY, Days};
use millpond_settings::{
    nearest,
    value::{duration_in, show_duration},
};
use std::time::Duration;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Most entries.
const MOST: usize = 10_000;
/// Most entries of the week.
const MOST_WEEKLY: usize = 500;
/// Most characters of a title.
const TITLE: usize = 200;
/// Most characters of a description, and of a path.
const TEXT: usize = 4000;
/// Most characters of a value in an error.
const SHOWN: usize = 60;
/// Longest `for` and `from`.
const LONGEST: Duration = Duration::from_secs(7 * DAY);
/// A bit for each day of the week.
const ALL_DAYS: u8 = 0b111_1111;

const KEYS: [&str; 3] = ["title", "filler", "entry"];
const ENTRY_KEYS: [&str; 9] = ["at", "days", "asset", "stream", "from", "for", "loop", "title", "description"];

type Value<'a> = Spanned<DeValue<'a>>;

/// Parses the text of a file.
///
/// # Errors
/// All that is wrong with it.
pub(super) fn parse(text: &str) -> Result<Timetable, Vec<Fault>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader::new(text);
    for error in errors {
        reader.fault(error.span().map_or(0, |span| span.start), format!("not valid TOML: {}", error.message()));
    }
    if !reader.faults.is_empty() {
        return Err(Fault::first(reader.faults));
    }
    let (title, filler, entries) = reader.top(table.get_ref());
    if !reader.faults.is_empty() {
        return Err(Fault::first(reader.faults));
    }
    Timetable::new(title, filler, entries).map_err(Fault::first)
}

struct Reader {
    /// Offsets of the ends of lines.
    ends: Vec<usize>,
    faults: Vec<Fault>,
}

impl Reader {
    fn new(text: &str) -> Self {
        Self { ends: text.match_indices('\n').map(|(at, _)| at).collect(), faults: Vec::new() }
    }

    fn line(&self, offset: usize) -> usize {
        self.ends.partition_point(|end| *end < offset) + 1
    }

    fn fault(&mut self, offset: usize, words: String) {
        let line = self.line(offset);
        self.faults.push(Fault { line, words: words.replace('\n', ", ") });
    }

    /// Notes a value of another form.
    fn bad(&mut self, key: &str, value: &Value<'_>, expected: &str) {
        let found = match value.get_ref() {
            DeValue::String(text) => format!("{:?}", text.chars().take(SHOWN).collect::<String>()),
            DeValue::Datetime(time) => time.to_string(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            other => format!("a value of the type {}", other.type_str()),
        };
        self.fault(value.span().start, format!("{key}: expected {expected}, found {found}"));
    }

    fn unknown<'a>(&mut self, offset: usize, key: &str, known: impl Iterator<Item = &'a str> + Clone) {
        let all = known.clone().collect::<Vec<_>>().join(", ");
        let hint = nearest(key, known).map_or_else(|| format!("known are {all}"), |key| format!("did you mean {key}?"));
        self.fault(offset, format!("unknown key {:?}; {hint}", key.chars().take(SHOWN).collect::<String>()));
    }

    fn top(&mut self, table: &DeTable<'_>) -> (Option<String>, String, Vec<Entry>) {
        let (mut title, mut filler, mut entries) = (None, None, Vec::new());
        for (key, value) in table {
            match &**key.get_ref() {
                "title" => title = self.words("title", value, TITLE),
                "filler" => filler = self.path("filler", value),
                "entry" => match value.get_ref() {
                    DeValue::Array(items) if items.len() <= MOST => {
                        entries = items.iter().filter_map(|item| self.entry(item)).collect();
                    }
                    DeValue::Array(_) => self.fault(value.span().start, format!("at most {MOST} entries")),
                    _ => self.bad("entry", value, "tables: write [[entry]] above the keys of each entry"),
                },
                name => self.unknown(key.span().start, name, KEYS.into_iter()),
            }
        }
        if !table.contains_key("filler") {
            let why = "filler is missing: name the asset or stream that plays between entries, such as filler = \"films/wait.mp4\"";
            self.fault(0, why.to_owned());
        }
        if entries.iter().filter(|entry| matches!(entry.at, At::Weekly { .. })).count() > MOST_WEEKLY {
            self.fault(0, format!("at most {MOST_WEEKLY} entries with a time of the day"));
        }
        (title, filler.unwrap_or_default(), entries)
    }

    fn entry(&mut self, value: &Value<'_>) -> Option<Entry> {
        let DeValue::Table(table) = value.get_ref() else {
            self.bad("entry", value, "a table");
            return None;
        };
        let (begin, before) = (value.span().start, self.faults.len());
        let line = self.line(begin);
        for key in table.keys() {
            if !ENTRY_KEYS.contains(&&**key.get_ref()) {
                self.unknown(key.span().start, key.get_ref(), ENTRY_KEYS.into_iter());
            }
        }
        let get = |key: &str| table.get(key);
        let days = get("days").map(|value| (self.days(value), value));
        let at = match get("at") {
            Some(value) => self.at(value, days.as_ref().map(|(days, _)| *days)),
            None => {
                self.fault(
                    begin,
                    "at is missing: write when the entry begins, such as at = 2026-12-01T20:00:00Z".to_owned(),
                );
                None
            }
        };
        let content = match (get("asset"), get("stream")) {
            (Some(asset), None) => self.path("asset", asset).map(Content::Asset),
            (None, Some(stream)) => self.path("stream", stream).map(Content::Stream),
            _ => {
                self.fault(begin, "an entry needs either asset or stream: the path of what it plays".to_owned());
                None
            }
        };
        let from = get("from").and_then(|value| self.time("from", value, Duration::ZERO)).unwrap_or_default();
        let length = get("for").and_then(|value| self.time("for", value, Duration::from_secs(1)));
        let repeats = get("loop").is_some_and(|value| match value.get_ref() {
            DeValue::Boolean(repeats) => *repeats,
            _ => {
                self.bad("loop", value, "true or false");
                false
            }
        });
        for key in ["from", "loop"] {
            if let (Some(value), Some(Content::Stream(_))) = (get(key), &content) {
                self.fault(value.span().start, format!("{key} is for assets: a stream has no beginning"));
            }
        }
        if let (Some(value), true) = (get("from"), repeats) {
            self.fault(value.span().start, "from does not go with loop: the whole asset is repeated".to_owned());
        }
        let title = get("title").and_then(|value| self.words("title", value, TITLE));
        let description = get("description").and_then(|value| self.words("description", value, TEXT));
        let (at, content) = (at?, content?);
        let entry = Entry { line, at, content, from, length, repeats, title, description };
        (self.faults.len() == before).then_some(entry)
    }

    /// `2026-12-01T20:00:00Z`, `"20:00"` or `20:00:00`.
    fn at(&mut self, value: &Value<'_>, days: Option<u8>) -> Option<At> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Datetime(time) => time.to_string(),
            _ => String::new(),
        };
        if let Some(at) = millpond_utc::parse(&text) {
            if days.is_some() {
                self.fault(value.span().start, "days go with a time of the day, such as at = \"20:00\"".to_owned());
            }
            return Some(At::Once(at));
        }
        let of_day = of_day(&text);
        if of_day.is_none() {
            let expected =
                "a time with its zone such as 2026-12-01T20:00:00Z, or a time of the day in UTC such as \"20:00\"";
            self.bad("at", value, expected);
        }
        Some(At::Weekly { of_day: of_day?, days: days.unwrap_or(ALL_DAYS) })
    }

    /// `"mon-fri"`, or `["mon", "sat-sun"]`.
    fn days(&mut self, value: &Value<'_>) -> u8 {
        let bits = |text: &str| {
            let days = Days::parse(text)?;
            // Day 4 since 1970-01-01 was a Monday.
            Some((0..7).filter(|day| days.has(4 + day)).fold(0, |bits, day| bits | 1 << day))
        };
        let bits = match value.get_ref() {
            DeValue::String(text) => bits(text),
            DeValue::Array(items) if !items.is_empty() => {
                items.iter().try_fold(0, |all, item| Some(all | bits(item.get_ref().as_str()?)?))
            }
            _ => None,
        };
        if bits.is_none() {
            self.bad("days", value, "days of the week such as \"mon-fri\" or [\"mon\", \"sat-sun\"]");
        }
        bits.unwrap_or(ALL_DAYS)
    }

    fn time(&mut self, key: &str, value: &Value<'_>, least: Duration) -> Option<Duration> {
        let found = value.get_ref().as_str().and_then(|text| duration_in(text, least, LONGEST).ok());
        if found.is_none() {
            let (least, most) = (show_duration(least), show_duration(LONGEST));
            self.bad(key, value, &format!("a duration from {least} to {most} such as \"90m\" or \"1h30m\""));
        }
        found
    }

    fn words(&mut self, key: &str, value: &Value<'_>, most: usize) -> Option<String> {
        let is_fit = |text: &&str| text.chars().count() <= most && !text.chars().any(|c| c.is_control() && c != '\n');
        let found = value.get_ref().as_str().filter(is_fit).map(|text| text.trim().to_owned());
        if found.is_none() {
            self.bad(key, value, &format!("a text of at most {most} characters without control characters"));
        }
        found.filter(|text| !text.is_empty())
    }

    fn path(&mut self, key: &str, value: &Value<'_>) -> Option<String> {
        let path = value.get_ref().as_str().map(|text| text.trim().trim_matches('/'));
        let path = path.filter(|path| !path.is_empty() && path.len() <= TEXT && !path.contains(char::is_control));
        if path.is_none() {
            self.bad(key, value, "a path such as \"films/a.mp4\"");
        }
        path.map(str::to_owned)
    }
}

/// Parses `20:00` or `20:00:30`.
fn of_day(text: &str) -> Option<Duration> {
    let text = if text.len() == 5 { format!("{text}:00") } else { text.to_owned() };
    // The day of the epoch.
    millpond_utc::parse(&format!("1970-01-01T{text}Z")).filter(|_| text.len() == 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_entries_with_dates_and_times_of_the_week() {
        let text = "title = \"Pond TV\"\nfiller = \"/films/wait.mp4\"\n\
                    [[entry]]\nat = 2026-11-23T20:00:00Z\nasset = \"films/a.mp4\"\nfrom = \"10m\"\nfor = \"1h30m\"\ntitle = \"A\"\n\
                    [[entry]]\nat = 06:30:00\ndays = [\"mon\", \"sat-sun\"]\nstream = \"cams/door\"\n\
                    [[entry]]\nat = \"12:00\"\nasset = \"films/b.mp4\"\nloop = true\ndescription = \"Two\\nlines\"\n";
        let timetable = parse(text).unwrap();
        assert_eq!((timetable.title.as_deref(), &*timetable.filler), (Some("Pond TV"), "films/wait.mp4"));
        let [first, second, third] = timetable.entries() else { panic!("{timetable:?}") };
        assert_eq!((first.line, first.at), (3, At::Once(Duration::from_secs(20_780 * DAY + 20 * 3600))));
        assert_eq!(
            (first.from.as_secs(), first.length.unwrap().as_secs(), first.title.as_deref()),
            (600, 5400, Some("A"))
        );
        assert_eq!(second.at, At::Weekly { of_day: Duration::from_secs(6 * 3600 + 1800), days: 0b110_0001 });
        assert_eq!(second.content, Content::Stream("cams/door".to_owned()));
        assert_eq!((third.repeats, third.description.as_deref()), (true, Some("Two\nlines")));
        assert_eq!(third.at, At::Weekly { of_day: Duration::from_secs(12 * 3600), days: ALL_DAYS });
    }

    #[test]
    fn faults_name_the_line_and_a_cure() {
        let of_entry = |keys: &str| format!("filler = \"f/w.mp4\"\n[[entry]]\nat = \"20:00\"\n{keys}\n");
        for (text, line, words) in [
            (String::new(), 1, "filler is missing: name the asset or stream"),
            ("filler = \"a\"\ntile = \"x\"".to_owned(), 2, "unknown key \"tile\"; did you mean title?"),
            ("filler = \"a\"\nentry = 3".to_owned(), 2, "entry: expected tables: write [[entry]]"),
            ("filler = \"a\"\n[[entry]\n".to_owned(), 2, "not valid TOML"),
            (of_entry("asset = \"a\"\nstart = 3"), 5, "unknown key \"start\""),
            (of_entry(""), 2, "an entry needs either asset or stream"),
            (of_entry("asset = \"a\"\nstream = \"b\""), 2, "an entry needs either asset or stream"),
            (of_entry("asset = \"a\"\nfor = 90"), 5, "for: expected a duration from 1s to 604800s such as \"90m\""),
            (of_entry("asset = \"a\"\ndays = \"monday\""), 5, "days: expected days of the week"),
            (of_entry("asset = \"a\"\nloop = \"yes\""), 5, "loop: expected true or false, found \"yes\""),
            (of_entry("asset = \"a\"\nloop = true\nfrom = \"5s\""), 6, "from does not go with loop"),
            (of_entry("stream = \"a\"\nfrom = \"5s\""), 5, "from is for assets"),
            (of_entry("asset = \"a\"\ntitle = \"\\u0007\""), 5, "title: expected a text"),
            ("filler = \"a\"\n[[entry]]\nasset = \"b\"".to_owned(), 2, "at is missing"),
            (
                "filler = \"a\"\n[[entry]]\nasset = \"b\"\nat = \"8pm\"".to_owned(),
                4,
                "at: expected a time with its zone",
            ),
            (
                "filler = \"a\"\n[[entry]]\nasset = \"b\"\nat = 2026-11-23T20:00:00".to_owned(),
                4,
                "at: expected a time with",
            ),
            (
                "filler = \"a\"\n[[entry]]\nasset = \"b\"\nat = 2026-11-23T20:00:00Z\ndays = \"mon\"".to_owned(),
                4,
                "days go with a time of the day",
            ),
        ] {
            let faults = parse(&text).unwrap_err();
            assert!(faults[0].words.starts_with(words) && faults[0].line == line, "{text}: {faults:?}");
        }
    }
}
