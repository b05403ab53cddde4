//! Lists of lost packets (draft-sharabayko-srt-01, appendix A).

use crate::Sequence;

/// Marks the first number of a range of several.
const RANGE: u32 = 1 << 31;

/// Packets from one number to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceRange {
    /// The first one.
    pub first: Sequence,
    /// The last one, which is not before the first.
    pub last: Sequence,
}

/// A list of lost packets, as it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Losses<'a>(pub(super) &'a [u8]);

impl SequenceRange {
    /// Number of its packets.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.last.since(self.first).max(0).cast_unsigned() + 1
    }

    /// Appends it to a list.
    pub(super) fn write(self, to: &mut Vec<u8>) {
        if self.first == self.last {
            return to.extend(self.first.get().to_be_bytes());
        }
        to.extend((self.first.get() | RANGE).to_be_bytes());
        to.extend(self.last.get().to_be_bytes());
    }
}

impl Losses<'_> {
    /// The ranges of the list. What is no range, such as one whose last number is before its first, is left out.
    pub fn ranges(&self) -> impl Iterator<Item = SequenceRange> {
        let (words, _) = self.0.as_chunks::<4>();
        let mut words = words.iter().map(|word| u32::from_be_bytes(*word));
        std::iter::from_fn(move || {
            loop {
                let first = words.next()?;
                let last = if first & RANGE == 0 { first } else { words.next()? };
                let range = SequenceRange { first: Sequence::new(first), last: Sequence::new(last) };
                if last & RANGE == 0 && range.last.since(range.first) >= 0 {
                    return Some(range);
                }
            }
        })
    }
}
