//! Continuity counters of a track's transport stream segments, and how big those are.

use crate::{
    bandwidth::{Bandwidth, Load},
    segmentation::Segments,
    track::Media,
    ts::{self, Unit},
};
use millpond_media::units::Timescale;

/// What is known of a track's part in its transport stream segments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TsLayout {
    /// Continuity counter of each segment's first packet (ISO/IEC 13818-1 2.4.3.3): packets before it, modulo 16.
    first: Box<[u8]>,
    pub(crate) bandwidth: Bandwidth,
}

/// Bytes of a transport packet.
const PACKET: u64 = 188;
/// Presentation time 0 on the 90 kHz clock: 10 s, so that priming and preroll before 0 can be said.
const BASE: i64 = 900_000;

impl TsLayout {
    /// The layout of a track cut at `ordinals`, in segments that last as long as those of `segments` and have
    /// `tables` packets more. Walks over all samples.
    pub(crate) fn of(media: &Media, ordinals: &[u32], segments: &Segments, tables: u64) -> Self {
        let mut first = Vec::with_capacity(ordinals.len());
        let mut loads = Vec::with_capacity(ordinals.len());
        let mut packets = 0_u64;
        for (cut, micros) in ordinals.windows(2).zip(segments.micros()) {
            first.push((packets % 16) as u8);
            let own = ts::stream_packets(&media.track().codec, &units(media, cut[0]..cut[1]));
            packets = packets.wrapping_add(own);
            loads.push(Load { micros, bytes: own.saturating_add(tables).saturating_mul(PACKET) });
        }
        Self { first: first.into(), bandwidth: Bandwidth::of(&loads) }
    }

    /// The counter of segment `number`'s first packet.
    pub(crate) fn first(&self, number: u32) -> u8 {
        let place = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        self.first.get(place).copied().unwrap_or(0)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.first.len()
    }
}

/// Samples as access units of a transport stream. No decode time is after its presentation time
/// (2.4.3.7).
pub(crate) fn units(media: &Media, ordinals: std::ops::Range<u32>) -> Vec<Unit> {
    let track = media.track();
    let clock = |ticks: i64| track.timescale.convert(ticks, Timescale::MPEG).saturating_add(BASE).max(0);
    media
        .timeline
        .walk(&track.samples, ordinals)
        .map(|t| Unit {
            range: t.sample.range,
            dts: clock(t.dts.saturating_sub(media.facts.reorder)),
            pts: clock(t.pts),
            sync: t.sample.sync,
        })
        .collect()
}
