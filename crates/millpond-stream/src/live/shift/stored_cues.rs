//! Cues of a stream on the disk: what windows need that are made later.
//!
//! The payload of a record is the section. `start` of the record is the wall time that the cue announces. `wall` is the wall time
//! of the newest segment when the cue arrived.

use super::wall_now;
use millpond_media::ts::SpliceSection;
use millpond_package::live::{PastCue, Window};
use millpond_store::{
    Chunk,
    ring::{Found, Ring, RingKind, RingRecord},
};
use std::{collections::VecDeque, os::unix::fs::FileExt as _, sync::Arc, time::Duration};

/// Most cues that are remembered, and most bytes of their sections: those of a window. The oldest leave first.
const MOST: usize = 256;
const MOST_BYTES: usize = 64 << 10;
/// Most bytes of a section (SCTE 35 9.6): 12 bits of length, and 3 bytes before it.
const MOST_SECTION: usize = 4098;
/// Longest time by which a cue may lie ahead of its arrival: PTS wraps after 26.5 hours.
const AHEAD: Duration = Duration::from_secs(27 * 3600);

/// The cues of a stream's past, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct StoredCues {
    cues: VecDeque<PastCue>,
    /// Bytes of their sections.
    bytes: usize,
}

impl StoredCues {
    /// Reads those that a ring has. Cues that can't be read are left out.
    pub(super) fn recover(ring: &Ring, found: &[Found]) -> Self {
        let mut stored = Self::default();
        let of_cues: Vec<_> = found.iter().filter(|found| found.record.kind == RingKind::Cue).collect();
        for one in of_cues.iter().skip(of_cues.len().saturating_sub(MOST)) {
            read(ring, one).into_iter().for_each(|cue| stored.push(cue));
        }
        stored
    }

    /// Takes a cue.
    pub(super) fn push(&mut self, cue: PastCue) {
        self.bytes += cue.section.len();
        self.cues.push_back(cue);
        while self.cues.len() > MOST || self.bytes > MOST_BYTES {
            let first = self.cues.pop_front();
            self.bytes -= first.map_or(self.bytes, |cue| cue.section.len());
        }
    }

    /// Gives them to a window.
    pub(super) fn restore(&self, window: &mut Window) {
        window.restore_cues(self.cues.iter().cloned());
    }

    /// Bytes of memory that they hold.
    pub(super) fn memory(&self) -> u64 {
        (self.cues.capacity() * size_of::<PastCue>() + self.bytes) as u64
    }
}

/// Returns the record of a cue. `segment` is the newest one of the window, of a run and an epoch.
pub(super) fn record(cue: &PastCue, (run, epoch, segment): (u64, u32, u64)) -> RingRecord {
    RingRecord {
        kind: RingKind::Cue,
        track: 0,
        flags: 0,
        run,
        epoch,
        segment,
        part: 0,
        start: cue.at,
        duration: Duration::ZERO,
        // The age of a file is that of its newest record, so what lies ahead does not count.
        wall: cue.edge.min(wall_now()),
        source: Duration::ZERO,
    }
}

fn read(ring: &Ring, Found { record, place, .. }: &Found) -> Option<PastCue> {
    let length = usize::try_from(place.length()).ok().filter(|length| *length <= MOST_SECTION)?;
    let Ok(Chunk::File { file, range, .. }) = ring.read(*place) else { return None };
    let mut section = vec![0; length];
    file.read_exact_at(&mut section, range.start).ok()?;
    let splice = SpliceSection::read(&section).ok().flatten()?;
    let is_near = record.start.saturating_sub(record.wall) <= AHEAD;
    is_near.then(|| PastCue { at: record.start, edge: record.wall, splice: Arc::new(splice), section: section.into() })
}
