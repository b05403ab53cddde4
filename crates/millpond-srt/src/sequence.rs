//! Sequence numbers of data packets.

/// A sequence number: 31 bits, after whose last value the first one follows (draft-sharabayko-srt-01 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence(u32);

const MASK: u32 = 0x7fff_ffff;

impl Sequence {
    /// Creates a number of the low 31 bits.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Self(bits & MASK)
    }

    /// Its bits.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }

    /// The number that lies so far behind.
    #[must_use]
    pub fn plus(self, steps: u32) -> Self {
        Self::new(self.0.wrapping_add(steps))
    }

    /// Steps from another number to this one, in the shorter direction: negative where this one is before.
    #[must_use]
    pub fn since(self, other: Self) -> i32 {
        (self.0.wrapping_sub(other.0) << 1).cast_signed() >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_after_the_last_one() {
        let last = Sequence::new(u32::MAX);
        assert_eq!((last.get(), last.plus(1).get(), last.plus(3).since(last)), (MASK, 0, 3));
        assert_eq!((last.since(last.plus(2)), last.since(last)), (-2, 0));
    }
}
