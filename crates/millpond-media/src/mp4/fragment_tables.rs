//! Offsets and times of fragments in the segment index (`sidx`, ISO/IEC 14496-12 8.16.3) and in the movie fragment random
//! access box (`mfra`, 8.8.9 to 8.8.11).

use crate::{
    boxes::{Entries, FullBox, Node},
    error::MediaError,
    units::Timescale,
};

/// Most fragments of one table. A day of fragments of one second has fewer.
pub(crate) const MOST_FRAGMENTS: usize = 1 << 17;

/// Fragments of one track, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FragmentTable {
    /// `track_ID`.
    pub(crate) track: u32,
    /// Clock of the times; `None` for the clock of the track.
    pub(crate) timescale: Option<Timescale>,
    pub(crate) starts: Vec<FragmentStart>,
    /// Offset and time of the end of the last fragment, where they are known.
    pub(crate) end: Option<(u64, i64)>,
}

/// Start of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentStart {
    pub(crate) offset: u64,
    /// Earliest presentation time.
    pub(crate) time: i64,
    /// Whether decoding can begin here.
    pub(crate) is_entry: bool,
    /// Whether its first pictures may need earlier ones.
    pub(crate) is_open: bool,
}

/// A `sidx`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentIndex {
    pub(crate) track: u32,
    pub(crate) timescale: Timescale,
    pub(crate) references: Vec<Reference>,
}

/// One reference of a `sidx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) start: FragmentStart,
    /// Offset and time of the end.
    pub(crate) end: (u64, i64),
    /// Whether it refers to another `sidx`.
    pub(crate) is_index: bool,
}

impl SegmentIndex {
    /// Reads a `sidx`; `None` where it is not valid.
    pub(crate) fn parse(node: &Node<'_>) -> Option<Self> {
        let FullBox { version, mut fields, .. } = node.full().ok()?;
        let track = fields.u32().ok()?;
        let timescale = Timescale::new(fields.u32().ok()?)?;
        let mut time = i64::try_from(fields.versioned(version).ok()?).ok()?;
        let first = fields.versioned(version).ok()?;
        fields.skip(2).ok()?;
        let count = fields.u16().ok()?;
        // Offsets count from the end of the box.
        let mut offset = (node.offset + node.whole.len() as u64).checked_add(first)?;
        let entries = Entries::<12>::new(fields.rest(), u32::from(count));
        let mut references = Vec::new();
        for entry in entries.iter() {
            let word = |at: usize| entry.get(at..).and_then(|w| w.first_chunk()).map(|w| u32::from_be_bytes(*w));
            let (size, duration, access) = (word(0)?, word(4)?, word(8)?);
            let end = (offset.checked_add(u64::from(size & 0x7fff_ffff))?, time.checked_add(i64::from(duration))?);
            // Types 1 and 2 have no pictures that need earlier ones (annex I.2); 0 states nothing.
            let sap_type = access >> 28 & 7;
            let start =
                FragmentStart { offset, time, is_entry: access >> 31 == 1 && sap_type <= 3, is_open: sap_type == 3 };
            references.push(Reference { start, end, is_index: size >> 31 == 1 });
            (offset, time) = end;
        }
        (references.len() == usize::from(count)).then_some(Self { track, timescale, references })
    }
}

/// Reads an `mfra`. Entries of samples that don't begin a fragment are left out.
pub(crate) fn random_access(mfra: &Node<'_>) -> Vec<FragmentTable> {
    let tables = mfra.children().filter(|node| &node.kind == b"tfra");
    tables.filter_map(|tfra| track_table(&tfra).ok()).collect()
}

fn track_table(tfra: &Node<'_>) -> Result<FragmentTable, MediaError> {
    let FullBox { version, mut fields, .. } = tfra.full()?;
    let track = fields.u32()?;
    let lengths = fields.u32()?;
    let (of_traf, of_run, of_sample) = ((lengths >> 4 & 3) + 1, (lengths >> 2 & 3) + 1, (lengths & 3) + 1);
    let count = fields.u32()?;
    let mut starts: Vec<FragmentStart> = Vec::new();
    for _ in 0..count {
        let time = i64::try_from(fields.versioned(version)?)
            .map_err(|_| tfra.invalid("a time beyond 63 bits", "a time of the track"))?;
        let offset = fields.versioned(version)?;
        fields.skip(of_traf as usize)?;
        let (run, sample) = (number(&mut fields, of_run)?, number(&mut fields, of_sample)?);
        if (run, sample) == (1, 1) && starts.last().is_none_or(|last| last.offset != offset) {
            starts.push(FragmentStart { offset, time, is_entry: true, is_open: false });
        }
    }
    Ok(FragmentTable { track, timescale: None, starts, end: None })
}

/// Reads a number of `bytes` bytes.
fn number(fields: &mut crate::boxes::Fields<'_, '_>, bytes: u32) -> Result<u32, MediaError> {
    let mut value = 0;
    for _ in 0..bytes {
        value = value << 8 | u32::from(fields.u8()?);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{bx, fields, words};

    fn node(bytes: &[u8], offset: u64) -> Node<'_> {
        Node::new(bytes, offset, "box").unwrap()
    }

    #[test]
    fn references_have_offsets_and_times() {
        let sidx =
            fields(b"sidx", &[0, 7, 1000, 500, 20, 3, 100, 2000, 0x9000_0000, 0x8000_0032, 1000, 0, 9, 1, 3 << 28]);
        let index = SegmentIndex::parse(&node(&sidx, 40)).unwrap();
        let first = 40 + sidx.len() as u64 + 20;
        let found: Vec<_> = index
            .references
            .iter()
            .map(|r| (r.start.offset - first, r.start.time, r.start.is_entry, r.start.is_open, r.is_index))
            .collect();
        assert_eq!(
            found,
            [(0, 500, true, false, false), (100, 2500, false, false, true), (150, 3500, false, true, false)]
        );
        assert_eq!(index.references.last().map(|r| r.end), Some((first + 159, 3501)));
        assert_eq!((index.track, index.timescale.get()), (7, 1000));
    }

    #[test]
    fn a_truncated_or_timeless_index_is_none() {
        let short = fields(b"sidx", &[0, 7, 1000, 0, 0, 2, 100, 2000, 0]);
        assert_eq!(SegmentIndex::parse(&node(&short, 0)), None);
        let timeless = fields(b"sidx", &[0, 7, 0, 0, 0, 0]);
        assert_eq!(SegmentIndex::parse(&node(&timeless, 0)), None);
    }

    #[test]
    fn only_first_samples_begin_fragments() {
        let mut entries = Vec::new();
        for (time, offset, run, sample) in [(0, 100, 1, 1), (10, 100, 1, 5), (20, 300, 2, 1), (30, 500, 1, 1)] {
            entries.extend(words(&[time, offset]));
            entries.extend([1, run, sample]);
        }
        let tfra = bx(b"tfra", &[&words(&[0, 3, 0, 4]), &entries]);
        let mfra = bx(b"mfra", &[&tfra, &bx(b"tfra", &[&words(&[0, 4, 0, 9])])]);
        let tables = random_access(&node(&mfra, 0));
        assert_eq!(tables.len(), 1, "a truncated table is left out");
        let found: Vec<_> = tables[0].starts.iter().map(|start| (start.time, start.offset)).collect();
        assert_eq!((tables[0].track, found), (3, vec![(0, 100), (30, 500)]));
    }
}
