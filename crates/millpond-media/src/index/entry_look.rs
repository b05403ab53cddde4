//! Reads the first bytes of one sample to decide whether decoding can begin with it.

use crate::{
    codec::{nal::NalSyntax, video::sps},
    movie::sample_table::Sample,
    units::ByteRange,
};

/// Bytes of one read: enough for the units before the first slice of most pictures, and its first byte.
const READ: u64 = 512;

/// Verdict on the bytes read so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Decoding can begin with the sample.
    Entry,
    /// Decoding can't begin with the sample, or the sample is not made of NAL units.
    Other,
    /// The first slice was not reached yet.
    Unknown,
}

/// Reading of one sample up to its first slice.
#[derive(Debug)]
pub(crate) struct Look {
    syntax: NalSyntax,
    length_size: usize,
    sample: Sample,
    /// Offset in the sample of the next NAL unit length.
    at: u64,
    /// Number of reads so far.
    reads: u32,
    /// Whether a recovery point message was found.
    recovers: bool,
    size: Option<(u16, u16)>,
}

impl Look {
    /// Starts reading `sample`, whose NAL units have lengths of `length_size` bytes.
    pub(crate) fn new(syntax: NalSyntax, length_size: u8, sample: Sample) -> Self {
        let length_size = usize::from(length_size).clamp(1, 4);
        Self { syntax, length_size, sample, at: 0, reads: 0, recovers: false, size: None }
    }

    /// Position of the sample in decoding order.
    pub(crate) fn sample(&self) -> u32 {
        self.sample.index
    }

    /// Number of reads so far.
    pub(crate) fn reads(&self) -> u32 {
        self.reads
    }

    /// Picture size in a parameter set of the sample.
    pub(crate) fn size(&self) -> Option<(u16, u16)> {
        self.size
    }

    /// Range to read next; empty where the sample has no more bytes.
    pub(crate) fn range(&self) -> ByteRange {
        let start = self.sample.range.start.saturating_add(self.at).min(self.sample.range.end);
        ByteRange::new(start, start.saturating_add(READ).min(self.sample.range.end))
    }

    /// Examines the bytes of [`range`](Self::range).
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Verdict {
        self.reads += 1;
        let before = self.at;
        let mut rest = bytes;
        while let Some((field, after)) = rest.split_at_checked(self.length_size).filter(|(_, after)| !after.is_empty())
        {
            let len = field.iter().fold(0_usize, |len, byte| len << 8 | usize::from(*byte));
            let unit = &after[..len.min(after.len())];
            if self.syntax.is_slice(unit) {
                let entry = self.recovers || self.syntax.is_entry_slice(unit);
                return if entry { Verdict::Entry } else { Verdict::Other };
            }
            self.recovers |= self.syntax.is_recovery_point(unit);
            if self.syntax.is_sequence_set(unit) {
                self.size = self.size.or_else(|| sps::picture_size(self.syntax, unit));
            }
            self.at = self.at.saturating_add((self.length_size + len) as u64);
            match after.get(len..) {
                Some(next) => rest = next,
                None => break,
            }
        }
        if self.at == before || self.range().is_empty() { Verdict::Other } else { Verdict::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts a sample of NAL units at byte 1000 of an object, and reads it until there is a verdict.
    fn look(syntax: NalSyntax, units: &[&[u8]]) -> (Verdict, Look) {
        let mut bytes = Vec::new();
        for unit in units {
            bytes.extend((unit.len() as u32).to_be_bytes());
            bytes.extend_from_slice(unit);
        }
        let range = ByteRange::at(1000, bytes.len() as u64);
        let sample = Sample { index: 7, range, dts: 0, composition: 0, duration: 1, sync: true };
        let mut look = Look::new(syntax, 4, sample);
        for _ in 0..100 {
            let range = look.range();
            let verdict = look.read(&bytes[range.start as usize - 1000..range.end as usize - 1000]);
            if verdict != Verdict::Unknown {
                return (verdict, look);
            }
        }
        panic!("it gets on");
    }

    #[test]
    fn what_stands_before_the_slice_is_passed_over() {
        let (delimiter, pps, idr, other) = ([9, 0xf0], [0x68, 1], [0x65, 0x88], [0x41, 0x9a]);
        assert_eq!(look(NalSyntax::Avc, &[&idr]).0, Verdict::Entry);
        assert_eq!(look(NalSyntax::Avc, &[&delimiter, &pps, &idr]).0, Verdict::Entry);
        assert_eq!(look(NalSyntax::Avc, &[&delimiter, &other]).0, Verdict::Other);
        assert_eq!(look(NalSyntax::Avc, &[&[6, 6, 1, 0x84, 0x80], &other]).0, Verdict::Entry, "a recovery point");
        assert_eq!(look(NalSyntax::Hevc, &[&[0x46, 1, 0x50], &[21 << 1, 1, 7]]).0, Verdict::Entry, "CRA");
        assert_eq!(look(NalSyntax::Hevc, &[&[1 << 1, 1, 7]]).0, Verdict::Other);
    }

    #[test]
    fn long_messages_take_more_reads() {
        let message = [&[6, 5, 0xff, 0xff, 0xff, 235][..], &[7; 1000], &[0x80]].concat();
        let (verdict, look) = look(NalSyntax::Avc, &[&message, &[0x65, 0x88]]);
        assert_eq!((verdict, look.reads()), (Verdict::Entry, 2));
    }

    #[test]
    fn a_set_in_the_sample_tells_the_size() {
        let set = crate::fixture::hex("6764000cacd941419f9f011000000300100000030320f1429960");
        assert_eq!(look(NalSyntax::Avc, &[&set, &[0x65, 0x88]]).1.size(), Some((320, 180)));
    }

    #[test]
    fn what_is_no_nal_units_is_no_entry() {
        let without: [&[&[u8]]; 3] = [&[], &[&[]], &[&[9, 0xf0]]];
        for units in without {
            assert_eq!(look(NalSyntax::Avc, units).0, Verdict::Other);
        }
        let sample = Sample { index: 0, range: ByteRange::at(0, 9), dts: 0, composition: 0, duration: 1, sync: true };
        let mut look = Look::new(NalSyntax::Avc, 4, sample);
        assert_eq!(look.read(&[0xff; 9]), Verdict::Other, "a length that leads past the end");
    }
}
