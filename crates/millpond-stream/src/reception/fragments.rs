//! Fragmented MP4 that is pushed: bytes in, frames to the assembly out.

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
use millpond_media::{
    SampleTable, Timescale, Track, TrackKind,
    fragment_stream::{FragmentEvent, FragmentStream, StreamedSample},
};
use millpond_package::{MediaKind, language};
use std::{sync::Arc, time::Duration};

/// Most channels: each has a buffer.
const MOST_CHANNELS: usize = 8;
/// Time for which the movie boxes of other channels are waited for.
const OTHERS: Duration = Duration::from_secs(2);
/// Most bytes of samples that wait for them.
const MOST_BYTES: usize = 16 << 20;
/// Bytes that a sample counts for beside its own.
const SAMPLE: usize = 128;
/// Greatest time in ticks of 90 kHz by which decoding precedes presentation: 10 s. Greater ones are errors.
const MOST_REORDERED: u64 = 10 * 90_000;

/// Makes frames of fragmented MP4: of one file with all tracks, or of files with some of them each.
#[derive(Debug)]
pub(super) struct FragmentFrames {
    inlets: Vec<Inlet>,
    is_split: bool,
    /// Whether frames are passed on.
    has_begun: bool,
    /// Arrival of the first movie box.
    since: Option<Duration>,
    /// Samples that wait for other movie boxes: the place of their inlet, and their arrival.
    held: Vec<(usize, StreamedSample, Duration)>,
    held_bytes: usize,
    /// Whole seconds that all times are reduced by: some senders count from 1970.
    base: Option<i64>,
    events: Vec<FragmentEvent>,
}

/// The file of a channel.
#[derive(Debug)]
struct Inlet {
    channel: u8,
    stream: FragmentStream,
    /// By the index of the track; `None` for those without pictures or sound.
    lanes: Vec<Option<Lane>>,
}

/// A track of a file.
#[derive(Debug)]
pub(super) struct Lane {
    source: Track,
    /// Ticks per second of its sound; 90 kHz for pictures.
    rate: Timescale,
    /// Index in the formats; `None` where there is none for it.
    track: Option<u16>,
    /// Media time at which presentation begins, by the edit list.
    start: i64,
    /// Greatest time by which decoding follows presentation: decode times are moved back by it.
    late: i64,
}

impl FragmentFrames {
    /// Creates it. `is_split` tells whether tracks arrive each on its own channel.
    pub(super) fn new(is_split: bool) -> Self {
        Self {
            inlets: Vec::new(),
            is_split,
            has_begun: false,
            since: None,
            held: Vec::new(),
            held_bytes: 0,
            base: None,
            events: Vec::new(),
        }
    }

    /// Takes bytes of a channel. None tell that the next ones begin with a box.
    ///
    /// # Errors
    /// Bytes that are no fragmented MP4, or too many channels.
    pub(super) fn push(
        &mut self,
        channel: u8,
        bytes: &Bytes,
        now: Duration,
        assembly: &mut Assembly,
        faults: &mut Faults,
    ) -> Result<(), SourceError> {
        let place = self.inlet(channel)?;
        let mut events = std::mem::take(&mut self.events);
        let stream = &mut self.inlets[place].stream;
        let result = if bytes.is_empty() {
            stream.end_piece(&mut events);
            Ok(())
        } else {
            stream.push(bytes, &mut events)
        };
        for event in events.drain(..) {
            match event {
                FragmentEvent::Tracks { tracks, skipped } => {
                    for skipped in skipped {
                        tracing::warn!(id = skipped.id, why = skipped.reason, "track of a publisher left out");
                    }
                    self.describe(place, tracks, now, assembly)?;
                }
                FragmentEvent::Sample(sample) => self.sample(place, sample, now, assembly),
                FragmentEvent::Fault(words) => faults.fragment(words),
            }
        }
        self.events = events;
        result.map_err(|error| invalid(SourceErrorKind::Protocol, error.to_string()))
    }

    /// The place of a channel's inlet.
    fn inlet(&mut self, channel: u8) -> Result<usize, SourceError> {
        if let Some(place) = self.inlets.iter().position(|inlet| inlet.channel == channel) {
            return Ok(place);
        }
        if self.inlets.len() == MOST_CHANNELS {
            return Err(invalid(SourceErrorKind::NoMedia, format!("more than {MOST_CHANNELS} files of tracks")));
        }
        self.inlets.push(Inlet { channel, stream: FragmentStream::new(), lanes: Vec::new() });
        Ok(self.inlets.len() - 1)
    }

    /// Takes the movie box of an inlet. A changed one begins anew.
    fn describe(
        &mut self,
        place: usize,
        tracks: Vec<Track>,
        now: Duration,
        assembly: &mut Assembly,
    ) -> Result<(), SourceError> {
        let codecs: Vec<&str> = tracks.iter().map(|track| track.codec.name()).collect();
        let found = format!("no pictures and no sound among {codecs:?}");
        let lanes: Vec<Option<Lane>> = tracks.into_iter().map(Lane::new).collect();
        if lanes.iter().all(Option::is_none) {
            return Err(invalid(SourceErrorKind::NoMedia, found));
        }
        self.inlets[place].lanes = lanes;
        self.since.get_or_insert(now);
        if self.has_begun {
            let has_new = self.place(assembly).iter().any(|(inlet, track)| *inlet == place && track.is_some());
            if has_new {
                self.begin(assembly);
            } else {
                tracing::warn!("tracks of a publisher left out: they were not there at its beginning");
            }
        } else {
            self.held.retain(|(of, ..)| *of != place);
            self.held_bytes = self.held.iter().map(|(_, sample, _)| sample.data.len() + SAMPLE).sum();
        }
        self.tick(now, assembly);
        Ok(())
    }

    /// All lanes, and the places of their inlets.
    fn lanes(&self) -> impl Iterator<Item = (usize, &Lane)> {
        let each = self.inlets.iter().enumerate();
        each.flat_map(|(place, inlet)| inlet.lanes.iter().flatten().map(move |lane| (place, lane)))
    }

    /// The tracks that lanes would get, with the places of their inlets.
    fn place(&self, assembly: &Assembly) -> Vec<(usize, Option<u16>)> {
        let (places, kinds): (Vec<usize>, Vec<_>) = self.lanes().map(|(place, lane)| (place, lane.media())).unzip();
        places.into_iter().zip(assembly.tracks_of(&kinds)).collect()
    }

    fn sample(&mut self, place: usize, sample: StreamedSample, now: Duration, assembly: &mut Assembly) {
        if self.has_begun {
            return self.pass(place, sample, now, assembly);
        }
        self.held_bytes += sample.data.len() + SAMPLE;
        self.held.push((place, sample, now));
        self.tick(now, assembly);
    }

    /// Passes frames on once all movie boxes are known, or were waited for long enough.
    pub(super) fn tick(&mut self, now: Duration, assembly: &mut Assembly) {
        let is_due = self.wake().is_some_and(|wake| now >= wake) || self.held_bytes > MOST_BYTES;
        if !self.has_begun && self.since.is_some() && is_due {
            self.begin(assembly);
            for (place, sample, arrival) in std::mem::take(&mut self.held) {
                self.pass(place, sample, arrival, assembly);
            }
            self.held_bytes = 0;
        }
    }

    /// Time at which [`tick`](Self::tick) must be called, if any.
    pub(super) fn wake(&self) -> Option<Duration> {
        let since = self.since.filter(|_| !self.has_begun)?;
        Some(if self.is_split { since + OTHERS } else { since })
    }

    fn begin(&mut self, assembly: &mut Assembly) {
        self.has_begun = true;
        let (kinds, clocks): (Vec<_>, Vec<_>) =
            self.lanes().map(|(_, lane)| (lane.media(), lane.source.timescale)).unzip();
        let tracks = assembly.adopt_counted(&kinds, &clocks);
        let lanes = self.inlets.iter_mut().flat_map(|inlet| inlet.lanes.iter_mut().flatten());
        for (lane, track) in lanes.zip(tracks) {
            if track.is_none() {
                tracing::warn!(id = lane.source.id, "track of a publisher left out: it was not there before");
            }
            lane.track = track;
        }
        let format = |track: u16| {
            let (_, lane) = self.lanes().find(|(_, lane)| lane.track == Some(track))?;
            Some(lane.format(track, assembly.number(track), assembly.timescale(track)?))
        };
        let formats: Arc<[Option<Format>]> = (0..assembly.tracks() as u16).map(format).collect();
        assembly.begin(formats);
    }

    fn pass(&mut self, place: usize, sample: StreamedSample, arrival: Duration, assembly: &mut Assembly) {
        let Some(lane) = self.inlets[place].lanes.get_mut(sample.track).and_then(Option::as_mut) else { return };
        let Some(track) = lane.track.filter(|_| !sample.data.is_empty()) else { return };
        let rate = i64::from(lane.source.timescale.get());
        let pts = sample.pts.saturating_sub(lane.start);
        let base = *self.base.get_or_insert(pts.div_euclid(rate));
        let arrived = Arrived {
            timestamp: Wrapped::whole(pts.saturating_sub(base.saturating_mul(rate)) as u64),
            reordered: Some(lane.reordered(&sample)),
            is_key: sample.is_sync || !lane.is_video(),
            importance: None,
            lost_before: false,
            bytes: sample.data,
        };
        assembly.frame(track, arrived, arrival);
    }

    /// Whether frames are passed on.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }
}

impl Lane {
    /// Creates the lane of a track; `None` where it has neither pictures nor sound.
    pub(super) fn new(source: Track) -> Option<Self> {
        let rate = match source.kind {
            TrackKind::Video { .. } => Timescale::MPEG,
            TrackKind::Audio { sample_rate, .. } => Timescale::new(sample_rate).unwrap_or(source.timescale),
            TrackKind::Text => return None,
        };
        let start = source.edits.iter().find_map(|edit| edit.media_time).unwrap_or(0);
        Some(Self { source, rate, track: None, start, late: 0 })
    }

    pub(super) fn is_video(&self) -> bool {
        matches!(self.source.kind, TrackKind::Video { .. })
    }

    /// Ticks per second of its times.
    pub(super) fn clock(&self) -> Timescale {
        self.source.timescale
    }

    /// Media time at which presentation begins.
    pub(super) fn start(&self) -> i64 {
        self.start
    }

    /// Media and rate, as tracks are chosen by.
    pub(super) fn media(&self) -> (&'static str, Timescale) {
        (if self.is_video() { "video" } else { "audio" }, self.rate)
    }

    /// Time in 90 kHz by which a sample is decoded before its presentation.
    pub(super) fn reordered(&mut self, sample: &StreamedSample) -> u32 {
        let ahead = sample.pts.saturating_sub(sample.dts);
        self.late = self.late.max(ahead.saturating_neg());
        let ticks = u64::try_from(ahead.saturating_add(self.late)).unwrap_or(0);
        let rate = u64::from(self.source.timescale.get());
        let ticks = ticks.saturating_mul(Timescale::MPEG.get().into()) / rate;
        if ticks > MOST_REORDERED { 0 } else { ticks as u32 }
    }

    /// The format of its track. `number` counts from 1 among the tracks of its media.
    pub(super) fn format(&self, track: u16, number: u16, timescale: Timescale) -> Format {
        let (kind, letter) = if self.is_video() { (MediaKind::Video, 'v') } else { (MediaKind::Audio, 'a') };
        Format {
            name: format!("{letter}{number}"),
            kind,
            language: language::tag(&self.source.language),
            is_default: number == 1,
            is_alternative: false,
            bandwidth: 0,
            is_encrypted: false,
            track: Track {
                id: u32::from(track) + 1,
                timescale,
                name: None,
                enabled: true,
                edits: Vec::new(),
                samples: SampleTable::default(),
                ..self.source.clone()
            },
        }
    }
}

fn invalid(kind: SourceErrorKind, words: String) -> SourceError {
    SourceError { kind, address: ADDRESS.to_owned(), words }
}
