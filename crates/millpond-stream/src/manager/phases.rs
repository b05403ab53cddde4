//! The phases of a title that is broadcast periodically.

use super::{KeepAlive, Manager};
use crate::{
    broadcast::{Ahead, Broadcast},
    cannot_open::CannotOpen,
    stored::StoredMedia,
    streams::LiveRequest,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The phases of a title. They run while this exists.
#[derive(Debug)]
pub struct Phases {
    pub(super) broadcast: Arc<Broadcast>,
    _streams: Vec<KeepAlive>,
}

impl Phases {
    /// Number of phases.
    pub fn count(&self) -> u16 {
        self.broadcast.stagger().phases()
    }

    /// Returns the phase that is least ahead of a time of the title. `None` where no phase that plays is ahead.
    pub fn nearest(&self, at: Duration, now: Instant) -> Option<Ahead> {
        self.broadcast.nearest(at, now)
    }
}

impl Manager {
    /// Starts the phases of a channel that plays a title, unless they run. Each begins when its turn comes. `streams` are their
    /// streams. Called within a runtime. `None` where the title has no duration.
    ///
    /// # Errors
    /// [`CannotOpen::Streams`]: there are too many streams.
    pub fn phases(
        &self,
        channel: &Arc<str>,
        media: &StoredMedia,
        streams: Vec<LiveRequest>,
    ) -> Result<Option<Phases>, CannotOpen> {
        let number = u16::try_from(streams.len()).unwrap_or(u16::MAX);
        let title = (media.id(), media.duration());
        let Some(broadcast) = self.resources.broadcasts.find(channel, title, number) else { return Ok(None) };
        let mut kept = Vec::with_capacity(streams.len());
        for request in streams {
            // A phase that failed just now is started by the next viewer.
            let stream = self.streams.find(request)?;
            kept.extend(self.streams.hold(&stream).map(KeepAlive));
        }
        Ok(Some(Phases { broadcast, _streams: kept }))
    }
}
