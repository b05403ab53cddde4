//! The demultiplexer: packets to events.

use super::{
    alignment::{Alignment, Found},
    clock::ProgrammeClock,
    coding::StreamCoding,
    continuity::{Arrival, Continuity},
    event::{TsEvent, TsFault, TsFaultKind},
    packet::{NULL_PID, Packet, SIZE},
    pes::{Outcome, PesAssembler},
    section::{LongSection, Sections, checksum},
    tables::{Association, Programme, ProgrammeStreams},
};
use bytes::Bytes;
use std::collections::BTreeMap;

/// PID of the programme association table.
const ASSOCIATION_PID: u16 = 0;
/// First PID that streams may have (table 2-3).
const FIRST_PID: u16 = 0x10;
/// Most PIDs with streams or clocks that are read.
const MOST_PIDS: usize = 512;
/// Bytes of input that are aligned at once.
const CHUNK: usize = 64 << 10;
/// `table_id` of a splice information section (SCTE 35 9.6).
const SPLICE: u8 = 0xfc;

/// Limits on the memory that a stream takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TsLimits {
    /// Most bytes of a PES packet. Longer ones are dropped.
    pub unit: usize,
    /// Most bytes of all PES packets that are being assembled.
    pub units: usize,
}

impl Default for TsLimits {
    fn default() -> Self {
        Self { unit: 16 << 20, units: 64 << 20 }
    }
}

/// Turns the bytes of an MPEG-2 transport stream into [`TsEvent`]s.
///
/// Bytes are passed to [`push`](Self::push) in pieces of any size; the events do not depend on the sizes. At the end
/// [`finish`](Self::finish) gives the PES packets that only the end completes. No input is an error: damage is skipped
/// and reported as [`TsEvent::Fault`], at most two for each packet.
#[derive(Debug)]
pub struct Demultiplexer {
    limits: TsLimits,
    /// The only programme that is read.
    only: Option<u16>,
    alignment: Alignment,
    association: Association,
    programmes: Vec<Programme>,
    maps: BTreeMap<u16, ProgrammeStreams>,
    pids: BTreeMap<u16, Pid>,
    /// Bytes held by all assemblers.
    held: usize,
}

/// State of one PID.
#[derive(Debug)]
struct Pid {
    continuity: Continuity,
    /// Clock, where a programme's map names this PID for it.
    clock: Option<ProgrammeClock>,
    content: Content,
}

/// Content of a PID.
#[derive(Debug)]
enum Content {
    Tables(Sections),
    Cues(Sections),
    Units(StreamCoding, PesAssembler),
    /// Nothing that is read, except a clock.
    Nothing,
}

impl Content {
    fn of(coding: StreamCoding, pid: u16) -> Self {
        match coding {
            StreamCoding::Other(_) => Self::Nothing,
            StreamCoding::Cues => Self::Cues(Sections::default()),
            coding => Self::Units(coding, PesAssembler::new(pid)),
        }
    }

    /// Whether both have the same state machine, which then goes on.
    fn continues(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Units(coding, _), Self::Units(next, _)) => coding == next,
            _ => std::mem::discriminant(self) == std::mem::discriminant(next),
        }
    }
}

impl Pid {
    fn new(content: Content) -> Self {
        Self { continuity: Continuity::default(), clock: None, content }
    }
}

impl Demultiplexer {
    /// Creates a demultiplexer of all programmes.
    #[must_use]
    pub fn new(limits: TsLimits) -> Self {
        let tables = Pid::new(Content::Tables(Sections::default()));
        Self {
            limits,
            only: None,
            alignment: Alignment::default(),
            association: Association::default(),
            programmes: Vec::new(),
            maps: BTreeMap::new(),
            pids: BTreeMap::from([(ASSOCIATION_PID, tables)]),
            held: 0,
        }
    }

    /// Reads only the streams of one programme. All programmes are still listed.
    #[must_use]
    pub fn only(self, programme: u16) -> Self {
        Self { only: Some(programme), ..self }
    }

    /// Bytes of PES packets that are being assembled.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Creates a demultiplexer of these PIDs alone, whatever the tables say.
    pub(crate) fn of_streams(limits: TsLimits, streams: impl IntoIterator<Item = (u16, StreamCoding)>) -> Self {
        let pids = streams.into_iter().map(|(pid, coding)| (pid, Pid::new(Content::of(coding, pid))));
        Self { pids: pids.collect(), ..Self::new(limits) }
    }

    /// Reads a programme from the first packet on, though its map comes later.
    pub(crate) fn knowing(mut self, programmes: Vec<Programme>, map: ProgrammeStreams) -> Self {
        self.programmes = programmes;
        self.maps.insert(map.programme, map);
        self.select(0, &mut Vec::new());
        self
    }

    /// Offset in the stream of the next transport packet, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.alignment.at()
    }

    /// Takes bytes of the stream, and appends the events that they complete.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<TsEvent>) {
        for chunk in bytes.chunks(CHUNK) {
            self.alignment.append(chunk);
            while let Some(found) = self.alignment.next() {
                match found {
                    Found::Packet(bytes, offset) => self.packet(&bytes, offset, events),
                    Found::Lost(offset) => {
                        events.push(TsEvent::Fault(TsFault { offset, pid: None, kind: TsFaultKind::SyncLost }));
                    }
                }
            }
        }
    }

    /// Notes that bytes are missing before the next bytes. Without this call, packet counters show the loss, unless a multiple of
    /// 16 packets of a PID is missing.
    pub fn lose(&mut self) {
        self.pids.values_mut().for_each(|pid| pid.continuity.lose());
    }

    /// Notes that the next packet is the first one of another file, which goes on with the same programme. Units before it are complete,
    /// and packet counters begin anew.
    pub(crate) fn begin_anew(&mut self, events: &mut Vec<TsEvent>) {
        self.finish(events);
        self.pids.values_mut().for_each(|pid| pid.continuity = Continuity::default());
    }

    /// Ends the stream: the last unbounded unit of each PID is complete.
    pub fn finish(&mut self, events: &mut Vec<TsEvent>) {
        let offset = self.offset();
        for (number, pid) in &mut self.pids {
            if let Content::Units(_, pes) = &mut pid.content {
                report(pes.end(), *number, offset, events);
            }
        }
        self.held = 0;
    }

    /// Takes the packet at `offset`, and appends the events that it completes. An alternative to [`push`](Self::push) for packets
    /// that were found before.
    pub(crate) fn packet(&mut self, bytes: &[u8; SIZE], offset: u64, events: &mut Vec<TsEvent>) {
        let packet = Packet::parse(bytes);
        let number = packet.pid;
        let Some(pid) = self.pids.get_mut(&number) else { return };
        let fault =
            |kind, events: &mut Vec<_>| events.push(TsEvent::Fault(TsFault { offset, pid: Some(number), kind }));
        if packet.is_damaged {
            // Even the PID may be wrong. Where it is right, the next packet's counter shows the gap.
            return fault(TsFaultKind::PacketDamaged, events);
        }
        let arrival = pid.continuity.check(&packet);
        if arrival == Arrival::Repeated {
            return;
        }
        if let (Some(clock), Some(pcr)) = (&mut pid.clock, packet.clock) {
            let is_discontinuous = clock.step(pcr, packet.is_discontinuous);
            events.push(TsEvent::Clock { pid: number, pcr, is_discontinuous });
        }
        let is_after_gap = match arrival {
            Arrival::AfterGap(expected) => {
                fault(TsFaultKind::PacketsMissing { expected, found: packet.counter }, events);
                true
            }
            _ => false,
        };
        match &mut pid.content {
            Content::Nothing => {}
            Content::Units(_, pes) => {
                let held = pes.held();
                let room = self.limits.units.saturating_sub(self.held - held).min(self.limits.unit);
                units(pes, &packet, is_after_gap, room, offset, events);
                self.held = self.held - held + pes.held();
            }
            Content::Cues(_) | Content::Tables(_) if packet.is_scrambled => {}
            Content::Cues(sections) => {
                let mut found = Vec::new();
                sections.packet(&packet, is_after_gap, &mut found);
                for section in found.into_iter().filter(|section| section.first() == Some(&SPLICE)) {
                    if checksum(&section) == 0 {
                        events.push(TsEvent::Cue { pid: number, section: Bytes::from(section) });
                    } else {
                        fault(TsFaultKind::BadSection, events);
                    }
                }
            }
            Content::Tables(sections) => {
                let mut found = Vec::new();
                sections.packet(&packet, is_after_gap, &mut found);
                for section in found {
                    self.table(number, &section, offset, events);
                }
            }
        }
    }

    /// Takes a section of the association table or of a map.
    fn table(&mut self, pid: u16, section: &[u8], offset: u64, events: &mut Vec<TsEvent>) {
        let fault = |kind| TsEvent::Fault(TsFault { offset, pid: Some(pid), kind });
        // Other tables may have the short syntax and no checksum.
        if section.first().is_none_or(|table| *table > 2) {
            return;
        }
        let Some(section) = LongSection::parse(section) else {
            return events.push(fault(TsFaultKind::BadSection));
        };
        if pid == ASSOCIATION_PID {
            if let Some(programmes) = self.association.section(&section)
                && programmes != self.programmes
            {
                self.programmes.clone_from(&programmes);
                events.push(TsEvent::Programmes(programmes));
                self.select(offset, events);
            }
            return;
        }
        let is_known = self.programmes.iter().any(|p| p.map_pid == pid && p.number == section.extension);
        if section.table != 2
            || !section.is_current
            || !is_known
            || self.only.is_some_and(|only| only != section.extension)
        {
            return;
        }
        let Some(map) = ProgrammeStreams::parse(&section) else {
            return events.push(fault(TsFaultKind::BadSection));
        };
        if self.maps.get(&map.programme) != Some(&map) {
            self.maps.insert(map.programme, map.clone());
            // Units of streams that end are before the change.
            self.select(offset, events);
            events.push(TsEvent::Streams(map));
        }
    }

    /// Reads the PIDs that the tables name, and no others. The ones that stay keep their state.
    fn select(&mut self, offset: u64, events: &mut Vec<TsEvent>) {
        let Self { programmes, maps, only, pids, .. } = self;
        maps.retain(|number, _| programmes.iter().any(|programme| programme.number == *number));
        let mut wanted = BTreeMap::from([(ASSOCIATION_PID, Content::Tables(Sections::default()))]);
        let is_stream = |pid: u16| (FIRST_PID..NULL_PID).contains(&pid);
        for programme in programmes.iter().filter(|p| only.is_none_or(|only| only == p.number)) {
            if is_stream(programme.map_pid) {
                wanted.insert(programme.map_pid, Content::Tables(Sections::default()));
            }
        }
        let tables = wanted.len();
        let mut is_full = false;
        for stream in maps.values().flat_map(|map| &map.streams).filter(|stream| is_stream(stream.pid)) {
            is_full |= wanted.len() - tables >= MOST_PIDS;
            if !is_full {
                wanted.entry(stream.pid).or_insert_with(|| Content::of(stream.coding, stream.pid));
            }
        }
        let clocks = || maps.values().map(|map| map.clock_pid).filter(|pid| is_stream(*pid));
        for pid in clocks() {
            wanted.entry(pid).or_insert(Content::Nothing);
        }
        for (number, pid) in pids.iter_mut() {
            let goes_on = wanted.get(number).is_some_and(|content| pid.content.continues(content));
            if let Content::Units(_, pes) = &mut pid.content
                && !goes_on
            {
                report(pes.end(), *number, offset, events);
            }
        }
        let mut before = std::mem::take(pids);
        for (number, content) in wanted {
            let kept = before.remove(&number).filter(|pid| pid.content.continues(&content));
            let mut pid = kept.unwrap_or_else(|| Pid::new(content));
            if clocks().any(|clock| clock == number) {
                pid.clock.get_or_insert_default();
            } else {
                pid.clock = None;
            }
            pids.insert(number, pid);
        }
        let pes = pids.values().map(|pid| if let Content::Units(_, pes) = &pid.content { pes.held() } else { 0 });
        self.held = pes.sum();
        if is_full {
            events.push(TsEvent::Fault(TsFault { offset, pid: None, kind: TsFaultKind::TooManyStreams }));
        }
    }
}

/// Passes a packet to the assembler of its PID.
fn units(
    pes: &mut PesAssembler,
    packet: &Packet<'_>,
    is_after_gap: bool,
    room: usize,
    offset: u64,
    events: &mut Vec<TsEvent>,
) {
    if is_after_gap {
        report(pes.break_off(), packet.pid, offset, events);
    }
    if packet.is_scrambled && packet.payload.is_some() {
        return report(pes.scrambled(), packet.pid, offset, events);
    }
    if packet.starts_unit {
        report(pes.end(), packet.pid, offset, events);
    }
    report(pes.append(packet, offset, room), packet.pid, offset, events);
}

fn report((unit, kind): Outcome, pid: u16, offset: u64, events: &mut Vec<TsEvent>) {
    events.extend(unit.map(TsEvent::Unit));
    events.extend(kind.map(|kind| TsEvent::Fault(TsFault { offset, pid: Some(pid), kind })));
}
