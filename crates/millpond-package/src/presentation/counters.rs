//! Continuity counters and sizes of a track's transport stream segments.

use crate::{
    presentation::track::MediaTrack,
    timeline::{
        Timed,
        bandwidth::{Bandwidth, Load},
        segmentation::Segments,
    },
    ts::{self, BASE, Unit},
};
use millpond_media::{Descriptions, units::Timescale};

/// Properties of a track's share of its transport stream segments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TsLayout {
    /// Continuity counter of each segment's first packet (ISO/IEC 13818-1 2.4.3.3): the number of earlier packets,
    /// modulo 16.
    first: Box<[u8]>,
    pub(crate) bandwidth: Bandwidth,
}

/// Length of a transport packet in bytes.
const PACKET: u64 = 188;
impl TsLayout {
    /// Computes the layout of a track cut at `ordinals`, in segments with the durations of `segments`. Walks over all
    /// samples.
    pub(crate) fn of(media: &MediaTrack, ordinals: &[u32], segments: &Segments, role: Role) -> Self {
        let mut first = Vec::with_capacity(ordinals.len());
        let mut loads = Vec::with_capacity(ordinals.len());
        let mut packets = 0_u64;
        for (cut, micros) in ordinals.windows(2).zip(segments.micros()) {
            first.push((packets % 16) as u8);
            let until = role.until(media, cut[1]);
            let own = ts::stream_packets(media.track(), &units(media, cut[0]..cut[1]), role.has_clock(), until);
            packets = packets.wrapping_add(own.payload);
            let all = own.payload.saturating_add(own.clocks).saturating_add(role.tables());
            loads.push(Load { micros, bytes: all.saturating_mul(PACKET) });
        }
        Self { first: first.into(), bandwidth: Bandwidth::of(&loads) }
    }

    /// Returns the counter of segment `number`'s first packet.
    pub(crate) fn first(&self, number: u32) -> u8 {
        let place = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        self.first.get(place).copied().unwrap_or(0)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.first.len()
    }
}

/// Role of a track in its segments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// The segments are the track's own: it carries the clock, at most until the given time after its last sample.
    Own(Option<i64>),
    /// The segments belong to a video track.
    Muxed,
}

impl Role {
    const fn has_clock(self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// Number of PAT and PMT packets.
    const fn tables(self) -> u64 {
        if self.has_clock() { 2 } else { 0 }
    }

    /// Returns the end of the clock of a segment that ends before sample `ordinal`.
    pub(crate) fn until(self, media: &MediaTrack, ordinal: u32) -> Option<i64> {
        let Self::Own(end) = self else { return None };
        let next = media.timeline.at(&media.track().samples, ordinal);
        next.map_or(end, |next| Some(decoded(media, next.dts)))
    }
}

/// Converts a time to the clock of transport streams.
fn clock(media: &MediaTrack, ticks: i64) -> i64 {
    media.track().timescale.convert(ticks, Timescale::MPEG).saturating_add(BASE).max(0)
}

/// Converts a `dts` of the timeline to a decoding time.
fn decoded(media: &MediaTrack, dts: i64) -> i64 {
    clock(media, dts.saturating_sub(media.facts.reorder))
}

/// Returns the time at which the last sample of a track is decoded.
pub(crate) fn last_decoded(media: &MediaTrack) -> Option<i64> {
    let last = media.timeline.len().checked_sub(1)?;
    media.timeline.at(&media.track().samples, last).map(|timed| decoded(media, timed.dts))
}

/// Returns the samples of a segment as access units of a transport stream. No decoding time is later than its
/// presentation time (2.4.3.7).
pub(crate) fn units(media: &MediaTrack, ordinals: std::ops::Range<u32>) -> Vec<Unit> {
    let first = ordinals.start;
    let track = media.track();
    let sets = |t: &Timed| {
        let place = |all: &Descriptions| (all.place(t.sample.index), all.begins(t.sample.index));
        let (place, begins) = track.descriptions.as_deref().map_or((0, false), place);
        (t.sample.sync || begins || t.ordinal == first).then_some(place)
    };
    media
        .timeline
        .walk(&track.samples, ordinals)
        .map(|t| Unit {
            range: t.sample.range,
            dts: decoded(media, t.dts),
            pts: clock(media, t.pts),
            sync: t.sample.sync,
            sets: sets(&t),
        })
        .collect()
}
