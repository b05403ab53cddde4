//! SubRip files.

use super::{
    Cue, Subtitles,
    clock::{self, Timing},
    decode,
    markup::{self, STYLES, Tags},
    place::Place,
    vtt::Lines,
};
use crate::PackageError;

/// Character references that are kept in SubRip, as WebVTT has the same.
const REFERENCES: [&str; 6] = ["&amp;", "&lt;", "&gt;", "&nbsp;", "&lrm;", "&rlm;"];

/// Reads a SubRip file: UTF-8, UTF-16 with a byte order mark, or else Windows-1252.
///
/// A cue begins at a line with two times and an arrow. Its text extends to the next such line, without the number
/// before that. Italics, bold and underline are kept, other tags are dropped. `{\an8}` and similar tags become a
/// position on the screen.
///
/// # Errors
/// The file has text, but no cue.
pub fn parse(bytes: &[u8]) -> Result<Subtitles, PackageError> {
    let text = decode::any(bytes);
    let mut subtitles = Subtitles::default();
    let mut under_way: Option<(i64, i64, Vec<&str>)> = None;
    let mut first = None;
    let mut lines = Lines::new(&text);
    while let Some(line) = lines.next() {
        if first.is_none() && !line.trim().is_empty() {
            first = Some((lines.number, line));
        }
        let Some(Timing { start, end, .. }) = clock::take_timing(line) else {
            if line.contains("-->") && line.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
                subtitles.warn(lines.number, "times that can't be read count as text");
            }
            if let Some((_, _, text)) = &mut under_way {
                text.push(line);
            }
            continue;
        };
        if end <= start {
            subtitles.warn(lines.number, "a cue that ends before it starts is skipped");
        }
        if let Some((start, end, mut text)) = under_way.replace((start, end, Vec::new())) {
            if text.last().is_some_and(|line| is_number(line)) {
                text.pop();
            }
            push(&mut subtitles, start, end, &text);
        }
    }
    match (under_way, first) {
        (Some((start, end, text)), _) => push(&mut subtitles, start, end, &text),
        (None, Some((line, found))) => {
            let found = format!("{:?}", found.chars().take(40).collect::<String>());
            return Err(PackageError::Text {
                format: "SubRip",
                line,
                found,
                expected: "a number, then a line of times",
            });
        }
        (None, None) => {}
    }
    Ok(subtitles.sorted())
}

fn is_number(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit())
}

fn push(subtitles: &mut Subtitles, start: i64, end: i64, lines: &[&str]) {
    let (text, settings) = cue_text(&lines.join("\n"));
    if end > start && !text.is_empty() {
        subtitles.cues.push(Cue { start, end, settings: settings.to_owned(), text, id: None });
    }
}

/// Converts SubRip text to WebVTT text, and its position tags to cue settings.
pub(super) fn cue_text(text: &str) -> (String, &'static str) {
    let mut out = String::with_capacity(text.len());
    let mut tags = Tags::default();
    let mut settings = "";
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let special = match c {
            '<' => take_tag(rest, &mut tags, &mut out),
            '{' => take_override(rest, &mut settings),
            '&' => REFERENCES.iter().find(|r| rest.starts_with(**r)).map(|r| {
                out.push_str(r);
                r.len()
            }),
            _ => None,
        };
        let len = special.unwrap_or_else(|| {
            markup::push_escaped(&mut out, c);
            c.len_utf8()
        });
        rest = &rest[len..];
    }
    tags.close_all(&mut out);
    let shown = markup::tidy(&out);
    (if markup::is_blank(&shown) { String::new() } else { shown }, settings)
}

/// Finds a character in the first 256 bytes. Tags are never longer, and text full of opening brackets must not be
/// searched to its end for each of them.
fn find_near(text: &str, c: char) -> Option<usize> {
    text[..text.floor_char_boundary(256)].find(c)
}

/// Returns the length of a tag at the start of `text`, which is written where WebVTT has the same.
fn take_tag(text: &str, tags: &mut Tags, out: &mut String) -> Option<usize> {
    let end = find_near(text, '>')?;
    let inner = &text[1..end];
    let (closing, inner) = match inner.strip_prefix('/') {
        Some(inner) => (true, inner),
        None => (false, inner),
    };
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic()) || inner.contains(['<', '\n']) {
        return None;
    }
    let name = inner.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    if let Some(style) = STYLES.into_iter().find(|style| style.eq_ignore_ascii_case(name)) {
        if closing { tags.close(out, style) } else { tags.open(out, style) }
    }
    Some(end + 1)
}

/// Returns the length of a `{\...}` block at the start of `text`. Of its overrides only the alignment is used.
fn take_override(text: &str, settings: &mut &'static str) -> Option<usize> {
    let end = find_near(text, '}')?;
    let inner = text[1..end].strip_prefix('\\')?;
    for part in inner.split('\\') {
        let place = match part.strip_prefix("an") {
            Some(digits) => digits.parse().ok().and_then(Place::of_keypad),
            None => part.strip_prefix('a').and_then(|digits| digits.parse().ok()).and_then(Place::of_ssa),
        };
        if let Some(place) = place {
            *settings = place.settings();
        }
    }
    Some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cue(start: i64, end: i64, text: &str) -> Cue {
        Cue { start, end, text: text.into(), ..Cue::default() }
    }

    #[test]
    fn an_ordinary_file() {
        let file = "\u{feff}1\r\n00:00:01,000 --> 00:00:02,500\r\nOne & <i>two</i>\r\nthree\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000 X1:1 X2:2\r\n42\r\n";
        let found = parse(file.as_bytes()).unwrap();
        assert_eq!(found.cues, [cue(1000, 2500, "One &amp; <i>two</i>\nthree"), cue(3000, 4000, "42")]);
        assert_eq!(found.warnings, [""; 0]);
    }

    #[test]
    fn files_as_they_are_found() {
        let missing_blank = "1\n00:00:01,000 --> 00:00:02,000\na\n2\n00:00:03.000-->00:00:04.000\nb\n\nc\n";
        assert_eq!(parse(missing_blank.as_bytes()).unwrap().cues, [cue(1000, 2000, "a"), cue(3000, 4000, "b\nc")]);
        let no_number = "00:00:01,000 --> 00:00:02,000\n1999\n\n00:00:03,000 --> 00:00:04,000\nb";
        assert_eq!(parse(no_number.as_bytes()).unwrap().cues, [cue(1000, 2000, "1999"), cue(3000, 4000, "b")]);
        assert_eq!(
            parse(b"1\n00:00:01,000 --> 00:00:02,000\n\xfcber \x96\n").unwrap().cues,
            [cue(1000, 2000, "über –")]
        );
        let empty = "1\n00:00:01,000 --> 00:00:02,000\n<i> </i>\n\n2\n00:00:05,000 --> 00:00:04,000\nx\n";
        let found = parse(empty.as_bytes()).unwrap();
        assert_eq!((found.cues, found.warnings.len()), (vec![], 1));
        assert_eq!(parse(b"").unwrap(), Subtitles::default());
        assert_eq!(parse(b" \r\n\n").unwrap(), Subtitles::default());
    }

    #[test]
    fn text_becomes_cue_text() {
        let cases = [
            ("<b>a<I>b</b>c", "<b>a<i>b</i></b><i>c</i>"),
            ("<font color=\"#ff0000\">a</font> <u >b</u>", "a <u>b</u>"),
            ("1 < 2 > 0 <3", "1 &lt; 2 &gt; 0 &lt;3"),
            ("a --> b", "a --&gt; b"),
            ("A&B &amp; &lt;", "A&amp;B &amp; &lt;"),
            ("{\\i1}x{y}", "x{y}"),
            ("a < b\nc > d", "a &lt; b\nc &gt; d"),
        ];
        for (from, to) in cases {
            assert_eq!(cue_text(from), (to.to_owned(), ""), "{from}");
        }
    }

    #[test]
    fn places_become_settings() {
        for (tag, settings) in [
            ("{\\an8}", "line:0"),
            ("{\\an5\\b1}", "line:50%"),
            ("{\\a6}", "line:0"),
            ("{\\an1}", "position:0% align:left"),
            ("{\\an0}", ""),
            ("{\\a255}", ""),
        ] {
            assert_eq!(cue_text(&format!("{tag}x")), ("x".to_owned(), settings), "{tag}");
        }
    }

    #[test]
    fn a_file_without_cues_is_an_error_with_a_line() {
        let error = parse(b"\n\nhello\n").unwrap_err();
        assert!(matches!(error, PackageError::Text { format: "SubRip", line: 3, .. }), "{error}");
    }
}
