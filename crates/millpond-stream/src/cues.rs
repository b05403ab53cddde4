//! Cues of a stream's source (SCTE 35).

use bytes::Bytes;
use millpond_package::live::Cue;
use std::{sync::Arc, time::Duration};

/// Most cues that a run remembers, the last ones.
const MOST: usize = 32;
/// Difference of stream times within which equal sections are one cue.
const SAME: Duration = Duration::from_millis(500);
/// The same for sections without a time, which senders repeat.
const REPEATED: Duration = Duration::from_secs(30);

/// The cues of a run.
#[derive(Clone, Debug, Default)]
pub struct Cues {
    count: u64,
    last: Arc<[Cue]>,
}

impl Cues {
    /// Takes a cue. Returns whether it is none that is known.
    pub(crate) fn push(&mut self, cue: Cue) -> bool {
        let span = if cue.splice.time.is_some() { SAME } else { REPEATED };
        let is_known = |known: &Cue| known.section == cue.section && known.at.abs_diff(cue.at) < span;
        if self.last.iter().any(is_known) {
            return false;
        }
        self.count += 1;
        let kept = self.last.len().saturating_sub(MOST - 1);
        // A section of a datagram would keep the whole of it.
        let section = Bytes::copy_from_slice(&cue.section);
        self.last = self.last.iter().skip(kept).cloned().chain([Cue { section, ..cue }]).collect();
        true
    }

    /// Number of cues so far, without repeated ones.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the last 32 cues, without the first `seen` of the run.
    #[must_use]
    pub fn since(&self, seen: u64) -> &[Cue] {
        let new = usize::try_from(self.count.saturating_sub(seen)).unwrap_or(usize::MAX);
        &self.last[self.last.len().saturating_sub(new)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_media::ts::SpliceSection;

    #[test]
    fn repeated_cues_count_once() {
        let cue = |seconds, byte: u8, time| Cue {
            at: Duration::from_secs(seconds),
            splice: SpliceSection { command: 5, time, events: Vec::new() }.into(),
            section: Bytes::from(vec![byte]),
        };
        let mut cues = Cues::default();
        let new = [
            cues.push(cue(10, 1, Some(0))),
            cues.push(cue(10, 1, Some(0))),
            cues.push(cue(10, 2, Some(0))),
            // A day later the clock has wrapped.
            cues.push(cue(95_443, 1, Some(0))),
            cues.push(cue(10, 3, None)),
            cues.push(cue(12, 3, None)),
            cues.push(cue(50, 3, None)),
        ];
        assert_eq!(new, [true, false, true, true, true, false, true]);
        assert_eq!((cues.count(), cues.since(0).len(), cues.since(4).len(), cues.since(9).len()), (5, 5, 1, 0));
        (0..100).for_each(|number| assert!(cues.push(cue(100 + number, 1, Some(number)))));
        assert_eq!((cues.count(), cues.since(0).len()), (105, MOST));
        assert_eq!(cues.since(103).iter().map(|cue| cue.at.as_secs()).collect::<Vec<_>>(), [198, 199]);
    }
}
