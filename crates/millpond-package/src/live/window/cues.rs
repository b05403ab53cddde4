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
    /// Stream time that the cue announces, else the time of its arrival.
    pub at: Duration,
    /// The fields of the section.
    pub splice: Arc<SpliceSection>,
    /// The section, from `table_id` to its CRC.
    pub section: Bytes,
}

/// A cue that a window has taken, for windows that are made later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastCue {
    /// Wall time that it announces, since the Unix epoch.
    pub at: Duration,
    /// Wall time of the newest segment when it arrived.
    pub edge: Duration,
    /// The fields of the section.
    pub splice: Arc<SpliceSection>,
    /// The section, from `table_id` to its CRC.
    pub section: Bytes,
}

/// The cues of a window.
#[derive(Debug, Default)]
pub(super) struct Cues(Ranges);

impl Window {
    /// Takes a cue whose time is in the newest epoch. Playlists list an event until its end has left them. Returns the cue for
    /// later windows. `None` if it changes nothing, such as a repeated cue.
    pub fn cue(&mut self, cue: &Cue) -> Option<PastCue> {
        let at = self.newest_epoch()?.wall_of(cue.at);
        let edge = self.segments.back().map_or(at, |last| last.wall);
        let taken = PastCue { at, edge, splice: cue.splice.clone(), section: cue.section.clone() };
        self.cues.0.push(&taken).then(|| {
            self.change(None);
            taken
        })
    }

    /// Takes the cues of earlier windows, in the order of their arrival, after [`restore`](Self::restore).
    pub fn restore_cues(&mut self, cues: impl IntoIterator<Item = PastCue>) {
        for cue in cues {
            self.cues.0.settle(cue.edge);
            self.cues.0.push(&cue);
        }
        self.expire_cues();
        self.change(None);
    }

    /// Forgets events that ended before the first segment, and ends breaks that return by themselves.
    pub(super) fn expire_cues(&mut self) {
        let Some((first, last)) = self.segments.front().zip(self.segments.back()) else { return };
        self.cues.0.settle(last.wall);
        self.cues.0.expire(first.wall);
    }

    /// Events that end at a wall time or later, in the order of their arrival.
    pub(crate) fn cues_since(&self, wall: Duration) -> impl Iterator<Item = &CueRange> {
        self.cues.0.iter().filter(move |range| range.last() >= wall)
    }
}
