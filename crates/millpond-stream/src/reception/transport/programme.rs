//! One programme of a transport stream: bytes in, frames to the assembly out.

use super::{
    datagrams::PACKET,
    elementary::{Elementary, Found},
    faults::Faults,
};
use crate::{
    Format,
    reception::{
        assembly::{Arrived, Assembly},
        attendance::Rhythm,
    },
    source_health::{SourceCounts, SourceErrorKind},
};
use bytes::Bytes;
use millpond_media::Timescale;
use millpond_media::ts::{
    Demultiplexer, PesUnit, Programme, ProgrammeStreams, SpliceSection, StreamCoding, TsEvent, TsFaultKind, TsLimits,
};
use std::{sync::Arc, time::Duration};

/// Most tracks of a stream with pictures or sound, and most with subtitles.
const MOST_TRACKS: usize = 8;
const MOST_TEXTS: usize = 16;
/// Time for which the other formats are waited for once that of the pictures is known, or of sound without pictures.
const OTHERS: Duration = Duration::from_secs(1);
/// Most bytes of frames that wait for formats.
const MOST_BYTES: usize = 16 << 20;
/// Bytes that a frame counts for beside its own.
const FRAME: usize = 128;
/// Limits of one programme: more than an intra-coded picture of 8K video.
const LIMITS: TsLimits = TsLimits { unit: 16 << 20, units: 32 << 20 };

/// Makes the frames of one programme, from one sitting of its source to the next loss.
#[derive(Debug)]
pub(in crate::reception) struct ProgrammeFrames {
    /// Number of the programme; `None` for the only one.
    wanted: Option<u16>,
    demultiplexer: Demultiplexer,
    events: Vec<TsEvent>,
    /// The programme that is received.
    selected: Option<u16>,
    /// Why there is no such programme.
    problem: Option<(SourceErrorKind, String)>,
    streams: Vec<Elementary>,
    /// PIDs of its cues.
    cues: Vec<u16>,
    /// PID of its clock, and the last one in ticks of 90 kHz.
    clock: (u16, Option<u64>),
    found: Vec<Found>,
    /// Whether frames are passed on.
    has_begun: bool,
    /// Frames that wait for formats: the PID of their stream, and their arrival.
    held: Vec<(u16, Arrived, Duration)>,
    held_bytes: usize,
    /// Time at which the first format, and that of the leading stream, became known.
    known: (Option<Duration>, Option<Duration>),
    /// Longest wait for the formats.
    patience: Duration,
    rhythm: Option<Rhythm>,
    /// Bytes that arrived.
    bytes: u64,
    lost_packets: u64,
    broken_frames: u64,
}

impl ProgrammeFrames {
    pub(in crate::reception) fn new(wanted: Option<u16>, patience: Duration) -> Self {
        let demultiplexer = Demultiplexer::new(LIMITS);
        Self {
            wanted,
            demultiplexer: wanted.map_or_else(|| Demultiplexer::new(LIMITS), |number| demultiplexer.only(number)),
            events: Vec::new(),
            selected: None,
            problem: None,
            streams: Vec::new(),
            cues: Vec::new(),
            clock: (0, None),
            found: Vec::new(),
            has_begun: false,
            held: Vec::new(),
            held_bytes: 0,
            known: (None, None),
            patience,
            rhythm: None,
            bytes: 0,
            lost_packets: 0,
            broken_frames: 0,
        }
    }

    /// Notes that `packets` are missing, if their number is known. The counters of the next packets do not change this.
    pub(in crate::reception) fn lose(&mut self, packets: u64) {
        self.lost_packets += packets;
        self.demultiplexer.lose();
    }

    /// Counts so far: transport packets of all programmes, and packets of this programme that are missing by their counters.
    pub(in crate::reception) fn counts(&self) -> SourceCounts {
        SourceCounts {
            sessions: u64::from(self.rhythm.is_some()),
            packets: self.bytes / PACKET as u64,
            lost_packets: self.lost_packets,
            broken_frames: self.broken_frames,
            ..SourceCounts::default()
        }
    }

    /// Takes bytes of the stream.
    pub(in crate::reception) fn push(
        &mut self,
        bytes: &Bytes,
        now: Duration,
        assembly: &mut Assembly,
        faults: &mut Faults,
    ) {
        let mut events = std::mem::take(&mut self.events);
        self.bytes += bytes.len() as u64;
        self.demultiplexer.push(bytes, &mut events);
        for event in events.drain(..) {
            match event {
                TsEvent::Programmes(all) => self.choose(&all),
                TsEvent::Streams(map) if self.selected == Some(map.programme) => self.describe(map, assembly),
                TsEvent::Unit(unit) => self.unit(&unit, now, assembly, faults),
                TsEvent::Fault(fault) => {
                    if let TsFaultKind::PacketsMissing { expected, found } = fault.kind {
                        // Multiples of 16 more may be missing.
                        self.lost_packets += u64::from(found.wrapping_sub(expected) & 0x0f);
                    }
                    faults.stream(fault);
                }
                // The jumps of a clock are seen in the times of frames.
                TsEvent::Clock { pid, pcr, .. } if pid == self.clock.0 => self.clock.1 = Some(pcr / 300),
                TsEvent::Cue { pid, section } if self.cues.contains(&pid) => cue(pid, section, assembly, faults),
                TsEvent::Streams(_) | TsEvent::Clock { .. } | TsEvent::Cue { .. } => {}
            }
        }
        self.events = events;
    }

    fn choose(&mut self, all: &[Programme]) {
        let names = || all.iter().map(|one| one.number.to_string()).collect::<Vec<_>>().join(", ");
        let (selected, problem) = match (self.wanted, all) {
            (_, []) => (None, Some((SourceErrorKind::NoMedia, "there is no programme".to_owned()))),
            (None, [only]) => (Some(only.number), None),
            (None, _) => (
                None,
                Some(format!("there are programmes {}, and none was named", names()))
                    .map(|words| (SourceErrorKind::NotFound, words)),
            ),
            (Some(wanted), all) if all.iter().any(|one| one.number == wanted) => (Some(wanted), None),
            (Some(wanted), _) => {
                let words = format!("there is no programme {wanted} among {}", names());
                (None, Some((SourceErrorKind::NotFound, words)))
            }
        };
        (self.selected, self.problem) = (selected, problem);
    }

    /// Takes the programme's map.
    fn describe(&mut self, map: ProgrammeStreams, assembly: &mut Assembly) {
        let mut before = std::mem::take(&mut self.streams);
        let (cues, streams): (Vec<_>, Vec<_>) =
            map.streams.into_iter().partition(|stream| stream.coding == StreamCoding::Cues);
        self.cues = cues.iter().map(|stream| stream.pid).collect();
        if self.clock.0 != map.clock_pid {
            self.clock = (map.clock_pid, None);
        }
        for stream in streams {
            let is_text = stream.coding.is_text();
            let most = if is_text { MOST_TEXTS } else { MOST_TRACKS };
            if self.streams.iter().filter(|known| known.is_text() == is_text).count() >= most {
                tracing::warn!(pid = stream.pid, coding = %stream.coding, "stream of a programme left out: too many");
                continue;
            }
            if let Some(place) = before.iter().position(|known| known.continues(&stream)) {
                let mut known = before.remove(place);
                known.describe(stream);
                self.streams.push(known);
                continue;
            }
            let (pid, coding) = (stream.pid, stream.coding);
            match Elementary::new(stream) {
                Some(new) => self.streams.push(new),
                None => tracing::info!(pid, %coding, "stream of a programme left out"),
            }
        }
        // The first stream leads where there are no pictures.
        self.streams.sort_by_key(Elementary::is_text);
        if self.has_begun {
            // Others get their track when their format is known.
            (0..self.streams.len()).for_each(|place| self.join(place, assembly));
            self.change(assembly);
        }
    }

    fn unit(&mut self, unit: &PesUnit, now: Duration, assembly: &mut Assembly, faults: &mut Faults) {
        let Some(place) = self.streams.iter().position(|stream| stream.pid() == unit.pid) else { return };
        let mut found = std::mem::take(&mut self.found);
        self.streams[place].push(unit, self.clock.1, &mut found, faults);
        for found in found.drain(..) {
            match found {
                Found::Format if self.has_begun => {
                    self.join(place, assembly);
                    self.change(assembly);
                }
                Found::Format => self.learn(place, now),
                Found::Frame(arrived) => self.frame(place, arrived, now, assembly),
                Found::Broken => self.broken_frames += 1,
            }
        }
        self.found = found;
        if !self.has_begun {
            self.tick(now, assembly);
        }
    }

    fn frame(&mut self, place: usize, arrived: Arrived, now: Duration, assembly: &mut Assembly) {
        if self.streams[place].is_text() {
            return self.text(place, arrived, now, assembly);
        }
        let longest = self.rhythm.map_or(Duration::ZERO, |before| before.longest.max(now.saturating_sub(before.last)));
        self.rhythm = Some(Rhythm { last: now, longest });
        if self.has_begun {
            if let Some(track) = self.streams[place].track {
                assembly.frame(track, arrived, now);
            }
            return;
        }
        self.held_bytes += arrived.bytes.len() + FRAME;
        self.held.push((self.streams[place].pid(), arrived, now));
    }

    /// Passes subtitles on. They tell nothing about the rhythm of the source, and the first ones are not held.
    fn text(&mut self, place: usize, arrived: Arrived, now: Duration, assembly: &mut Assembly) {
        if let Some(track) = self.streams[place].track.filter(|_| self.has_begun) {
            assembly.frame(track, arrived, now);
        }
    }

    /// Takes note of a format that became known.
    fn learn(&mut self, place: usize, now: Duration) {
        let lead = self.streams.iter().position(Elementary::is_video).unwrap_or(0);
        self.known.0.get_or_insert(now);
        if place == lead {
            self.known.1.get_or_insert(now);
        }
    }

    /// Passes frames on once all formats are known, or were waited for long enough.
    pub(in crate::reception) fn tick(&mut self, now: Duration, assembly: &mut Assembly) {
        let is_late = self.wake().is_some_and(|wake| now >= wake) || self.held_bytes > MOST_BYTES;
        let is_complete = self.known.0.is_some() && self.streams.iter().all(Elementary::is_settled);
        if !self.has_begun && (is_late || is_complete) {
            self.begin(assembly);
        }
    }

    /// Time at which [`tick`](Self::tick) must be called, if any.
    pub(in crate::reception) fn wake(&self) -> Option<Duration> {
        let (first, lead) = self.known;
        let wake = lead.map(|lead| lead + OTHERS).or(first.map(|first| first + self.patience));
        wake.filter(|_| !self.has_begun)
    }

    fn begin(&mut self, assembly: &mut Assembly) {
        self.has_begun = true;
        self.streams.retain(|stream| !stream.is_unsupported());
        let known: Vec<_> = self.streams.iter_mut().filter(|stream| stream.is_known()).collect();
        let tracks = assembly.adopt(&known.iter().map(|stream| stream.media()).collect::<Vec<_>>());
        for (stream, track) in known.into_iter().zip(tracks) {
            stream.track = track;
        }
        (0..self.streams.len()).for_each(|place| self.join(place, assembly));
        assembly.begin(self.formats(assembly));
        for (pid, arrived, arrival) in std::mem::take(&mut self.held) {
            if let Some(track) = self.streams.iter().find(|stream| stream.pid() == pid).and_then(|stream| stream.track)
            {
                assembly.frame(track, arrived, arrival);
            }
        }
        self.held_bytes = 0;
    }

    /// Gives the stream at a place a track, where it has none: a free one, or a new one once its format is known.
    fn join(&mut self, place: usize, assembly: &mut Assembly) {
        let stream = &self.streams[place];
        if stream.track.is_some() {
            return;
        }
        let taken: Vec<u16> = self.streams.iter().filter_map(|stream| stream.track).collect();
        let track = assembly.join(stream.media(), Timescale::MPEG, (&taken, stream.is_known()));
        if track.is_none() && stream.is_known() {
            tracing::warn!(pid = stream.pid(), "stream of a programme left out: one too many");
        }
        self.streams[place].track = track;
    }

    /// Begins an epoch with the next frame where formats changed.
    fn change(&mut self, assembly: &mut Assembly) {
        let formats = self.formats(assembly);
        if formats != *assembly.declared() {
            assembly.change(formats);
        }
    }

    /// The formats by track. A track keeps its format until that of its new stream is known.
    fn formats(&self, assembly: &Assembly) -> Arc<[Option<Format>]> {
        let of = |track: u16| {
            let stream = self.streams.iter().find(|stream| stream.track == Some(track))?;
            let format = stream.format(assembly.number(track), assembly.timescale(track)?);
            format.or_else(|| assembly.declared().get(usize::from(track))?.clone())
        };
        (0..assembly.tracks() as u16).map(of).collect()
    }

    /// Returns how frames arrived; `None` before the first one.
    pub(in crate::reception) fn rhythm(&self) -> Option<Rhythm> {
        self.rhythm
    }

    /// Why the stream has no such programme, where it is known to have none.
    pub(in crate::reception) fn problem(&self) -> Option<&(SourceErrorKind, String)> {
        self.problem.as_ref()
    }

    /// What is missing of a stream without frames.
    pub(in crate::reception) fn missing(&self) -> &'static str {
        match (self.selected, &self.streams[..]) {
            (None, _) => "no transport stream with a table of programmes",
            (Some(_), []) => "no supported stream in the programme",
            (Some(_), _) => "no frame",
        }
    }
}

/// Passes a cue on.
fn cue(pid: u16, section: Bytes, assembly: &mut Assembly, faults: &mut Faults) {
    match SpliceSection::read(&section) {
        Ok(Some(splice)) => assembly.cue(splice, section),
        Ok(None) => {}
        Err(error) => faults.cue(pid, error),
    }
}
