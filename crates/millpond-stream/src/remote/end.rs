//! Where a title ends, as far as its sessions tell.

/// Segments by which a title may be shorter than its stated length without a second look.
const ROUNDED: u64 = 1;

/// Evidence of the end of a title whose stated length may be wrong.
///
/// One session may be cut off. The end is where two sessions found nothing more, unless a segment from behind it has arrived.
#[derive(Debug, Default)]
pub(super) struct EndEvidence {
    /// Segments up to the last one that had media.
    seen: u64,
    /// Fewest segments after which a session found nothing more.
    witness: Option<u64>,
}

impl EndEvidence {
    /// Takes the number of a segment that has media.
    pub(super) fn has_media(&mut self, number: u64) {
        self.seen = self.seen.max(number.saturating_add(1));
        self.witness = self.witness.filter(|count| number < *count);
    }

    /// Takes the number of segments after which a session found nothing more; it is less than `stated`. Returns the segments of the title,
    /// as far as two sessions agree. `None` where another session decides.
    pub(super) fn nothing_after(&mut self, count: u64, stated: u64) -> Option<u64> {
        if stated.saturating_sub(count) <= ROUNDED && count >= self.seen {
            return Some(count);
        }
        let before = self.witness;
        self.witness = Some(before.map_or(count, |witness| witness.min(count)));
        let agreed = before.map(|witness| witness.max(count)).filter(|agreed| *agreed < stated)?;
        (agreed >= self.seen || before == Some(count)).then_some(agreed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_session_decides() {
        let mut end = EndEvidence::default();
        assert_eq!(end.nothing_after(60, 100), None);
        assert_eq!(end.nothing_after(60, 100), Some(60));
        assert_eq!(end.nothing_after(59, 60), Some(59), "a rest that was rounded");
    }

    #[test]
    fn sessions_that_ask_for_different_segments_bound_the_end_together() {
        let mut end = EndEvidence::default();
        assert_eq!(end.nothing_after(50, 100), None);
        assert_eq!(end.nothing_after(80, 100), Some(80), "both found nothing there");
        assert_eq!(end.nothing_after(40, 80), Some(50));
        assert_eq!(end.nothing_after(40, 50), Some(40));
        assert_eq!(end.nothing_after(30, 40), None, "the earlier evidence is that of the known end");
    }

    #[test]
    fn a_session_that_was_cut_off_is_refuted_by_later_segments() {
        let mut end = EndEvidence::default();
        assert_eq!(end.nothing_after(5, 100), None);
        end.has_media(5);
        assert_eq!(end.nothing_after(5, 100), None);
        (6..70).for_each(|number| end.has_media(number));
        assert_eq!(end.nothing_after(20, 100), None);
        assert_eq!(end.nothing_after(40, 100), None, "two sessions were cut off at different places");
        assert_eq!(end.nothing_after(99, 100), Some(99));
    }

    #[test]
    fn what_was_seen_is_no_rounded_rest() {
        let mut end = EndEvidence::default();
        end.has_media(99);
        assert_eq!(end.nothing_after(99, 100), None);
        assert_eq!(end.nothing_after(99, 100), Some(99), "the title is another one now");
    }
}
