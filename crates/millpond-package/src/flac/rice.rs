//! Residuals in partitions of Rice codes (RFC 9639 9.2.7).

use super::bits::BitWriter;

/// Highest partition order that is tried. The subset of streams allows 8 (RFC 9639 7).
const MOST_PARTITION_ORDER: u32 = 6;
/// Highest Rice parameter of a field of 4 bits, and of 5 bits. The next one would mean residuals without a code.
const MOST_NARROW: u32 = 14;
const MOST_WIDE: u32 = 30;
/// Bits of the coding method and the partition order.
const HEAD: u64 = 2 + 4;

/// Returns the Rice parameter for `count` numbers of sum `sum`: a higher one would add more bits of remainders than it saves.
fn parameter(count: u64, sum: u64) -> u32 {
    let mut parameter = 0;
    while parameter < MOST_WIDE && sum >> (parameter + 1) > count {
        parameter += 1;
    }
    parameter
}

/// Returns the most bits that `count` numbers of sum `sum` take with a Rice parameter.
fn most_bits(count: u64, sum: u64, parameter: u32) -> u64 {
    count * u64::from(parameter + 1) + (sum >> parameter)
}

/// Returns the most bits that `count` numbers of sum `sum` take in one partition.
pub(super) fn cost(count: usize, sum: u64) -> u64 {
    let count = count as u64;
    most_bits(count, sum, parameter(count, sum))
}

/// Partitions of the residuals of a subframe.
#[derive(Debug)]
pub(super) struct Partitions {
    /// Number of partitions, as a power of 2.
    order: u32,
    /// Samples of a partition. The first one lacks those that the predictor takes as they are.
    length: usize,
    /// Rice parameter of each partition.
    parameters: Vec<u32>,
    /// Most bits of the coded residuals.
    pub(super) bits: u64,
}

impl Partitions {
    /// Finds the partition order that takes the fewest bits, by the sums of folded residuals. `block` is the number of samples, more
    /// than the predictor's order; `folded` has as many numbers less that order.
    pub(super) fn of(folded: &[u32], block: usize) -> Self {
        let predicted = block.saturating_sub(folded.len());
        let divides = |order: &u32| block.is_multiple_of(1 << order) && block >> order > predicted;
        let finest = (0..=MOST_PARTITION_ORDER).rev().find(divides).unwrap_or(0);
        let (first, rest) = folded.split_at(((block >> finest) - predicted).min(folded.len()));
        let sum = |part: &[u32]| part.iter().map(|number| u64::from(*number)).sum::<u64>();
        let mut sums: Vec<u64> = std::iter::once(first).chain(rest.chunks(block >> finest)).map(sum).collect();
        let mut best = Self::by_sums(&sums, finest, block, predicted);
        for order in (0..finest).rev() {
            sums = sums.chunks(2).map(|pair| pair.iter().sum()).collect();
            let coarser = Self::by_sums(&sums, order, block, predicted);
            if coarser.bits <= best.bits {
                best = coarser;
            }
        }
        best
    }

    fn by_sums(sums: &[u64], order: u32, block: usize, predicted: usize) -> Self {
        let length = block >> order;
        let counts = std::iter::once(length - predicted).chain(std::iter::repeat(length)).map(|count| count as u64);
        let parameters: Vec<u32> = counts.clone().zip(sums).map(|(count, sum)| parameter(count, *sum)).collect();
        let coded = counts.zip(sums).zip(&parameters).map(|((count, sum), of)| most_bits(count, *sum, *of));
        let bits = HEAD + u64::from(field(&parameters)) * parameters.len() as u64 + coded.sum::<u64>();
        Self { order, length, parameters, bits }
    }

    /// Writes the coding method, the partition order, and all partitions.
    pub(super) fn write(&self, folded: &[u32], block: usize, out: &mut BitWriter<'_>) {
        let field = field(&self.parameters);
        out.put(u32::from(field > 4), 2);
        out.put(self.order, 4);
        let mut rest = folded;
        let mut count = self.length - (block - folded.len());
        for parameter in &self.parameters {
            let (part, later) = rest.split_at(count.min(rest.len()));
            out.put(*parameter, field);
            part.iter().for_each(|number| out.rice(*number, *parameter));
            (rest, count) = (later, self.length);
        }
    }
}

/// Returns the bits of the field of each Rice parameter.
fn field(parameters: &[u32]) -> u32 {
    if parameters.iter().any(|parameter| *parameter > MOST_NARROW) { 5 } else { 4 }
}
