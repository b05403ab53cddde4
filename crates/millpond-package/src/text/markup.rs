//! Cue text of WebVTT (4.2): escapes and tags.

/// Styles that have tags in WebVTT.
pub(super) const STYLES: [&str; 3] = ["b", "i", "u"];

/// Appends a character of plain text, escaped.
pub(super) fn push_escaped(out: &mut String, c: char) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '\0' => out.push('\u{fffd}'),
        c => out.push(c),
    }
}

/// Removes everything that would end a cue: empty lines, and `-->` in a line. Line ends become newlines, and white
/// space at line ends is removed.
pub(super) fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split(['\n', '\r', '\u{2028}', '\u{85}']).map(str::trim_end).filter(|line| !line.is_empty()) {
        if !out.is_empty() {
            out.push('\n');
        }
        match line.contains("-->") {
            true => out.push_str(&line.replace("-->", "--&gt;")),
            false => out.push_str(line),
        }
    }
    out
}

/// Whether the text has nothing but tags and white space.
pub(super) fn is_blank(text: &str) -> bool {
    let mut in_tag = false;
    text.chars().all(|c| {
        let blank = in_tag || c == '<' || c.is_whitespace();
        in_tag = (in_tag || c == '<') && c != '>';
        blank
    })
}

/// Writes tags, and closes them in reverse order of opening, as WebVTT requires.
#[derive(Debug, Default)]
pub(super) struct Tags {
    open: Vec<&'static str>,
}

impl Tags {
    /// Opens a tag, unless it is open.
    pub(super) fn open(&mut self, out: &mut String, tag: &'static str) {
        if !self.open.contains(&tag) {
            self.open.push(tag);
            push_tag(out, "<", tag);
        }
    }

    /// Closes a tag if it is open. Tags opened after it are closed and opened again.
    pub(super) fn close(&mut self, out: &mut String, tag: &str) {
        let Some(at) = self.open.iter().position(|&open| open == tag) else { return };
        self.open[at..].iter().rev().for_each(|tag| push_tag(out, "</", tag));
        self.open.remove(at);
        self.open[at..].iter().for_each(|tag| push_tag(out, "<", tag));
    }

    /// Closes every tag.
    pub(super) fn close_all(&mut self, out: &mut String) {
        self.open.drain(..).rev().for_each(|tag| push_tag(out, "</", tag));
    }
}

fn push_tag(out: &mut String, open: &str, tag: &str) {
    out.push_str(open);
    out.push_str(tag);
    out.push('>');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_tidied() {
        assert_eq!(tidy("\r\na \r\n\r\n \nb --> c\n"), "a\nb --&gt; c");
        assert_eq!(tidy(" \n\n"), "");
    }

    #[test]
    fn tags_nest() {
        let (mut out, mut tags) = (String::new(), Tags::default());
        tags.open(&mut out, "b");
        tags.open(&mut out, "i");
        tags.open(&mut out, "b");
        tags.close(&mut out, "b");
        tags.close(&mut out, "u");
        tags.close_all(&mut out);
        assert_eq!(out, "<b><i></i></b><i></i>");
    }
}
