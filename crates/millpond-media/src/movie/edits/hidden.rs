//! Samples that a span decodes but does not show.

use super::Span;
use crate::movie::sample_table::SampleTable;

/// Number of samples after the first shown one that are searched for earlier presentation times: more than any codec
/// reorders.
const REORDER: u32 = 32;

/// Samples of a span that are presented before its start, and the room for them below the second sample shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Number of hidden samples.
    pub count: i64,
    /// Earliest presentation time of the span, in ticks.
    pub lowest: i64,
    /// Ticks from the start of the span to the second sample shown.
    pub gap: i64,
}

impl Hidden {
    /// Returns the hidden samples of a span of `table`.
    #[must_use]
    pub fn of(table: &SampleTable, span: &Span) -> Self {
        let mut hidden = Self { count: 0, lowest: span.start, gap: 0 };
        let (mut shown, mut second, mut left) = (i64::MAX, i64::MAX, REORDER);
        for sample in table.range(span.samples.clone()) {
            let pts = sample.pts().saturating_add(span.shift);
            if pts < span.start {
                hidden.count += 1;
                hidden.lowest = hidden.lowest.min(pts);
                continue;
            }
            second = second.min(pts.max(shown));
            shown = shown.min(pts);
            left -= 1;
            if left == 0 {
                break;
            }
        }
        let second = if second == i64::MAX { span.end } else { second };
        hidden.gap = second.saturating_sub(span.start).max(0);
        hidden
    }

    /// Whether the first half of the gap has a tick for each hidden sample.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.count <= self.gap / 2
    }

    /// Returns the least factor of the clock with which the samples fit; `None` where no clock helps.
    pub(crate) fn factor(&self) -> Option<i64> {
        let ticks = self.count.saturating_mul(2);
        (self.gap > 0).then(|| ticks / self.gap + i64::from(ticks % self.gap > 0))
    }
}
