//! Items of a `<seq>` element: files, or parts of them, that play one after the other (SMIL 3.0, sections 5.4 and 7.4).

use super::{Attributes, EntryKind, Parser, clock, shown};
use crate::PackageError;
use millpond_media::stitch::StitchClip;
use std::time::Duration;

/// Attributes that change when an item plays. Players would expect their effect.
const TIMING: [&str; 6] = ["begin", "end", "dur", "repeatCount", "repeatDur", "repeat"];
/// Elements that an item may be.
const ITEMS: &str = "<video>, <audio> or <ref>, one after the other";

/// Attributes of an item that are read.
const READ: [&str; 12] = [
    "src",
    "name",
    "title",
    "clipBegin",
    "clip-begin",
    "clipEnd",
    "clip-end",
    "systemBitrate",
    "system-bitrate",
    "systemLanguage",
    "system-language",
    "language",
];
/// Attributes of SMIL that describe an item, and change nothing of what it plays.
const DESCRIPTIVE: [&str; 14] = [
    "id",
    "class",
    "type",
    "alt",
    "longdesc",
    "abstract",
    "author",
    "copyright",
    "region",
    "fit",
    "fill",
    "width",
    "height",
    "mediaSize",
];

/// Whether entries of a manifest play one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// They play at the same time: no `<seq>` was read.
    #[default]
    Together,
    /// A `<seq>` is open.
    InSequence,
    /// A `<seq>` was read to its end.
    AfterSequence,
}

impl Parser<'_> {
    /// Begins a `<seq>`.
    pub(super) fn begin_sequence(&mut self) -> Result<(), PackageError> {
        match self.order {
            Order::InSequence => return Err(self.error("<seq> in <seq>".into(), ITEMS)),
            Order::AfterSequence => return Err(self.error("a second <seq>".into(), "one")),
            Order::Together => {}
        }
        let parent = self.open.last().map_or("", String::as_str);
        if parent != "body" {
            return Err(self.error(format!("<seq> in <{}>", shown(parent)), "<seq> in <body>"));
        }
        if !self.entries.is_empty() {
            return Err(self.error("<seq> after other entries".into(), "<seq> alone in <body>"));
        }
        self.order = Order::InSequence;
        Ok(())
    }

    /// Ends a `<seq>`.
    pub(super) fn end_sequence(&mut self) -> Result<(), PackageError> {
        self.order = Order::AfterSequence;
        match self.entries.is_empty() {
            true => Err(self.error("<seq> without items".into(), ITEMS)),
            false => Ok(()),
        }
    }

    /// Returns an error where an element does not fit the order of the manifest.
    pub(super) fn check_order(&self, element: &str, kind: Option<EntryKind>) -> Result<(), PackageError> {
        match (self.order, kind) {
            (Order::InSequence, Some(EntryKind::Text)) => {
                Err(self.error(format!("<{}> in <seq>", shown(element)), ITEMS))
            }
            (Order::InSequence, None) if ["par", "switch", "excl"].contains(&element) => {
                Err(self.error(format!("<{element}> in <seq>"), ITEMS))
            }
            (Order::AfterSequence, Some(_)) => {
                Err(self.error(format!("<{}> after <seq>", shown(element)), "<seq> alone in <body>"))
            }
            _ => Ok(()),
        }
    }

    /// Returns an error where an item has an attribute that is not known: it would have no effect.
    fn check_names(&self, element: &str, attributes: &Attributes) -> Result<(), PackageError> {
        let is_known = |name: &&str| READ.contains(name) || DESCRIPTIVE.contains(name);
        let Some(unknown) = attributes.own_names().find(|name| !is_known(name)) else { return Ok(()) };
        let found = format!("<{element}> with {}", shown(unknown));
        Err(self.error(found, meant(unknown).unwrap_or("src, title, clipBegin and clipEnd")))
    }

    /// Returns the part of its file that an entry plays.
    pub(super) fn clip(&self, element: &str, attributes: &Attributes) -> Result<StitchClip, PackageError> {
        if self.order != Order::InSequence {
            return Ok(StitchClip::default());
        }
        if let Some(name) = TIMING.into_iter().find(|name| attributes.get(&[name]).is_some()) {
            return Err(self.error(format!("<{element}> with {name}"), "clipBegin and clipEnd"));
        }
        self.check_names(element, attributes)?;
        let time = |names: &[&str]| match attributes.get(names) {
            None => Ok(None),
            Some(text) => match clock::time(text) {
                Some(time) => Ok(Some(time)),
                None => Err(self.error(format!("time {:?}", shown(text)), "a time such as 10s, 500ms or 1:02:03.5")),
            },
        };
        let from = time(&["clipBegin", "clip-begin"])?.unwrap_or_default();
        let to = time(&["clipEnd", "clip-end"])?;
        if to.is_some_and(|to| to <= from) {
            let found = format!("clipEnd {}s", to.unwrap_or_default().as_secs_f64());
            return Err(self.error(found, "a time after clipBegin"));
        }
        Ok(StitchClip { from, to })
    }
}

/// Returns the attribute that a misspelt name means: the same one but for case, dashes and underscores.
pub(super) fn meant(name: &str) -> Option<&'static str> {
    let plain = |name: &str| name.chars().filter(|c| !"-_".contains(*c)).collect::<String>().to_ascii_lowercase();
    READ.into_iter().find(|known| *known != name && plain(known) == plain(name)).filter(|_| !READ.contains(&name))
}

/// Returns a manifest whose items, paths with the parts that are shown, play one after the other.
#[must_use]
pub fn written(items: &[(String, StitchClip)]) -> String {
    let mut out = String::from("<smil>\n  <body>\n    <seq>\n");
    for (path, clip) in items {
        let escaped = quick_xml::escape::escape(path.as_str());
        out.push_str("      <video src=\"");
        out.push_str(&escaped);
        out.push('"');
        if !clip.from.is_zero() {
            out.push_str(&format!(" clipBegin=\"{}s\"", seconds(clip.from)));
        }
        if let Some(to) = clip.to {
            out.push_str(&format!(" clipEnd=\"{}s\"", seconds(to)));
        }
        out.push_str("/>\n");
    }
    out.push_str("    </seq>\n  </body>\n</smil>\n");
    out
}

/// Returns a time as a decimal number of seconds, exactly.
fn seconds(time: Duration) -> String {
    let text = format!("{}.{:09}", time.as_secs(), time.subsec_nanos());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{super::parse, *};

    fn items(body: &str) -> Result<Vec<(String, StitchClip)>, PackageError> {
        let manifest = parse(&format!("<smil>\n<head/>\n<body>\n{body}\n</body></smil>"))?;
        assert!(manifest.is_sequence);
        Ok(manifest.entries.into_iter().map(|entry| (entry.src, entry.clip)).collect())
    }

    #[test]
    fn a_sequence_is_read_as_it_was_written() {
        let clip = StitchClip { from: Duration::from_millis(10_500), to: Some(Duration::from_secs(40)) };
        let late = Duration::from_secs(359_999_999);
        let fine = StitchClip { from: late + Duration::from_nanos(1), to: Some(late + Duration::from_nanos(2)) };
        let all = [
            ("a & \"b\".mp4".to_owned(), StitchClip::default()),
            ("ads/c.mp4".to_owned(), clip),
            ("a & \"b\".mp4".to_owned(), StitchClip { from: Duration::ZERO, ..clip }),
            ("d.mp4".to_owned(), fine),
        ];
        let manifest = parse(&written(&all)).unwrap();
        assert!(manifest.is_sequence);
        let read: Vec<_> = manifest.entries.into_iter().map(|entry| (entry.src, entry.clip)).collect();
        assert_eq!(read, all);
        let other = items("<seq><ref src=\"a.mp4\" clip-begin=\"npt=10.5s\" clip-end=\"0:40\"></ref></seq>").unwrap();
        assert_eq!(other, [("a.mp4".to_owned(), clip)]);
    }

    #[test]
    fn attributes_that_describe_an_item_are_taken() {
        let body = "<seq><video id=\"1\" xml:id=\"x\" xmlns:own=\"u\" own:speed=\"2\" src=\"a.mp4\" alt=\"A\"/></seq>";
        assert_eq!(items(body).unwrap(), [("a.mp4".to_owned(), StitchClip::default())]);
    }

    #[test]
    fn faults_are_told_with_their_line() {
        let cases = [
            ("<seq/>", 4, "<seq> without items", "<video>"),
            ("<seq>\n<seq/></seq>", 5, "<seq> in <seq>", "<video>"),
            ("<seq><video src=\"a.mp4\"/>\n<par/></seq>", 5, "<par> in <seq>", "<video>"),
            ("<switch>\n<seq/></switch>", 5, "<seq> in <switch>", "in <body>"),
            ("<seq><video src=\"a.mp4\"/></seq>\n<seq/>", 5, "a second <seq>", "one"),
            ("<video src=\"a.mp4\"/>\n<seq/>", 5, "<seq> after other entries", "alone"),
            ("<seq><video src=\"a.mp4\"/></seq>\n<video src=\"b.mp4\"/>", 5, "<video> after <seq>", "alone"),
            ("<seq><textstream src=\"a.vtt\"/></seq>", 4, "<textstream> in <seq>", "<video>"),
            ("<seq>\n<video src=\"a.mp4\" dur=\"10s\"/></seq>", 5, "<video> with dur", "clipEnd"),
            ("<seq>\n<video src=\"a.mp4\" clipbegin=\"1s\"/></seq>", 5, "<video> with clipbegin", "clipBegin"),
            ("<seq>\n<video src=\"a.mp4\" speed=\"2\"/></seq>", 5, "<video> with speed", "src, title"),
            ("<seq>\n<video src=\"a.mp4\" clipBegin=\"soon\"/></seq>", 5, "time \"soon\"", "10s"),
            ("<seq>\n<video src=\"a.mp4\" clipBegin=\"9s\" clipEnd=\"9s\"/></seq>", 5, "clipEnd 9s", "after clipBegin"),
            ("<seq><video src=\"a.mp4\">\n<param name=\"trackID\" value=\"1\"/></video></seq>", 5, "trackID", "whole"),
        ];
        for (body, at, what, cure) in cases {
            match items(body).unwrap_err() {
                PackageError::Text { line, found, expected, .. } => {
                    assert_eq!(line, at, "{body}: {found}");
                    assert!(found.contains(what) && expected.contains(cure), "{body}: {found}, expected {expected}");
                }
                other => panic!("{other}"),
            }
        }
    }
}
