//! The frames since the last key frame, for branches that join.

use crate::Run;
use std::{collections::VecDeque, time::Duration};

/// Bounds of the runs that a fork keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptLimits {
    pub(crate) runs: usize,
    pub(crate) bytes: usize,
    pub(crate) span: Duration,
}

/// The runs since the last key frame of the leading track. It is empty where those would be too many.
#[derive(Debug, Default)]
pub(super) struct Kept {
    runs: VecDeque<Run>,
    bytes: usize,
}

impl Kept {
    /// Adds a run of `bytes`. One with a key frame replaces all before it.
    pub(super) fn push(&mut self, run: &Run, bytes: usize, has_key: bool, limits: &KeptLimits) {
        if has_key {
            self.clear();
        } else if self.runs.is_empty() {
            return;
        }
        self.runs.push_back(run.clone());
        self.bytes += bytes;
        let is_over = self.runs.len() > limits.runs || self.bytes > limits.bytes || self.span() > limits.span;
        // A key frame is never too large by itself: nobody could join.
        if is_over && !has_key {
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The run with the key frame; `None` if branches must wait for the next key frame.
    pub(super) fn first(&self) -> Option<&Run> {
        self.runs.front()
    }

    pub(super) fn runs(&self) -> impl ExactSizeIterator<Item = &Run> {
        self.runs.iter()
    }

    /// Due time from the first run to the last one.
    pub(super) fn span(&self) -> Duration {
        let [first, last] = [self.runs.front(), self.runs.back()].map(|run| run.and_then(|run| run.first()));
        last.zip(first).map_or(Duration::ZERO, |(last, first)| last.due.saturating_sub(first.due))
    }
}
