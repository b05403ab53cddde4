//! Types of parameter sets.

use crate::codec::{PictureSequence, nal::NalSyntax, video::sps};

/// Type of a parameter set, in the order in which decoders need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SetKind {
    /// Video parameter set, which only H.265 has.
    Video,
    /// Sequence parameter set.
    Sequence,
    /// Picture parameter set.
    Picture,
}

impl SetKind {
    /// Returns the type of a NAL unit of the base layer; `None` for other NAL units.
    pub(crate) fn of(syntax: NalSyntax, unit: &[u8]) -> Option<Self> {
        match (syntax, syntax.kind(unit)?) {
            (NalSyntax::Avc, 7) => Some(Self::Sequence),
            (NalSyntax::Avc, 8) => Some(Self::Picture),
            // `nuh_layer_id` is 0.
            (NalSyntax::Hevc, _) if unit.first()? & 1 != 0 || unit.get(1)? >> 3 != 0 => None,
            (NalSyntax::Hevc, 32) => Some(Self::Video),
            (NalSyntax::Hevc, 33) => Some(Self::Sequence),
            (NalSyntax::Hevc, 34) => Some(Self::Picture),
            _ => None,
        }
    }

    /// Returns the identifier of a parameter set of this type, below 16, 32 or 256 (H.264 7.4.2, H.265 7.4.3). `None` if it can't
    /// be read.
    pub(crate) fn id(self, syntax: NalSyntax, unit: &[u8]) -> Option<u8> {
        let header = if syntax == NalSyntax::Avc { 1 } else { 2 };
        match self {
            Self::Video => unit.get(header).map(|byte| byte >> 4),
            Self::Sequence => PictureSequence::read(syntax, unit).ok().map(|sequence| sequence.id),
            Self::Picture => sps::picture_set_id(unit.get(header..)?),
        }
    }
}
