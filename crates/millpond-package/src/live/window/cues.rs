//! Cues of a stream (SCTE 35): its breaks and other events, as ranges of its wall clock.

mod ranges;
#[cfg(test)]
mod tests;

use super::Window;
use bytes::Bytes;
use millpond_media::ts::SpliceSection;
use ranges::Ranges;
pub(crate) use ranges::{CueAttribute, CuePoint, CueRange};
use std::{sync::Arc, time::Duration};

/// A splice information section of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cue {
    /// Stream time that it announces; that of its arrival where it has none.
    pub at: Duration,
    /// The fields of the section.
    pub splice: Arc<SpliceSection>,
    /// The section, from `table_id` to its CRC.
    pub section: Bytes,
}

/// The cues of a window.
#[derive(Debug, Default)]
pub(super) struct Cues(Ranges);

impl Window {
    /// Takes a cue whose time is in the newest epoch. Repeated ones change nothing. Playlists list an event until its end has
    /// left them.
    pub fn cue(&mut self, cue: &Cue) {
        let Some(epoch) = self.newest_epoch() else { return };
        let wall = epoch.wall_of(cue.at);
        let edge = self.segments.back().map_or(cue.at, |last| last.start);
        if self.cues.0.push(cue, wall, edge) {
            self.change(None);
        }
    }

    /// Forgets events that ended before the first segment, and ends breaks that return by themselves.
    pub(super) fn expire_cues(&mut self) {
        let Some((first, last)) = self.segments.front().zip(self.segments.back()) else { return };
        self.cues.0.settle(last.start);
        self.cues.0.expire(first.wall);
    }

    /// Events that end at a wall time or later, in the order of their arrival.
    pub(crate) fn cues_since(&self, wall: Duration) -> impl Iterator<Item = &CueRange> {
        self.cues.0.iter().filter(move |range| range.last() >= wall)
    }
}
