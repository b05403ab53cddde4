//! Interleaves the streams of a segment.

use super::{
    ElementaryStream, carriage,
    lane::{self, Lane},
    packet::SIZE,
    psi::{self, TableNumbers},
    sizes::{Planned, Sizes},
};
use crate::{
    ObjectIndex, ObjectRange, PackageError, Rewrite,
    plan::{Damage, reads},
};
use std::collections::VecDeque;

/// More streams than a program map table of one packet can list.
const MOST_STREAMS: usize = 33;

/// A PES packet of one lane, or a packet with only a PCR.
struct Pes {
    lane: usize,
    planned: Planned,
}

/// A segment that is being rewritten.
pub(super) struct Muxer {
    lanes: Vec<Lane>,
    /// PAT and PMT, until they are written.
    tables: Option<[[u8; SIZE]; 2]>,
    len: Option<u64>,
    /// PES packets in order of output. Units are removed as they are written.
    queue: VecDeque<Pes>,
    /// Whether some units of the first PES packet are written.
    begun: bool,
    /// Places of all units, in order of output.
    reads: Vec<ObjectRange>,
    /// Number of units that are written.
    written: usize,
    /// The last read, and the number of units it covers.
    pending: Option<(usize, ObjectRange)>,
    damage: Option<Damage>,
}

impl Muxer {
    /// Plans the segment. Without `numbers` it has no PAT and PMT.
    pub(super) fn new(streams: Vec<ElementaryStream>, numbers: Option<TableNumbers>) -> Result<Self, PackageError> {
        let found = streams.len() as u64;
        let too_many = || PackageError::TooMany { what: "streams of a transport stream", found, limit: 9 };
        if streams.len() > MOST_STREAMS {
            return Err(too_many());
        }
        let mut videos = Vec::with_capacity(streams.len());
        let mut queues = Vec::with_capacity(streams.len());
        for stream in &streams {
            videos.push(carriage::is_video(&lane::track(stream)?.codec));
        }
        let clock = videos.iter().position(|&video| video).unwrap_or(0);
        for (index, stream) in streams.iter().enumerate() {
            let planned = Sizes::of(lane::track(stream)?, index == clock).plan(&stream.units, stream.until);
            queues.push(planned.map(|planned| Pes { lane: index, planned }).collect());
        }
        let mut lanes = Vec::with_capacity(streams.len());
        let mut entries = Vec::with_capacity(streams.len());
        for (index, stream) in streams.into_iter().enumerate() {
            let among = videos[..index].iter().filter(|&&video| video == videos[index]).count();
            let (lane, entry) = Lane::new(stream, index as u16, among as u8, index == clock)?;
            lanes.push(lane);
            entries.push(entry);
        }
        // 0x1fff means that there is no clock (2.4.4.9).
        let clock_pid = lanes.get(clock).map_or(0x1fff, Lane::pid);
        let tables = psi::tables(&entries, clock_pid, numbers.unwrap_or_default()).ok_or_else(too_many)?;
        let tables = numbers.map(|_| tables);
        let queue = interleave(queues, &videos);
        let packets = tables.map_or(0, |tables| tables.len()) as u64
            + queue.iter().map(|pes| u64::from(pes.planned.packets)).sum::<u64>();
        let len = lanes.iter().all(Lane::exact).then_some(packets * SIZE as u64);
        let read = |lane: usize, unit| lanes.get(lane).and_then(|lane| lane.read(unit));
        let reads = queue.iter().flat_map(|pes| pes.planned.units.clone().filter_map(|unit| read(pes.lane, unit)));
        let reads = reads.collect();
        Ok(Self { lanes, tables, len, queue, begun: false, reads, written: 0, pending: None, damage: None })
    }

    /// Returns the time of the last PCR of a lane that carries the clock.
    pub(super) fn last_clock(&self, lane: usize) -> Option<i64> {
        self.queue.iter().rev().find(|pes| pes.lane == lane).map(|pes| pes.planned.dts)
    }

    /// Returns the continuity counter of each lane's next packet.
    pub(super) fn counters(&self) -> impl Iterator<Item = u8> + '_ {
        self.lanes.iter().map(Lane::counter)
    }

    /// Returns the places of the unwritten units, in order.
    fn unwritten(&self) -> &[ObjectRange] {
        self.reads.get(self.written..).unwrap_or_default()
    }

    /// Writes the next unit, and all packets up to the one after it.
    fn write(&mut self, sample: &[u8], out: &mut Vec<u8>) -> Result<(), PackageError> {
        let Some(pes) = self.queue.front_mut() else { return Ok(()) };
        let first = (!self.begun).then(|| pes.planned.clone());
        let (lane, unit) = (pes.lane, pes.planned.units.start);
        pes.planned.units.start += 1;
        self.begun = !pes.planned.units.is_empty();
        if !self.begun {
            self.queue.pop_front();
        }
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.write(unit, first.as_ref(), sample, (&mut *out, &mut self.damage))?;
        }
        self.write_clocks(out);
        Ok(())
    }

    /// Writes the PCR packets before the next unit.
    fn write_clocks(&mut self, out: &mut Vec<u8>) {
        while let Some(clock) = self.queue.pop_front_if(|pes| pes.planned.units.is_empty()) {
            if let Some(lane) = self.lanes.get(clock.lane) {
                lane.write_clock(clock.planned.dts, out);
            }
        }
    }

    fn write_tables(&mut self, out: &mut Vec<u8>) {
        for table in self.tables.take().into_iter().flatten() {
            out.extend_from_slice(&table);
        }
    }
}

impl Rewrite for Muxer {
    fn len(&self) -> Option<u64> {
        self.len
    }

    fn covering(&self) -> Vec<ObjectRange> {
        reads::cover(self.reads.iter().copied())
    }

    fn next_read(&mut self) -> Option<ObjectRange> {
        if self.pending.is_none() {
            self.pending = reads::merge(self.unwritten().iter().copied());
        }
        self.pending.map(|(_, read)| read)
    }

    fn floor(&self, object: ObjectIndex) -> u64 {
        let lanes = self.lanes.iter().filter(|lane| lane.object == object);
        lanes.map(Lane::floor).min().unwrap_or(u64::MAX)
    }

    fn push(&mut self, sample: &[u8], out: &mut Vec<u8>) -> Result<(), PackageError> {
        let units = reads::claim(&mut self.pending, sample)?;
        self.write_tables(out);
        let mut rest = sample;
        for _ in 0..units {
            let len = self.unwritten().first().map_or(0, |read| read.range.len() as usize);
            self.written += 1;
            let (unit, later) = rest.split_at(len.min(rest.len()));
            self.write(unit, out)?;
            rest = later;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), PackageError> {
        reads::check_finished(self.unwritten().len())?;
        self.write_tables(out);
        Ok(())
    }

    fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }
}

/// Merges the streams by decoding time. At equal times audio is first, so that it arrives before the picture is shown.
/// Each stream keeps its own order, whatever its times are.
fn interleave(mut queues: Vec<VecDeque<Pes>>, videos: &[bool]) -> VecDeque<Pes> {
    let mut order = VecDeque::with_capacity(queues.iter().map(VecDeque::len).sum());
    let first = |queues: &[VecDeque<Pes>]| {
        let fronts = queues.iter().zip(videos).enumerate();
        let fronts = fronts.filter_map(|(lane, (queue, &video))| Some((queue.front()?.planned.dts, video, lane)));
        fronts.min().map(|(_, _, lane)| lane)
    };
    while let Some(lane) = first(&queues) {
        order.extend(queues[lane].pop_front());
    }
    order
}
