//! A small XML element tree, bounded in depth and number of elements.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// Elements within elements; an MPD needs about 8. Keeps dropping the tree off the stack's end.
const MAX_DEPTH: usize = 64;
/// A day of 1-second `S` elements in ten timelines; keeps the tree small beside the text it may come from.
const MAX_ELEMENTS: usize = 1_000_000;

/// An element with what is in it; names without their namespace prefix.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Element>,
    pub(crate) text: String,
    /// The line its start tag ends on, from 1.
    pub(crate) line: usize,
}

impl Element {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(crate) fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Where the text stops being XML that is understood here, and why.
#[derive(Debug)]
pub(crate) struct XmlError {
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// Counts lines up to byte positions that only grow.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    fn line_of(&mut self, position: u64) -> usize {
        let to = usize::try_from(position).unwrap_or(usize::MAX).min(self.text.len());
        if let Some(passed) = self.text.get(self.at..to) {
            self.line += passed.iter().filter(|&&byte| byte == b'\n').count();
            self.at = to;
        }
        self.line
    }
}

/// Reads a document and gives its root element.
pub(crate) fn parse(text: &str) -> Result<Element, XmlError> {
    let mut reader = Reader::from_str(text);
    let mut lines = Lines { text: text.as_bytes(), at: 0, line: 1 };
    let mut open: Vec<Element> = Vec::new();
    let mut count = 0;
    loop {
        let event = reader.read_event();
        let line = lines.line_of(reader.buffer_position());
        let error = |what: String| XmlError { line, what };
        let closed = match event.map_err(|problem| error(problem.to_string()))? {
            Event::Start(start) => {
                count += 1;
                open.push(element(&start, line)?);
                None
            }
            Event::Empty(start) => {
                count += 1;
                Some(element(&start, line)?)
            }
            Event::End(_) => open.pop(),
            Event::Text(text) => {
                append(&mut open, &text.xml10_content());
                None
            }
            Event::CData(text) => {
                append(&mut open, &text.xml10_content());
                None
            }
            Event::GeneralRef(reference) => {
                let entity = format!("&{};", &*reference);
                let text = quick_xml::escape::unescape(&entity).map_err(|problem| error(problem.to_string()))?;
                append(&mut open, &text);
                None
            }
            Event::Eof => return Err(error("the document ends before its root element does".to_owned())),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => None,
        };
        if open.len() > MAX_DEPTH || count > MAX_ELEMENTS {
            return Err(error(format!("more than {MAX_DEPTH} levels or {MAX_ELEMENTS} elements")));
        }
        if let Some(element) = closed {
            match open.last_mut() {
                Some(parent) => parent.children.push(element),
                None => return Ok(element),
            }
        }
    }
}

fn append(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

fn element(start: &BytesStart<'_>, line: usize) -> Result<Element, XmlError> {
    let error = |what: String| XmlError { line, what };
    let name = start.local_name().as_ref().to_owned();
    let mut attributes = Vec::new();
    let mut list = start.attributes();
    for attribute in list.with_checks(false) {
        let attribute = attribute.map_err(|problem| error(format!("{name}: {problem}")))?;
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|problem| error(format!("{name}: {problem}")))?;
        attributes.push((attribute.key.local_name().as_ref().to_owned(), value.into_owned()));
    }
    Ok(Element { name, attributes, line, ..Element::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_attributes_text_and_lines() {
        let root = parse(
            "<?xml version=\"1.0\"?>\n<!-- c -->\n<m:A x=\"1 &amp; 2\"\n y='3'>\n<B> a&amp;<![CDATA[b<]]>&#33; </B>\n<C/><C/></m:A>",
        );
        let root = root.expect("well formed");
        assert_eq!((root.name.as_str(), root.line), ("A", 4));
        assert_eq!((root.attribute("x"), root.attribute("y"), root.attribute("z")), (Some("1 & 2"), Some("3"), None));
        assert_eq!(root.child("B").map(|b| (b.text.as_str(), b.line)), Some((" a&b<! ", 5)));
        assert_eq!(root.children("C").map(|c| c.line).collect::<Vec<_>>(), [6, 6]);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line) in [
            ("", 1),
            ("plain\ntext", 2),
            ("<a>\n<b>\n", 3),
            ("<a>\n</b>", 2),
            ("<a>\n\n<b x=1/></a>", 3),
            ("<a>&nosuch;</a>", 1),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text:?}: {error:?}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let error = parse(&"<a>".repeat(100_000)).expect_err("too deep");
        assert!(error.what.contains("levels"), "{error:?}");
    }
}
