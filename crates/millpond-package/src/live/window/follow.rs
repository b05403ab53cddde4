//! Windows that follow the window of another server, and go on where that one ends.

use super::Window;
use crate::live::{
    boundary::{ticks, time},
    copy::CopyRecord,
    cutter::Cut,
    part::SegmentNumber,
    segment::{Segment, TrackSegment},
};
use std::time::Duration;

/// The place where a window that has no source any more goes on with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// Number of the next segment.
    pub segment: SegmentNumber,
    /// Number of the next epoch.
    pub epoch: u32,
    /// Stream time at which the last segment ends.
    pub end: Duration,
    /// Stream time less wall time, in the last epoch: a stream time, and the wall time since the Unix epoch of the same moment.
    pub clock: (Duration, Duration),
}

impl Continuation {
    /// Stream time of a wall time since the Unix epoch: by the clock of the last epoch, and never before its end.
    #[must_use]
    pub fn stream_time(&self, wall: Duration) -> Duration {
        let (stream, at) = self.clock;
        stream.saturating_add(wall).saturating_sub(at).max(self.end)
    }
}

impl Window {
    /// Takes a record of the window that this one is a copy of. What is known already changes nothing. Where another server goes on with the run, and
    /// the one before went on too, their segments differ: those of the other one count.
    pub fn follow(&mut self, record: CopyRecord) {
        match record {
            CopyRecord::Head(_) | CopyRecord::Alive | CopyRecord::Ended => {}
            CopyRecord::Epoch(epoch) => {
                let known = self.epoch(epoch.number).map(|known| known.is_same(&epoch));
                if known == Some(false) {
                    let of_epoch = |segment: &&Segment| segment.epoch == epoch.number;
                    let first = self.segments.iter().find(of_epoch).map(|segment| segment.number);
                    first.into_iter().for_each(|first| self.forget_from(first));
                    self.epochs.retain(|known| known.number != epoch.number);
                }
                if known != Some(true) {
                    self.begin(epoch);
                }
            }
            CopyRecord::Cut(cut) => {
                if let Cut::Opened { segment, epoch, .. } = cut
                    && self.segment(segment).is_some_and(|known| known.epoch != epoch)
                {
                    self.forget_from(segment);
                }
                if let Cut::Closed { track, segment, start, duration } = cut {
                    self.shorten((track, segment), (start, duration));
                }
                if !self.lacks(&cut) {
                    return;
                }
                // Only complete segments leave a window.
                let is_full = matches!(cut, Cut::Opened { .. }) && self.segments.len() > self.limits.segments;
                let ends = self.segments.front().filter(|_| is_full).map(|first| self.ends(first));
                ends.into_iter().flatten().for_each(|end| self.push(end));
                self.push(cut);
            }
        }
    }

    /// Ends a segment of a track where another server has ended it, if it is longer here.
    fn shorten(&mut self, (track, segment): (usize, SegmentNumber), end: (i64, i64)) {
        let of_track = self.get_mut(segment).and_then(|segment| segment.tracks.get_mut(track));
        let freed = of_track
            .filter(|of_track| of_track.is_closed() && of_track.duration() > end.1)
            .map(|of_track| of_track.shorten(end));
        if let Some(freed) = freed {
            self.heap = self.heap.saturating_sub(freed);
            self.change(Some(track));
        }
    }

    /// Forgets a segment, and all behind it.
    fn forget_from(&mut self, first: SegmentNumber) {
        while let Some(gone) = self.segments.pop_back_if(|last| last.number >= first) {
            self.heap = self.heap.saturating_sub(gone.heap_bytes());
        }
        self.retired = self.retired.min(self.segments.len());
        if let Some(last) = self.segments.back() {
            (self.discontinuity, self.last_epoch) = (last.discontinuity, Some(last.epoch));
        }
        self.change(None);
    }

    fn lacks(&self, cut: &Cut) -> bool {
        let of = |segment: SegmentNumber, track: usize| self.segment(segment).and_then(|segment| segment.track(track));
        match cut {
            Cut::Targets(_) => self.targets().is_none(),
            Cut::Opened { segment, .. } => self.segments.back().is_none_or(|last| last.number < *segment),
            Cut::Part(part) => of(part.segment, part.track)
                .is_some_and(|of_track| !of_track.is_closed() && of_track.parts().len() == usize::from(part.index)),
            Cut::Closed { track, segment, .. } => of(*segment, *track).is_some_and(|of_track| !of_track.is_closed()),
        }
    }

    /// Ends all that is open, so that the stream goes on from another source. A segment that has only begun is forgotten. `None`
    /// where the window has no segment.
    pub fn continue_anew(&mut self) -> Option<Continuation> {
        let is_empty = |of_track: &TrackSegment| of_track.parts().is_empty() && !of_track.is_closed();
        let has_begun = |segment: &Segment| !segment.tracks.iter().all(is_empty);
        while self.segments.back().is_some_and(|last| !has_begun(last)) {
            let gone = self.segments.pop_back();
            self.heap = self.heap.saturating_sub(gone.map_or(0, |segment| segment.heap_bytes()));
        }
        let open: Vec<_> = self.segments.iter().flat_map(|segment| self.ends(segment)).collect();
        open.into_iter().for_each(|cut| self.push(cut));
        self.change(None);
        let last = self.segments.back()?;
        let of_tracks = self.tracks.iter().zip(&last.tracks);
        let end = of_tracks.filter_map(|(track, of_track)| {
            Some(time(of_track.start()?.saturating_add(of_track.duration()), track.timescale))
        });
        let end = end.max().unwrap_or(last.start).max(last.start);
        let epoch = self.epochs.iter().map(|epoch| epoch.number).max().map_or(0, |number| number.wrapping_add(1));
        Some(Continuation { segment: last.number.next(), epoch, end, clock: (last.start, last.wall) })
    }

    /// Returns the ends of a segment's tracks that have none.
    fn ends(&self, segment: &Segment) -> Vec<Cut> {
        let longest = self.longest(segment);
        let tracks = self.tracks.iter().zip(&segment.tracks).enumerate();
        let open = tracks.filter(|(_, (_, of_track))| !of_track.is_closed());
        let end = |(track, (of, of_track)): (usize, (&super::WindowTrack, &TrackSegment))| {
            let start = of_track.start().unwrap_or_else(|| ticks(segment.start, of.timescale));
            // A track without media lasts as long as the others.
            let duration = if of_track.parts().is_empty() { ticks(longest, of.timescale) } else { of_track.duration() };
            Cut::Closed { track, segment: segment.number, start, duration }
        };
        open.map(end).collect()
    }
}
