//! The epoch of the frames that a transmission sends.

use crate::{Feed, epoch::Epoch};
use std::sync::Arc;

/// A feed whose frames have epochs, and the epoch of the last one.
#[derive(Debug)]
pub(crate) struct Epochs {
    feed: Arc<dyn Feed>,
    current: Option<Epoch>,
}

impl Epochs {
    /// No frame was sent yet.
    pub(crate) fn new(feed: Arc<dyn Feed>) -> Self {
        Self { feed, current: None }
    }

    /// The epoch of the last frame.
    pub(super) fn current(&self) -> Option<&Epoch> {
        self.current.as_ref()
    }

    /// Takes the epoch of a frame. Returns whether it is a new one.
    pub(super) fn enter(&mut self, number: u32) -> bool {
        let is_new = self.current.as_ref().is_none_or(|epoch| epoch.number != number);
        if is_new && let Some(epoch) = self.feed.epoch(number) {
            self.current = Some(epoch);
            return true;
        }
        false
    }
}
