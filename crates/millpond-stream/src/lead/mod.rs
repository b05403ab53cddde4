//! The leading track of a stream: the frames that branches of a fork begin with, and how fast they come.

mod expectation;
mod tempo;

pub use tempo::Tempo;
pub(crate) use tempo::TempoMeter;

use crate::Format;
use expectation::Expectation;
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

/// No track: indexes of tracks have 16 bits.
const NONE: u32 = u32::MAX;

/// The frames with which branches of a fork begin: key frames of one track, in the newest epoch only.
#[derive(Debug)]
pub(crate) struct Lead {
    /// The leading track of the newest epoch; [`NONE`] until formats are known.
    track: AtomicU32,
    /// Ticks of it a second.
    timescale: AtomicU32,
    /// The newest epoch.
    epoch: AtomicU32,
    /// Whether the source was lost: frames from before the loss begin no branch.
    is_lost: AtomicBool,
    /// A lock: taken when an epoch begins, for each key frame, and when a branch joins.
    expectation: Mutex<Expectation>,
}

impl Default for Lead {
    fn default() -> Self {
        Self {
            track: NONE.into(),
            timescale: 1.into(),
            epoch: 0.into(),
            is_lost: false.into(),
            expectation: Mutex::default(),
        }
    }
}

impl Lead {
    /// The key frames of a track that is known.
    #[cfg(test)]
    pub(crate) fn of(track: u16) -> Self {
        Self { track: u32::from(track).into(), ..Self::default() }
    }

    /// Notes that an epoch begins, with its leading track and the ticks of that a second. Without a track of its own the last
    /// one leads on.
    pub(crate) fn begin(&self, epoch: u32, track: Option<(u16, u32)>) {
        if let Some((track, timescale)) = track {
            self.track.store(track.into(), Ordering::Release);
            self.timescale.store(timescale, Ordering::Release);
        }
        self.epoch.store(epoch, Ordering::Release);
        self.is_lost.store(false, Ordering::Release);
    }

    /// Notes the format of the leading track. Its frames follow.
    pub(crate) fn describe(&self, track: u16, format: &Format) {
        self.lock().describe(track, format);
    }

    /// Notes what frames of the leading track have shown.
    pub(crate) fn learn(&self, tempo: Tempo) {
        self.lock().learn(tempo);
    }

    /// Takes over the tempo that the frames of an earlier run showed.
    pub(crate) fn recall(&self, earlier: &Self) {
        let known = earlier.lock().clone();
        self.lock().recall(known);
    }

    /// What is known of the leading track before its frames tell.
    pub(crate) fn expected(&self) -> Option<Tempo> {
        self.lock().tempo()
    }

    fn lock(&self) -> MutexGuard<'_, Expectation> {
        self.expectation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the source was lost.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::Release);
    }

    /// The leading track, where it is known.
    pub(crate) fn track(&self) -> Option<u16> {
        u16::try_from(self.track.load(Ordering::Acquire)).ok()
    }

    /// Ticks of the leading track a second.
    pub(crate) fn timescale(&self) -> u32 {
        self.timescale.load(Ordering::Acquire)
    }

    /// Whether branches can begin with a frame of an epoch now.
    pub(crate) fn admits(&self, epoch: u32) -> bool {
        !self.is_lost.load(Ordering::Acquire) && epoch == self.epoch.load(Ordering::Acquire)
    }
}
