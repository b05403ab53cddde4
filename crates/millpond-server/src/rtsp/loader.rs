//! Loads the frames of a session: reads ahead of what is due through the store, a stretch of the file at a time.

use crate::library::Asset;
use bytes::{Bytes, BytesMut};
use millpond_graph::{Frame, Inlet};
use millpond_package::{ObjectRange, PresentedTrack};
use millpond_store::{Chunk, Object, OriginError, Store, Watch, schedule::Course};
use std::{collections::VecDeque, ops::Range, sync::Arc, time::Duration};

/// So much is loaded at once; the first stretch is shorter, for playing begins when it is there.
const STRETCH: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(1000));
/// A stretch ends early at so many bytes.
const BYTES: u64 = 1 << 20;
/// Ranges with less than this between them are read as one.
const GAP: u64 = 16 << 10;
/// Samples looked up at once.
const BATCH: u32 = 64;

/// One track of a session: which of the asset's, and where it goes on.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    /// Place in the presentation's tracks.
    pub(super) track: usize,
    /// Place in the session's, for frames.
    pub(super) number: u8,
    /// The next sample, among those presented.
    pub(super) next: u32,
}

/// Loads frames from the cursors on until `to`, and puts them into a pipe in the order of their decode times. Ends where
/// the pipe is given up.
pub(super) async fn load(
    store: &Store,
    asset: &Asset,
    cursors: Vec<Cursor>,
    to: Duration,
    inlet: &Inlet,
) -> Result<(), OriginError> {
    let mut lanes: Vec<Lane<'_>> = cursors.into_iter().filter_map(|cursor| Lane::new(asset, cursor)).collect();
    let mut watches: Vec<Watch> = Vec::new();
    let mut length = STRETCH.0;
    loop {
        let stretch = Stretch::gather(&mut lanes, length, to);
        if stretch.frames.is_empty() {
            return Ok(());
        }
        length = STRETCH.1;
        let spans = stretch.read(store, asset).await?;
        for planned in &stretch.frames {
            let frame = planned.frame(&spans);
            if inlet.put(frame).await.is_err() {
                return Ok(());
            }
        }
        follow(store, asset, &stretch, &mut watches);
    }
}

/// Tells the scheduler where the session is in each object, that what follows comes in time.
fn follow(store: &Store, asset: &Asset, stretch: &Stretch, watches: &mut Vec<Watch>) {
    for (place, span) in &stretch.spans {
        let Some(object) = asset.objects.get(usize::from(place.0)).filter(|object| object.file().is_none()) else {
            continue;
        };
        let rate = object.meta().len as f64 / asset.presentation.duration().max(0.001);
        let course = Course::constant(span.start, object.meta().len, rate);
        match watches.iter().find(|watch| Arc::ptr_eq(watch.object(), object)) {
            Some(watch) => watch.moves(course, span.end),
            None => {
                let watch = store.watch(object);
                watch.moves(course, span.end);
                watches.push(watch);
            }
        }
    }
}

/// A track on its way.
struct Lane<'a> {
    track: &'a PresentedTrack,
    number: u8,
    timescale: u32,
    object: millpond_package::ObjectIndex,
    next: u32,
    waiting: VecDeque<millpond_package::timeline::Timed>,
}

impl<'a> Lane<'a> {
    fn new(asset: &'a Asset, cursor: Cursor) -> Option<Self> {
        let track = asset.presentation.tracks().get(cursor.track)?;
        let timescale = track.source_track()?.timescale.get();
        let (number, next) = (cursor.number, cursor.next);
        Some(Self { object: track.object()?, track, number, timescale, next, waiting: VecDeque::new() })
    }

    /// When the next sample is due.
    fn due(&mut self) -> Option<Duration> {
        if self.waiting.is_empty() {
            self.waiting.extend(self.track.samples_of(self.next..self.next.saturating_add(BATCH)));
            self.next = self.next.saturating_add(BATCH);
        }
        Some(seconds(self.waiting.front()?.dts, self.timescale))
    }
}

/// Ticks to time; what lies before the beginning is at the beginning.
pub(super) fn seconds(ticks: i64, timescale: u32) -> Duration {
    let nanos = i128::from(ticks.max(0)) * 1_000_000_000 / i128::from(timescale.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Frames that are loaded together.
struct Stretch {
    frames: Vec<Planned>,
    /// What is read of which object.
    spans: Vec<(millpond_package::ObjectIndex, Range<u64>)>,
}

struct Planned {
    track: u8,
    number: u32,
    due: Duration,
    pts: i64,
    is_sync: bool,
    place: ObjectRange,
}

impl Stretch {
    fn gather(lanes: &mut [Lane<'_>], length: Duration, to: Duration) -> Self {
        let mut frames: Vec<Planned> = Vec::new();
        let mut bytes = 0;
        loop {
            let first = lanes.iter_mut().filter_map(|lane| Some((lane.due()?, lane))).min_by_key(|(due, _)| *due);
            let Some((due, lane)) = first else { break };
            let begins = frames.first().map_or(due, |frame| frame.due);
            if due >= to || due > begins + length || (bytes >= BYTES && !frames.is_empty()) {
                break;
            }
            let Some(timed) = lane.waiting.pop_front() else { break };
            let place = ObjectRange { object: lane.object, range: timed.sample.range };
            bytes += place.range.len();
            let is_sync = timed.sample.sync;
            let number = timed.ordinal;
            frames.push(Planned { track: lane.number, number, due, pts: timed.pts, is_sync, place });
        }
        let spans = spans(&frames);
        Self { frames, spans }
    }

    async fn read(&self, store: &Store, asset: &Asset) -> Result<Vec<Span>, OriginError> {
        let mut read = Vec::with_capacity(self.spans.len());
        for (place, range) in &self.spans {
            let Some(object) = asset.objects.get(usize::from(place.0)) else { continue };
            let bytes = read_span(store, object, range.clone()).await?;
            read.push(Span { place: *place, start: range.start, bytes });
        }
        Ok(read)
    }
}

/// Bytes of an object that were read.
struct Span {
    place: millpond_package::ObjectIndex,
    start: u64,
    bytes: Bytes,
}

impl Planned {
    fn frame(&self, spans: &[Span]) -> Frame {
        let range = self.place.range;
        let within = |span: &&Span| {
            span.place == self.place.object
                && span.start <= range.start
                && range.end <= span.start + span.bytes.len() as u64
        };
        let data = spans.iter().find(within).map(|span| {
            let from = (range.start - span.start) as usize;
            span.bytes.slice(from..from + range.len() as usize)
        });
        Frame {
            track: self.track,
            number: self.number,
            due: self.due,
            pts: self.pts,
            is_sync: self.is_sync,
            data: data.unwrap_or_default(),
        }
    }
}

/// The ranges of the frames, those that lie near each other as one.
fn spans(frames: &[Planned]) -> Vec<(millpond_package::ObjectIndex, Range<u64>)> {
    let mut ranges: Vec<_> =
        frames.iter().map(|frame| (frame.place.object, frame.place.range.start, frame.place.range.end)).collect();
    ranges.sort_unstable();
    let mut spans: Vec<(millpond_package::ObjectIndex, Range<u64>)> = Vec::new();
    for (object, start, end) in ranges {
        match spans.last_mut() {
            Some((same, span)) if *same == object && start <= span.end + GAP => span.end = span.end.max(end),
            _ => spans.push((object, start..end)),
        }
    }
    spans
}

/// Reads a range into memory; slices of the cache are pinned only as long as that takes.
async fn read_span(store: &Store, object: &Arc<Object>, range: Range<u64>) -> Result<Bytes, OriginError> {
    let mut reader = store.read(object, range.clone());
    let mut whole = BytesMut::new();
    while let Some(chunk) = reader.next().await {
        let bytes = match chunk? {
            Chunk::Bytes(bytes) => bytes,
            chunk => store.load(object, chunk).await?,
        };
        if whole.is_empty() && bytes.len() as u64 == range.end - range.start {
            return Ok(bytes);
        }
        whole.reserve((range.end - range.start) as usize - whole.len());
        whole.extend_from_slice(&bytes);
    }
    Ok(whole.freeze())
}
