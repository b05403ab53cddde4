//! Movie fragments and their indexes, as bytes.

use crate::boxes::{bx, words};

/// One fragment with `runs` runs of one track.
#[derive(Clone, Debug)]
pub struct HostileFragment {
    /// `track_ID`.
    pub track: u32,
    /// Decode time in `tfdt`; `None` leaves the box out.
    pub time: Option<u64>,
    /// Default duration of a sample.
    pub duration: u32,
    /// Default size of a sample.
    pub size: u32,
    /// Number of `trun` boxes.
    pub runs: u32,
    /// Number of samples that each run claims.
    pub claimed: u32,
    /// Number of per-sample flag fields that each run holds; 0 for a run with a sample count alone.
    pub fields: u32,
}

impl HostileFragment {
    fn write(&self, file: &mut Vec<u8>) {
        // Flags: default duration, size and sample flags are present; data offsets count from the `moof`.
        let tfhd = bx(b"tfhd", &[&words(&[0x2_0038, self.track, self.duration, self.size, 0])]);
        let tfdt = self.time.map(|time| bx(b"tfdt", &[&words(&[0x100_0000, (time >> 32) as u32, time as u32])]));
        let flags = if self.fields > 0 { 0x400 } else { 0 };
        let fields = words(&vec![0; self.fields as usize]);
        let run = bx(b"trun", &[&words(&[flags, self.claimed]), &fields]);
        let runs = run.repeat(self.runs as usize);
        let traf = bx(b"traf", &[&tfhd, &tfdt.unwrap_or_default(), &runs]);
        file.extend(bx(b"moof", &[&bx(b"mfhd", &[&words(&[0, 1])]), &traf]));
    }
}

/// A segment index (`sidx`) before the fragments.
#[derive(Clone, Debug)]
pub struct SegmentIndex {
    /// `first_offset`, counted from the end of the index.
    pub first: u32,
    /// Number of references that the index claims and holds.
    pub references: u16,
    /// Bytes of each referenced segment.
    pub size: u32,
}

impl SegmentIndex {
    fn write(&self, file: &mut Vec<u8>) {
        let fields = words(&[0, 1, 1000, 0, self.first, u32::from(self.references)]);
        let reference = words(&[0x8000_0000 | self.size, 1000, 0]);
        file.extend(bx(b"sidx", &[&fields, &reference.repeat(self.references.into())]));
    }
}

/// Everything after the movie box.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    /// Segment indexes, in file order.
    pub indexes: Vec<SegmentIndex>,
    /// Fragments, in file order.
    pub fragments: Vec<HostileFragment>,
    /// Number of empty boxes after the fragments.
    pub junk: usize,
    /// Random access index (`mfra`) at the end: number of entries, and the offset that all of them name.
    pub random_access: Option<(u32, u32)>,
}

impl Fragments {
    pub(crate) fn write(&self, file: &mut Vec<u8>) {
        self.indexes.iter().for_each(|index| index.write(file));
        self.fragments.iter().for_each(|fragment| fragment.write(file));
        file.extend(bx(b"free", &[]).repeat(self.junk));
        if let Some((count, step)) = self.random_access {
            let mut tfra = words(&[0, 1, 0, count]);
            for entry in 0..count {
                tfra.extend(words(&[0, entry.wrapping_mul(step)]));
                tfra.extend([1, 1, 1]);
            }
            let tfra = bx(b"tfra", &[&tfra]);
            let size = tfra.len() as u32 + 24;
            file.extend(bx(b"mfra", &[&tfra, &bx(b"mfro", &[&words(&[0, size])])]));
        }
    }
}
