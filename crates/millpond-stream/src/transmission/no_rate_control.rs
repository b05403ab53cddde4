//! The rate control of an engine that was built without the feature `tfrc`: there is none, so that nothing here is ever called.

use millpond_rtp::rtcp::ReportBlock;
use std::time::Duration;

/// Has no values.
#[derive(Clone, Debug)]
pub(super) enum RateControl {}

impl RateControl {
    pub(super) fn refresh(&mut self, _: Duration, _: Duration) {
        match *self {}
    }

    pub(super) fn packets(&self) -> usize {
        match *self {}
    }

    pub(super) fn wait(&self) -> Duration {
        match *self {}
    }

    pub(super) fn limited(&mut self, _: Duration) {
        match *self {}
    }

    pub(super) fn sent(&mut self, _: u32, _: u16, _: usize, _: usize, _: Duration) {
        match *self {}
    }

    pub(super) fn repeats(&self) -> usize {
        match *self {}
    }

    pub(super) fn repeated(&mut self, _: usize, _: usize) {
        match *self {}
    }

    pub(super) fn reported(&mut self, _: u32, _: u32, _: Duration) {
        match *self {}
    }

    pub(super) fn report(&mut self, _: &ReportBlock, _: Duration) {
        match *self {}
    }

    pub(super) fn missing(&mut self, _: u32, _: impl IntoIterator<Item = u16>, _: Duration) {
        match *self {}
    }

    pub(super) fn loss_events(&self) -> u64 {
        match *self {}
    }
}
