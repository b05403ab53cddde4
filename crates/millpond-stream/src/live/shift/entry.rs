//! Epochs and segments on the disk, as they are remembered.

use millpond_media::{movie::TrackKind, units::Timescale};
use millpond_package::{
    MediaKind,
    live::{LiveFormat, PastSegment, PastTrack, SegmentNumber, WindowEpoch, WindowTrack},
};
use millpond_store::ring::{Outcome, Queued, Ring, RingKind, RingPlace, RingRecord};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Sets whether a segment can be decoded without others, in the flags of its records.
pub(super) const INDEPENDENT: u32 = 1;

/// An epoch on the disk.
#[derive(Clone, Debug)]
pub(super) struct StoredEpoch {
    pub(super) from: Duration,
    pub(super) wall: Duration,
    pub(super) formats: Vec<Option<LiveFormat>>,
}

impl StoredEpoch {
    pub(super) fn of(epoch: &WindowEpoch) -> Self {
        Self { from: epoch.from, wall: epoch.wall, formats: epoch.formats.to_vec() }
    }

    /// Whether its tracks equal the window's.
    pub(super) fn fits(&self, tracks: &[WindowTrack]) -> bool {
        let is_same = |(format, track): (&Option<LiveFormat>, &WindowTrack)| {
            format.as_ref().is_none_or(|format| {
                kind(&format.track.kind) == track.kind && format.track.timescale == track.timescale
            })
        };
        self.formats.len() == tracks.len() && self.formats.iter().zip(tracks).all(is_same)
    }

    pub(super) fn restored(&self, number: u32) -> WindowEpoch {
        WindowEpoch::new(number, self.from, self.wall, self.formats.clone())
    }
}

/// Returns the tracks of a window with these formats. Names are as in running windows: `v1`, `a1`, `text1`.
pub(super) fn tracks(formats: Vec<&LiveFormat>) -> Vec<WindowTrack> {
    let (mut pictures, mut sounds, mut texts) = (0, 0, 0);
    let track = |format: &LiveFormat| {
        let kind = kind(&format.track.kind);
        let (name, number) = match kind {
            MediaKind::Video => ("v", &mut pictures),
            MediaKind::Audio => ("a", &mut sounds),
            MediaKind::Text => ("text", &mut texts),
        };
        *number += 1;
        WindowTrack { name: format!("{name}{number}"), kind, timescale: format.track.timescale }
    };
    formats.into_iter().map(track).collect()
}

/// Kind of a track in a window.
pub(super) fn kind(kind: &TrackKind) -> MediaKind {
    match kind {
        TrackKind::Video { .. } => MediaKind::Video,
        TrackKind::Audio { .. } => MediaKind::Audio,
        TrackKind::Text => MediaKind::Text,
    }
}

/// A segment on the disk.
#[derive(Clone, Debug)]
pub(super) struct StoredSegment {
    pub(super) number: u64,
    pub(super) run: u64,
    pub(super) epoch: u32,
    pub(super) discontinuity: u64,
    pub(super) start: Duration,
    pub(super) wall: Duration,
    pub(super) is_independent: bool,
    pub(super) tracks: Box<[StoredTrack]>,
}

/// The part of a segment that belongs to one track.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredTrack {
    /// Parts that wait for the disk.
    pub(super) waiting: Vec<Queued>,
    /// Places of the parts, once all are on the disk.
    pub(super) places: Vec<RingPlace>,
    /// Start and duration in ticks, once no further part follows.
    pub(super) closed: Option<(i64, i64)>,
}

impl StoredSegment {
    pub(super) fn key(&self) -> (u64, u32) {
        (self.run, self.epoch)
    }

    /// Returns the record of it, for a part to complete.
    pub(super) fn record(&self, run: u64) -> RingRecord {
        let discontinuity = u32::try_from(self.discontinuity).unwrap_or(u32::MAX) << 1;
        RingRecord {
            kind: RingKind::Part,
            track: 0,
            flags: discontinuity | u32::from(self.is_independent),
            run,
            epoch: self.epoch,
            segment: self.number,
            part: 0,
            start: self.start,
            duration: Duration::ZERO,
            wall: self.wall,
            source: Duration::ZERO,
        }
    }

    /// Whether nothing of it waits for the disk.
    pub(super) fn is_settled(&self) -> bool {
        self.tracks.iter().all(|track| track.closed.is_some() && track.waiting.is_empty())
    }

    /// Whether the ring has evicted a part of it, or it has none.
    pub(super) fn is_evicted(&self, ring: &Ring) -> bool {
        let mut places = self.tracks.iter().flat_map(|track| &track.places).peekable();
        match places.peek() {
            Some(_) => places.any(|place| !ring.holds(*place)),
            None => self.is_settled(),
        }
    }

    /// Bytes of memory that it holds.
    pub(super) fn memory(&self) -> u64 {
        let of = |track: &StoredTrack| {
            size_of::<StoredTrack>()
                + track.places.len() * size_of::<RingPlace>()
                + track.waiting.len() * 2 * size_of::<Queued>()
        };
        (size_of::<Self>() + self.tracks.iter().map(of).sum::<usize>()) as u64
    }

    /// Returns it as a segment of a window with these tracks.
    pub(super) fn restored(&self, epoch: u32, tracks: &[WindowTrack]) -> PastSegment {
        // A track without media lasts as long as the first one that has some.
        let lasts = self.tracks.iter().zip(tracks).find_map(|(of_track, track)| {
            let (_, duration) = of_track.closed?;
            Some(time(duration, track.timescale))
        });
        let of = |(stored, track): (&StoredTrack, &WindowTrack)| {
            let (start, duration) = stored.closed.unwrap_or_else(|| {
                (ticks(self.start, track.timescale), ticks(lasts.unwrap_or_default(), track.timescale))
            });
            PastTrack { start, duration, bytes: stored.places.iter().map(|place| u64::from(place.length())).sum() }
        };
        PastSegment {
            number: SegmentNumber(self.number),
            epoch,
            discontinuity: self.discontinuity,
            start: self.start,
            wall: self.wall,
            is_independent: self.is_independent,
            tracks: self.tracks.iter().zip(tracks).map(of).collect(),
        }
    }
}

impl StoredTrack {
    /// Takes the places of its parts, where all of them are settled. Returns whether all are on the disk.
    pub(super) fn settle(&mut self) -> bool {
        let outcomes = self.waiting.iter().map(Queued::outcome);
        if self.closed.is_none() || self.waiting.is_empty() || outcomes.clone().any(|of| of == Outcome::Waiting) {
            return false;
        }
        let place = |outcome| match outcome {
            Outcome::Written(place) => Some(place),
            Outcome::Waiting | Outcome::Lost => None,
        };
        let places: Option<Vec<_>> = outcomes.map(place).collect();
        self.waiting = Vec::new();
        self.places = places.unwrap_or_default();
        !self.places.is_empty()
    }
}

/// Converts ticks to the nearest nanosecond; negative ones to 0.
pub(super) fn time(ticks: i64, scale: Timescale) -> Duration {
    let (ticks, scale) = (u128::try_from(ticks).unwrap_or(0), u128::from(scale.get()));
    Duration::from_nanos(u64::try_from((ticks * 1_000_000_000 + scale / 2) / scale).unwrap_or(u64::MAX))
}

/// Converts a time to the nearest tick.
pub(super) fn ticks(time: Duration, scale: Timescale) -> i64 {
    let nanos = u128::from(scale.get()) * time.as_nanos();
    i64::try_from((nanos + 500_000_000) / 1_000_000_000).unwrap_or(i64::MAX)
}

/// Time since the Unix epoch.
pub(super) fn wall_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
