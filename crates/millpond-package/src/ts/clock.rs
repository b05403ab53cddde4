//! Times of program clock references in a segment (PCR, ISO/IEC 13818-1 2.4.3.5).

/// Longest interval between two PCRs, on the 90 kHz clock: 100 ms (2.7.2).
pub(super) const MOST_APART: i64 = 9_000;
/// Most packets of a segment that carry only a PCR: ten minutes without a picture. A timeline with longer holes would
/// cost more than its media.
pub(super) const MOST_A_SEGMENT: u32 = 6_000;

/// Returns how many PCRs are missing between two that are sent with media, at `from` and `to`.
pub(super) fn between(from: i64, to: i64) -> u32 {
    let gap = to.saturating_sub(from).max(1);
    u32::try_from((gap - 1) / MOST_APART).unwrap_or(u32::MAX)
}

/// Returns the time of missing PCR `number`, from 1, after `from`.
pub(super) fn at(from: i64, number: u32) -> i64 {
    from.saturating_add(MOST_APART.saturating_mul(i64::from(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_never_more_than_100_ms_apart() {
        for (gap, missing) in [(-5, 0), (0, 0), (3600, 0), (9000, 0), (9001, 1), (18_000, 1), (18_001, 2), (90_000, 9)]
        {
            assert_eq!(between(1000, 1000 + gap), missing, "{gap}");
            let last = at(1000, missing);
            assert!(1000 + gap - last <= MOST_APART);
        }
        assert_eq!(between(0, i64::MAX), u32::MAX);
    }
}
