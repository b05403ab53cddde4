//! Teletext subtitles of a file: each page becomes a track of WebVTT, whose samples lie in the index.

use super::{
    lane::{Extracted, Placed},
    timeline::Timeline,
};
use crate::{
    codec::{StreamForm, make},
    movie::{
        SkippedTrack, Track,
        extraction::{ExtractedStreamBuilder, FramePlace},
        purpose::{Purpose, Purposes},
        sample_table::SampleTable,
    },
    teletext::{COMPLETE, TeletextChange, TeletextCue, TeletextDecoder, TeletextPage},
    ts::{PesUnit, TsStream},
    units::{ByteRange, Timescale},
};
use std::collections::VecDeque;

/// `alternate_group` of tracks of subtitles.
const GROUP: u16 = 3;
/// Number of PIDs: page `n` of a stream has the identifier of its PID and `n` times this.
const PIDS: u32 = 1 << 13;
/// Most bytes of the texts of a track. A film has about a hundred kilobytes.
const MOST_BYTES: usize = 4 << 20;
/// Most changes of a track.
const MOST_CHANGES: usize = 1 << 17;
/// Most PES packets that wait for the first frame of the programme.
const MOST_WAITING: usize = 512;
/// Time within which subtitles arrive behind the pictures that they belong to, in ticks of 90 kHz.
const LATE: i64 = 10 * 90_000;

/// A teletext stream that is read.
#[derive(Debug)]
pub(super) struct TextLane {
    pid: u16,
    descriptor: Vec<u8>,
    decoder: TeletextDecoder,
    /// PES packets before the first time base: their timestamps and payloads.
    waiting: VecDeque<(u64, bytes::Bytes)>,
    /// Time base of the last PES packet, and its time there.
    reached: Option<(usize, i64)>,
    /// Whether the stream goes on with another PID, and nothing of that one was read yet.
    is_other: bool,
    changes: Vec<TeletextChange>,
    /// In the order of the pages.
    tracks: Vec<TextTrack>,
}

/// The texts of one page.
#[derive(Debug)]
struct TextTrack {
    id: u32,
    page: TeletextPage,
    events: Vec<Event>,
    /// Samples, as they follow one another.
    held: Vec<u8>,
    source: ExtractedStreamBuilder,
    /// Whether texts beyond the limits were left out.
    is_full: bool,
}

/// A sample that begins at a time.
#[derive(Clone, Copy, Debug)]
struct Event {
    base: usize,
    at: i64,
    place: ByteRange,
    /// Whether it shows a text.
    is_shown: bool,
}

impl TextLane {
    /// Creates the lane of a teletext stream.
    pub(super) fn new(stream: &TsStream, extracted: &mut Extracted) -> Self {
        let descriptor = stream.teletext();
        let decoder = TeletextDecoder::of_descriptor(&descriptor);
        let (pid, waiting, reached, is_other) = (stream.pid, VecDeque::new(), None, false);
        let (changes, tracks) = (Vec::new(), Vec::new());
        let mut lane = Self { pid, descriptor, decoder, waiting, reached, is_other, changes, tracks };
        lane.add_tracks(extracted);
        lane
    }

    pub(super) fn pid(&self) -> u16 {
        self.pid
    }

    /// Whether a stream with other PID has the same pages, as where recordings are joined.
    pub(super) fn can_go_on_with(&self, stream: &TsStream) -> bool {
        stream.teletext() == self.descriptor
    }

    /// Goes on with another stream.
    pub(super) fn go_on_with(&mut self, stream: &TsStream) {
        (self.pid, self.is_other) = (stream.pid, true);
    }

    /// Takes the next PES packet. `clock` is the last clock of the programme, in ticks of 90 kHz.
    pub(super) fn push(&mut self, unit: &PesUnit, clock: Option<u64>, timeline: &Timeline, extracted: &mut Extracted) {
        let Some(pts) = unit.text_time(clock) else { return };
        if timeline.bases() == 0 {
            if self.waiting.len() >= MOST_WAITING {
                self.waiting.pop_front();
            }
            return self.waiting.push_back((pts, unit.data.clone()));
        }
        while let Some((pts, data)) = self.waiting.pop_front() {
            self.take(pts, &data, timeline, extracted);
        }
        self.take(pts, &unit.data, timeline, extracted);
    }

    fn take(&mut self, pts: u64, data: &[u8], timeline: &Timeline, extracted: &mut Extracted) {
        let first = self.reached.map_or(0, |(base, _)| base);
        let Some((base, at)) = timeline.locate(first, pts) else { return };
        if base != first || std::mem::take(&mut self.is_other) {
            self.end(extracted);
            self.tracks.iter_mut().for_each(|track| track.add(base, at, &[], extracted));
        }
        self.reached = Some((base, at));
        self.decoder.push(data, at, &mut self.changes);
        self.note(base, extracted);
    }

    /// Ends the stream. Subtitles on the screen stay until the page changes, or until the decoder removes a page that was not repeated.
    pub(super) fn end(&mut self, extracted: &mut Extracted) {
        let Some((base, _)) = self.reached else { return };
        self.decoder.finish(i64::MAX, &mut self.changes);
        self.note(base, extracted);
    }

    /// Makes samples of the changes so far.
    fn note(&mut self, base: usize, extracted: &mut Extracted) {
        if self.decoder.pages().len() > self.tracks.len() {
            self.add_tracks(extracted);
        }
        for TeletextChange { page, at, cues } in std::mem::take(&mut self.changes) {
            if let Some(track) = self.tracks.get_mut(page) {
                track.add(base, at, &cues, extracted);
            }
        }
    }

    /// Adds the tracks of pages that have none. Each begins with an empty sample.
    fn add_tracks(&mut self, extracted: &mut Extracted) {
        for page in self.decoder.pages().skip(self.tracks.len()) {
            let id = u32::from(self.pid).saturating_add(u32::from(page.number()).saturating_mul(PIDS));
            let (events, held, source) = (Vec::new(), Vec::new(), ExtractedStreamBuilder::default());
            let mut track = TextTrack { id, page: page.clone(), events, held, source, is_full: false };
            track.add(0, i64::MIN, &[], extracted);
            self.tracks.push(track);
        }
    }

    /// Steps of work so far.
    pub(super) fn steps(&self) -> u64 {
        self.tracks.iter().map(|track| track.events.len() as u64).sum()
    }

    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        let of_track = |track: &TextTrack| {
            track.held.capacity() + track.events.capacity() * size_of::<Event>() + track.source.heap_bytes()
        };
        self.waiting.iter().map(|(_, data)| data.len()).sum::<usize>() + self.tracks.iter().map(of_track).sum::<usize>()
    }

    /// Returns the tracks of the texts in the first `bases` time bases, which are presented later by `shifts`. They end at `end`, in
    /// ticks of 90 kHz of the presentation.
    pub(super) fn placed(&self, bases: usize, shifts: &[i64], end: i64) -> impl Iterator<Item = Placed> {
        self.tracks.iter().filter_map(move |track| track.placed(bases, shifts, end))
    }

    /// Returns the same for a file of which only the beginning is known, up to a time of the first base. A track ends where its last
    /// text begins, or where no further text can begin earlier.
    pub(super) fn so_far(&self, shift: i64, read: i64) -> impl Iterator<Item = Placed> {
        // The page that was read last may have begun just before.
        let own = self.reached.filter(|(base, _)| *base == 0).map_or(i64::MIN, |(_, at)| at.saturating_sub(COMPLETE));
        let known =
            if self.reached.is_some_and(|(base, _)| base > 0) { i64::MAX } else { own.max(read.saturating_sub(LATE)) };
        self.tracks.iter().filter_map(move |track| {
            let last = track.events.iter().rfind(|event| event.base == 0);
            let open = last.filter(|last| last.is_shown).map_or(i64::MAX, |last| last.at);
            track.placed(1, &[shift], known.min(open).saturating_add(shift))
        })
    }

    /// Returns what viewers of the file lack.
    pub(super) fn remarks(&self) -> Vec<SkippedTrack> {
        let pid = self.pid;
        if self.tracks.is_empty() {
            return vec![SkippedTrack::new(pid.into(), format!("PID {pid:#06x}: teletext without pages of subtitles"))];
        }
        let remark = |track: &TextTrack| {
            let what = match track {
                _ if track.is_full => "texts beyond 4 MiB are left out",
                _ if !track.events.iter().any(|event| event.is_shown) => "no text in the whole file",
                _ => return None,
            };
            let reason = format!("PID {pid:#06x}: teletext page {}: {what}", track.page.name());
            Some(SkippedTrack::new(track.id, reason))
        };
        self.tracks.iter().filter_map(remark).collect()
    }
}

impl TextTrack {
    fn add(&mut self, base: usize, at: i64, cues: &[TeletextCue], extracted: &mut Extracted) {
        let sample = TeletextCue::sample(cues);
        if self.held.len() + sample.len() > MOST_BYTES || self.events.len() >= MOST_CHANGES {
            self.is_full = true;
            return;
        }
        let source = ByteRange::at(self.held.len() as u64, sample.len() as u64);
        let place = extracted.append(&sample);
        self.held.extend_from_slice(&sample);
        self.source.push_frame(FramePlace { extracted: place, source });
        self.events.push(Event { base, at, place, is_shown: !cues.is_empty() });
    }

    /// Returns the track; `None` if no sample entry can be made.
    fn placed(&self, bases: usize, shifts: &[i64], end: i64) -> Option<Placed> {
        let time = |event: &Event| event.at.saturating_add(shifts.get(event.base).copied().unwrap_or(0)).max(0);
        let mut starts: Vec<(i64, ByteRange)> = Vec::with_capacity(self.events.len());
        for event in self.events.iter().filter(|event| event.base < bases) {
            // A text before time 0 is shown from then on, unless another one replaces it.
            let at = time(event);
            while starts.pop_if(|(last, _)| *last >= at).is_some() {}
            if at < end {
                starts.push((at, event.place));
            }
        }
        let mut samples = SampleTable::builder();
        let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([end]);
        for ((at, place), until) in starts.iter().zip(ends) {
            let duration = u32::try_from(until.saturating_sub(*at)).unwrap_or(u32::MAX);
            samples.set_start_dts(*at);
            samples.push(place.start, u32::try_from(place.len()).unwrap_or(u32::MAX), duration, 0, true);
        }
        let made = make::wvtt().ok()?;
        let purposes: Purposes = self.page.is_for_deaf.then_some(Purpose::Captions).into_iter().collect();
        let track = Track {
            alternate_group: GROUP,
            purposes,
            samples: samples.finish(),
            ..Track::live(self.id, made, Timescale::MPEG, self.page.language.as_deref().unwrap_or("und"))
        };
        let pid = (self.id % PIDS) as u16;
        let source = self.source.clone().finish(pid, StreamForm::Plain).holding(self.held.clone());
        Some(Placed { track, clips: Vec::new(), sources: vec![source] })
    }
}
