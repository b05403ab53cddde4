//! Cuts the frames of a title into its nominal segments.

use super::grid::{EARLY, Grid};
use crate::reception::PlayedFrame;
use bytes::Bytes;
use millpond_media::Timescale;
use std::{collections::VecDeque, time::Duration};

/// Longest time in which the first groups of pictures are measured.
const MEASURED: Duration = Duration::from_secs(6);
/// Groups of pictures that are measured.
const GROUPS: usize = 2;
/// Time by which other tracks may be behind the leading one before a segment is complete without them.
const BEHIND: Duration = Duration::from_secs(3);
/// Most bytes of a segment.
const MOST_BYTES: usize = 64 << 20;

/// One frame of a segment, with its presentation time in ticks of its track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TitleSample {
    pub(super) time: i64,
    pub(super) is_key: bool,
    pub(super) data: Bytes,
}

impl From<PlayedFrame> for TitleSample {
    fn from(frame: PlayedFrame) -> Self {
        Self { time: frame.time, is_key: frame.is_key, data: frame.data }
    }
}

/// A complete segment: the samples of each track in decode order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CutSegment {
    pub(super) number: u64,
    pub(super) tracks: Vec<Vec<TitleSample>>,
}

/// A segment has more bytes than may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// A track, and its samples that are in no segment yet.
#[derive(Debug)]
struct Lane {
    timescale: Timescale,
    samples: VecDeque<TitleSample>,
}

/// Cuts the frames that one session gives, from the beginning of a segment on.
///
/// A segment begins with the first key frame of the leading track in its nominal time, and ends before that of the next one. Samples
/// of other tracks are in the segment in whose time they are presented. The content of a segment thus does not depend on the session.
#[derive(Debug)]
pub(super) struct TitleCutter {
    lanes: Vec<Lane>,
    lead: usize,
    has_pictures: bool,
    /// Shortest nominal segment.
    least: Duration,
    length: Duration,
    /// `None` until the first groups of pictures are measured.
    grid: Option<Grid>,
    /// Number of the segment that is collected.
    next: u64,
    /// Whether the key frame that begins it was seen.
    has_begun: bool,
    /// Samples of the leading lane that begin no segment.
    searched: usize,
    bytes: usize,
    /// Greatest presentation time of a sample, from the beginning of the title.
    reached: Option<Duration>,
}

impl TitleCutter {
    /// Creates the cutter of a session from the beginning on. `tracks` have their clocks, and tell whether they are pictures. The
    /// grid is measured: segments last `least` or more.
    pub(super) fn measuring(tracks: &[(Timescale, bool)], least: Duration, length: Duration) -> Self {
        let lane = |(timescale, _): &(Timescale, bool)| Lane { timescale: *timescale, samples: VecDeque::new() };
        let lead = tracks.iter().position(|(_, is_video)| *is_video);
        let grid = lead.is_none().then_some(Grid { segment: least, length });
        Self {
            lanes: tracks.iter().map(lane).collect(),
            lead: lead.unwrap_or(0),
            has_pictures: lead.is_some(),
            least,
            length,
            grid,
            next: 0,
            has_begun: false,
            searched: 1,
            bytes: 0,
            reached: None,
        }
    }

    /// Creates the cutter of a session that plays from before segment `first` of a grid.
    pub(super) fn new(tracks: &[(Timescale, bool)], grid: Grid, first: u64) -> Self {
        Self { grid: Some(grid), next: first, ..Self::measuring(tracks, grid.segment, grid.length) }
    }

    /// Returns the grid, once it is known.
    pub(super) fn grid(&self) -> Option<Grid> {
        self.grid
    }

    /// Returns the greatest presentation time of a sample; `None` before the first one.
    pub(super) fn reached(&self) -> Option<Duration> {
        self.reached
    }

    /// Returns whether the key frame that begins the first segment was not seen yet.
    pub(super) fn is_searching(&self) -> bool {
        !self.has_begun
    }

    /// Returns the samples that are in no segment yet.
    pub(super) fn samples(&self, track: usize) -> impl Iterator<Item = &TitleSample> {
        self.lanes.get(track).into_iter().flat_map(|lane| &lane.samples)
    }

    /// Takes a sample. Returns the segments that are complete with it.
    ///
    /// # Errors
    /// The segment becomes too large.
    pub(super) fn push(&mut self, track: usize, sample: TitleSample) -> Result<Vec<CutSegment>, TooLarge> {
        let Some(lane) = self.lanes.get_mut(track) else { return Ok(Vec::new()) };
        self.bytes += sample.data.len();
        self.reached = self.reached.max(Some(lane.at(&sample)));
        lane.samples.push_back(sample);
        let mut out = Vec::new();
        self.measure(false);
        self.begin(&mut out);
        while let Some(border) = self.border() {
            self.cut(border, &mut out);
        }
        if self.bytes > MOST_BYTES { Err(TooLarge) } else { Ok(out) }
    }

    /// Returns the last segment, after the end of the title, and the segments before it that became complete.
    pub(super) fn finish(&mut self) -> Vec<CutSegment> {
        let mut out = Vec::new();
        self.measure(true);
        self.begin(&mut out);
        while let Some(border) = self.find() {
            self.cut(border, &mut out);
        }
        if self.has_begun {
            let last =
                self.lanes.iter().filter_map(|lane| lane.samples.iter().map(|sample| lane.at(sample)).max()).max();
            let tracks = self.lanes.iter_mut().map(|lane| lane.samples.drain(..).collect()).collect();
            out.push(CutSegment { number: self.next, tracks });
            self.next += 1;
            self.has_begun = false;
            // A long last group of pictures leaves segments empty too.
            if let Some((grid, last)) = self.grid.zip(last) {
                self.skip_to(grid.of(last) + 1, &mut out);
            }
        }
        out
    }

    /// Decides the grid when enough groups of pictures were seen.
    fn measure(&mut self, is_over: bool) {
        if self.grid.is_some() {
            return;
        }
        let Some(lane) = self.lanes.get(self.lead) else { return };
        let keys: Vec<_> =
            lane.samples.iter().filter(|sample| sample.is_key).take(GROUPS + 1).map(|key| lane.at(key)).collect();
        let passed = keys.first().zip(lane.samples.back());
        let passed = passed.map_or(Duration::ZERO, |(first, last)| lane.at(last).saturating_sub(*first));
        if keys.len() > GROUPS || passed >= MEASURED || is_over {
            let groups: Vec<_> = keys.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
            self.grid = Some(Grid { segment: Grid::segment_of(self.least, &groups), length: self.length });
        }
    }

    /// Leaves out what precedes the segment that the session was opened for. Segments without a key frame are empty.
    fn begin(&mut self, out: &mut Vec<CutSegment>) {
        if self.has_begun {
            return;
        }
        let first = self.next;
        let from = self.grid.map_or(Duration::ZERO, |grid| grid.start(first)).saturating_sub(EARLY);
        let Some(lane) = self.lanes.get_mut(self.lead) else { return };
        let has_pictures = self.has_pictures;
        while let Some(sample) = lane.samples.front() {
            let is_key = sample.is_key || !has_pictures;
            if is_key && (first == 0 || lane.at(sample) >= from) {
                break;
            }
            lane.samples.pop_front().iter().for_each(|sample| self.bytes -= sample.data.len());
        }
        let Some(begin) = lane.samples.front().map(|sample| lane.at(sample)) else {
            if first > 0 {
                self.leave_out_others(from);
            }
            return;
        };
        let number = match self.grid {
            Some(grid) if first > 0 => grid.of(begin),
            _ => first,
        };
        self.has_begun = true;
        if first > 0 {
            self.leave_out_others(begin);
        }
        self.skip_to(number, out);
    }

    /// Returns the index of the key frame that ends the segment, once the other tracks have reached it.
    fn border(&mut self) -> Option<usize> {
        let index = self.find()?;
        let lead = self.lanes.get(self.lead)?;
        let (border, newest) = (lead.at(lead.samples.get(index)?), lead.at(lead.samples.back()?));
        let has_reached =
            |lane: &Lane| lane.samples.back().is_some_and(|last| lane.at(last) >= border) || newest >= border + BEHIND;
        let mut others = self.lanes.iter().enumerate().filter(|(index, _)| *index != self.lead);
        others.all(|(_, lane)| has_reached(lane)).then_some(index)
    }

    /// Returns the index of the key frame that ends the segment.
    fn find(&mut self) -> Option<usize> {
        let (grid, lane) = (self.grid.filter(|_| self.has_begun)?, self.lanes.get(self.lead)?);
        while let Some(sample) = lane.samples.get(self.searched) {
            if (sample.is_key || !self.has_pictures) && grid.of(lane.at(sample)) > self.next {
                return Some(self.searched);
            }
            self.searched += 1;
        }
        None
    }

    /// Completes the segment before the sample at an index of the leading lane.
    fn cut(&mut self, index: usize, out: &mut Vec<CutSegment>) {
        let Some((grid, lane)) = self.grid.zip(self.lanes.get(self.lead)) else { return };
        let Some(border) = lane.samples.get(index).map(|sample| lane.at(sample)) else { return };
        let mut tracks = self.split_others(border);
        if let Some(lane) = self.lanes.get_mut(self.lead) {
            tracks[self.lead] = lane.samples.drain(..index).collect();
        }
        self.bytes = self.lanes.iter().flat_map(|lane| &lane.samples).map(|sample| sample.data.len()).sum();
        self.searched = 1;
        out.push(CutSegment { number: self.next, tracks });
        self.next += 1;
        self.skip_to(grid.of(border), out);
    }

    /// Removes the samples of all tracks but the leading one that are presented before a time.
    fn split_others(&mut self, time: Duration) -> Vec<Vec<TitleSample>> {
        let lead = self.lead;
        let split = |(index, lane): (usize, &mut Lane)| {
            let is_before = |sample: &TitleSample| lane.at(sample) < time;
            let count =
                if index == lead { 0 } else { lane.samples.iter().take_while(|sample| is_before(sample)).count() };
            lane.samples.drain(..count).collect()
        };
        self.lanes.iter_mut().enumerate().map(split).collect()
    }

    /// Leaves out the samples of all tracks but the leading one that are presented before a time.
    fn leave_out_others(&mut self, time: Duration) {
        let left: usize = self.split_others(time).iter().flatten().map(|sample| sample.data.len()).sum();
        self.bytes = self.bytes.saturating_sub(left);
    }

    /// Completes segments without media up to a number.
    fn skip_to(&mut self, number: u64, out: &mut Vec<CutSegment>) {
        while self.next < number {
            out.push(CutSegment { number: self.next, tracks: vec![Vec::new(); self.lanes.len()] });
            self.next += 1;
        }
    }
}

impl Lane {
    /// Returns the presentation time of a sample from the beginning of the title.
    fn at(&self, sample: &TitleSample) -> Duration {
        let (ticks, rate) = (u64::try_from(sample.time).unwrap_or(0), u64::from(self.timescale.get()));
        let nanos = u128::from(ticks % rate) * 1_000_000_000 / u128::from(rate);
        Duration::from_secs(ticks / rate) + Duration::from_nanos(nanos as u64)
    }
}

#[cfg(test)]
mod tests;
