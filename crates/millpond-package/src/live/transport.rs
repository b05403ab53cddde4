//! Transport stream segments of a window, made on request.
//!
//! The window's parts have everything that the segments need. If exactly one sound track fits into transport streams, the
//! segments of every video have it, as in stored media ([`crate::delivery::transport`]).

use super::{
    epoch::WindowEpoch,
    part::{Part, SegmentNumber},
    segment::{Segment, TrackSegment},
    window::{Window, steady},
};
use crate::{
    PackageError,
    presentation::track::MediaKind,
    timeline::bandwidth::{Bandwidth, Load},
    ts::{self, Continuity, MemoryStream, Packets, Sample},
    writing::digits,
};
use bytes::Bytes;
use millpond_media::{Movie, units::Timescale};
use std::{collections::VecDeque, sync::Arc};

/// Length of a transport packet in bytes.
const PACKET: u64 = 188;
/// Packets of PAT and PMT in a segment.
const TABLES: u64 = 2;
/// Segments by which bit rates are measured.
const MEASURED: usize = 30;

/// How the tracks of an epoch share transport streams.
pub(crate) struct Sharing {
    /// Tracks that fit.
    carried: Vec<usize>,
    /// The sound in the segments of each video.
    pub(crate) muxed: Option<usize>,
}

impl Sharing {
    /// Whether a track has segments of its own.
    pub(crate) fn is_own(&self, track: usize) -> bool {
        self.carried.contains(&track) && self.muxed != Some(track)
    }
}

impl Window {
    /// Returns how the tracks of an epoch share transport streams.
    pub(crate) fn sharing(&self, epoch: &WindowEpoch) -> Sharing {
        let fits = |place: &usize| {
            let format = epoch.formats.get(*place).and_then(Option::as_ref);
            format.is_some_and(|format| format.track.codec.fits_ts())
        };
        let carried: Vec<_> = (0..self.tracks().len()).filter(fits).collect();
        let of_kind = |kind| {
            carried
                .iter()
                .copied()
                .filter(move |place| self.tracks().get(*place).is_some_and(|track| track.kind == kind))
        };
        let mut sound = of_kind(MediaKind::Audio);
        let only = sound.next().filter(|_| sound.next().is_none());
        let muxed = only.filter(|_| of_kind(MediaKind::Video).next().is_some());
        Sharing { carried, muxed }
    }

    /// Returns the tracks in the segments of a track; none where it has no segments of its own.
    fn members(&self, epoch: u32, track: usize) -> Vec<usize> {
        let Some(sharing) = self.epoch(epoch).map(|epoch| self.sharing(epoch)) else { return Vec::new() };
        if !sharing.is_own(track) {
            return Vec::new();
        }
        let is_video = self.tracks().get(track).is_some_and(|track| track.kind == MediaKind::Video);
        std::iter::once(track).chain(sharing.muxed.filter(|_| is_video)).collect()
    }

    /// Whether a track has a transport stream of its own in a segment.
    pub(crate) fn has_transport(&self, segment: &Segment, track: usize) -> bool {
        !self.members(segment.epoch, track).is_empty()
    }

    /// Whether a track has transport stream segments of its own in the newest epoch.
    #[must_use]
    pub fn is_transported(&self, track: usize) -> bool {
        self.newest_epoch().is_some_and(|epoch| self.sharing(epoch).is_own(track))
    }

    /// Number of the newest segment whose transport stream of a track can be made: all tracks in it are complete. `None` also
    /// where the newest epoch has no such stream.
    #[must_use]
    pub fn last_transport(&self, track: usize) -> Option<SegmentNumber> {
        let members = self.members(self.newest_epoch()?.number, track);
        let closed = || members.iter().map(|member| self.last_closed(*member));
        closed().min().flatten()
    }

    /// Bits per second of a track's transport stream segments in an epoch, rounded up.
    pub(crate) fn transport_bandwidth(&self, epoch: &WindowEpoch, track: usize) -> Bandwidth {
        let (Some(of_window), members) = (self.tracks().get(track), self.members(epoch.number, track)) else {
            return Bandwidth::default();
        };
        let load = |segment: &Segment| {
            let (_, duration) = segment.track(track)?.closed?;
            let packets = members.iter().map(|member| self.packets(segment, *member, *member == track));
            let all = packets.fold(TABLES, |sum, packets| sum + packets.payload + packets.clocks);
            Some(Load { micros: digits::micros(duration, of_window.timescale.get()), bytes: all * PACKET })
        };
        let of_epoch = self.with_parts().rev().filter(|segment| segment.epoch == epoch.number);
        let mut loads: Vec<_> = of_epoch.filter_map(load).take(MEASURED).collect();
        loads.reverse();
        let found = Bandwidth::of(&loads);
        let [peak, average, sustained] = [found.peak, found.average, found.sustained].map(|rate| steady(0, rate));
        Bandwidth { peak, average, sustained }
    }

    /// Returns the packets of a track in a segment.
    fn packets(&self, segment: &Segment, track: usize, has_clock: bool) -> Packets {
        let format = self.epoch(segment.epoch).and_then(|epoch| epoch.formats.get(track)?.as_ref());
        let (Some(format), Some(of_track)) = (format, segment.track(track)) else { return Packets::default() };
        let (samples, until) = self.samples(of_track, track);
        ts::stream_packets(&format.track, &ts::units(&samples), has_clock, until)
    }

    /// Returns the samples of a track in a segment, and the end of the last one.
    fn samples(&self, of_track: &TrackSegment, track: usize) -> (Vec<Sample>, Option<i64>) {
        let Some(scale) = self.tracks().get(track).map(|track| track.timescale) else { return (Vec::new(), None) };
        let mut samples = Vec::with_capacity(of_track.parts().iter().map(|part| part.rows.len()).sum());
        let mut end = None;
        for part in of_track.parts() {
            end = Some(take(part, scale, &mut samples));
        }
        (samples, end)
    }
}

/// Appends the samples of a part. Returns the end of the last one.
fn take(part: &Part, scale: Timescale, samples: &mut Vec<Sample>) -> i64 {
    let mut dts = part.decode_time;
    for (row, data) in part.rows.iter().zip(part.bytes.iter().skip(1)) {
        let pts = ts::clock_of(dts.saturating_add(row.offset), scale);
        let is_sync = row.is_sync;
        samples.push(Sample { dts: ts::clock_of(dts, scale).min(pts), pts, is_sync, data: data.clone() });
        dts = dts.saturating_add(row.duration.into());
    }
    ts::clock_of(dts, scale)
}

/// Continuity counters of a window's transport stream segments. They are counted when segments are requested, and continue while
/// requests follow.
#[derive(Debug, Default)]
pub struct TransportCounters {
    tracks: Vec<Counters>,
}

/// Counters of one track.
#[derive(Debug, Default)]
struct Counters {
    /// Number of the first segment.
    first: u64,
    /// Counter of the first packet of each segment: of one more than were counted.
    starts: VecDeque<u8>,
}

impl Counters {
    /// Returns the counter of the first packet of a segment. Segments before it are counted, where they were not.
    fn reach(&mut self, window: &Window, track: usize, number: SegmentNumber) -> u8 {
        let oldest = window.with_parts().next().map_or(0, |segment| segment.number.0);
        while self.first < oldest && self.starts.len() > 1 {
            self.starts.pop_front();
            self.first += 1;
        }
        if self.starts.is_empty() || self.first < oldest {
            (self.first, self.starts) = (oldest, VecDeque::from([0]));
        }
        let behind = number.0.saturating_sub(self.first);
        while (self.starts.len() as u64) <= behind {
            let last = self.starts.back().copied().unwrap_or(0);
            let counted = SegmentNumber(self.first.saturating_add(self.starts.len() as u64 - 1));
            let Some(segment) = window.segment(counted) else { break };
            let has_clock = window.has_transport(segment, track);
            let packets = window.packets(segment, track, has_clock).payload;
            self.starts.push_back(last.wrapping_add((packets % 16) as u8) & 0x0f);
        }
        let place = usize::try_from(behind).unwrap_or(usize::MAX);
        self.starts.get(place).copied().unwrap_or(0)
    }
}

/// A transport stream segment, before it is written.
#[derive(Debug)]
pub struct TransportSegment {
    movie: Arc<Movie>,
    streams: Vec<Stream>,
    number: SegmentNumber,
    continuity: Continuity,
}

#[derive(Debug)]
struct Stream {
    samples: Vec<Sample>,
    counter: u8,
    until: Option<i64>,
}

impl Stream {
    fn memory(&self, track: usize, continuity: Continuity) -> MemoryStream<'_> {
        let Self { samples, counter, until } = self;
        MemoryStream { track, samples, first_counter: *counter, continuity, until: *until }
    }
}

impl TransportSegment {
    /// Takes the samples of segment `number` of a track, and of the sound in it. `None` if the window has no such segment in
    /// memory, the segment is not complete, or the track has no transport stream of its own.
    #[must_use]
    pub fn of(window: &Window, counters: &mut TransportCounters, track: usize, number: SegmentNumber) -> Option<Self> {
        let in_memory = window.with_parts().next()?.number;
        let segment = window.segment(number).filter(|_| number >= in_memory)?;
        let epoch = window.epoch(segment.epoch)?;
        let members = window.members(segment.epoch, track);
        let is_complete = |member: &usize| segment.track(*member).is_some_and(TrackSegment::is_closed);
        let is_gap = segment.track(track).is_none_or(TrackSegment::is_gap);
        if members.is_empty() || is_gap || !members.iter().all(is_complete) {
            return None;
        }
        counters.tracks.resize_with(window.tracks().len(), Counters::default);
        let (mut streams, mut tracks) = (Vec::new(), Vec::new());
        for member in members {
            tracks.push((*epoch.formats.get(member)?.as_ref()?.track).clone());
            let (samples, end) = window.samples(segment.track(member)?, member);
            let counter = counters.tracks.get_mut(member)?.reach(window, member, number);
            streams.push(Stream { samples, counter, until: end.filter(|_| member == track) });
        }
        let is_first = epoch.began == Some(segment.start);
        let continuity = if is_first { Continuity::New } else { Continuity::Counted };
        Some(Self { movie: ts::movie_of(tracks), streams, number, continuity })
    }

    /// Bytes of its samples: a transport stream has a few more.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let samples = self.streams.iter().flat_map(|stream| &stream.samples);
        samples.map(|sample| sample.data.len() as u64).sum()
    }

    /// Writes the segment.
    ///
    /// # Errors
    /// A sample that its codec does not allow.
    pub fn write(&self) -> Result<Bytes, PackageError> {
        let streams: Vec<_> =
            self.streams.iter().enumerate().map(|(track, stream)| stream.memory(track, self.continuity)).collect();
        let mut out = Vec::new();
        // PAT and PMT are one packet each.
        let table_counter = (self.number.0 % 16) as u8;
        ts::write(&self.movie, &streams, (Some(table_counter), 0), &mut out)?;
        Ok(out.into())
    }
}

#[cfg(test)]
mod tests;
