//! A small XML writer: elements, attributes, text, with escapes.

use crate::writing::digits;

/// Writes elements one after another, indented by depth.
pub(crate) struct Writer {
    out: String,
    open: Vec<&'static str>,
    /// Whether the last start tag still lacks its `>`.
    in_tag: bool,
}

impl Writer {
    pub(crate) fn new(capacity: usize) -> Self {
        let mut out = String::with_capacity(capacity);
        out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        Self { out, open: Vec::new(), in_tag: false }
    }

    /// Starts an element; attributes follow.
    pub(crate) fn start(&mut self, name: &'static str) -> &mut Self {
        self.close_tag(">\n");
        self.indent();
        self.out.push('<');
        self.out.push_str(name);
        self.open.push(name);
        self.in_tag = true;
        self
    }

    pub(crate) fn attribute(&mut self, name: &str, value: &str) -> &mut Self {
        self.attribute_name(name);
        escape(&mut self.out, value);
        self.out.push('"');
        self
    }

    pub(crate) fn number(&mut self, name: &str, value: u64) -> &mut Self {
        self.attribute_name(name);
        digits::push(&mut self.out, value);
        self.out.push('"');
        self
    }

    fn attribute_name(&mut self, name: &str) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
    }

    /// Ends the innermost element.
    pub(crate) fn end(&mut self) -> &mut Self {
        let Some(name) = self.open.pop() else { return self };
        if self.in_tag {
            self.close_tag("/>\n");
        } else {
            self.indent();
            self.end_tag(name);
        }
        self
    }

    /// Ends the innermost element after writing `text` into it.
    pub(crate) fn end_with(&mut self, text: &str) -> &mut Self {
        let Some(name) = self.open.pop() else { return self };
        self.close_tag(">");
        escape(&mut self.out, text);
        self.end_tag(name);
        self
    }

    /// Returns the document; every element must have ended.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.end();
        }
        self.out
    }

    fn close_tag(&mut self, with: &str) {
        if std::mem::take(&mut self.in_tag) {
            self.out.push_str(with);
        }
    }

    fn end_tag(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push_str(">\n");
    }

    fn indent(&mut self) {
        for _ in 0..self.open.len() {
            self.out.push_str("  ");
        }
    }
}

/// Appends `text` with markup escaped. Characters that XML 1.0 (2.2) forbids are left out.
pub(crate) fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{FFFE}' | '\u{FFFF}' => {}
            c if c < ' ' && !matches!(c, '\t' | '\n' | '\r') => {}
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_nested_elements_and_escapes() {
        let mut w = Writer::new(0);
        w.start("a").attribute("b", "<\"&\u{1}>").number("n", 7);
        w.start("c").end();
        w.start("d").end_with("x < y");
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a b=\"&lt;&quot;&amp;&gt;\" n=\"7\">\n  <c/>\n  <d>x &lt; y</d>\n</a>\n";
        assert_eq!(w.finish(), expected);
    }
}
