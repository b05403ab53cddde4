//! Demultiplexes the programme of a file, from its first packet to its last.

use super::{
    lane::{Extracted, Lane, Read},
    packets::Packets,
    survey::Choice,
    timeline::{self, Timeline},
};
use crate::{
    budget::MOST_SKIPPED,
    error::MediaError,
    movie::{
        Movie, SkippedTrack, TrackKind,
        extraction::{Extraction, PacketForm},
    },
    ts::{Demultiplexer, ProgrammeStreams, StreamCoding, TsEvent, TsFaultKind, TsLimits, TsStream},
    units::Timescale,
    work::Work,
};
use std::collections::BTreeMap;

/// Bytes whose packets are read together.
const CHUNK: usize = 64 << 10;
/// Bytes of the file that are a step of work.
const STEP: usize = 4096;
/// Steps of work that a map takes.
const MAP: u64 = 1024;
/// Most streams whose frames are read.
const MOST_LANES: usize = 64;

/// The scan of one file.
#[derive(Debug)]
pub(super) struct Scan {
    form: PacketForm,
    packets: Packets,
    demultiplexer: Demultiplexer,
    /// Offsets at which counters may begin anew, the next one last.
    joints: Vec<u64>,
    events: Vec<TsEvent>,
    programme: u16,
    clock_pid: u16,
    /// Offset of the last packet.
    at: u64,
    lanes: Vec<Lane>,
    /// Streams without frames that can be read, by PID, with their codings.
    others: BTreeMap<u16, StreamCoding>,
    left: Vec<SkippedTrack>,
    /// Maps that were read.
    maps: u64,
    timeline: Timeline,
    extracted: Extracted,
    work: Work,
}

/// The finished scan.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) movie: Movie,
    /// The extracted object.
    #[cfg(test)]
    pub(super) extracted: Vec<u8>,
}

impl Scan {
    /// Creates the scan of a programme. The first packet of the file is at `offset`.
    pub(super) fn new(form: PacketForm, offset: u64, choice: Choice, work: Work) -> Self {
        let Choice { programmes, map, left } = choice;
        let programme = map.programme;
        let demultiplexer = Demultiplexer::new(TsLimits::default()).only(programme);
        let mut scan = Self {
            form,
            packets: Packets::new(form, offset),
            demultiplexer: demultiplexer.knowing(programmes, map.clone()),
            joints: Vec::new(),
            events: Vec::new(),
            programme,
            clock_pid: map.clock_pid,
            at: offset,
            lanes: Vec::new(),
            others: BTreeMap::new(),
            left,
            maps: 0,
            timeline: Timeline::default(),
            extracted: Extracted::default(),
            work,
        };
        scan.describe(&map);
        scan
    }

    /// Notes the offsets at which counters may begin anew, in rising order.
    pub(super) fn joined_at(self, mut joints: Vec<u64>) -> Self {
        joints.reverse();
        Self { joints, ..self }
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// The job has ended.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), MediaError> {
        for chunk in bytes.chunks(CHUNK) {
            let before = self.steps();
            self.packets.append(chunk);
            while let Some((packet, at)) = self.packets.next() {
                self.at = at;
                while self.joints.pop_if(|joint| *joint <= at).is_some() {
                    self.demultiplexer.begin_anew(&mut self.events);
                }
                self.demultiplexer.packet(&packet, at, &mut self.events);
            }
            self.take();
            let steps = chunk.len().div_ceil(STEP) as u64 + (self.steps() - before);
            self.work.spend(steps).map_err(|error| MediaError::work("the transport stream", self.at, error))?;
        }
        Ok(())
    }

    /// Bytes of heap that the tables, and the PES packets and frames that are being assembled hold.
    pub(super) fn heap_bytes(&self) -> usize {
        self.demultiplexer.held() + self.lanes.iter().map(Lane::heap_bytes).sum::<usize>()
    }

    /// Returns the movie of a file of `file_len` bytes.
    ///
    /// # Errors
    /// No stream can be played.
    pub(super) fn finish(mut self, file_len: u64) -> Result<Scanned, MediaError> {
        self.demultiplexer.finish(&mut self.events);
        self.take();
        for lane in &mut self.lanes {
            lane.end(self.at, &mut self.timeline, &mut self.extracted);
        }
        self.name_others();
        let mut read = Vec::new();
        for lane in self.lanes {
            let id = u32::from(lane.pid());
            match lane.finish() {
                Ok(track) => {
                    self.left.extend(track.reason.iter().map(|why| SkippedTrack { id, reason: named(id, why) }));
                    read.push(track);
                }
                Err(error) => self.left.push(SkippedTrack { id, reason: named(id, &error) }),
            }
        }
        if read.is_empty() {
            let found = self.left.into_iter().map(|left| left.reason).collect();
            let (path, offset) = ("the transport stream".to_owned(), 0);
            return Err(MediaError::NoPlayableTrack { path, offset, found, cut_short: false });
        }
        let movie = joined(read, self.timeline.bases(), self.left, (file_len, self.extracted.len, self.form));
        Ok(Scanned {
            movie,
            #[cfg(test)]
            extracted: self.extracted.bytes,
        })
    }

    /// Returns the movie of the frames so far, of which [`finish`](Self::finish) keeps the times, places and order. It ends with the
    /// first time base: where the next one begins is known when all streams have reached it. `None` while a stream of the programme
    /// has no frame yet, which may change the names of tracks, and for several streams of pictures.
    pub(super) fn so_far(&self, file_len: u64) -> Option<Movie> {
        let videos = self.lanes.iter().filter(|lane| lane.is_video()).count();
        if videos > 1 || self.lanes.iter().any(Lane::is_awaited) {
            return None;
        }
        let read: Option<Vec<_>> = self.lanes.iter().filter(|lane| lane.has_track()).map(Lane::so_far).collect();
        let read = read.filter(|read| !read.is_empty())?;
        Some(joined(read, 1, Vec::new(), (file_len, self.extracted.len, self.form)))
    }

    /// Steps of work so far, besides those for bytes.
    fn steps(&self) -> u64 {
        self.maps.saturating_mul(MAP) + self.lanes.iter().map(Lane::steps).sum::<u64>()
    }

    /// Takes the events of the packets so far.
    fn take(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            match event {
                TsEvent::Unit(unit) => {
                    if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.pid() == unit.pid) {
                        lane.push(&unit, &mut self.timeline, &mut self.extracted);
                    }
                }
                TsEvent::Streams(map) => self.describe(&map),
                TsEvent::Clock { pid, is_discontinuous: true, .. } if pid == self.clock_pid => self.timeline.jump(),
                TsEvent::Programmes(programmes) => {
                    if programmes.iter().all(|programme| programme.number != self.programme) {
                        let (id, reason) = (0, format!("programme {} ends at byte {}", self.programme, self.at));
                        self.leave(SkippedTrack { id, reason });
                    }
                }
                TsEvent::Fault(fault) if fault.kind == TsFaultKind::Scrambled => {
                    let lane = self.lanes.iter_mut().find(|lane| Some(lane.pid()) == fault.pid);
                    lane.into_iter().for_each(|lane| lane.is_scrambled = true);
                }
                TsEvent::Clock { .. } | TsEvent::Cue { .. } | TsEvent::Fault(_) => {}
            }
        }
        self.events = events;
    }

    /// Takes a map of the programme.
    fn describe(&mut self, map: &ProgrammeStreams) {
        self.maps += 1;
        self.clock_pid = map.clock_pid;
        for stream in &map.streams {
            match self.lanes.iter_mut().find(|lane| lane.pid() == stream.pid) {
                Some(lane) => lane.describe(stream, self.at),
                None => self.begin(stream),
            }
        }
    }

    /// Begins to read a stream.
    fn begin(&mut self, stream: &TsStream) {
        let lane = if self.lanes.len() < MOST_LANES { Lane::new(stream.clone(), self.form) } else { None };
        match lane {
            Some(lane) => self.lanes.push(lane),
            None if self.others.len() < MOST_SKIPPED => drop(self.others.insert(stream.pid, stream.coding)),
            None => {}
        }
    }

    /// Names the streams whose frames can't be read.
    fn name_others(&mut self) {
        for (pid, coding) in std::mem::take(&mut self.others) {
            let what = match coding {
                StreamCoding::Cues => continue,
                StreamCoding::Latm => "AAC in LATM, whose configuration is apart from its frames".to_owned(),
                coding if coding.form().is_some() => format!("{coding}, beyond the {MOST_LANES} streams that are read"),
                coding => coding.to_string(),
            };
            let reason = named(u32::from(pid), &MediaError::unsupported("the stream", 0, what));
            self.leave(SkippedTrack { id: u32::from(pid), reason });
        }
    }

    fn leave(&mut self, left: SkippedTrack) {
        if self.left.len() < MOST_SKIPPED {
            self.left.push(left);
        }
    }
}

/// Joins the time bases of tracks. The last argument is the length of the file, that of the extracted object, and the form of packets.
fn joined(
    read: Vec<Read>,
    bases: usize,
    mut left: Vec<SkippedTrack>,
    (file_len, extracted, form): (u64, u64, PacketForm),
) -> Movie {
    let parts: Vec<_> = read.iter().map(|track| &track.parts[..]).collect();
    let shifts = timeline::shifts(bases, &parts);
    let (mut tracks, sources): (Vec<_>, Vec<_>) = read.into_iter().map(|track| track.placed(&shifts)).unzip();
    for group in [true, false] {
        let others = tracks.iter_mut().filter(|track| matches!(track.kind, TrackKind::Video { .. }) == group);
        others.skip(1).for_each(|track| track.enabled = false);
    }
    left.truncate(MOST_SKIPPED);
    Movie {
        timescale: Timescale::MPEG,
        duration: 0,
        fragmented: false,
        tracks,
        clips: Vec::new(),
        chapters: Vec::new(),
        skipped: left,
        external_media: None,
        system_headers: Vec::new(),
        fragment_headers: Vec::new(),
        cut_short: false,
        outline: None,
        is_indivisible: true,
        extraction: Some(Box::new(Extraction::new(file_len, extracted, form, sources))),
        stitched: None,
    }
}

/// Returns a reason with the PID that it is about.
fn named(pid: u32, why: &MediaError) -> String {
    format!("PID {pid:#06x}: {why}")
}
