//! Colour properties of sample values: the four fields of ISO/IEC 23091-2 (also ITU-T H.273).

use crate::{boxes::Node, codec::fields::FieldReader};
use serde::{Deserialize, Serialize};

/// Code points of ISO/IEC 23091-2 clause 8; 2 is "unspecified".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Color {
    /// `ColourPrimaries`: 1 is BT.709, 9 BT.2020.
    pub primaries: u8,
    /// `TransferCharacteristics`: 1 is BT.709, 16 PQ, 18 HLG.
    pub transfer: u8,
    /// `MatrixCoefficients`: 1 is BT.709, 9 BT.2020 non-constant luminance.
    pub matrix: u8,
    /// `VideoFullRangeFlag`.
    pub full_range: bool,
}

impl Color {
    /// Everything unspecified, limited range.
    pub const UNSPECIFIED: Self = Self { primaries: 2, transfer: 2, matrix: 2, full_range: false };

    /// Whether the values equal the defaults of receivers: BT.709 or unspecified, limited range.
    #[must_use]
    pub(in crate::codec) fn is_default(self) -> bool {
        [self.primaries, self.transfer, self.matrix].iter().all(|&value| matches!(value, 1 | 2)) && !self.full_range
    }

    /// Returns the colours with the codes of `other` where theirs are unspecified.
    #[must_use]
    pub(in crate::codec) fn completed(self, other: Self) -> Self {
        let code = |own: u8, other: u8| if own == 2 { other } else { own };
        Self {
            primaries: code(self.primaries, other.primaries),
            transfer: code(self.transfer, other.transfer),
            matrix: code(self.matrix, other.matrix),
            full_range: self.full_range,
        }
    }

    /// Reads the `colr` box of a visual sample entry (ISO/IEC 14496-12 12.1.5), of type `nclx`, or of QuickTime's type
    /// `nclc`, which has no range.
    pub(in crate::codec) fn of_entry(entry: &Node<'_>, skip: usize) -> Option<Self> {
        entry.children_after(skip).filter(|child| child.kind == *b"colr").find_map(|colr| {
            let mut fields = FieldReader::of(&colr);
            let kind = fields.bits(32).ok()?.to_be_bytes();
            if !matches!(&kind, b"nclx" | b"nclc") {
                return None;
            }
            let mut code = || fields.u16().ok().and_then(|value| u8::try_from(value).ok());
            let (primaries, transfer, matrix) = (code()?, code()?, code()?);
            let full_range = kind == *b"nclx" && fields.flag().ok()?;
            Some(Self { primaries, transfer, matrix, full_range })
        })
    }
}
