//! Reads the first fragment, and makes an outline of it and of the cues. The last fragment is read too, unless tags state when the
//! tracks end.

use super::{
    clusters::{Block, Event},
    fragments::Fragments,
    head::Found,
    lane::{self, Lane},
    samples::Course,
    segment::Info,
    stretch::Stretch,
    track_entry::{EntryKind, TrackEntry},
};
use crate::{
    error::MediaError,
    movie::{
        Track, TrackKind,
        edits::media_end,
        outline::{Clusters, Form, FragmentTimes, Outline, share},
        sample_table::SampleTable,
    },
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;

/// Most fragments at either end that are joined because a track has no frames in one.
const MOST_JOINED: u32 = 8;
/// Longest fragment that is read before a manifest is made.
const LONGEST: u64 = 64 << 20;
/// Longest difference between the borders of two tracks of a fragment, as a part of a second.
const BORROWED: i64 = 2;
/// Most pictures that follow a key frame and are presented before it.
const MOST_LEADING: i64 = 16;
/// Ticks of the segment by which a stated time may differ from another one.
const ROUNDED: i64 = 2;

/// The comparison of cues with the first and the last fragment.
#[derive(Debug)]
pub(super) struct Outliner {
    facts: Facts,
    fragments: Fragments,
    joined: u32,
    first: Stretch,
    /// `None` where the ends of all tracks are known.
    last: Option<Stretch>,
    lanes: Vec<Lane>,
    /// Blocks of the last fragment.
    blocks: Vec<(Block, Vec<ByteRange>)>,
    asked: [Option<ByteRange>; 2],
    work: Work,
}

/// Facts of the head.
#[derive(Debug)]
struct Facts {
    info: Info,
    /// Tracks of pictures and of sound, and those that can't be played.
    entries: Vec<TrackEntry>,
    /// Tracks of text, with all of their blocks.
    texts: Vec<Lane>,
    /// Ends of tracks by their numbers, in ticks of the segment.
    ends: Vec<(u64, i64)>,
}

/// Result of one step.
pub(super) enum Step {
    Needs(Vec<ByteRange>),
    /// The cues can't be trusted, or tell too little.
    Refused,
    /// Tracks with the samples of the first fragment, tracks that are left out, and the outline.
    Outlined(Vec<Track>, Vec<(u32, MediaError)>, Box<Outline>),
}

impl Outliner {
    /// Begins with the fragments that the cues of a head name; `None` where they name too few, or frames lack their common beginning.
    pub(super) fn new(found: &Found, work: &Work) -> Option<Self> {
        let all = lanes(&found.tracks, &found.info);
        let plays = |number: u64| all.iter().any(|lane| lane.entry.number == number && lane.plays());
        // Cues name the key frames of one track of pictures.
        let is_video = |lane: &&Lane| lane.plays() && matches!(lane.entry.kind, EntryKind::Video(_));
        if all.iter().filter(is_video).count() > 1 {
            return None;
        }
        // The samples of the file would be no ranges of it.
        if all.iter().any(Lane::is_stripped) {
            return None;
        }
        let fragments = Fragments::of(found, |entry| plays(entry.number))?;
        let (mut texts, lanes): (Vec<Lane>, Vec<Lane>) = all.into_iter().partition(Lane::is_text);
        // Old muxers write no cues for texts: these are found by reading all blocks.
        let has_all = texts.iter_mut().all(|lane| lane.read_cues(found));
        if !has_all || !texts.is_empty() && !texts.iter().any(Lane::has_texts) {
            return None;
        }
        let ends = ends(found);
        let is_known = |lane: &Lane| ends.iter().any(|(number, _)| *number == lane.entry.number);
        let all = lanes.iter().filter(|lane| lane.plays() && lane::is_media(&lane.entry)).all(is_known);
        let ends = if all { ends } else { Vec::new() };
        let entries = lanes.into_iter().map(|lane| lane.entry).collect();
        Self::over(Facts { info: found.info, entries, texts, ends }, fragments, 0, work)
    }

    fn over(facts: Facts, fragments: Fragments, joined: u32, work: &Work) -> Option<Self> {
        let stretch = |place: usize| {
            let (range, marks) = fragments.stretch(place)?;
            let fits = range.len() <= LONGEST && joined <= MOST_JOINED;
            fits.then(|| Stretch::new(range, marks, fragments.end, work.clone()))
        };
        let mut first = stretch(0)?;
        let last = if facts.ends.is_empty() { Some(stretch(fragments.all.len().checked_sub(1)?)?) } else { None };
        let lanes = lanes(&facts.entries, &facts.info);
        for lane in lanes.iter().filter(|lane| lane.waits()) {
            first.show_first_of(lane.entry.number);
        }
        let (blocks, asked, work) = (Vec::new(), [None; 2], work.clone());
        Some(Self { facts, fragments, joined, first, last, lanes, blocks, asked, work })
    }

    /// Takes the bytes of a range that was needed.
    pub(super) fn supply(&mut self, range: ByteRange, bytes: &Bytes) {
        let [first, last] = &mut self.asked;
        if *first == Some(range) {
            *first = None;
            self.first.supply(bytes.clone());
        }
        if *last == Some(range)
            && let Some(stretch) = &mut self.last
        {
            *last = None;
            stretch.supply(bytes.clone());
        }
    }

    /// Reads as far as the bytes allow.
    ///
    /// # Errors
    /// The job has ended.
    pub(super) fn step(&mut self) -> Result<Step, MediaError> {
        loop {
            match self.read() {
                Ok(needed) if !needed.is_empty() => return Ok(Step::Needs(needed)),
                Ok(_) => {}
                Err(error @ MediaError::Work { .. }) => return Err(error),
                Err(_) => return Ok(Step::Refused),
            }
            let missing = self.missing();
            if missing.is_none() && !self.needs_last() {
                return Ok(self.outlined().unwrap_or(Step::Refused));
            }
            let mut fragments = self.fragments.clone();
            if missing.is_some_and(|is_last| !fragments.join(is_last)) {
                return Ok(Step::Refused);
            }
            let none = Facts { entries: Vec::new(), texts: Vec::new(), ends: Vec::new(), ..self.facts };
            let mut facts = std::mem::replace(&mut self.facts, none);
            if missing.is_none() {
                facts.ends.clear();
            }
            match Self::over(facts, fragments, self.joined + u32::from(missing.is_some()), &self.work) {
                None => return Ok(Step::Refused),
                Some(next) => *self = next,
            }
        }
    }

    /// Whether the last fragment must be read, though the ends of tracks are known. Sound that ends far from the first border either
    /// pauses there, or is offset from the pictures in the whole file.
    fn needs_last(&self) -> bool {
        let border = self.fragments.all.get(1).map(|fragment| fragment.time);
        self.last.is_none()
            && border.is_some_and(|time| self.lanes.iter().any(|lane| lane.is_sound_off(time, BORROWED)))
    }

    /// Reads both fragments. Returns the ranges that are needed.
    fn read(&mut self) -> Result<Vec<ByteRange>, MediaError> {
        let mut needed = Vec::new();
        while self.asked[0].is_none() {
            match self.first.next()? {
                Event::Needs(range) => self.asked[0] = Some(range),
                Event::End => break,
                Event::Block(block) => {
                    let Some(lane) = self.lanes.iter_mut().find(|lane| lane.entry.number == block.track) else {
                        continue;
                    };
                    lane.push(&block, self.first.frames(), &self.facts.info);
                    lane.search_captions(self.first.available());
                    if lane.waits() {
                        self.first.show_first_of(block.track);
                    }
                }
            }
        }
        while let Some(last) = self.last.as_mut().filter(|_| self.asked[1].is_none()) {
            match last.next()? {
                Event::Needs(range) => self.asked[1] = Some(range),
                Event::End => break,
                Event::Block(block) => {
                    if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.entry.number == block.track) {
                        lane.search_captions(last.available());
                    }
                    self.blocks.push((block, last.frames().to_vec()));
                }
            }
        }
        needed.extend(self.asked.iter().flatten().copied());
        needed.dedup();
        Ok(needed)
    }

    /// Returns whether a track of pictures or sound has no frames in the last fragment, or in the first.
    fn missing(&self) -> Option<bool> {
        let tracks = self.lanes.iter().filter(|lane| lane.plays() && lane::is_media(&lane.entry));
        let numbers: Vec<(u64, bool)> = tracks.map(|lane| (lane.entry.number, lane.first().is_some())).collect();
        if numbers.iter().any(|(_, is_there)| !is_there) {
            return Some(false);
        }
        let begins_last = self.fragments.all.last().map_or(0, |fragment| fragment.time);
        let is_in_last = |number: u64| match self.last {
            Some(_) => self.blocks.iter().any(|(block, _)| block.track == number),
            None => self
                .facts
                .ends
                .iter()
                .any(|(known, end)| *known == number && *end > begins_last.saturating_add(ROUNDED)),
        };
        numbers.iter().any(|(number, _)| !is_in_last(*number)).then_some(true)
    }

    /// Makes the outline; `None` where cues and frames differ.
    fn outlined(&mut self) -> Option<Step> {
        let lanes = std::mem::take(&mut self.lanes);
        let base = lanes.iter().filter_map(Lane::first).min()?;
        let (mut tracks, mut left, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        let mut courses = Vec::new();
        for lane in lanes {
            let id = u32::try_from(lane.entry.number).unwrap_or(u32::MAX);
            let facts = (lane.entry.number, lane.entry.default_duration);
            match lane.finish(id, base, &self.facts.info) {
                Ok((track, course)) => {
                    tracks.push(track);
                    courses.push(course);
                    numbers.push(facts);
                }
                Err(error) => left.push((id, error)),
            }
        }
        let lasts: Vec<SampleTable> =
            tracks.iter().zip(&numbers).map(|(track, facts)| self.last_of(track, *facts)).collect();
        let all = tracks.iter().zip(&lasts).map(|(track, last)| track.samples.total_bytes() + last.total_bytes()).sum();
        let mut times = Vec::new();
        for (place, track) in tracks.iter().enumerate() {
            times.push(self.times(track, courses.get(place)?, numbers.get(place)?, (lasts.get(place)?, all))?);
        }
        // Texts have no fragments: all of them are known.
        for lane in std::mem::take(&mut self.facts.texts) {
            let id = u32::try_from(lane.entry.number).unwrap_or(u32::MAX);
            match lane.finish(id, base, &self.facts.info) {
                Ok((track, _)) => tracks.push(track),
                Err(error) => left.push((id, error)),
            }
        }
        let fragments = &self.fragments;
        let clusters = Clusters {
            scale: self.facts.info.scale,
            track: fragments.track,
            cues: fragments.all.iter().map(|fragment| fragment.time).collect(),
            starts: fragments.all.iter().map(|fragment| fragment.offset).collect(),
            margin: fragments.margin,
            end: fragments.end,
            tracks: numbers,
        };
        let offsets = fragments.all.iter().map(|fragment| fragment.place).chain([fragments.end]).collect();
        let outline = Outline { form: Form::Clusters(clusters), offsets, tracks: times };
        Some(Step::Outlined(tracks, left, Box::new(outline)))
    }

    /// Returns the samples of a track in the last fragment.
    fn last_of(&self, track: &Track, (number, frame): (u64, Option<u64>)) -> SampleTable {
        let mut samples = lane::samples(&track.codec, &track.kind, frame, self.facts.info.scale);
        for (block, frames) in self.blocks.iter().filter(|(block, _)| block.track == number) {
            samples.push(block, frames);
        }
        samples.finish()
    }

    /// Returns the times of a track, which fit its first and last fragment; `None` where they don't.
    fn times(
        &self,
        track: &Track,
        course: &Course,
        (number, frame): &(u64, Option<u64>),
        (last, all): (&SampleTable, u64),
    ) -> Option<FragmentTimes> {
        let clock = lane::samples(&track.codec, &track.kind, *frame, self.facts.info.scale).clock();
        let rounding = clock.ticks(ROUNDED).saturating_add(1);
        let is_video = matches!(track.kind, TrackKind::Video { .. });
        let cues = self.fragments.all.iter().map(|fragment| clock.ticks(fragment.time));
        let second = clock.ticks(self.fragments.all.get(1)?.time);
        let last_start = last.iter().map(|sample| sample.pts()).min();
        let is_last_open = last.get(0).zip(last_start).is_some_and(|(first, start)| start < first.pts());
        // The part of the times that the cues don't have, the largest difference from them, and whether groups are open.
        let (shift, tolerance, is_open) = match course {
            Course::Pictures { delay } if *number == self.fragments.track => {
                let usual =
                    frame.map(|_| i64::from(track.samples.iter().map(|sample| sample.duration).min().unwrap_or(1)));
                let latest = track.samples.iter().map(|sample| sample.pts()).max()?;
                let gap = second.saturating_add(*delay).saturating_sub(latest);
                // Pictures between the latest picture of the first fragment and the next key frame belong to the next fragment. A
                // longer gap is a pause.
                let leading =
                    usual.filter(|_| *delay > 0).map_or(0, |usual| gap.saturating_add(usual / 2) / usual.max(1) - 1);
                let leading = if leading > MOST_LEADING { 0 } else { leading.max(0) };
                let is_open = leading > 0 || is_last_open;
                let usual = usual.unwrap_or(rounding);
                let tolerance = if is_open { usual.saturating_mul(MOST_LEADING) } else { rounding.max(usual / 2) };
                (delay.saturating_sub(leading.saturating_mul(usual)), tolerance, is_open)
            }
            _ => {
                let tolerance = i64::from(track.timescale.get()) / BORROWED;
                let at_first = media_end(&track.samples).saturating_sub(second);
                let last_cue = clock.ticks(self.fragments.all.last()?.time);
                let at_last = last_start.map_or(at_first, |start| start.saturating_sub(last_cue));
                // If the offsets at both borders differ, sound pauses at the border with the larger offset.
                let pauses = at_first.abs_diff(at_last) > tolerance.unsigned_abs();
                let shift = if pauses && at_last.unsigned_abs() < at_first.unsigned_abs() { at_last } else { at_first };
                (shift, tolerance, false)
            }
        };
        let first = track.samples.iter().map(|sample| sample.pts()).min()?;
        let later = cues.skip(1).map(|cue| cue.saturating_add(shift));
        let known = self.facts.ends.iter().find(|(known, _)| known == number).map(|(_, end)| clock.ticks(*end));
        let delay = if let Course::Pictures { delay } = course { *delay } else { 0 };
        let end = known.map_or_else(|| media_end(last), |end| end.saturating_add(delay));
        let times: Vec<i64> = std::iter::once(first).chain(later).chain([end]).collect();
        let stated = *times.get(times.len().checked_sub(2)?)?;
        // Sound may pause at any border.
        let may_pause = *number != self.fragments.track && !is_video;
        let fits = may_pause || last_start.is_none_or(|start| stated.abs_diff(start) <= tolerance.unsigned_abs());
        let own = track.samples.total_bytes().saturating_add(last.total_bytes());
        // Pictures count all bytes, so that no stated rate is below the true one.
        let share = share(if is_video { all } else { own }, all);
        (fits && times.is_sorted_by(|a, b| a < b)).then_some(FragmentTimes {
            times,
            no_entries: Vec::new(),
            is_open,
            is_borrowed: may_pause,
            tolerance,
            share,
        })
    }
}

/// Returns when tracks end, as tags state it, in ticks of the segment. Some muxers count from the first frame, others from 0.
fn ends(found: &Found) -> Vec<(u64, i64)> {
    let scale = found.info.scale.max(1);
    let all = found.info.duration.map_or(i64::MAX, |ticks| ticks.ceil() as i64);
    let end = |entry: &TrackEntry| {
        let stated = found.durations.iter().find(|duration| entry.uid != 0 && duration.uid == entry.uid)?;
        let ticks = i64::try_from(stated.nanoseconds / scale).ok().filter(|ticks| *ticks > 0)?;
        Some((entry.number, ticks.min(all)))
    };
    found.tracks.iter().filter_map(end).collect()
}

fn lanes(entries: &[TrackEntry], info: &Info) -> Vec<Lane> {
    entries.iter().map(|entry| Lane::new(entry.clone(), info)).collect()
}
