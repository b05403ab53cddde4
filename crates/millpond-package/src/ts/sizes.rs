//! Output sizes of a track, known before its media is read.

use super::{
    Unit, carriage, clock,
    grouping::{self, FrameStep},
    nal, packet, pes,
};
use millpond_media::{AacConfig, Codec, Track, TrackKind, units::Timescale};
use std::{ops::Range, sync::Arc};

/// Sizes of everything that is added to the units of a track.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    /// Whether each unit has a PES packet of its own.
    pub(super) stands_alone: bool,
    /// Whether the stream carries the clock.
    pub(super) has_clock: bool,
    /// Distance of audio frames by their codec; `None` where unknown.
    pub(super) step: Option<FrameStep>,
    /// A tick of the track's timescale on the 90 kHz clock, rounded up.
    pub(super) tick: i64,
    /// Length of a PES header in bytes.
    header: u64,
    /// Bytes added to each unit: a delimiter or an ADTS header.
    each: u64,
    /// Bytes added to units with parameter sets, of each sample description: parameter sets and display orientation.
    sets: Arc<[u64]>,
}

/// A PES packet, planned from the sizes of its units, or a packet with only a PCR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    /// Units of the packet; none for a PCR.
    pub(super) units: Range<usize>,
    /// Bytes of payload.
    pub(super) payload: u64,
    /// Transport packets.
    pub(super) packets: u32,
    /// Decoding time of the first unit, or the time of the PCR.
    pub(super) dts: i64,
}

impl Sizes {
    /// Returns the sizes for a track, which carries the clock or not. They are estimates where NAL unit lengths have
    /// other than 4 bytes.
    pub(super) fn of(track: &Track, has_clock: bool) -> Self {
        let orientation = carriage::orientation(track).len();
        let sets = carriage::parameter_sets(track).iter().map(|sets| (sets.len() + orientation) as u64).collect();
        let each = match &track.codec {
            Codec::Avc(_) => nal::NalCodec::Avc.delimiter().len(),
            Codec::Hevc(_) => nal::NalCodec::Hevc.delimiter().len(),
            Codec::Aac(_) => AacConfig::ADTS_HEADER,
            _ => 0,
        };
        let stands_alone = carriage::stands_alone(&track.codec);
        let step = match track.kind {
            TrackKind::Audio { sample_rate: rate, .. } if rate > 0 => {
                track.codec.samples_per_frame().map(|samples| FrameStep { samples, rate })
            }
            _ => None,
        };
        let tick = i64::from(Timescale::MPEG.get().div_ceil(track.timescale.get()));
        let header = pes::header_len(&track.codec);
        Self { stands_alone, has_clock, step, tick, header, each: each as u64, sets }
    }

    /// Returns the sizes of an audio track whose frames get nothing added.
    #[cfg(test)]
    pub(super) fn of_sound(step: Option<FrameStep>, tick: i64) -> Self {
        Self { stands_alone: false, has_clock: false, step, tick, header: 14, each: 0, sets: Arc::new([]) }
    }

    /// Returns the payload bytes that a unit becomes.
    pub(super) fn payload(&self, unit: &Unit) -> u64 {
        let sets = unit.sets.and_then(|place| self.sets.get(place)).copied().unwrap_or(0);
        unit.range.len().saturating_add(self.each + sets)
    }

    /// Plans the packets of a segment's units in order. Those of the next segment begin at `until`.
    pub(super) fn plan(self, units: &[Unit], until: Option<i64>) -> impl Iterator<Item = Planned> {
        let has_clock = self.has_clock;
        let mut pes = grouping::groups(self.clone(), units).map(move |group| self.pes(units, group)).peekable();
        let mut clocks = 0..0;
        let mut clock_from = 0;
        let mut left = clock::MOST_A_SEGMENT;
        std::iter::from_fn(move || {
            if let Some(number) = clocks.next() {
                return Some(Planned { units: 0..0, payload: 0, packets: 1, dts: clock::at(clock_from, number) });
            }
            let planned = pes.next()?;
            if has_clock {
                clock_from = planned.dts;
                let next = pes.peek().map(|next| next.dts).or(until);
                clocks = 1..1 + next.map_or(0, |next| clock::between(clock_from, next)).min(left);
                left -= clocks.end - clocks.start;
            }
            Some(planned)
        })
    }

    fn pes(&self, units: &[Unit], group: Range<usize>) -> Planned {
        let own = &units[group.clone()];
        let payload = own.iter().fold(0, |sum: u64, unit| sum.saturating_add(self.payload(unit)));
        let packets = packet::count(payload.saturating_add(self.header));
        Planned { payload, packets, dts: own.first().map_or(0, |unit| unit.dts), units: group }
    }
}
