//! Text from elsewhere made safe to show: file names, request targets and messages of other servers may hold control
//! characters, which would steer a terminal or forge a line of the log.

use std::fmt::{self, Write};

/// Whether a character must not be shown as it is: control characters (C0, DEL, C1), separators of lines and
/// paragraphs, and marks that turn the direction of text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A writer that hands text on with its unsafe characters escaped, as `\n` or `\u{1b}`.
#[derive(Debug)]
pub struct Escaping<W> {
    inner: W,
    keep_lines: bool,
}

impl<W: Write> Escaping<W> {
    /// Escapes ends of lines too: what is written stays on one line.
    pub const fn line(inner: W) -> Self {
        Self { inner, keep_lines: false }
    }

    /// Lets `\n` pass, for text of several lines.
    pub const fn lines(inner: W) -> Self {
        Self { inner, keep_lines: true }
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut safe = 0;
        let keep = |c: char| c == '\n' && self.keep_lines;
        for (at, c) in text.char_indices().filter(|(_, c)| is_unsafe(*c) && !keep(*c)) {
            self.inner.write_str(&text[safe..at])?;
            write!(self.inner, "{}", c.escape_default())?;
            safe = at + c.len_utf8();
        }
        self.inner.write_str(&text[safe..])
    }
}

/// JSON with the unsafe characters that serializers leave as they are (DEL, C1 and the rest) written as `\u009b`;
/// ends of lines between its tokens stay. Outside of strings JSON has none of the others.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) && c != '\n' {
            // All of them are in the basic plane: four digits hold them. Writing to a String does not fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// A URL with `***` in place of user and password; other text as it is.
pub fn without_user(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}***{}", &text[..scheme + 3], &text[at..]),
        _ => text.to_owned(),
    }
}

/// Whether [`json`] would change anything.
pub(crate) fn is_safe(text: &str) -> bool {
    !text.contains(|c| is_unsafe(c) && c != '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that must not pass.
    fn unsafe_characters() -> impl Iterator<Item = char> {
        let ranges = ['\0'..='\x1f', '\x7f'..='\u{9f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
        ranges.into_iter().flatten().chain(['\u{61c}', '\u{200e}', '\u{200f}'])
    }

    #[test]
    fn no_unsafe_character_passes() {
        for c in unsafe_characters() {
            let mut line = String::new();
            write!(Escaping::line(&mut line), "a{c}b").unwrap();
            assert!(line.starts_with("a\\") && line.ends_with('b') && !line.chars().any(is_unsafe), "{line:?}");
            if c != '\n' {
                let text = format!("\"a{c}b\"");
                let safe = json(&text);
                assert!(!safe.chars().any(is_unsafe), "{safe:?}");
                assert_eq!(is_safe(&text), safe == text);
                assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), format!("a{c}b"));
            }
        }
    }

    #[test]
    fn other_text_is_left_alone() {
        let text = "größer \\ \"x\" 映画 \u{a0}€";
        let mut line = String::new();
        Escaping::line(&mut line).write_str(text).unwrap();
        assert_eq!((line.as_str(), json(text).as_str()), (text, text));
        assert!(is_safe(text));
        let mut lines = String::new();
        Escaping::lines(&mut lines).write_str("a\nb\r\x1bc").unwrap();
        assert_eq!(lines, "a\nb\\r\\u{1b}c");
    }
}
