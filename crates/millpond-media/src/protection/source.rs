//! Reads the auxiliary information of samples in a file: `senc`, or `saiz` and `saio` (ISO/IEC 23001-7 7.1, 7.2).

use super::{Container, auxiliary::SUBSAMPLE};
use crate::{
    boxes::{FullBox, Node, show},
    budget::Budget,
    error::MediaError,
};

/// Flag of `senc`: entries have subsamples.
const SUBSAMPLES: u32 = 2;
/// Flag of `saiz` and `saio`: a type is present (ISO/IEC 14496-12 8.7.8, 8.7.9).
const TYPED: u32 = 1;

/// Unread entries.
pub(super) struct AuxiliaryEntries<'a> {
    /// The box that counts the entries.
    node: Node<'a>,
    rest: &'a [u8],
    layout: Layout<'a>,
}

/// Rule that determines where an entry ends.
enum Layout<'a> {
    /// All entries have subsamples, or none has.
    Flagged { subsamples: bool },
    /// All entries have this size.
    Constant(usize),
    /// Each entry has its own size.
    Sizes(std::slice::Iter<'a, u8>),
}

impl<'a> AuxiliaryEntries<'a> {
    /// Finds the entries of `count` samples; `None` where the file has none.
    pub(super) fn of(at: Container<'_, 'a>, count: u32) -> Result<Option<Self>, MediaError> {
        if let Some(senc) = at.tables.child(b"senc").or_else(|| at.track.child(b"senc")) {
            return Self::of_senc(senc, count).map(Some);
        }
        let saiz = at.tables.children_of(b"saiz").find(is_of_encryption);
        saiz.map_or(Ok(None), |saiz| Self::of_sizes(saiz, at, count))
    }

    fn of_senc(node: Node<'a>, count: u32) -> Result<Self, MediaError> {
        let FullBox { flags, mut fields, .. } = node.full()?;
        let entries = fields.u32()?;
        let rest = fields.rest();
        enough(&node, entries, count)?;
        Ok(Self { node, rest, layout: Layout::Flagged { subsamples: flags & SUBSAMPLES != 0 } })
    }

    fn of_sizes(node: Node<'a>, at: Container<'_, 'a>, count: u32) -> Result<Option<Self>, MediaError> {
        let FullBox { flags, mut fields, .. } = node.full()?;
        fields.skip(if flags & TYPED != 0 { 8 } else { 0 })?;
        let (constant, entries) = (fields.u8()?, fields.u32()?);
        enough(&node, entries, count)?;
        let layout = match constant {
            0 => Layout::Sizes(fields.take(entries as usize)?.iter()),
            size => Layout::Constant(usize::from(size)),
        };
        let Some(saio) = at.tables.children_of(b"saio").find(is_of_encryption) else { return Ok(None) };
        let rest = place(&saio, at)?;
        Ok(Some(Self { node, rest, layout }))
    }

    /// Whether entries with initialization vectors of `iv_size` bytes are all empty.
    pub(super) fn says_nothing(&self, iv_size: u8) -> bool {
        iv_size == 0 && matches!(self.layout, Layout::Flagged { subsamples: false })
    }

    /// Returns the next entry with an initialization vector of `iv_size` bytes, and whether it has subsamples.
    pub(super) fn next(
        &mut self,
        iv_size: u8,
        is_protected: bool,
        budget: &mut Budget,
    ) -> Result<(&'a [u8], bool), MediaError> {
        let iv_size = usize::from(iv_size);
        let (size, subsamples) = match &mut self.layout {
            Layout::Flagged { subsamples: false } => (iv_size, false),
            Layout::Flagged { subsamples: true } => (iv_size + self.subsamples(iv_size), true),
            Layout::Constant(size) => (*size, *size > iv_size),
            Layout::Sizes(sizes) => {
                let size = sizes.next().map_or(0, |size| usize::from(*size));
                (size, size > iv_size)
            }
        };
        let (entry, rest) = self.rest.split_at_checked(size).ok_or_else(|| {
            let (found, expected) = (self.rest.len() as u64, size as u64);
            MediaError::truncated(self.node.path.clone(), self.node.offset, found, expected)
        })?;
        if is_protected && (size < iv_size || (subsamples && size != iv_size + self.subsamples(iv_size))) {
            let found = format!("{size} bytes of auxiliary information of a sample");
            let expected = format!("an initialization vector of {iv_size} bytes and whole subsamples");
            return Err(self.node.invalid(found, expected));
        }
        budget.step(&self.node, 1 + u32::try_from(size / SUBSAMPLE).unwrap_or(u32::MAX))?;
        self.rest = rest;
        Ok((entry, subsamples))
    }

    /// Returns the length in bytes of the subsamples, with their count, of the entry that begins here.
    fn subsamples(&self, iv_size: usize) -> usize {
        let count =
            self.rest.get(iv_size..).and_then(<[u8]>::first_chunk).map_or(0, |count| u16::from_be_bytes(*count));
        2 + usize::from(count) * SUBSAMPLE
    }
}

fn enough(node: &Node<'_>, entries: u32, count: u32) -> Result<(), MediaError> {
    if entries >= count {
        return Ok(());
    }
    Err(node.invalid(format!("auxiliary information of {entries} samples"), format!("that of {count}")))
}

/// Whether a `saiz` or `saio` is for encryption: its type is a scheme's, or it has none.
fn is_of_encryption(node: &Node<'_>) -> bool {
    let Ok(FullBox { flags, mut fields, .. }) = node.full() else { return false };
    flags & TYPED == 0 || fields.four_cc().is_ok_and(|kind| super::Scheme::of(kind).is_some())
}

/// Returns the bytes to which `saio` points.
fn place<'a>(saio: &Node<'a>, at: Container<'_, 'a>) -> Result<&'a [u8], MediaError> {
    let FullBox { version, flags, mut fields } = saio.full()?;
    fields.skip(if flags & TYPED != 0 { 8 } else { 0 })?;
    let count = fields.u32()?;
    if count != 1 {
        return Err(saio.unsupported(format!("auxiliary information of encryption in {count} places")));
    }
    let offset = fields.versioned(version)?;
    let place = at.base.checked_add(offset);
    let start =
        place.and_then(|place| place.checked_sub(at.whole.offset)).and_then(|start| usize::try_from(start).ok());
    start.and_then(|start| at.whole.whole.get(start..)).ok_or_else(|| {
        let outside = show(at.whole.kind);
        saio.unsupported(format!(
            "auxiliary information of encryption at byte {}, outside of {outside}",
            place.unwrap_or(u64::MAX)
        ))
    })
}
