//! The broadcasts of an engine, by the paths of their channels.

use super::{Broadcast, BroadcastPhase, PhaseSeat, Stagger};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

/// Broadcasts that run. A lock: taken when a viewer or a phase begins.
#[derive(Debug, Default)]
pub(crate) struct Broadcasts(Mutex<HashMap<Arc<str>, Weak<Broadcast>>>);

impl Broadcasts {
    /// Returns the broadcast of a channel: the one that runs, else one that begins now. `title` is the title's version and duration.
    /// `None` where it has no duration.
    pub(crate) fn find(&self, channel: &Arc<str>, (id, duration): (u64, f64), phases: u16) -> Option<Arc<Broadcast>> {
        let stagger = Stagger::new(Duration::try_from_secs_f64(duration).ok()?, phases)?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, broadcast| broadcast.strong_count() > 0);
        let known = all.get(channel).and_then(Weak::upgrade).filter(|known| known.is_of(id, stagger));
        Some(known.unwrap_or_else(|| {
            let new = Arc::new(Broadcast::new(stagger, id, Instant::now()));
            all.insert(channel.clone(), Arc::downgrade(&new));
            new
        }))
    }

    /// Returns the seat of a phase in the broadcast of its channel.
    pub(crate) fn seat(&self, phase: &BroadcastPhase, title: (u64, f64)) -> Option<PhaseSeat> {
        Some(PhaseSeat::new(self.find(&phase.channel, title, phase.of)?, phase.number))
    }
}
