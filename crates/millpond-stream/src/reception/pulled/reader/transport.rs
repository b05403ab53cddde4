//! Segments of an MPEG transport stream.

use super::{LaneFormat, Read, ReadFrame};
use crate::reception::{
    pulled::media_time::MediaTime,
    transport::{Elementary, Faults, Found},
};
use bytes::Bytes;
use millpond_media::{
    Timescale,
    ts::{Demultiplexer, PesUnit, ProgrammeStreams, SpliceSection, StreamCoding, TsEvent, TsLimits},
};
use std::sync::Arc;

/// Most lanes of a rendition.
const MOST_LANES: usize = 8;
/// Limits of one programme: more than an intra-coded picture of 8K video.
const LIMITS: TsLimits = TsLimits { unit: 16 << 20, units: 32 << 20 };

/// Reads the first programme of a transport stream.
#[derive(Debug)]
pub(super) struct Programme {
    demultiplexer: Demultiplexer,
    events: Vec<TsEvent>,
    selected: Option<u16>,
    lanes: Vec<Lane>,
    cues: Vec<u16>,
    found: Vec<Found>,
    has_map: bool,
}

#[derive(Debug)]
struct Lane {
    stream: Elementary,
    format: Option<Arc<LaneFormat>>,
}

impl Default for Programme {
    fn default() -> Self {
        Self {
            demultiplexer: Demultiplexer::new(LIMITS),
            events: Vec::new(),
            selected: None,
            lanes: Vec::new(),
            cues: Vec::new(),
            found: Vec::new(),
            has_map: false,
        }
    }
}

impl Programme {
    pub(super) fn push(&mut self, bytes: &Bytes, out: &mut Vec<Read>, faults: &mut Faults) -> Result<(), String> {
        let mut events = std::mem::take(&mut self.events);
        self.demultiplexer.push(bytes, &mut events);
        let result = self.take(&mut events, out, faults);
        self.events = events;
        result
    }

    fn take(&mut self, events: &mut Vec<TsEvent>, out: &mut Vec<Read>, faults: &mut Faults) -> Result<(), String> {
        for event in events.drain(..) {
            match event {
                // A segment has one programme (RFC 8216 3.2).
                TsEvent::Programmes(all) => self.selected = all.first().map(|first| first.number),
                TsEvent::Streams(map) if self.selected == Some(map.programme) => self.describe(map),
                TsEvent::Unit(unit) => self.unit(&unit, out, faults),
                TsEvent::Fault(fault) => faults.stream(fault),
                TsEvent::Cue { pid, section } if self.cues.contains(&pid) => match SpliceSection::read(&section) {
                    Ok(Some(splice)) => out.push(Read::Cue(splice, section)),
                    Ok(None) => {}
                    Err(error) => faults.cue(pid, error),
                },
                TsEvent::Streams(_) | TsEvent::Clock { .. } | TsEvent::Cue { .. } => {}
            }
        }
        let is_useless = self.has_map && self.lanes.iter().all(|lane| lane.stream.is_unsupported());
        if is_useless { Err("no supported stream in the programme".to_owned()) } else { Ok(()) }
    }

    /// Takes the programme's map.
    fn describe(&mut self, map: ProgrammeStreams) {
        self.has_map = true;
        let mut before = std::mem::take(&mut self.lanes);
        let (cues, streams): (Vec<_>, Vec<_>) =
            map.streams.into_iter().partition(|stream| stream.coding == StreamCoding::Cues);
        self.cues = cues.iter().map(|stream| stream.pid).collect();
        for stream in streams {
            if self.lanes.len() == MOST_LANES {
                tracing::warn!(pid = stream.pid, coding = %stream.coding, "stream of an HLS source left out: too many");
                continue;
            }
            if let Some(place) = before.iter().position(|lane| lane.stream.continues(&stream)) {
                let mut known = before.remove(place);
                known.stream.describe(stream);
                self.lanes.push(known);
                continue;
            }
            let (pid, coding) = (stream.pid, stream.coding);
            // Lanes are paced by each other's frames, and subtitles have few.
            match Some(stream).filter(|stream| !stream.coding.is_text()).and_then(Elementary::new) {
                Some(mut new) => {
                    // Formats are known before their tracks are.
                    new.track = Some(0);
                    self.lanes.push(Lane { stream: new, format: None });
                }
                None => tracing::info!(pid, %coding, "stream of an HLS source left out"),
            }
        }
    }

    fn unit(&mut self, unit: &PesUnit, out: &mut Vec<Read>, faults: &mut Faults) {
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.stream.pid() == unit.pid) else { return };
        lane.stream.push(unit, None, &mut self.found, faults);
        lane.take(&mut self.found, out);
    }

    /// Notes that bytes are missing.
    pub(super) fn lose(&mut self) {
        self.demultiplexer.lose();
    }

    /// Ends the stream: its last frames are complete.
    pub(super) fn finish(&mut self, out: &mut Vec<Read>, faults: &mut Faults) {
        let mut events = std::mem::take(&mut self.events);
        self.demultiplexer.finish(&mut events);
        // Useless data was told before.
        let _ = self.take(&mut events, out, faults);
        for lane in &mut self.lanes {
            lane.stream.finish(&mut self.found, faults);
            lane.take(&mut self.found, out);
        }
    }

    pub(super) fn lanes(&self) -> Option<usize> {
        self.has_map.then(|| self.lanes.iter().filter(|lane| !lane.stream.is_unsupported()).count())
    }

    pub(super) fn is_sound_only(&self) -> bool {
        self.has_map && !self.lanes.iter().any(|lane| lane.stream.is_video())
    }

    pub(super) fn missing(&self) -> &'static str {
        match (self.has_map, self.lanes.len()) {
            (false, _) => "no transport stream with a table of programmes",
            (true, 0) => "no supported stream in the programme",
            (true, _) => "no frame",
        }
    }
}

impl Lane {
    fn take(&mut self, found: &mut Vec<Found>, out: &mut Vec<Read>) {
        for found in found.drain(..) {
            match found {
                Found::Format => {
                    let (media, rate) = self.stream.media();
                    let format = self.stream.format(1, rate);
                    self.format =
                        format.map(|format| Arc::new(LaneFormat { media, rate, clock: Timescale::MPEG, format }));
                }
                Found::Frame(arrived) => {
                    let Some(format) = self.format.clone() else { continue };
                    let time = MediaTime::mpeg(&arrived);
                    let lane = u32::from(self.stream.pid());
                    out.push(Read::Frame(ReadFrame { lane, time, format, date: None, arrived }));
                }
                Found::Broken => {}
            }
        }
    }
}
