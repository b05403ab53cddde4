//! Reads the past of a stream in the order of its decode times.

use super::{
    PastFeed, PastPoint, PastStart, between,
    lane::Lane,
    look::{Look, look, read},
    moved, nanos,
};
use crate::{
    CannotOpen, Feed, Format, Frame, Run,
    epoch::{Epoch, EpochReason},
    live::{LiveWindow, Windows},
};
use millpond_media::{codec::Codec, units::Timescale};
use millpond_package::live::{Segment, SegmentNumber, WindowEpoch};
use millpond_store::Holds;
use std::{sync::Arc, time::Duration};

/// Time of the first frame on the timeline of a session: others of it may be decoded or presented earlier.
const START: Duration = Duration::from_secs(10);
/// Longest wait for a change of the window before it is checked whether another one took its place.
const CHECK: Duration = Duration::from_secs(1);
/// Checks after which a stream without a window has ended.
const CHECKS: usize = 5;
/// Wall times are told in whole milliseconds.
const MILLI: Duration = Duration::from_millis(1);

/// Sends the frames of a stream's past, and continues with frames that are cut meanwhile. It holds one part of each track, or a
/// quarter of a megabyte.
#[derive(Debug)]
pub(crate) struct PastReader {
    windows: Windows,
    window: Arc<LiveWindow>,
    feed: Arc<PastFeed>,
    holds: Holds,
    lanes: Vec<Lane>,
    /// The lane whose key frames playing begins with.
    lead: usize,
    stretch: Stretch,
    /// Wall time at which it ends.
    to: Option<Duration>,
    /// End of the frames that were given, on the timeline of the session.
    end: Duration,
    checks: usize,
}

/// Segments of one epoch without a hole.
#[derive(Clone, Debug)]
struct Stretch {
    /// Its epoch in the feed of the session.
    epoch: Epoch,
    /// Its epoch in the window.
    of_window: u32,
    /// Nanoseconds from times of the window to those of the session.
    shift: i64,
    /// Its first segment without media of the leading track, once that is known.
    ends: Option<SegmentNumber>,
}

/// What a reader begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    /// Time of the beginning on the timeline of the session.
    pub(crate) at: Duration,
    /// The same since the Unix epoch.
    pub(crate) wall: Duration,
    /// Time at which the first frame is due.
    pub(crate) due: Duration,
    /// Whether the tracks begin again; otherwise their numbers and timestamps continue.
    pub(crate) is_new: bool,
}

/// The result of one look for frames.
enum Loaded {
    /// A track has more frames, or is over.
    More,
    /// The next part was not cut yet. This was the version of the window.
    Ahead(u64),
}

impl PastReader {
    /// Reads tracks of a feed, each with the number of its next frame, from a window up to a wall time.
    pub(crate) fn new(
        (windows, window): (Windows, Arc<LiveWindow>),
        feed: Arc<PastFeed>,
        holds: Holds,
        tracks: impl IntoIterator<Item = (u16, u32)>,
        to: Option<Duration>,
    ) -> Self {
        let lane = |(track, next)| {
            let format = (&*feed as &dyn Feed).format(track)?;
            Some(Lane::new((track, format.is_video(), format.track.timescale), next))
        };
        let lanes = tracks.into_iter().filter_map(lane).collect();
        let (wall, reason) = (Duration::ZERO, EpochReason::Start);
        let epoch = Epoch { number: 0, from: START, wall, arrival: wall, formats: Arc::default(), reason };
        let stretch = Stretch { epoch, of_window: 0, shift: 0, ends: None };
        let mut reader = Self { windows, window, feed, holds, lanes, lead: 0, stretch, to, end: START, checks: 0 };
        reader.find_tracks();
        reader
    }

    /// Finds the tracks of the lanes in the window.
    fn find_tracks(&mut self) {
        let (window, feed) = (&self.window, &self.feed);
        for lane in &mut self.lanes {
            // The window has FLAC in the place of PCM, which RTP doesn't carry.
            let format = (&**feed as &dyn Feed).format(lane.track);
            let format = format.filter(|format| !matches!(format.track.codec, Codec::Pcm(_)));
            let name = format.map(|format| format.name.clone());
            lane.source = window.look(|window| {
                let index = window.track(&name?)?;
                Some((index, window.tracks().get(index)?.timescale))
            });
        }
        let has_source = |lane: &Lane| lane.source.is_some();
        let video = self.lanes.iter().position(|lane| lane.is_video && has_source(lane));
        self.lead = video.or_else(|| self.lanes.iter().position(has_source)).unwrap_or(0);
    }

    fn lead_track(&self) -> Option<usize> {
        self.lanes.get(self.lead)?.source.map(|(track, _)| track)
    }

    /// Goes to where playing begins, and reads up to its first frame.
    ///
    /// # Errors
    /// The window has no media of the tracks.
    pub(crate) async fn begin(&mut self, start: &PastStart) -> Result<Begun, CannotOpen> {
        match start {
            PastStart::At(wall) => self.seek(*wall).await,
            PastStart::Next(point) => match self.follow(point) {
                Some(begun) => Ok(begun),
                None => self.seek(point.wall).await,
            },
        }
    }

    /// Goes to the last key frame at a wall time or before, or to the first one after it.
    async fn seek(&mut self, wall: Duration) -> Result<Begun, CannotOpen> {
        let first = self.first_of(wall).ok_or(CannotOpen::Ended)?;
        if !self.enter(first, START) {
            return Err(CannotOpen::Ended);
        }
        loop {
            let loaded = self.load(self.lead).await;
            let at = moved(self.stretch.epoch.from, between(self.stretch.epoch.wall, wall.saturating_add(MILLI)));
            let lead = self.lanes.get_mut(self.lead).ok_or(CannotOpen::Ended)?;
            let has_passed = lead.trim(at);
            match (lead.due(), loaded) {
                (Some(_), _) if has_passed || lead.is_over => break,
                (Some(_), Loaded::Ahead(_)) => break,
                (None, _) if lead.is_over => {
                    let next = lead.place.segment;
                    if !self.enter(next, START) {
                        return Err(CannotOpen::Ended);
                    }
                }
                (None, Loaded::Ahead(seen)) => self.wait(seen).await.ok_or(CannotOpen::Ended)?,
                (_, Loaded::More) => {}
            }
        }
        let lead = self.lanes.get(self.lead).ok_or(CannotOpen::Ended)?;
        let at = moved(Duration::ZERO, nanos(lead.pts().unwrap_or(0), lead.scale()));
        let due = lead.due().unwrap_or(at);
        let wall = self.wall_of(at);
        self.lanes.iter_mut().filter(|lane| !lane.is_video).for_each(|lane| lane.from = at);
        Ok(Begun { at, wall, due, is_new: true })
    }

    /// The segment of a wall time, or one before it that begins with a key frame.
    fn first_of(&self, wall: Duration) -> Option<SegmentNumber> {
        self.window.look(|window| {
            let segment = window.segment(window.at(wall)?)?;
            let can_begin = |other: &&Segment| {
                other.number <= segment.number && other.epoch == segment.epoch && other.is_independent
            };
            Some(window.segments().rev().find(can_begin).unwrap_or(segment).number)
        })
    }

    /// Goes behind the frames that were sent last; `None` where they left the window.
    fn follow(&mut self, point: &PastPoint) -> Option<Begun> {
        let wall = point.wall;
        let hint = point.segment;
        let (first, at, epoch) = self.window.look(|window| {
            window.segments().next().filter(|oldest| oldest.wall <= wall)?;
            let hint = hint.and_then(|hint| window.segment(hint)).or_else(|| window.segment(window.at(wall)?))?;
            let epoch = window.epoch(hint.epoch)?;
            let at = |wall: Duration| moved(epoch.from, between(epoch.wall, wall));
            // The track that is furthest behind.
            let least = point.passed.iter().map(|(_, passed)| between(point.due, *passed)).min().unwrap_or(0);
            let least = moved(at(wall), least);
            let is_before = |segment: &&Segment| segment.epoch == hint.epoch && segment.start <= least;
            let first = window.segments().rev().find(is_before).filter(|first| first.number >= hint.number);
            Some((first.unwrap_or(hint).number, at(wall), epoch.clone()))
        })?;
        self.begin_stretch(first, &epoch, (at, point.due));
        for lane in &mut self.lanes {
            lane.needs_key = false;
            let passed = point.passed.iter().find(|(track, _)| *track == lane.track);
            lane.after = passed.map(|(_, passed)| *passed);
            // Nothing of the track was sent yet: what lies far back would be late.
            lane.from = if passed.is_some() { Duration::ZERO } else { point.due.saturating_sub(CHECK) };
        }
        self.end = point.due;
        Some(Begun { at: point.due, wall, due: point.due, is_new: false })
    }

    /// Begins a stretch with the first segment from `least` on that has media of the leading track. It begins at a time of the
    /// session's timeline. Returns whether there is one.
    fn enter(&mut self, least: SegmentNumber, due: Duration) -> bool {
        let Some(track) = self.lead_track() else { return false };
        let found = self.window.look(|window| {
            let has_media = |segment: &&Segment| {
                segment.number >= least && segment.track(track).is_some_and(|of_track| !of_track.is_gap())
            };
            let first = window.segments().find(has_media)?;
            Some((first.number, first.start, window.epoch(first.epoch)?.clone()))
        });
        let Some((first, start, epoch)) = found else { return false };
        self.begin_stretch(first, &epoch, (start, due));
        true
    }

    /// Begins a stretch with a segment. A time of the window becomes one of the session.
    fn begin_stretch(&mut self, first: SegmentNumber, of_window: &WindowEpoch, (at, due): (Duration, Duration)) {
        let number = self.stretch.epoch.number.wrapping_add(1);
        let wall = of_window.wall_of(at);
        let epoch = Epoch {
            number,
            from: due,
            wall,
            arrival: wall,
            formats: self.formats(of_window),
            reason: EpochReason::Jump,
        };
        self.feed.begin(epoch.clone(), first);
        self.stretch = Stretch { epoch, of_window: of_window.number, shift: between(at, due), ends: None };
        self.lanes.iter_mut().for_each(|lane| lane.go_to(first));
    }

    /// Formats of the feed's tracks in an epoch of the window.
    fn formats(&self, of_window: &WindowEpoch) -> Arc<[Option<Format>]> {
        let known = Feed::formats(&*self.feed);
        let of = |(number, known): (usize, &Option<Format>)| {
            let known = known.as_ref()?;
            let lane = self.lanes.iter().find(|lane| usize::from(lane.track) == number)?;
            let found = of_window.formats.get(lane.source?.0)?.as_ref()?;
            let track = millpond_media::Track { timescale: known.track.timescale, ..(*found.track).clone() };
            Some(Format { track, ..known.clone() })
        };
        known.iter().enumerate().map(of).collect()
    }

    fn wall_of(&self, at: Duration) -> Duration {
        moved(self.stretch.epoch.wall, between(self.stretch.epoch.from, at))
    }

    /// Reads the next part of a lane.
    async fn load(&mut self, number: usize) -> Loaded {
        let (epoch, shift) = (self.stretch.epoch.number, self.stretch.shift);
        let ends = self.stretch.ends;
        let is_lead = number == self.lead;
        let Some(lane) = self.lanes.get_mut(number) else { return Loaded::More };
        let Some((track, _)) = lane.source.filter(|_| ends.is_none_or(|ends| lane.place.segment < ends)) else {
            lane.is_over = true;
            return Loaded::More;
        };
        let place = lane.place;
        let (found, version) =
            self.window.look(|window| (look(window, track, place, self.stretch.of_window), window.version()));
        match found {
            Look::Ahead => return Loaded::Ahead(version),
            Look::Over => lane.next_segment(),
            Look::Gap if !is_lead => lane.next_segment(),
            Look::Gap => {
                lane.next_segment();
                lane.is_over = true;
            }
            Look::Left => lane.is_over = true,
            Look::Samples(samples) => {
                samples.into_iter().for_each(|sample| lane.take(sample, (epoch, shift)));
                lane.place.part += 1;
            }
            Look::Stored(init) => match read(&self.window, (track, place), init, &self.holds).await {
                Ok((_, 0)) => lane.next_segment(),
                Ok((samples, parts)) => {
                    samples.into_iter().for_each(|sample| lane.take(sample, (epoch, shift)));
                    lane.place.part += parts;
                }
                Err(error) => {
                    tracing::debug!(path = Feed::path(&*self.feed), segment = place.segment.0, error, "a gap");
                    lane.next_segment();
                    lane.is_over = is_lead;
                }
            },
        }
        if is_lead && lane.is_over {
            self.stretch.ends = Some(place.segment);
            self.lanes.iter_mut().for_each(|lane| lane.end_before(place.segment));
        }
        Loaded::More
    }

    /// Waits until the window has changed since a version. `None` where the stream has ended.
    async fn wait(&mut self, seen: u64) -> Option<()> {
        let is_new = self.window.when(CHECK, |window| (window.version() != seen).then_some(())).await;
        if is_new.is_some() {
            self.checks = 0;
            return Some(());
        }
        if !self.window.is_over() {
            return Some(());
        }
        // A stream whose tracks changed has another window.
        match self.windows.with_past(Feed::path(&*self.feed)) {
            Some(next) => {
                let place = self.lanes.get(self.lead)?.place;
                self.window = next;
                self.find_tracks();
                // The rest of a segment that has begun was never cut.
                let least = if place.part > 0 { place.segment.next() } else { place.segment };
                for lane in &mut self.lanes {
                    (lane.is_over, lane.place.segment) = (true, least);
                }
                Some(())
            }
            None => {
                self.checks += 1;
                tokio::time::sleep(CHECK).await;
                (self.checks < CHECKS).then_some(())
            }
        }
    }

    /// Waits for the next frames; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Option<Run> {
        loop {
            let empty = self.lanes.iter().position(|lane| !lane.is_over && lane.due().is_none());
            if let Some(empty) = empty {
                if let Loaded::Ahead(seen) = self.load(empty).await {
                    self.wait(seen).await?;
                }
                continue;
            }
            if self.lanes.iter().any(|lane| lane.due().is_some()) {
                let run = self.take();
                return (!run.is_empty()).then_some(run);
            }
            let next = self.lanes.get(self.lead)?.place.segment;
            let seen = self.window.look(millpond_package::live::Window::version);
            if !self.enter(next, self.end) {
                self.wait(seen).await?;
            }
        }
    }

    /// Takes frames in the order of their decode times, until a track has none; nothing from the end of the part on.
    fn take(&mut self) -> Run {
        let mut run: Vec<Frame> = Vec::new();
        while self.lanes.iter().all(|lane| lane.is_over || lane.due().is_some()) {
            let dues = self.lanes.iter().enumerate().filter_map(|(index, lane)| Some((lane.due()?, index)));
            let Some((due, first)) = dues.min() else { break };
            if self.to.is_some_and(|to| self.wall_of(due) >= to) {
                break;
            }
            let Some((frame, end)) = self.lanes.get_mut(first).and_then(Lane::give) else { break };
            self.end = self.end.max(end);
            run.push(frame);
        }
        run.into()
    }
}

impl Begun {
    /// The beginning in ticks of a track.
    pub(crate) fn ticks(&self, scale: u32) -> i64 {
        Timescale::new(scale).map_or(0, |scale| super::ticks(between(Duration::ZERO, self.at), scale))
    }
}
