//! Codecs of pictures as filters name them.

use super::list::Item;
use millpond_media::codec::Codec;
use std::fmt;

/// Names of codecs, with the types of their sample entries: those of ISO/IEC 14496-15, AV1 and VP9, and of Dolby Vision.
const FAMILIES: &[(&str, &[&str])] = &[
    ("avc", &["avc1", "avc3", "dva1", "dvav"]),
    ("hevc", &["hvc1", "hev1", "dvh1", "dvhe"]),
    ("av1", &["av01", "dav1"]),
    ("vp9", &["vp09"]),
    ("vp8", &["vp08"]),
];

/// The name of a codec, or the type of a sample entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CodecName(&'static str);

impl CodecName {
    /// Whether it names a codec.
    pub(super) fn matches(self, codec: &Codec) -> bool {
        self.names(entry_type(&codec.parameter()))
    }

    /// Whether it is a type of sample entries, or the name of its codec.
    fn names(self, entry: &str) -> bool {
        self.0 == entry || FAMILIES.iter().any(|(family, entries)| *family == self.0 && entries.contains(&entry))
    }
}

/// Returns the type of the sample entry in the codec parameter of a video track (RFC 6381 3.3).
pub(super) fn entry_type(parameter: &str) -> &str {
    parameter.get(..4).unwrap_or(parameter)
}

impl Item for CodecName {
    fn parse(text: &str) -> Option<Self> {
        let names = FAMILIES.iter().flat_map(|(family, entries)| std::iter::once(family).chain(*entries));
        names.copied().find(|name| name.eq_ignore_ascii_case(text)).map(Self)
    }

    fn covers(&self, other: &Self) -> bool {
        self.names(other.0)
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

impl fmt::Display for CodecName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
