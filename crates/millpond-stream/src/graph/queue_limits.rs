//! How much may wait for one branch of a fork, and how urgent it is to drop frames.

use super::{key_interval::KeyInterval, queue::Weight};
use crate::Dropping;
use std::time::Duration;

/// Bounds of the frames that wait for one branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    pub(crate) runs: usize,
    pub(crate) bytes: usize,
    /// Longest time from the first to the last waiting picture.
    pub(crate) span: Duration,
    pub(crate) dropping: Dropping,
    /// Whether the waiting frames count in the memory of their stream. Else their taker counts them.
    pub(crate) is_counted: bool,
}

/// Degree to which a branch must drop frames, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pressure {
    None,
    /// Pictures without which the base layer can be decoded.
    Layers,
    /// The rest of the group of pictures too.
    Group,
    /// All pictures before the newest key frame.
    Late,
    /// Frames that arrive, sound too.
    Full,
}

impl QueueLimits {
    /// Those of a module that may not lose frames because of a short delay.
    pub(crate) const MODULE: Self = Self {
        runs: 4096,
        bytes: 8 << 20,
        span: Duration::from_secs(10),
        dropping: Dropping::LeastNeeded,
        is_counted: true,
    };
    /// Limits of a module whose output is another stream. That stream counts the frames.
    pub(crate) const PASSED: Self = Self { is_counted: false, ..Self::MODULE };

    /// Those of a viewer, for whom frames of a time wait.
    pub(crate) fn viewer(span: Duration, dropping: Dropping) -> Self {
        Self { span, dropping, ..Self::MODULE }
    }

    /// The pressure where `load` waits with a run that is due at `due`. An empty queue has room for any run.
    ///
    /// `held` is the time for which the reader could not pass runs on. Frames that span more time than that came in a burst, or wait
    /// for a thread of this process. The lesser of both times counts.
    ///
    /// A group of pictures loses its end: the later in its group a frame is, the less time may wait. So each group loses a
    /// little, instead of one group nearly all.
    pub(super) fn pressure(&self, load: Weight, held: Duration, due: Duration, keys: &KeyInterval) -> Pressure {
        if load.runs <= 1 {
            return Pressure::None;
        }
        let Self { runs, span, .. } = *self;
        // Two of the largest key frames always fit.
        let bytes = self.bytes.max(keys.largest.saturating_mul(2));
        let waits = load.span().min(held);
        if load.runs <= runs / 4 * 3 && load.bytes <= bytes / 4 * 3 && waits <= span / 4 {
            Pressure::None
        } else if load.runs > runs || load.bytes > bytes || waits > span * 2 {
            Pressure::Full
        } else if waits > span {
            Pressure::Late
        } else if load.runs > runs / 4 * 3 || load.bytes > bytes / 4 * 3 || waits > keys.share_left(due, span) {
            Pressure::Group
        } else {
            Pressure::Layers
        }
    }
}
