//! Lists as XSPF version 1.

use super::{super::super::reply::escaped, ListEntry, TitleList};
use std::fmt::Write as _;

/// Writes a list. Names and addresses have no characters that XML forbids.
pub(super) fn write(list: &TitleList) -> String {
    let mut out = concat!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
        "<playlist version=\"1\" xmlns=\"http://xspf.org/ns/0/\">\n"
    )
    .to_owned();
    if let Some(missing) = list.missing {
        // Writing to a string can't fail.
        let _ = writeln!(out, "<annotation>Not complete: {missing}</annotation>");
    }
    out.push_str("<trackList>\n");
    for ListEntry { address, name, .. } in &list.entries {
        let (address, name) = (escaped(address), escaped(name));
        let _ = writeln!(out, "<track><location>{address}</location><title>{name}</title></track>");
    }
    out.push_str("</trackList>\n</playlist>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let entry = ListEntry { address: "http://h&/a".to_owned(), name: "<\"Tom\" & 'J'>".to_owned(), guide: None };
        let text = write(&TitleList { entries: vec![entry], missing: Some("more") });
        assert!(text.contains("<location>http://h&amp;/a</location>"), "{text}");
        assert!(text.contains("<title>&lt;&quot;Tom&quot; &amp; &#39;J&#39;&gt;</title>"), "{text}");
        assert!(text.contains("<annotation>Not complete: more</annotation>"), "{text}");
    }
}
