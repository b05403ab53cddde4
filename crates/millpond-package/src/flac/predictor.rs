//! Fixed predictors (RFC 9639 9.2.5): the residual of order n is the difference of two neighbouring residuals of order n - 1.

/// Highest order of a predictor.
pub(super) const MOST_ORDER: usize = 4;

/// An order, and the sum of the magnitudes of its residuals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prediction {
    pub(super) order: usize,
    pub(super) sum: u64,
}

impl Prediction {
    /// Returns the order whose residuals have the least sum, the lowest of several. The first values, which no order but 0 predicts,
    /// don't count. Values have at most 25 bits, so residuals fit into 29.
    pub(super) fn best(values: &[i32], scratch: &mut Vec<i32>) -> Self {
        let sum = |residuals: &[i32]| residuals.iter().map(|residual| u64::from(residual.unsigned_abs())).sum();
        let Some(counted) = values.get(MOST_ORDER..).filter(|counted| !counted.is_empty()) else {
            return Self { order: 0, sum: sum(values) };
        };
        let mut best = Self { order: 0, sum: sum(counted) };
        scratch.clear();
        scratch.extend_from_slice(values);
        for order in 1..=MOST_ORDER {
            difference(scratch);
            let sum = sum(scratch.get(MOST_ORDER - order..).unwrap_or_default());
            if sum < best.sum {
                best = Self { order, sum };
            }
        }
        best
    }
}

/// Writes the residuals of an order to `folded`, without those of the first `order` values. They are folded to unsigned numbers:
/// 0, -1, 1, -2 become 0, 1, 2, 3.
pub(super) fn residuals(values: &[i32], order: usize, scratch: &mut Vec<i32>, folded: &mut Vec<u32>) {
    scratch.clear();
    scratch.extend_from_slice(values);
    for _ in 0..order {
        difference(scratch);
    }
    folded.clear();
    folded.extend(scratch.iter().map(|residual| (residual << 1 ^ residual >> 31) as u32));
}

/// Replaces values by the differences of neighbours, one less.
fn difference(values: &mut Vec<i32>) {
    for place in 1..values.len() {
        values[place - 1] = values[place] - values[place - 1];
    }
    values.pop();
}
