//! Access units of H.264 (7.4.1.2.3) and H.265 (7.4.2.4.4): which NAL unit begins an access unit, and which properties the NAL
//! unit shows.

use super::{
    byte_stream::{self, START_CODE},
    fields::Field,
    parameter_sets::SetKind,
};
use crate::{codec::nal::NalSyntax, units::ByteRange};

/// Part that a NAL unit plays in an access unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Access unit delimiter: begins an access unit, and is left out.
    Delimiter,
    /// Parameter set: begins an access unit after a slice, and is left out.
    Set(SetKind),
    /// Unit that begins an access unit after a slice.
    Prefix,
    /// Slice.
    Slice,
    /// Unit after the slices.
    Suffix,
    /// Filler data or end of the stream, which is left out.
    Filler,
}

impl Role {
    /// Returns the role of a unit, which is not empty.
    pub(super) fn of(syntax: NalSyntax, unit: &[u8]) -> Self {
        let first = unit.first().copied().unwrap_or_default();
        match syntax {
            NalSyntax::Avc => match first & 0x1f {
                1..=5 => Self::Slice,
                6 | 14..=18 => Self::Prefix,
                7 => Self::Set(SetKind::Sequence),
                8 => Self::Set(SetKind::Picture),
                9 => Self::Delimiter,
                11 | 12 => Self::Filler,
                _ => Self::Suffix,
            },
            NalSyntax::Hevc => match first >> 1 & 0x3f {
                0..=31 => Self::Slice,
                32 => Self::Set(SetKind::Video),
                33 => Self::Set(SetKind::Sequence),
                34 => Self::Set(SetKind::Picture),
                35 => Self::Delimiter,
                37 | 38 => Self::Filler,
                39 | 41..=44 | 48..=55 => Self::Prefix,
                _ => Self::Suffix,
            },
        }
    }
}

impl Role {
    /// Whether samples of MP4 files hold the unit.
    pub(super) fn is_in_samples(self) -> bool {
        matches!(self, Self::Prefix | Self::Slice | Self::Suffix)
    }
}

/// Whether a slice is the first one of its picture.
pub(super) fn begins_picture(syntax: NalSyntax, slice: &[u8]) -> bool {
    // `first_mb_in_slice` is 0, coded as a bit of 1; `first_slice_segment_in_pic_flag` is 1. Data partitions B and C of
    // H.264 have an id instead.
    let (header, is_base) = match syntax {
        NalSyntax::Avc => (1, slice.first().is_some_and(|byte| !matches!(byte & 0x1f, 3 | 4))),
        // Slices of other layers belong to the access unit of the base layer.
        NalSyntax::Hevc => (2, is_base_layer(slice)),
    };
    is_base && slice.get(header).is_some_and(|byte| byte & 0x80 != 0)
}

fn is_base_layer(unit: &[u8]) -> bool {
    matches!(unit, [first, second, ..] if first & 1 == 0 && second & 0xf8 == 0)
}

/// An access unit that is being assembled.
#[derive(Debug, Default)]
pub(super) struct AccessUnit {
    /// Position of its first byte in the stream; `None` where it has none.
    pub(super) at: Option<u64>,
    /// NAL units, each after its length in 4 bytes.
    pub(super) data: Vec<u8>,
    /// Place in the stream of the units in `data`, and of what stands between them.
    pub(super) source: Option<ByteRange>,
    pub(super) has_slice: bool,
    pub(super) is_sync: bool,
    /// Whether the first slice is missing.
    pub(super) lacks_start: bool,
    /// The field that it codes, where it is no frame.
    pub(super) field: Option<Field>,
}

impl AccessUnit {
    /// Appends a unit, whose start code is at `at`, with its length.
    pub(super) fn append(&mut self, syntax: NalSyntax, role: Role, unit: &[u8], at: u64) {
        if role == Role::Slice {
            self.lacks_start |= !self.has_slice && !begins_picture(syntax, unit);
            self.has_slice = true;
            self.is_sync |= syntax.is_entry_slice(unit);
        }
        self.is_sync |= syntax.is_recovery_point(unit);
        self.cover(ByteRange::at(at, (START_CODE + unit.len()) as u64));
        byte_stream::put(unit, &mut self.data);
    }

    /// Appends the second field of the frame.
    pub(super) fn join(&mut self, second: &Self) {
        second.source.into_iter().for_each(|source| self.cover(source));
        self.data.extend_from_slice(&second.data);
    }

    /// Extends the place in the stream to later bytes.
    fn cover(&mut self, later: ByteRange) {
        self.source = Some(ByteRange::new(self.source.map_or(later.start, |source| source.start), later.end));
    }
}

/// Whether the bytes begin with a start code and a NAL unit that begins an access unit.
pub(super) fn begins_access_unit(syntax: NalSyntax, bytes: &[u8]) -> bool {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let Some([1, unit @ ..]) = bytes.get(zeros..).filter(|_| zeros >= 2) else { return false };
    match Role::of(syntax, unit) {
        Role::Delimiter | Role::Set(_) | Role::Prefix => true,
        Role::Slice => begins_picture(syntax, unit),
        Role::Suffix | Role::Filler => false,
    }
}
