//! Segments of fragmented MP4.

use super::{LaneFormat, Read, ReadFrame};
use crate::{
    clock::Wrapped,
    reception::{assembly::Arrived, fragments::Lane, pulled::media_time::MediaTime, transport::Faults},
};
use bytes::Bytes;
use millpond_media::{
    Timescale,
    fragment_stream::{FragmentEvent, FragmentStream, StreamedSample},
};
use std::{sync::Arc, time::Duration};

/// Reads the tracks of fragmented MP4.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    stream: FragmentStream,
    events: Vec<FragmentEvent>,
    /// By the index of the track; `None` for those without pictures or sound.
    lanes: Vec<Option<(Lane, Arc<LaneFormat>)>>,
    has_tracks: bool,
    /// Media time that is zero.
    offset: Duration,
}

impl Fragments {
    pub(super) fn new(offset: Duration) -> Self {
        Self { offset, ..Self::default() }
    }

    /// Sets the media time that is zero.
    pub(super) fn set_offset(&mut self, offset: Duration) {
        self.offset = offset;
    }

    pub(super) fn push(&mut self, bytes: &Bytes, out: &mut Vec<Read>, faults: &mut Faults) -> Result<(), String> {
        let mut events = std::mem::take(&mut self.events);
        let result = self.stream.push(bytes, &mut events);
        self.take(&mut events, out, faults);
        self.events = events;
        result.map_err(|error| error.to_string())?;
        let is_useless = self.has_tracks && self.lanes.iter().all(Option::is_none);
        if is_useless { Err("no pictures and no sound in the movie box".to_owned()) } else { Ok(()) }
    }

    fn take(&mut self, events: &mut Vec<FragmentEvent>, out: &mut Vec<Read>, faults: &mut Faults) {
        for event in events.drain(..) {
            match event {
                FragmentEvent::Tracks { tracks, skipped } => {
                    for skipped in skipped {
                        tracing::warn!(id = skipped.id, why = skipped.reason, "track of a source left out");
                    }
                    self.has_tracks = true;
                    let lane = |track| {
                        let lane = Lane::new(track)?;
                        let (media, rate) = lane.media();
                        let format = lane.format(0, 1, rate);
                        let format = Arc::new(LaneFormat { media, rate, clock: lane.clock(), format });
                        Some((lane, format))
                    };
                    self.lanes = tracks.into_iter().map(lane).collect();
                }
                FragmentEvent::Sample(sample) => self.sample(sample, out),
                FragmentEvent::Fault(words) => faults.fragment(words),
            }
        }
    }

    fn sample(&mut self, sample: StreamedSample, out: &mut Vec<Read>) {
        let Some((lane, format)) = self.lanes.get_mut(sample.track).and_then(Option::as_mut) else { return };
        if sample.data.is_empty() {
            return;
        }
        let start = lane.start().saturating_add(ticks(self.offset, format.clock));
        let pts = sample.pts.saturating_sub(start);
        let arrived = Arrived {
            timestamp: Wrapped::whole(pts.cast_unsigned()),
            reordered: Some(lane.reordered(&sample)),
            is_key: sample.is_sync || !lane.is_video(),
            importance: None,
            lost_before: false,
            bytes: sample.data,
        };
        let time = MediaTime::whole(sample.dts.saturating_sub(start), format.clock);
        let lane = u32::try_from(sample.track).unwrap_or(u32::MAX);
        out.push(Read::Frame(ReadFrame { lane, time, format: format.clone(), date: None, arrived }));
    }

    /// Ends a piece: the next bytes begin with a box.
    pub(super) fn end_piece(&mut self, out: &mut Vec<Read>, faults: &mut Faults) {
        let mut events = std::mem::take(&mut self.events);
        self.stream.end_piece(&mut events);
        self.take(&mut events, out, faults);
        self.events = events;
    }

    pub(super) fn lanes(&self) -> Option<usize> {
        self.has_tracks.then(|| self.lanes.iter().flatten().count())
    }

    pub(super) fn is_sound_only(&self) -> bool {
        self.has_tracks && !self.lanes.iter().flatten().any(|(lane, _)| lane.is_video())
    }

    pub(super) fn missing(&self) -> &'static str {
        if self.has_tracks { "no frame" } else { "no movie box (moov)" }
    }
}

/// Returns a time in ticks, rounded to the nearest.
fn ticks(time: Duration, clock: Timescale) -> i64 {
    let nanos = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    Timescale::NANOS.convert(nanos, clock)
}
