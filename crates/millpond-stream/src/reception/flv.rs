//! FLV tags that are pushed by RTMP: tags in, frames to the assembly out.

mod lane;
mod sound_times;

use crate::{
    Format,
    clock::Wrapped,
    reception::{
        assembly::{Arrived, Assembly},
        published::ADDRESS,
        transport::Faults,
    },
    source_health::{SourceError, SourceErrorKind},
};
use bytes::Bytes;
use lane::Lane;
use millpond_media::{
    MediaError,
    flv::{FlvContent, FlvTag},
};
use std::{sync::Arc, time::Duration};

/// Time for which the other track is waited for after the first one.
const OTHER: Duration = Duration::from_secs(1);
/// Most bytes of frames that wait for it.
const MOST_BYTES: usize = 16 << 20;
/// Bytes that a frame counts for beside its own.
const FRAME: usize = 128;

/// Makes frames of a stream of FLV tags: one track of pictures, one of sound.
#[derive(Debug, Default)]
pub(super) struct FlvFrames {
    /// Pictures, then sound.
    lanes: [Option<Lane>; 2],
    /// Whether frames are passed on.
    has_begun: bool,
    /// Arrival of the first configuration or frame.
    since: Option<Duration>,
    /// Frames that wait for the other track.
    held: Vec<Held>,
    held_bytes: usize,
}

/// A frame that is to be passed on.
#[derive(Debug)]
struct Held {
    /// Index of its lane.
    lane: usize,
    timestamp: u32,
    /// Milliseconds from decoding to presentation.
    composition: i32,
    is_key: bool,
    bytes: Bytes,
    arrival: Duration,
}

impl FlvFrames {
    /// Takes a tag.
    ///
    /// # Errors
    /// Its codec is not supported, or has a configuration that is not.
    pub(super) fn push(
        &mut self,
        tag: &Bytes,
        now: Duration,
        assembly: &mut Assembly,
        faults: &mut Faults,
    ) -> Result<(), SourceError> {
        match FlvTag::read(tag) {
            Ok(Some(tag)) => self.tag(tag, now, assembly),
            Ok(None) => Ok(()),
            // The pictures are worth more than a publication that ends.
            Err(error @ MediaError::Unsupported { .. }) if FlvTag::is_sound(tag) => {
                assembly.name(format!("sound of a publisher left out: {error}"));
                Ok(())
            }
            Err(error @ MediaError::Unsupported { .. }) => Err(no_media(&error)),
            Err(error) => {
                faults.fragment(error.to_string());
                Ok(())
            }
        }
    }

    fn tag(&mut self, tag: FlvTag, now: Duration, assembly: &mut Assembly) -> Result<(), SourceError> {
        let FlvTag { timestamp, codec, content } = tag;
        self.since.get_or_insert(now);
        let index = usize::from(!codec.is_video());
        let slot = &mut self.lanes[index];
        if slot.as_ref().is_none_or(|lane| lane.codec() != codec) {
            let track = slot.as_ref().and_then(Lane::track);
            *slot = Some(Lane::new(codec, track));
        }
        let Some(lane) = slot else { return Ok(()) };
        match content {
            FlvContent::Configuration(record) => {
                if lane.configure(&record).map_err(|error| no_media(&error))? {
                    self.describe(index, assembly);
                }
            }
            FlvContent::Frame { composition, is_key, data } => {
                let (is_changed, bytes) = lane.sift(&data, is_key, now);
                if is_changed {
                    self.describe(index, assembly);
                }
                if !bytes.is_empty() {
                    self.take(Held { lane: index, timestamp, composition, is_key, bytes, arrival: now }, assembly);
                }
            }
        }
        self.tick(now, assembly);
        Ok(())
    }

    /// Takes note of a format that is new or has changed.
    fn describe(&mut self, index: usize, assembly: &mut Assembly) {
        if !self.has_begun {
            return;
        }
        let taken: Vec<u16> = self.lanes.iter().flatten().filter_map(Lane::track).collect();
        let Some(lane) = &mut self.lanes[index] else { return };
        if lane.track().is_none() {
            lane.set_track(assembly.join(lane.media(), lane.clock(), (&taken, true)));
        }
        assembly.change(self.formats(assembly));
    }

    fn take(&mut self, frame: Held, assembly: &mut Assembly) {
        if self.has_begun {
            return self.pass(frame, assembly);
        }
        self.held_bytes += frame.bytes.len() + FRAME;
        self.held.push(frame);
    }

    /// Passes frames on once both formats are known, or were waited for long enough.
    pub(super) fn tick(&mut self, now: Duration, assembly: &mut Assembly) {
        if self.has_begun {
            return;
        }
        let known = self.known().count();
        let is_due = self.since.is_some_and(|since| now >= since + OTHER) || self.held_bytes > MOST_BYTES;
        if known == self.lanes.len() || known > 0 && is_due {
            self.begin(assembly);
        } else if self.held_bytes > MOST_BYTES {
            // Nobody can decode frames without a configuration.
            self.held.clear();
            self.held_bytes = 0;
        }
    }

    /// Time at which [`tick`](Self::tick) must be called, if any.
    pub(super) fn wake(&self) -> Option<Duration> {
        let since = self.since.filter(|_| !self.has_begun && self.known().next().is_some())?;
        Some(since + OTHER)
    }

    /// Whether frames are passed on.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The lanes whose format is known.
    fn known(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().flatten().filter(|lane| lane.is_known())
    }

    fn begin(&mut self, assembly: &mut Assembly) {
        self.has_begun = true;
        let (kinds, clocks): (Vec<_>, Vec<_>) = self.known().map(|lane| (lane.media(), lane.clock())).unzip();
        let tracks = assembly.adopt_counted(&kinds, &clocks);
        let known = self.lanes.iter_mut().flatten().filter(|lane| lane.is_known());
        for (lane, track) in known.zip(tracks) {
            if track.is_none() {
                tracing::warn!(codec = %lane.codec(), "track of a publisher left out: it was not there before");
            }
            lane.set_track(track);
        }
        assembly.begin(self.formats(assembly));
        self.held_bytes = 0;
        for frame in std::mem::take(&mut self.held) {
            self.pass(frame, assembly);
        }
    }

    /// The formats of all tracks of the stream.
    fn formats(&self, assembly: &Assembly) -> Arc<[Option<Format>]> {
        let format = |track: u16| {
            let lane = self.known().find(|lane| lane.track() == Some(track))?;
            lane.format(assembly.number(track), assembly.timescale(track)?)
        };
        (0..assembly.tracks() as u16).map(format).collect()
    }

    fn pass(&mut self, frame: Held, assembly: &mut Assembly) {
        let Some(lane) = &mut self.lanes[frame.lane] else { return };
        let Some(track) = lane.track() else { return };
        let (timestamp, reordered) = match lane.sound_time(frame.timestamp) {
            Some(samples) => (Wrapped::whole(samples as u64), 0),
            None => {
                let presented = frame.timestamp.wrapping_add_signed(frame.composition);
                (Wrapped::rtp(presented), lane.reordered(frame.composition))
            }
        };
        let arrived = Arrived {
            timestamp,
            reordered: Some(reordered),
            is_key: frame.is_key,
            importance: None,
            lost_before: false,
            bytes: frame.bytes,
        };
        assembly.frame(track, arrived, frame.arrival);
    }
}

fn no_media(error: &MediaError) -> SourceError {
    SourceError { kind: SourceErrorKind::NoMedia, address: ADDRESS.to_owned(), words: error.to_string() }
}
