//! The parameters of filters.

use std::fmt;

/// A parameter of filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    MaxHeight,
    MaxRate,
    MinRate,
    Video,
    Audio,
    Text,
    First,
}

impl Parameter {
    /// All parameters, in the order of the canonical form.
    pub(super) const ALL: [Self; 7] =
        [Self::MaxHeight, Self::MaxRate, Self::MinRate, Self::Video, Self::Audio, Self::Text, Self::First];

    /// Returns the parameter of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|parameter| parameter.name() == name)
    }

    /// Name in queries.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::MaxHeight => "max-height",
            Self::MaxRate => "max-rate",
            Self::MinRate => "min-rate",
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Text => "text",
            Self::First => "first",
        }
    }

    /// Form of its values, with an example.
    pub(super) const fn expected(self) -> &'static str {
        match self {
            Self::MaxHeight => "a number of lines, such as max-height=720",
            Self::MaxRate => "bits per second, also with k, M or G, such as max-rate=3M",
            Self::MinRate => "bits per second, also with k, M or G, such as min-rate=500k",
            Self::Video => {
                "none, or up to 16 of avc, hevc, av1, vp9, vp8 and types of sample entries, such as video=avc,hvc1"
            }
            Self::Audio => "none, or up to 16 language tags (und: unknown), such as audio=en,de",
            Self::Text => "none, or up to 16 language tags (und: unknown), such as text=en",
            Self::First => "bits per second, also with k, M or G, such as first=1M",
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
