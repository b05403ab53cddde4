//! Demultiplexes the programme of a file, from its first packet to its last.

use super::{
    lane::{Extracted, Lane, Placed, Read},
    packets::Packets,
    parts::Part,
    survey::Choice,
    text::TextLane,
    timeline::{self, Timeline},
};
use crate::{
    budget::MOST_SKIPPED,
    error::MediaError,
    lost::Lost,
    movie::{
        Movie, SkippedTrack, Track, TrackKind,
        extraction::{Extraction, PacketForm},
        tags::Tags,
    },
    programme::FileProgramme,
    ts::{Demultiplexer, ProgrammeStreams, StreamCoding, TsEvent, TsFault, TsFaultKind, TsLimits, TsStream},
    units::{ByteRange, Timescale},
    work::Work,
};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes whose packets are read together.
const CHUNK: usize = 64 << 10;
/// Bytes of the file that are a step of work.
const STEP: usize = 4096;
/// Steps of work that a map takes.
const MAP: u64 = 1024;
/// Most tracks whose frames are read.
const MOST_LANES: usize = 64;
/// Most teletext streams whose subtitles are read.
const MOST_TEXTS: usize = 8;
/// Number of PIDs.
const PIDS: u32 = 1 << 13;

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
    /// Offset at which the next packet should begin.
    next: u64,
    /// Places without packets.
    lost: Lost,
    /// Places where packets of a stream are missing, by PID.
    missing: BTreeMap<u16, Lost>,
    lanes: Vec<Lane>,
    /// Teletext streams.
    texts: Vec<TextLane>,
    /// Last clock of the programme, in ticks of 90 kHz.
    clock: Option<u64>,
    /// Streams without frames that can be read, by PID, with their codings.
    others: BTreeMap<u16, StreamCoding>,
    left: Vec<SkippedTrack>,
    /// All programmes of the file.
    listed: Vec<FileProgramme>,
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
        let Choice { programmes, map, listed, left } = choice;
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
            next: offset,
            lost: Lost::default(),
            missing: BTreeMap::new(),
            lanes: Vec::new(),
            texts: Vec::new(),
            clock: None,
            others: BTreeMap::new(),
            left,
            listed,
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
                if at > self.next {
                    self.lost.push(ByteRange::new(self.next, at), None);
                }
                (self.at, self.next) = (at, at.saturating_add(self.form.stride()));
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
        let texts = self.texts.iter().map(TextLane::heap_bytes).sum::<usize>();
        self.demultiplexer.held() + self.lanes.iter().map(Lane::heap_bytes).sum::<usize>() + texts
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
        self.texts.iter_mut().for_each(|text| text.end(&mut self.extracted));
        self.name_others();
        self.name_lost();
        let mut read = Vec::new();
        for lane in std::mem::take(&mut self.lanes) {
            let id = lane.id();
            match lane.finish() {
                Ok(track) => {
                    self.left.extend(track.reasons.iter().map(|why| SkippedTrack::new(id, named(id, why))));
                    read.push(track);
                }
                Err(error) => self.left.push(left_out(id, &error)),
            }
        }
        if read.is_empty() {
            let found = self.left.into_iter().map(|left| left.reason).collect();
            let (path, offset) = ("the transport stream".to_owned(), 0);
            return Err(MediaError::NoPlayableTrack { path, offset, found, cut_short: false });
        }
        self.left.extend(self.texts.iter().flat_map(TextLane::remarks));
        self.left.truncate(MOST_SKIPPED);
        let left = std::mem::take(&mut self.left);
        let movie = self.joined(read, (self.timeline.bases(), true), file_len);
        let movie = Movie { skipped: left, ..movie };
        Ok(Scanned {
            movie,
            #[cfg(test)]
            extracted: self.extracted.bytes,
        })
    }

    /// Returns the movie of the frames that were read so far. [`finish`](Self::finish) keeps their times, places and order, unless most
    /// frames of a track are of another kind than its first frames.
    ///
    /// The movie ends with the first time base: the place of the next base is known when all streams have reached it. Each track also
    /// ends with its first kind of frames. `None` while a stream of the programme has no frame yet, because its first frame may change
    /// the names of tracks. A programme with several streams of pictures has no such movie.
    pub(super) fn so_far(&self, file_len: u64) -> Option<Movie> {
        let videos = self.lanes.iter().filter(|lane| lane.is_video()).count();
        if videos > 1 || self.lanes.iter().any(Lane::is_awaited) {
            return None;
        }
        let read: Option<Vec<_>> = self.lanes.iter().filter(|lane| lane.has_track()).map(Lane::so_far).collect();
        let read = read.filter(|read| !read.is_empty())?;
        Some(self.joined(read, (1, false), file_len))
    }

    /// Joins the first `bases` time bases of tracks to the movie of a file of `file_len` bytes, whose tracks may be `is_whole`.
    fn joined(&self, read: Vec<Read>, (bases, is_whole): (usize, bool), file_len: u64) -> Movie {
        let begins_otherwise = read.iter().any(Read::begins_otherwise);
        let parts: Vec<_> = read.iter().map(Read::parts).collect();
        let shifts = timeline::shifts(bases, &parts);
        let zero = self.timeline.zero(&shifts, &parts);
        let shown = |part: &Part| part.end.saturating_add(shifts.get(part.base).copied().unwrap_or(0));
        let end = parts.iter().copied().flatten().map(shown).max().unwrap_or(0);
        // Streams of a file that is being read have come about equally far.
        let reached = parts.iter().filter_map(|parts| parts.first()).map(|part| part.end).min().unwrap_or(0);
        let (mut tracks, mut clips, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        for read in read {
            let Placed { mut track, clips: mut own, sources: from } = read.placed(&shifts);
            let is_video = |track: &Track| matches!(track.kind, TrackKind::Video { .. });
            track.enabled = tracks.iter().all(|other| is_video(other) != is_video(&track));
            own.iter_mut().for_each(|clip| clip.enabled = track.enabled);
            tracks.push(track);
            clips.append(&mut own);
            sources.extend(from);
        }
        for text in &self.texts {
            let placed: Vec<_> = match is_whole {
                true => text.placed(bases, &shifts, end).collect(),
                false => text.so_far(shifts.first().copied().unwrap_or(0), reached).collect(),
            };
            for Placed { track, sources: from, .. } in placed {
                tracks.push(track);
                sources.extend(from);
            }
        }
        let extraction = Extraction::new((file_len, self.extracted.len), self.form, zero, sources);
        Movie {
            timescale: Timescale::MPEG,
            duration: 0,
            fragmented: false,
            tracks,
            clips,
            chapters: Vec::new(),
            artwork: None,
            tags: Tags::default(),
            programmes: self.listed.clone(),
            skipped: Vec::new(),
            external_media: None,
            system_headers: Vec::new(),
            fragment_headers: Vec::new(),
            cut_short: false,
            outline: None,
            is_indivisible: true,
            extraction: Some(Box::new(extraction.with_another_beginning(begins_otherwise))),
            stitched: None,
        }
    }

    /// Steps of work so far, besides those for bytes.
    fn steps(&self) -> u64 {
        let texts = self.texts.iter().map(TextLane::steps).sum::<u64>();
        self.maps.saturating_mul(MAP) + self.lanes.iter().map(Lane::steps).sum::<u64>() + texts
    }

    /// Takes the events of the packets so far.
    fn take(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            match event {
                TsEvent::Unit(unit) => {
                    if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.pid() == unit.pid) {
                        lane.push(&unit, &mut self.timeline, &mut self.extracted);
                    } else if let Some(text) = self.texts.iter_mut().find(|text| text.pid() == unit.pid) {
                        text.push(&unit, self.clock, &self.timeline, &mut self.extracted);
                    }
                }
                TsEvent::Streams(map) => self.describe(&map),
                TsEvent::Clock { pid, pcr, is_discontinuous } if pid == self.clock_pid => {
                    self.clock = Some(pcr / 300);
                    if is_discontinuous {
                        self.timeline.jump();
                    }
                }
                TsEvent::Programmes(programmes) => {
                    if programmes.iter().all(|programme| programme.number != self.programme) {
                        let (id, reason) = (0, format!("programme {} ends at byte {}", self.programme, self.at));
                        self.leave(SkippedTrack::new(id, reason));
                    }
                }
                TsEvent::Fault(fault) if fault.kind == TsFaultKind::Scrambled => {
                    let lane = self.lanes.iter_mut().find(|lane| Some(lane.pid()) == fault.pid);
                    lane.into_iter().for_each(|lane| lane.is_scrambled = true);
                }
                TsEvent::Fault(TsFault { offset, pid: Some(pid), kind: TsFaultKind::PacketsMissing { .. } }) => {
                    if self.lanes.iter().any(|lane| lane.pid() == pid) {
                        self.missing.entry(pid).or_default().push(ByteRange::at(offset, 0), None);
                    }
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
        let pids: BTreeSet<u16> = map.streams.iter().map(|stream| stream.pid).collect();
        for stream in &map.streams {
            if stream.coding == StreamCoding::Teletext {
                self.describe_text(stream, &pids);
                continue;
            }
            let own = self.lanes.iter().position(|lane| lane.pid() == stream.pid);
            // Where recordings are joined, the streams go on with other PIDs.
            let before = |lane: &Lane| lane.can_go_on_with(stream) && !pids.contains(&lane.pid());
            let place = own.or_else(|| self.lanes.iter().position(before));
            match place.and_then(|place| self.lanes.get_mut(place)) {
                Some(lane) => lane.describe(stream, self.at, &mut self.timeline, &mut self.extracted),
                None => self.begin(stream),
            }
        }
    }

    /// Takes a teletext stream of a map, which has streams with these PIDs.
    fn describe_text(&mut self, stream: &TsStream, pids: &BTreeSet<u16>) {
        if self.texts.iter().any(|text| text.pid() == stream.pid) {
            return;
        }
        let is_full = self.texts.len() >= MOST_TEXTS;
        let before = self.texts.iter_mut().find(|text| !pids.contains(&text.pid()) && text.can_go_on_with(stream));
        match before {
            Some(text) => text.go_on_with(stream),
            None if !is_full => self.texts.push(TextLane::new(stream, &mut self.extracted)),
            None if self.others.len() < MOST_SKIPPED => drop(self.others.insert(stream.pid, stream.coding)),
            None => {}
        }
    }

    /// Begins to read a stream.
    fn begin(&mut self, stream: &TsStream) {
        let ids: BTreeSet<u32> = self.lanes.iter().map(Lane::id).collect();
        // A track that goes on with another PID keeps its identifier.
        let id = (0..).map(|round| u32::from(stream.pid) + round * PIDS).find(|id| !ids.contains(id)).unwrap_or(0);
        let lane = if self.lanes.len() < MOST_LANES { Lane::new(id, stream.clone(), self.form) } else { None };
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
                StreamCoding::Teletext => format!("{coding}, beyond the {MOST_TEXTS} streams that are read"),
                StreamCoding::DvbSubtitles => "DVB subtitles, which are pictures of text,".to_owned(),
                coding if coding.form().is_some() => format!("{coding}, beyond the {MOST_LANES} streams that are read"),
                coding => coding.to_string(),
            };
            let error = MediaError::unsupported("the stream", 0, what);
            let error = match coding.unread_medium() {
                Some(medium) => error.of_codec(medium, coding.name()),
                None => error,
            };
            self.leave(left_out(pid.into(), &error));
        }
    }

    /// Names the places where packets are missing.
    fn name_lost(&mut self) {
        if let Some(places) = self.lost.places() {
            let reason =
                format!("the transport stream: {} bytes that are no packets were passed {places}", self.lost.bytes());
            self.leave(SkippedTrack::new(0, reason));
        }
        for (pid, missing) in std::mem::take(&mut self.missing) {
            if let Some(places) = missing.places() {
                self.leave(SkippedTrack::new(pid.into(), format!("PID {pid:#06x}: packets are missing {places}")));
            }
        }
    }

    fn leave(&mut self, left: SkippedTrack) {
        if self.left.len() < MOST_SKIPPED {
            self.left.push(left);
        }
    }
}

/// Returns the entry of a stream that is left out.
fn left_out(id: u32, error: &MediaError) -> SkippedTrack {
    SkippedTrack { reason: named(id, error), ..SkippedTrack::of_error(id, error) }
}

/// Returns a reason with the PID that it is about.
fn named(pid: u32, why: &MediaError) -> String {
    format!("PID {pid:#06x}: {why}")
}
