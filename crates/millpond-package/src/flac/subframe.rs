//! Subframes (RFC 9639 9.2): the values of one channel, constant, predicted, or as they are.

use super::{
    bits::BitWriter,
    predictor::{Prediction, residuals},
    rice::{Partitions, cost},
};

/// Types of subframes. That of a fixed predictor has its order in the lowest bits.
const CONSTANT: u32 = 0;
const VERBATIM: u32 = 1;
const FIXED: u32 = 8;

/// Buffers that subframes share.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    shifted: Vec<i32>,
    differences: Vec<i32>,
    folded: Vec<u32>,
}

/// Values of one channel in a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal<'a> {
    /// At least one value.
    pub(super) values: &'a [i32],
    /// Bits of a value: at most 25, as the difference of two channels has.
    pub(super) bits: u32,
}

impl Signal<'_> {
    fn is_constant(&self) -> bool {
        self.values.iter().all(|value| Some(value) == self.values.first())
    }

    /// Number of lowest bits that are 0 in all values; 0 where all bits are.
    fn wasted(&self) -> u32 {
        let all = self.values.iter().fold(0, |all, value| all | value);
        if all == 0 { 0 } else { all.trailing_zeros() }
    }

    /// Returns about as many bits as the subframe takes.
    pub(super) fn estimate(&self, scratch: &mut Scratch) -> u64 {
        let bits = u64::from(self.bits);
        if self.is_constant() {
            return bits;
        }
        let sum = Prediction::best(self.values, &mut scratch.differences).sum >> self.wasted();
        // Folding doubles residuals.
        cost(self.values.len(), 2 * sum).min(bits * self.values.len() as u64)
    }

    /// Writes the subframe.
    pub(super) fn write(&self, scratch: &mut Scratch, out: &mut BitWriter<'_>) {
        let Self { values, bits } = *self;
        if let Some(value) = values.first().filter(|_| self.is_constant()) {
            head(CONSTANT, 0, out);
            out.put_signed(*value, bits);
            return;
        }
        let wasted = self.wasted();
        let Scratch { shifted, differences, folded } = scratch;
        shifted.clear();
        shifted.extend(values.iter().map(|value| value >> wasted));
        let bits = bits - wasted;
        let order = Prediction::best(shifted, differences).order;
        residuals(shifted, order, differences, folded);
        let partitions = Partitions::of(folded, shifted.len());
        let verbatim = u64::from(bits) * shifted.len() as u64;
        if u64::from(bits) * order as u64 + partitions.bits >= verbatim {
            head(VERBATIM, wasted, out);
            shifted.iter().for_each(|value| out.put_signed(*value, bits));
            return;
        }
        head(FIXED + order as u32, wasted, out);
        shifted.iter().take(order).for_each(|value| out.put_signed(*value, bits));
        partitions.write(folded, shifted.len(), out);
    }
}

/// Writes the header of a subframe: a zero bit, the type, and the number of wasted bits as zero bits before a one bit (9.2.1, 9.2.2).
fn head(kind: u32, wasted: u32, out: &mut BitWriter<'_>) {
    out.put(kind << 1 | u32::from(wasted > 0), 8);
    if wasted > 0 {
        out.zeros(wasted - 1);
        out.put(1, 1);
    }
}
