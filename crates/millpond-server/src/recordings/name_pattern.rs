//! The names of recorded files, made by the pattern of the setting `record-name`.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use millpond_settings::value::BadValue;
use millpond_utc::Date;
use std::{fmt, time::Duration};

/// Most letters of one folder or file that a stream's path gives.
const LETTERS: usize = 80;
/// Most folders that a stream's path gives.
const FOLDERS: usize = 16;
/// Longest pattern.
const LONGEST: usize = 200;
/// End of the names.
const EXTENSION: &str = ".mp4";

/// A pattern of names with placeholders, below the folder of recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(String);

/// Part of a pattern.
enum Piece<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// Placeholders with their meaning, for messages and the handbook.
const PLACEHOLDERS: [&str; 10] = ["path", "name", "date", "time", "year", "month", "day", "hour", "minute", "second"];

impl Default for NamePattern {
    fn default() -> Self {
        Self("{path}/{date}/{time}Z.mp4".to_owned())
    }
}

impl NamePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Its names could lie outside of the folder, are hidden, or are none of MP4 files.
    pub(super) fn parse(text: &str) -> Result<Self, BadValue> {
        let bad = |why: &str| Err(BadValue::new(format!("a pattern such as \"{}\": {why}", Self::default())));
        if text.len() > LONGEST {
            return bad(&format!("at most {LONGEST} characters"));
        }
        let Some(pieces) = pieces(text) else { return bad("each { needs its }") };
        for piece in &pieces {
            match piece {
                Piece::Placeholder(name) if !PLACEHOLDERS.contains(name) => {
                    return bad(&format!("{{{name}}} is unknown (known: {})", PLACEHOLDERS.join(", ")));
                }
                Piece::Text(text) if !text.chars().all(|letter| is_safe(letter) || letter == '/') => {
                    return bad("letters, digits, \"-\", \"_\", \".\" and \"/\" only");
                }
                _ => {}
            }
        }
        if !text.ends_with(EXTENSION) {
            return bad("it ends with .mp4");
        }
        // Files that begin with a dot are hidden, and are those that are being written.
        let hidden = text.split('/').any(|part| part.is_empty() || part.starts_with('.'));
        if hidden {
            return bad("no folder or file is empty or begins with a dot");
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name of the file of a stream that begins at a time since the Unix epoch: a relative path without `..`.
    pub(super) fn name(&self, stream: &str, began: Duration) -> String {
        let Date { year, month, day } = Date::of_wall(began);
        let seconds = began.as_secs();
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let mut name = String::new();
        // A pattern was parsed before.
        for piece in pieces(&self.0).unwrap_or_default() {
            match piece {
                Piece::Text(text) => name.push_str(text),
                Piece::Placeholder("path") => name.push_str(&safe_path(stream)),
                Piece::Placeholder("name") => name.push_str(&safe_path(stream).replace('/', "_")),
                Piece::Placeholder("date") => name.push_str(&format!("{year:04}-{month:02}-{day:02}")),
                Piece::Placeholder("time") => name.push_str(&format!("{hour:02}-{minute:02}-{second:02}")),
                Piece::Placeholder("year") => name.push_str(&format!("{year:04}")),
                Piece::Placeholder("month") => name.push_str(&format!("{month:02}")),
                Piece::Placeholder("day") => name.push_str(&format!("{day:02}")),
                Piece::Placeholder("hour") => name.push_str(&format!("{hour:02}")),
                Piece::Placeholder("minute") => name.push_str(&format!("{minute:02}")),
                Piece::Placeholder(_) => name.push_str(&format!("{second:02}")),
            }
        }
        name
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns name `number` of those that a recording may take where a name is taken: `a.mp4`, `a-2.mp4`, `a-3.mp4` and so on.
pub(super) fn numbered(name: &str, number: u32) -> String {
    match (number, name.strip_suffix(EXTENSION)) {
        (2.., Some(stem)) => format!("{stem}-{number}{EXTENSION}"),
        _ => name.to_owned(),
    }
}

/// Cuts a pattern into pieces; `None` where a brace has no other one.
fn pieces(text: &str) -> Option<Vec<Piece<'_>>> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        let (placeholder, behind) = after.split_once('}')?;
        pieces.extend([Piece::Text(before), Piece::Placeholder(placeholder)]);
        rest = behind;
    }
    if rest.contains('}') {
        return None;
    }
    pieces.push(Piece::Text(rest));
    Some(pieces)
}

fn is_safe(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_.".contains(letter)
}

/// Turns a stream's path into names of folders that are safe everywhere: ASCII letters, digits, `-`, `_` and `.`, none of which
/// begins with a dot.
fn safe_path(stream: &str) -> String {
    let keep = |letter: char| if is_safe(letter) { letter } else { '_' };
    let folder = |part: &str| -> String {
        let part: String = part.trim_start_matches('.').chars().take(LETTERS).map(keep).collect();
        if part.is_empty() { "_".to_owned() } else { part }
    };
    let parts = stream.split('/').filter(|part| !part.is_empty()).take(FOLDERS).map(folder);
    let path = parts.collect::<Vec<_>>().join("/");
    if path.is_empty() { "recording".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22T15:51:56Z.
    const AT: Duration = Duration::from_secs(1_795_362_716);

    #[test]
    fn names_are_made_by_the_pattern() {
        let name = |pattern: &str, stream: &str| NamePattern::parse(pattern).unwrap().name(stream, AT);
        assert_eq!(NamePattern::default().name("cams/door", AT), "cams/door/2026-11-22/15-51-56Z.mp4");
        assert_eq!(
            name("{name}-{year}{month}{day}T{hour}{minute}{second}Z.mp4", "cams/door"),
            "cams_door-20261122T155156Z.mp4"
        );
        assert_eq!(name("all/{date}.mp4", "cams/door"), "all/2026-11-22.mp4");
        assert_eq!(NamePattern::parse("{path}/{date}/{time}Z.mp4"), Ok(NamePattern::default()));
        assert_eq!(numbered("a/b.mp4", 1), "a/b.mp4");
        assert_eq!(numbered("a/b.mp4", 3), "a/b-3.mp4");
    }

    #[test]
    fn names_stay_inside_of_the_folder() {
        for (stream, expected) in [
            ("../../etc/passwd", "_/_/etc/passwd"),
            ("", "recording"),
            ("///", "recording"),
            (".hidden/a\0b\nc\u{1b}d é", "hidden/a_b_c_d__"),
            ("a//b/./c", "a/b/_/c"),
        ] {
            assert_eq!(safe_path(stream), expected, "{stream:?}");
        }
        let long = NamePattern::default().name(&"x/".repeat(4000), AT);
        assert!(long.len() < 200 && !long.contains("//"), "{long}");
        assert!(NamePattern::default().name(&"x".repeat(4000), AT).len() < 200);
    }

    #[test]
    fn patterns_that_leave_the_folder_or_hide_files_are_refused() {
        for (text, why) in [
            ("/{path}.mp4", "empty"),
            ("{path}/../x.mp4", "dot"),
            (".{path}.mp4", "dot"),
            ("{path}/.mp4", "dot"),
            ("{path}//{time}.mp4", "empty"),
            ("{path}.mkv", ".mp4"),
            ("", ".mp4"),
            ("{what}.mp4", "{what} is unknown"),
            ("{path.mp4", "each { needs its }"),
            ("path}.mp4", "each { needs its }"),
            ("a b.mp4", "letters"),
            ("a\\b.mp4", "letters"),
        ] {
            let error = NamePattern::parse(text).unwrap_err();
            assert!(error.expected.contains(why), "{text}: {error:?}");
        }
    }
}
