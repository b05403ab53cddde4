//! Purposes of a track, as its `kind` boxes state them (ISO/IEC 14496-12 8.10.4).

use crate::boxes::{FullBox, Node};
use serde::{Deserialize, Serialize};

/// Most `kind` boxes of a track that are read.
const MOST: usize = 16;
/// Roles of DASH (ISO/IEC 23009-1 5.8.5.5).
const DASH: &str = "urn:mpeg:dash:role:2011";
/// Kinds of HTML's media tracks.
const HTML: &str = "about:html-kind";
/// Purposes of audio by TV-Anytime, with which DASH marks accessible audio.
const AUDIO: &str = "urn:tva:metadata:cs:AudioPurposeCS:2007";

/// Role of a track, stated by a `kind` box (ISO/IEC 14496-12 8.10.4). The main track of a language has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It replaces the main one.
    Alternate,
    /// Remarks about the film.
    Commentary,
    /// A translation of the sound.
    Dub,
    /// Text of speech and sounds, for people who are deaf or hard of hearing.
    Captions,
    /// A description of the pictures, for people who are blind or have low vision.
    Description,
    /// Text of speech in other languages and of signs, which all viewers need.
    Forced,
    /// Sound with clearer speech.
    ClearSpeech,
    /// Text in plain words.
    EasyReader,
    /// Sign language.
    Sign,
    /// Pictures or sound that accompany the main ones.
    Supplementary,
}

/// Names of purposes as roles of DASH.
const ROLES: [(Purpose, &str); 10] = [
    (Purpose::Alternate, "alternate"),
    (Purpose::Commentary, "commentary"),
    (Purpose::Dub, "dub"),
    (Purpose::Captions, "caption"),
    (Purpose::Description, "description"),
    (Purpose::Forced, "forced-subtitle"),
    (Purpose::ClearSpeech, "enhanced-audio-intelligibility"),
    (Purpose::EasyReader, "easyreader"),
    (Purpose::Sign, "sign"),
    (Purpose::Supplementary, "supplementary"),
];

impl Purpose {
    /// Name as a role of DASH.
    #[must_use]
    pub fn role(self) -> &'static str {
        ROLES.iter().find(|(purpose, _)| *purpose == self).map_or("alternate", |(_, role)| role)
    }

    fn of(scheme: &str, value: &str) -> Option<Self> {
        match (scheme, value) {
            (DASH, "forced_subtitle") => Some(Self::Forced),
            (DASH, value) => ROLES.iter().find(|(_, role)| *role == value).map(|(purpose, _)| *purpose),
            (HTML, "alternative") => Some(Self::Alternate),
            (HTML, "captions") => Some(Self::Captions),
            (HTML, "descriptions" | "main-desc") | (AUDIO, "1") => Some(Self::Description),
            (HTML, "commentary") => Some(Self::Commentary),
            (HTML, "translation") => Some(Self::Dub),
            (HTML, "sign") => Some(Self::Sign),
            (AUDIO, "8") => Some(Self::ClearSpeech),
            _ => None,
        }
    }
}

/// A set of purposes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Purposes(u16);

impl Purposes {
    /// Reads the `kind` boxes of `trak`. Boxes that can't be read, and other schemes and values, count for nothing.
    pub(crate) fn parse(trak: &Node<'_>) -> Self {
        let Some(udta) = trak.child(b"udta") else { return Self::default() };
        let kinds = udta.children().filter(|node| &node.kind == b"kind").take(MOST);
        kinds.filter_map(|node| stated(&node)).collect()
    }

    /// Whether the track has a purpose.
    #[must_use]
    pub const fn has(self, purpose: Purpose) -> bool {
        self.0 & 1 << purpose as u16 != 0
    }

    /// Returns the purposes.
    pub fn iter(self) -> impl Iterator<Item = Purpose> {
        ROLES.into_iter().map(|(purpose, _)| purpose).filter(move |purpose| self.has(*purpose))
    }

    /// Whether players may choose the track by themselves: it is neither for some viewers only nor about the film.
    #[must_use]
    pub fn is_usual(self) -> bool {
        ![Purpose::Commentary, Purpose::Description, Purpose::ClearSpeech, Purpose::Supplementary]
            .iter()
            .any(|purpose| self.has(*purpose))
    }
}

impl FromIterator<Purpose> for Purposes {
    fn from_iter<T: IntoIterator<Item = Purpose>>(purposes: T) -> Self {
        Self(purposes.into_iter().fold(0, |all, purpose| all | 1 << purpose as u16))
    }
}

/// Returns the purpose that a `kind` box states.
fn stated(node: &Node<'_>) -> Option<Purpose> {
    let FullBox { fields, .. } = node.full().ok()?;
    let mut texts = fields.rest().split(|byte| *byte == 0).map(std::str::from_utf8);
    let (scheme, value) = (texts.next()?.ok()?, texts.next().and_then(Result::ok).unwrap_or_default());
    Purpose::of(scheme, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::bx;

    fn purposes(kinds: &[(&str, &str)]) -> Vec<Purpose> {
        let kind =
            |(scheme, value): &(&str, &str)| bx(b"kind", &[&[0; 4], scheme.as_bytes(), &[0], value.as_bytes(), &[0]]);
        let trak = bx(b"trak", &[&bx(b"udta", &[&kinds.iter().flat_map(kind).collect::<Vec<_>>()])]);
        Purposes::parse(&Node::new(&trak, 0, "trak").unwrap()).iter().collect()
    }

    #[test]
    fn kinds_of_dash_and_html_are_known() {
        assert_eq!(purposes(&[(DASH, "forced-subtitle")]), [Purpose::Forced]);
        assert_eq!(purposes(&[(HTML, "captions"), (DASH, "main")]), [Purpose::Captions]);
        assert_eq!(purposes(&[(HTML, "main-desc"), (DASH, "alternate")]), [Purpose::Alternate, Purpose::Description]);
        assert_eq!(purposes(&[(AUDIO, "1")]), [Purpose::Description]);
        assert_eq!(purposes(&[(DASH, "commentary")]), [Purpose::Commentary]);
        assert_eq!(purposes(&[("urn:other", "captions"), (DASH, "unknown")]), []);
    }

    #[test]
    fn broken_kinds_count_for_nothing() {
        for body in [&b""[..], &[0; 4], &[0, 0, 0, 0, 0xff, 0xff], b"\0\0\0\0urn:mpeg:dash:role:2011"] {
            let trak = bx(b"trak", &[&bx(b"udta", &[&bx(b"kind", &[body])])]);
            assert_eq!(Purposes::parse(&Node::new(&trak, 0, "trak").unwrap()), Purposes::default());
        }
    }
}
