//! Server manifests: SMIL files (`.ism`, `.smil`) that group the renditions of an asset.
//!
//! The format is the IIS Smooth Streaming server manifest with the variations of other servers: `video`, `audio`,
//! `textstream` and `ref` elements anywhere in `body`, each naming a file. Only elements and attributes that select
//! files and tracks are read. Items of a `seq` play one after the other. Document type definitions are refused, so that
//! XML's own entities are the only ones.

mod clock;
mod sequence;

pub use clock::{RangeError, range};
pub use sequence::written;

use crate::PackageError;
use millpond_media::stitch::StitchClip;
use quick_xml::{
    XmlVersion,
    events::{BytesStart, Event},
    reader::Reader,
};
use sequence::Order;

/// Most bytes of a manifest.
const MOST_BYTES: usize = 1 << 20;
/// Most entries of a manifest.
const MOST_ENTRIES: usize = 1000;
/// Deepest nesting of elements.
const MOST_DEPTH: usize = 32;
/// Prefixes with which some servers mark the format of a file; they are not part of its name.
const FORMAT_PREFIXES: [&str; 2] = ["mp4:", "m4a:"];

/// Content of a server manifest.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ServerManifest {
    /// Entries in the order of the file.
    pub entries: Vec<ManifestEntry>,
    /// Whether the entries play one after the other: they are the items of a `<seq>`. Otherwise they play at the same time.
    pub is_sequence: bool,
}

/// Use of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// `video`: video of the file, and its audio where no `audio` entry exists.
    Video,
    /// `audio`: audio of the file.
    Audio,
    /// `textstream`: subtitles, in the media file or in a file of their own.
    Text,
}

/// One file, or one track of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Use of the file or track.
    pub kind: EntryKind,
    /// Path of the file, relative to the manifest. It is never absolute, never a URL, and never leads out of the
    /// manifest's folder.
    pub src: String,
    /// Bits per second.
    pub bitrate: Option<u64>,
    /// Language tag or code as written.
    pub language: Option<String>,
    /// `track_ID` in the file, where the entry names one track.
    pub track_id: Option<u32>,
    /// Name for menus.
    pub name: Option<String>,
    /// The part of the file that is played, of an item of a `<seq>`.
    pub clip: StitchClip,
}

/// Reads a server manifest.
///
/// # Errors
/// The text is no XML, no SMIL, too big, or has a document type definition. Or an entry has no file, a path that is not
/// below the manifest, or an invalid number. Each error names line and element.
pub fn parse(text: &str) -> Result<ServerManifest, PackageError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut parser = Parser {
        text,
        reader: Reader::from_str(text),
        open: Vec::new(),
        entry: None,
        entries: Vec::new(),
        order: Order::Together,
    };
    if text.len() > MOST_BYTES {
        return Err(parser.error(format!("{} bytes", text.len()), "at most 1 MiB"));
    }
    while parser.step()? {}
    if parser.entries.is_empty() {
        let expected = "at least one video, audio, textstream or ref in <body>, such as <video src=\"film.mp4\"/>";
        return Err(parser.error("no entry".into(), expected));
    }
    Ok(ServerManifest { entries: parser.entries, is_sequence: parser.order != Order::Together })
}

struct Parser<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    /// Names of the open elements.
    open: Vec<String>,
    /// Current entry, and the depth of its element.
    entry: Option<(usize, ManifestEntry)>,
    entries: Vec<ManifestEntry>,
    order: Order,
}

impl Parser<'_> {
    /// Takes one event; returns `false` at the end.
    fn step(&mut self) -> Result<bool, PackageError> {
        let event = match self.reader.read_event() {
            Ok(event) => event,
            Err(error) => return Err(self.error(error.to_string(), "well-formed XML")),
        };
        match event {
            Event::Start(element) => {
                self.start(&element)?;
                self.open.push(element.local_name().as_ref().to_owned());
                if self.open.len() > MOST_DEPTH {
                    return Err(self.error(format!("{MOST_DEPTH} elements in one another"), "fewer"));
                }
            }
            Event::Empty(element) => {
                self.start(&element)?;
                self.end(element.local_name().as_ref())?;
            }
            Event::End(element) => {
                self.open.pop();
                self.end(element.local_name().as_ref())?;
            }
            Event::DocType(_) => return Err(self.error("a document type definition".into(), "none")),
            Event::Eof => match self.open.last() {
                Some(name) => return Err(self.error(format!("the end of the file in <{name}>"), "its end tag")),
                None => return Ok(false),
            },
            _ => {}
        }
        Ok(true)
    }

    fn start(&mut self, element: &BytesStart<'_>) -> Result<(), PackageError> {
        let attributes = self.attributes(element)?;
        let name = element.local_name();
        let name = name.as_ref();
        let kind = match name {
            "smil" => return Ok(()),
            _ if self.open.first().is_none_or(|root| root != "smil") => {
                return Err(self.error(format!("<{}>", shown(name)), "<smil> around everything"));
            }
            "param" => return self.param(&attributes),
            "seq" => return self.begin_sequence(),
            "video" => EntryKind::Video,
            "audio" => EntryKind::Audio,
            "textstream" | "text" => EntryKind::Text,
            "ref" => kind_of_file(attributes.get(&["src", "name"]).unwrap_or_default()),
            _ => return self.check_order(name, None),
        };
        self.check_order(name, Some(kind))?;
        if self.entry.is_some() {
            return Err(self.error(format!("<{name}> in an entry"), "<param>"));
        }
        if self.entries.len() >= MOST_ENTRIES {
            return Err(self.error(format!("more than {MOST_ENTRIES} entries"), "fewer"));
        }
        let entry = self.new_entry(name, kind, &attributes)?;
        self.entry = Some((self.open.len(), entry));
        Ok(())
    }

    fn new_entry(
        &self,
        element: &str,
        kind: EntryKind,
        attributes: &Attributes,
    ) -> Result<ManifestEntry, PackageError> {
        if let Some((name, meant)) = attributes.own_names().find_map(|name| Some((name, sequence::meant(name)?))) {
            return Err(self.error(format!("<{element}> with {}", shown(name)), meant));
        }
        let text = |names: &[&str]| attributes.get(names).filter(|value| !value.is_empty()).map(str::to_owned);
        let Some(src) = attributes.get(&["src", "name"]) else {
            return Err(self.error(format!("<{element}> without a file"), "an attribute src"));
        };
        let name = if attributes.get(&["src"]).is_some() { text(&["title", "name"]) } else { text(&["title"]) };
        Ok(ManifestEntry {
            kind,
            src: self.path(element, src)?,
            bitrate: match attributes.get(&["systemBitrate", "system-bitrate"]) {
                Some(value) => self.bitrate(value)?,
                None => None,
            },
            language: text(&["systemLanguage", "system-language", "language"]),
            track_id: None,
            name,
            clip: self.clip(element, attributes)?,
        })
    }

    /// Reads a `param` of the current entry.
    fn param(&mut self, attributes: &Attributes) -> Result<(), PackageError> {
        let (Some(name), Some(value)) = (attributes.get(&["name"]), attributes.get(&["value"])) else {
            return Ok(());
        };
        let Some((depth, mut entry)) = self.entry.take() else { return Ok(()) };
        match name {
            "trackID" if self.order == Order::InSequence => {
                return Err(self.error("trackID in <seq>".into(), "whole files, of which all sound is played"));
            }
            "trackID" => match value.trim().parse() {
                Ok(id) if id > 0 => entry.track_id = Some(id),
                _ => return Err(self.error(format!("trackID {:?}", shown(value)), "a number from 1")),
            },
            "trackName" | "textDisplayName" if !value.is_empty() => entry.name = Some(value.to_owned()),
            "systemBitrate" => entry.bitrate = self.bitrate(value)?.or(entry.bitrate),
            "systemLanguage" if !value.is_empty() => entry.language = Some(value.to_owned()),
            _ => {}
        }
        self.entry = Some((depth, entry));
        Ok(())
    }

    /// Handles the end of an element, and of the current entry if it was the entry's element.
    fn end(&mut self, element: &str) -> Result<(), PackageError> {
        if element == "seq" {
            return self.end_sequence();
        }
        if self.entry.as_ref().is_some_and(|(depth, _)| *depth == self.open.len()) {
            self.entries.extend(self.entry.take().map(|(_, entry)| entry));
        }
        Ok(())
    }

    /// Returns the attributes with their references resolved.
    fn attributes(&self, element: &BytesStart<'_>) -> Result<Attributes, PackageError> {
        let mut found = Vec::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|e| self.error(e.to_string(), "well-formed attributes"))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|e| self.error(e.to_string(), "references to characters only"))?;
            let is_own = attribute.key.prefix().is_none() && attribute.key.as_ref() != "xmlns";
            let name = attribute.key.local_name().as_ref().to_owned();
            found.push(Attribute { name, value: value.into_owned(), is_own });
        }
        Ok(Attributes(found))
    }

    /// Reads bits per second; 0 stands for unknown.
    fn bitrate(&self, value: &str) -> Result<Option<u64>, PackageError> {
        match value.trim().parse() {
            Ok(bitrate) => Ok(Some(bitrate).filter(|&bitrate: &u64| bitrate > 0)),
            Err(_) => Err(self.error(format!("bitrate {:?}", shown(value)), "a number of bits per second")),
        }
    }

    /// Reads a path below the manifest.
    fn path(&self, element: &str, src: &str) -> Result<String, PackageError> {
        let path = FORMAT_PREFIXES.iter().find_map(|prefix| src.strip_prefix(prefix)).unwrap_or(src);
        let refuse = |expected| Err(self.error(format!("<{element}> with file {:?}", shown(src)), expected));
        if path.is_empty() || path.ends_with('/') {
            return refuse("the name of a file");
        }
        if path.starts_with('/') || path.contains('\\') || path.chars().any(char::is_control) {
            return refuse("a path relative to the manifest, with slashes");
        }
        if path.split('/').next().is_some_and(|first| first.contains(':')) {
            return refuse("a path relative to the manifest, not a URL");
        }
        let mut depth = 0_usize;
        for part in path.split('/') {
            match part {
                ".." if depth == 0 => return refuse("a path that stays in the manifest's folder"),
                ".." => depth -= 1,
                "" | "." => {}
                _ => depth += 1,
            }
        }
        Ok(path.to_owned())
    }

    fn error(&self, found: String, expected: &'static str) -> PackageError {
        let position = usize::try_from(self.reader.buffer_position().max(self.reader.error_position()));
        let before = &self.text.as_bytes()[..position.unwrap_or(usize::MAX).min(self.text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() as u32 + 1;
        PackageError::Text { format: "server manifest", line, found, expected }
    }
}

struct Attribute {
    name: String,
    value: String,
    /// Whether its name is one of SMIL: it has no prefix of another namespace.
    is_own: bool,
}

struct Attributes(Vec<Attribute>);

impl Attributes {
    /// Returns the names of the attributes of SMIL.
    fn own_names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|attribute| attribute.is_own).map(|attribute| attribute.name.as_str())
    }

    /// Returns the value of the first of `names` that is present.
    fn get(&self, names: &[&str]) -> Option<&str> {
        let named = |name: &&str| self.0.iter().find(|attribute| attribute.name == **name);
        names.iter().find_map(named).map(|attribute| attribute.value.as_str())
    }
}

/// Returns the kind of a `ref`, guessed from the file name.
fn kind_of_file(src: &str) -> EntryKind {
    let extension = src.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("vtt" | "webvtt" | "srt" | "ismt") => EntryKind::Text,
        Some("m4a" | "isma" | "cmfa") => EntryKind::Audio,
        _ => EntryKind::Video,
    }
}

/// Returns the start of a text, for errors.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: EntryKind, src: &str) -> ManifestEntry {
        ManifestEntry {
            kind,
            src: src.into(),
            bitrate: None,
            language: None,
            track_id: None,
            name: None,
            clip: StitchClip::default(),
        }
    }

    fn entries(body: &str) -> Result<Vec<ManifestEntry>, PackageError> {
        parse(&format!("<smil>\n<head/>\n<body>\n<switch>\n{body}\n</switch></body></smil>")).map(|m| m.entries)
    }

    #[test]
    fn a_manifest_with_everything() {
        let text = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- made by hand -->\n\
            <smil xmlns=\"http://www.w3.org/2001/SMIL20/Language\"><head><meta name=\"title\" content=\"A &amp; B\"/></head>\n\
            <body><switch>\n\
            <video src=\"a_480.mp4\" systemBitrate=\"800000\" width=\"854\" height=\"480\" systemLanguage=\"eng\">\n\
            <param name=\"trackID\" value=\"1\" valuetype=\"data\"/></video>\n\
            <video src='mp4:sub/b &amp; c.mp4' system-bitrate='1500000'/>\n\
            <audio src=\"a_480.mp4\" systemBitrate=\"0\" systemLanguage=\"de\"><param name=\"trackID\" value=\"2\"/>\
            <param name=\"trackName\" value=\"Deutsch\"/></audio>\n\
            <textstream src=\"en.vtt\" system-language=\"en\" title=\"English\"/>\n\
            </switch></body></smil>";
        let expected = [
            ManifestEntry {
                bitrate: Some(800_000),
                language: Some("eng".into()),
                track_id: Some(1),
                ..entry(EntryKind::Video, "a_480.mp4")
            },
            ManifestEntry { bitrate: Some(1_500_000), ..entry(EntryKind::Video, "sub/b & c.mp4") },
            ManifestEntry {
                language: Some("de".into()),
                track_id: Some(2),
                name: Some("Deutsch".into()),
                ..entry(EntryKind::Audio, "a_480.mp4")
            },
            ManifestEntry {
                language: Some("en".into()),
                name: Some("English".into()),
                ..entry(EntryKind::Text, "en.vtt")
            },
        ];
        assert_eq!(parse(text).unwrap().entries, expected);
    }

    #[test]
    fn other_spellings() {
        let text = "<s:smil xmlns:s=\"x\"><s:body><s:video src=\"a.mp4\"/></s:body></s:smil>";
        assert_eq!(parse(text).unwrap().entries, [entry(EntryKind::Video, "a.mp4")]);
        assert_eq!(entries("<video name=\"a.mp4\"/>").unwrap(), [entry(EntryKind::Video, "a.mp4")]);
        let found = entries("<ref src=\"a.MP4\"/><ref src=\"a.srt\"/><ref src=\"a.m4a\"></ref>").unwrap();
        assert_eq!(
            found.iter().map(|e| e.kind).collect::<Vec<_>>(),
            [EntryKind::Video, EntryKind::Text, EntryKind::Audio]
        );
        let named = entries(
            "<textstream src=\"a.vtt\" name=\"x\"><param name=\"textDisplayName\" value=\"English\"/></textstream>",
        );
        assert_eq!(named.unwrap()[0].name.as_deref(), Some("English"));
    }

    #[test]
    fn paths_stay_below_the_manifest() {
        for src in [
            "/a.mp4",
            "http://h/a.mp4",
            "file:a.mp4",
            "..",
            "../a.mp4",
            "a/../../b",
            "a\\b",
            "",
            "a/",
            "mp4:",
            "mp4:/a",
            "a&#10;b",
        ] {
            let error = entries(&format!("<video src=\"{src}\"/>")).unwrap_err();
            assert!(matches!(error, PackageError::Text { line: 5, .. }), "{src}: {error}");
            assert!(error.to_string().contains("<video>"), "{error}");
        }
        for src in ["a.mp4", "a/b:c.mp4", "a/../b.mp4", "./a.mp4", "a..mp4"] {
            assert_eq!(entries(&format!("<video src=\"{src}\"/>")).unwrap()[0].src, src);
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let cases = [
            ("<video/>", 5, "<video> without a file"),
            ("<video src=\"a\"\nsystemBitrate=\"fast\"/>", 6, "bitrate \"fast\""),
            ("<video src=\"a\">\n<param name=\"trackID\" value=\"0\"/></video>", 6, "trackID \"0\""),
            ("<video src=\"a\" systembitrate=\"1\"/>", 5, "<video> with systembitrate"),
            ("<video src=\"a\"><audio src=\"b\"/></video>", 5, "<audio> in an entry"),
            ("<seq/>", 5, "<seq> in <switch>"),
            ("<video src=\"&x;\"/>", 5, "x"),
            ("<video src=\"a\" src=\"b\"/>", 5, "duplicate"),
            ("\n\n</video>", 7, "video"),
        ];
        for (body, at, what) in cases {
            match entries(body).unwrap_err() {
                PackageError::Text { line, found, .. } => {
                    assert_eq!(line, at, "{body}: {found}");
                    assert!(found.contains(what), "{body}: {found}");
                }
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn bombs_and_strangers_are_refused() {
        let refused = |text: &str| parse(text).unwrap_err().to_string();
        assert!(refused("<!DOCTYPE x [<!ENTITY a \"b\">]><smil/>").contains("document type definition"));
        assert!(refused(&format!("<smil>{}", "<par>".repeat(100))).contains("in one another"));
        assert!(refused(&format!("<smil>{}</smil>", "<video src=\"a\"/>".repeat(1001))).contains("more than 1000"));
        assert!(refused(&" ".repeat(MOST_BYTES + 1)).contains("bytes"));
        assert!(refused("<html><video src=\"a\"/></html>").contains("<html>"));
        assert!(refused("<smil></smil>").contains("no entry"));
        let example = refused("<smil><body/></smil>").rsplit_once("such as ").unwrap().1.to_owned();
        assert_eq!(parse(&format!("<smil><body>{example}</body></smil>")).unwrap().entries.len(), 1, "{example}");
        assert!(refused("").contains("no entry"));
        assert!(refused("<smil><body>").contains("<body>"));
    }

    proptest::proptest! {
        #[test]
        fn mutations_never_panic(
            edits in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), "[<>/&;\"'a-z \n!\\[\\]-]"), 1..12),
        ) {
            let mut text = "<?xml version=\"1.0\"?><smil><head/><body><switch><video src=\"a.mp4\" systemBitrate='1'>\
                <param name=\"trackID\" value=\"1\"/></video><!-- c --><![CDATA[x]]><audio src=\"b&amp;.mp4\"/></switch></body></smil>".to_owned();
            for (at, with) in edits {
                let at = at.index(text.len());
                text.replace_range(at..at + 1, &with);
            }
            if let Ok(manifest) = parse(&text) {
                proptest::prop_assert!(manifest.entries.iter().all(|e| !e.src.is_empty() && !e.src.starts_with('/')));
            }
        }
    }
}
