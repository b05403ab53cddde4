//! The frames of a title for one viewer that takes them one by one.

use super::title::RemoteTitle;
use crate::{Feed, Frame, Run};
use millpond_media::{
    Importance, Timescale,
    fragment_stream::{FragmentEvent, FragmentStream, StreamedSample},
};
use millpond_store::{OriginError, Store};
use std::{collections::VecDeque, sync::Arc, time::Duration};

/// Due time of the frames that are given together.
const BLOCK: Duration = Duration::from_millis(500);
/// Time by which frames may be decoded before they are presented.
const REORDERED: Duration = Duration::from_secs(2);

/// Reads the frames of a title in the order of their decode times, through the store.
#[derive(Debug)]
pub(crate) struct TitleReader {
    title: Arc<RemoteTitle>,
    store: Store,
    lanes: Vec<Lane>,
    /// Number of the next segment.
    next: u64,
    /// Frames that were read and not given yet.
    waiting: VecDeque<Frame>,
}

/// A track that the viewer takes.
#[derive(Debug)]
struct Lane {
    track: u16,
    number: u32,
    is_video: bool,
    timescale: Timescale,
    /// Frames that are presented earlier are left out; of pictures, those before the first key frame at or after this time.
    from: i64,
    needs_key: bool,
    /// Frames that are due earlier were sent already.
    due: Duration,
}

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TitleBegins {
    /// Presentation time of the first picture, or the time that was asked for.
    pub(crate) at: Duration,
    /// Time at which the first frame is due.
    pub(crate) due: Duration,
}

impl TitleReader {
    /// Reads tracks of a title, each with the number of its next frame.
    pub(crate) fn new(title: Arc<RemoteTitle>, store: Store, tracks: impl IntoIterator<Item = (u16, u32)>) -> Self {
        let lane = |(track, number): (u16, u32)| {
            let feed: &dyn Feed = &*title;
            let format = feed.format(track)?;
            Some(Lane {
                track,
                number,
                is_video: format.is_video(),
                timescale: format.track.timescale,
                from: i64::MIN,
                needs_key: false,
                due: Duration::ZERO,
            })
        };
        let lanes = tracks.into_iter().filter_map(lane).collect();
        Self { title, store, lanes, next: 0, waiting: VecDeque::new() }
    }

    /// Goes to the last key frame at a time or before. Returns where that is.
    ///
    /// # Errors
    /// The segment can't be read.
    pub(crate) async fn seek(&mut self, at: Duration) -> Result<TitleBegins, OriginError> {
        let mut number = self.title.number_at(at);
        let begins = loop {
            let samples = self.load(number).await?;
            let video = self.lanes.iter().find(|lane| lane.is_video);
            let Some(video) = video else { break at };
            let keys = samples.iter().filter(|sample| sample.is_sync && sample.track == usize::from(video.track));
            let keys: Vec<Duration> = keys.map(|key| time(key.pts, video.timescale)).collect();
            // The first picture of a title may be presented after time 0.
            let key = keys.iter().copied().filter(|key| *key <= at).max();
            match key.or_else(|| keys.first().copied().filter(|_| number == 0)) {
                Some(key) => break key,
                None if number == 0 => break at,
                None => number -= 1,
            }
        };
        for lane in &mut self.lanes {
            // The first frames of a title may be presented before its beginning.
            lane.from = if begins.is_zero() { i64::MIN } else { crate::frame::ticks(begins, lane.timescale.get()) };
            lane.needs_key = lane.is_video;
        }
        self.next = number;
        self.fill().await?;
        let due = self.waiting.front().map_or(begins, |frame| frame.due);
        Ok(TitleBegins { at: begins.min(at), due })
    }

    /// Goes on with the first frames that are due at a time or later.
    pub(crate) fn go_on(&mut self, due: Duration) {
        self.next = self.title.number_at(due.saturating_sub(REORDERED)).saturating_sub(1);
        self.lanes.iter_mut().for_each(|lane| lane.due = due);
    }

    /// Returns the next frames; `None` after the last one.
    ///
    /// # Errors
    /// A segment can't be read.
    pub(crate) async fn next(&mut self) -> Result<Option<Run>, OriginError> {
        self.fill().await?;
        let Some(until) = self.waiting.front().map(|frame| frame.due + BLOCK) else { return Ok(None) };
        let count = self.waiting.partition_point(|frame| frame.due < until);
        Ok(Some(self.waiting.drain(..count).collect()))
    }

    /// Reads segments until there are frames, or the title is over.
    async fn fill(&mut self) -> Result<(), OriginError> {
        while self.waiting.is_empty() && self.next < self.title.segments() {
            let samples = match self.load(self.next).await {
                // The title was found to be shorter than its description says.
                Err(_) if self.next >= self.title.segments() => break,
                samples => samples?,
            };
            self.next += 1;
            let mut frames: Vec<Frame> = samples.into_iter().filter_map(|sample| self.frame(sample)).collect();
            frames.sort_by_key(|frame| frame.due);
            for frame in &mut frames {
                let lane = self.lanes.iter_mut().find(|lane| lane.track == frame.track);
                if let Some(lane) = lane {
                    frame.number = lane.number;
                    lane.number = lane.number.wrapping_add(1);
                }
            }
            self.waiting.extend(frames);
        }
        Ok(())
    }

    /// Returns the frame of a sample that the viewer takes, without its number.
    fn frame(&mut self, sample: StreamedSample) -> Option<Frame> {
        let lane = self.lanes.iter_mut().find(|lane| usize::from(lane.track) == sample.track)?;
        let due = time(sample.dts, lane.timescale);
        if lane.needs_key {
            lane.needs_key = !(sample.is_sync && sample.pts >= lane.from);
        }
        let is_early = if lane.is_video { lane.needs_key } else { sample.pts < lane.from };
        if is_early || due < lane.due {
            return None;
        }
        let importance = if lane.is_video { Importance::BASE } else { Importance::SOUND };
        Some(Frame {
            track: lane.track,
            number: 0,
            due,
            pts: sample.pts,
            epoch: 0,
            is_sync: sample.is_sync,
            importance,
            data: sample.data,
        })
    }

    /// Reads the samples of a segment, with their times in the title.
    async fn load(&self, number: u64) -> Result<Vec<StreamedSample>, OriginError> {
        let bytes = self.title.media(&self.store, number).await?;
        let title = self.title.clone();
        let read = move || {
            let (mut stream, mut events) = (FragmentStream::new(), Vec::new());
            // Both were made by this server.
            let _ = stream.push(&title.listing().long_init(), &mut events);
            let _ = stream.push(&bytes, &mut events);
            let sample = |event| match event {
                FragmentEvent::Sample(sample) => {
                    let early = title.early(sample.track);
                    Some(StreamedSample { dts: sample.dts - early, pts: sample.pts - early, ..sample })
                }
                FragmentEvent::Tracks { .. } | FragmentEvent::Fault(_) => None,
            };
            events.into_iter().filter_map(sample).collect()
        };
        Ok(tokio::task::spawn_blocking(read).await.unwrap_or_default())
    }
}

/// Converts ticks to a time; negative ones to zero.
fn time(ticks: i64, timescale: Timescale) -> Duration {
    let (ticks, rate) = (u64::try_from(ticks).unwrap_or(0), u64::from(timescale.get()));
    let nanos = u128::from(ticks % rate) * 1_000_000_000 / u128::from(rate);
    Duration::from_secs(ticks / rate) + Duration::from_nanos(nanos as u64)
}
