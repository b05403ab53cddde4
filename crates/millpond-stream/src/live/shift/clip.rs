//! Clips: the past of a stream from one wall time to another, as one fragmented MP4 with an end (ISO/IEC 14496-12 8.8).
//!
//! Time 0 is the last key frame at or before the asked start. Frames that are presented at the asked end or later are left out,
//! unless the decoding of an earlier one needs them. Samples keep their distances within an epoch. From one epoch to the next
//! they keep those of the wall clock, and never go back. What is missing on the disk is a hole in the times; pictures go on with
//! a key frame.

use super::{
    TimeShift,
    entry::{StoredEpoch, kind},
    reader::PartReader,
    stretch::{NoClip, millis},
};
use bytes::Bytes;
use millpond_media::{codec::Codec, fragment_stream::StreamedSample, units::Timescale};
use millpond_package::{
    MediaKind,
    fmp4::{FragmentSample, TrackHeader, TrackRun, clip_init, fragment_head},
    live::LiveFormat,
};
use millpond_store::ring::RingPlace;
use std::{collections::VecDeque, sync::Arc, time::Duration};

/// Bytes from which on [`Clip::read`] returns.
const BATCH: usize = 128 << 10;
/// Most segments before the asked start, and behind it, in which a key frame is looked for.
const SEARCHED: u64 = 64;
/// Most samples behind the end that are held in case that an earlier one needs them: more than any codec reorders.
const HELD: usize = 32;

/// A clip of a stream's past, read piece by piece. It holds one part of a segment in memory.
#[derive(Debug)]
pub struct Clip {
    shift: Arc<TimeShift>,
    /// The leading track is the first.
    lanes: Vec<Lane>,
    /// Wall time of time 0 in nanoseconds since the Unix epoch.
    zero: i128,
    /// Wall time of the end in milliseconds.
    end: u128,
    duration: Duration,
    /// Numbers of the next segment and of the last one.
    next: u64,
    last: u64,
    /// The epoch of the last segment, and nanoseconds that are added to its stream times.
    epoch: Option<(EpochKey, i128)>,
    /// Time in nanoseconds up to which samples were given.
    given: i128,
    /// Parts of the last segment that are not read yet, with their lanes.
    parts: VecDeque<(usize, RingPlace)>,
    init: Option<Bytes>,
    sequence: u32,
}

/// A track of a clip.
#[derive(Debug)]
struct Lane {
    /// Index of the track in segments.
    track: usize,
    id: u32,
    format: LiveFormat,
    /// Media time of time 0 in ticks.
    early: i64,
    /// The next decode time is no less.
    next_dts: i64,
    /// Whether samples are left out up to the next key frame.
    needs_key: bool,
    /// Whether nothing follows.
    is_over: bool,
    /// Samples behind the end.
    held: Vec<Moved>,
    /// In the current epoch, with the clock of its parts.
    reader: Option<(PartReader, Timescale)>,
}

/// A sample with times of the clip, in ticks of its lane.
#[derive(Debug)]
struct Moved {
    dts: i64,
    pts: i64,
    sample: StreamedSample,
}

/// The key frame with which a clip begins.
struct Key {
    segment: u64,
    /// Wall time of its presentation, in nanoseconds.
    wall: i128,
    /// Ticks by which it is decoded earlier, and their clock.
    early: (i64, Timescale),
}

/// Run and number of an epoch.
type EpochKey = (u64, u32);

/// Wall time of an epoch's stream time 0, in nanoseconds since the Unix epoch.
fn origin(epoch: &StoredEpoch) -> i128 {
    epoch.wall.as_nanos() as i128 - epoch.from.as_nanos() as i128
}

/// Converts ticks to the nearest nanosecond.
fn nanos(ticks: i64, scale: Timescale) -> i128 {
    let scale = i128::from(scale.get());
    (i128::from(ticks) * 1_000_000_000 + scale / 2).div_euclid(scale)
}

/// Converts nanoseconds to the nearest tick.
fn ticks(nanos: i128, scale: Timescale) -> i64 {
    let ticks = (nanos * i128::from(scale.get()) + 500_000_000).div_euclid(1_000_000_000);
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

/// Returns a reader of a track's parts in an epoch, and their clock.
fn reader(epoch: &StoredEpoch, track: usize) -> Option<(PartReader, Timescale)> {
    let scale = epoch.formats.get(track)?.as_ref()?.track.timescale;
    let init = epoch.restored(0).init(track)?.clone();
    Some((PartReader::new(init), scale))
}

impl Clip {
    /// Finds the key frame with which the clip from `start` to `end` begins. Both are wall times since the Unix epoch. It blocks
    /// the thread.
    ///
    /// # Errors
    /// Nothing of it is kept, its formats change, or the disk failed.
    pub(crate) fn open(shift: Arc<TimeShift>, start: Duration, end: Duration) -> Result<Self, NoClip> {
        let (first, last) = shift.between(start, end)?;
        let formats = shift.formats(first, last)?;
        // Clips have pictures and sound.
        let is_kept = |codec: &Codec| codec.fits_fmp4() && !matches!(codec, Codec::Pcm(_) | Codec::Wvtt(_));
        let fits = |format: &LiveFormat| is_kept(&format.track.codec);
        let fitting = formats.into_iter().enumerate();
        let fitting = fitting.filter_map(|(track, format)| Some((track, format.filter(|format| fits(format))?)));
        let mut lanes: Vec<Lane> =
            (1..).zip(fitting).map(|(id, (track, format))| Lane::new(id, track, format)).collect();
        // Pictures lead.
        lanes.sort_by_key(|lane| !lane.is_video());
        let lead = lanes.first_mut().ok_or(NoClip::Unfit)?;
        let key = find_key(&shift, lead.track, (first, last), start)?.ok_or(NoClip::NotKept)?;
        let (early, scale) = key.early;
        lead.early = scale.convert(early, lead.format.track.timescale);
        let zero = key.wall;
        if zero.div_euclid(1_000_000) >= millis(end) as i128 {
            return Err(NoClip::NotKept);
        }
        let reaches = end.min(shift.reaches(last).unwrap_or(end)).as_nanos() as i128;
        let duration = Duration::from_nanos(u64::try_from(reaches - zero).unwrap_or(0));
        let headers: Vec<_> = lanes.iter().map(Lane::header).collect();
        let init = Some(clip_init(&headers, duration));
        let (end, next) = (millis(end), key.segment);
        let (epoch, parts, given, sequence) = (None, VecDeque::new(), 0, 0);
        Ok(Self { shift, lanes, zero, end, duration, next, last, epoch, given, parts, init, sequence })
    }

    /// Wall time of time 0, since the Unix epoch.
    pub fn begins(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.zero).unwrap_or(0))
    }

    /// Duration of the kept part of the requested range, from time 0 on.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Formats of its tracks, the leading one first.
    pub fn formats(&self) -> impl Iterator<Item = &LiveFormat> {
        self.lanes.iter().map(|lane| &lane.format)
    }

    /// Returns the next bytes: about 128 KiB, or one part that is larger. `None` is the end. It blocks the thread.
    ///
    /// # Errors
    /// The media were removed from the disk in the meantime, or the disk failed. The clip is incomplete then.
    pub fn read(&mut self) -> Result<Option<Vec<Bytes>>, NoClip> {
        let mut out = Vec::from_iter(self.init.take());
        let mut bytes = 0;
        while bytes < BATCH {
            let Some((lane, place)) = self.parts.pop_front() else {
                if self.open_segment()? {
                    continue;
                }
                break;
            };
            let fragment = self.fragment(lane, place)?;
            bytes += fragment.iter().map(Bytes::len).sum::<usize>();
            out.extend(fragment);
        }
        Ok((!out.is_empty()).then_some(out))
    }

    /// Lists the parts of the next segment. Returns whether there is one.
    fn open_segment(&mut self) -> Result<bool, NoClip> {
        if self.next > self.last || self.lanes.iter().all(|lane| lane.is_over) {
            return Ok(false);
        }
        if self.shift.oldest().is_none_or(|oldest| oldest > self.next) {
            return Err(NoClip::Evicted { segment: self.next });
        }
        let segment = self.shift.segment_from(self.next).filter(|segment| segment.number <= self.last);
        let Some(segment) = segment else { return Ok(false) };
        let is_hole = segment.number > self.next;
        self.next = segment.number.saturating_add(1);
        self.enter(segment.epoch, segment.start)?;
        for lane in self.lanes.iter_mut().filter(|lane| lane.is_video()) {
            let is_gap = segment.tracks.get(lane.track).is_none_or(Vec::is_empty);
            lane.needs_key |= is_hole || is_gap;
        }
        let most = segment.tracks.iter().map(Vec::len).max().unwrap_or(0);
        for part in 0..most {
            let places = self.lanes.iter().enumerate();
            let places = places.filter_map(|(at, lane)| Some((at, *segment.tracks.get(lane.track)?.get(part)?)));
            self.parts.extend(places);
        }
        Ok(true)
    }

    /// Enters the epoch of a segment that begins at a stream time.
    fn enter(&mut self, key: EpochKey, start: Duration) -> Result<(), NoClip> {
        if self.epoch.is_some_and(|(known, _)| known == key) {
            return Ok(());
        }
        let epoch = self.shift.epoch(key).ok_or(NoClip::Evicted { segment: self.next })?;
        let mut shift = origin(&epoch) - self.zero;
        if self.epoch.is_some() {
            shift = shift.max(self.given - start.as_nanos() as i128);
        }
        self.epoch = Some((key, shift));
        for lane in &mut self.lanes {
            lane.reader = reader(&epoch, lane.track);
            lane.needs_key = lane.is_video();
        }
        Ok(())
    }

    /// Makes the fragment of a part; empty where none of its samples is in the clip.
    fn fragment(&mut self, lane: usize, place: RingPlace) -> Result<Vec<Bytes>, NoClip> {
        let (zero, end) = (self.zero, self.end);
        let Some((lane, (_, shift))) = self.lanes.get_mut(lane).zip(self.epoch) else { return Ok(Vec::new()) };
        let scale = lane.format.track.timescale;
        if lane.is_over {
            return Ok(Vec::new());
        }
        let bytes = self.shift.bytes(place)?;
        let is_behind = |pts: i64| (zero + nanos(pts, scale)).div_euclid(1_000_000) >= end as i128;
        let samples = lane.take(&bytes, shift, is_behind);
        let Some(run) = lane.run(&samples) else { return Ok(Vec::new()) };
        let ends = samples.iter().map(|of| nanos(of.pts, scale) + nanos(of.sample.duration.into(), scale));
        self.given = ends.fold(self.given, i128::max);
        self.sequence = self.sequence.wrapping_add(1);
        let head = fragment_head(self.sequence, &[run]);
        Ok(std::iter::once(head).chain(samples.into_iter().map(|of| of.sample.data)).collect())
    }
}

/// Returns the last key frame of a track at or before a wall time, else the first one after it. Looked at are segments from one
/// number to another, and those before that the first one needs.
fn find_key(
    shift: &TimeShift,
    track: usize,
    (first, last): (u64, u64),
    start: Duration,
) -> Result<Option<Key>, NoClip> {
    let (mut from, mut known) = (first, shift.segment_from(first));
    while let Some(segment) = known.filter(|of| !of.begins(track) && first - from < SEARCHED && from > 0) {
        let before = shift.segment_from(from - 1).filter(|of| of.number == from - 1 && of.epoch == segment.epoch);
        from -= u64::from(before.is_some());
        known = before;
    }
    let mut found = None;
    let mut current: Option<(EpochKey, i128, PartReader, Timescale)> = None;
    let mut rest = 2 * SEARCHED;
    while let Some(segment) = shift.segment_from(from).filter(|of| of.number <= last && rest > 0) {
        if found.is_some() && segment.number > first {
            break;
        }
        rest -= 1;
        from = segment.number + 1;
        if current.as_ref().is_none_or(|(key, ..)| *key != segment.epoch) {
            let epoch = shift.epoch(segment.epoch).ok_or(NoClip::NotKept)?;
            current = reader(&epoch, track).map(|(reader, scale)| (segment.epoch, origin(&epoch), reader, scale));
        }
        let Some((_, origin, reader, scale)) = &mut current else { continue };
        for place in segment.tracks.get(track).into_iter().flatten() {
            for sample in reader.samples(&shift.bytes(*place)?).into_iter().filter(|sample| sample.is_sync) {
                let wall = *origin + nanos(sample.pts, *scale);
                let is_later = wall.div_euclid(1_000_000) > millis(start) as i128;
                if is_later && found.is_some() {
                    return Ok(found);
                }
                let early = (sample.pts.saturating_sub(sample.dts).max(0), *scale);
                found = Some(Key { segment: segment.number, wall, early });
                if is_later {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

impl Lane {
    fn new(id: u32, track: usize, format: LiveFormat) -> Self {
        let (early, next_dts, held, reader) = (0, 0, Vec::new(), None);
        Self { track, id, format, early, next_dts, needs_key: false, is_over: false, held, reader }
    }

    fn is_video(&self) -> bool {
        kind(&self.format.track.kind) == MediaKind::Video
    }

    fn header(&self) -> TrackHeader<'_> {
        let LiveFormat { track, language, label, .. } = &self.format;
        let (kind, language) = (kind(&track.kind), language.as_deref());
        TrackHeader { id: self.id, track, kind, language, label, timescale: track.timescale, early: self.early }
    }

    /// Returns the samples of a part that are in the clip. `shift` nanoseconds are added to their times.
    fn take(&mut self, part: &[u8], shift: i128, is_behind: impl Fn(i64) -> bool) -> Vec<Moved> {
        let Some((reader, from)) = &mut self.reader else { return Vec::new() };
        let (from, to) = (*from, self.format.track.timescale);
        let shift = ticks(shift, to);
        let mut taken = Vec::new();
        for sample in reader.samples(part) {
            let dts = from.convert(sample.dts, to).saturating_add(shift);
            let pts = from.convert(sample.pts, to).saturating_add(shift);
            self.needs_key &= !(sample.is_sync && pts >= 0);
            if self.needs_key || pts < 0 || self.is_over {
                continue;
            }
            let moved = Moved { dts, pts, sample };
            if !is_behind(pts) {
                taken.append(&mut self.held);
                taken.push(moved);
            } else if moved.sample.is_sync || self.held.len() >= HELD {
                // No picture behind a key frame is presented before it, except where groups are open.
                self.is_over = true;
            } else {
                self.held.push(moved);
            }
        }
        taken
    }

    /// Returns the run of samples, whose decode times rise; `None` without samples.
    fn run(&mut self, samples: &[Moved]) -> Option<TrackRun> {
        let mut times = Vec::with_capacity(samples.len());
        for of in samples {
            let dts = of.dts.saturating_add(self.early).max(self.next_dts);
            self.next_dts = dts.saturating_add(1);
            times.push(dts);
        }
        let first = u64::try_from(*times.first()?).unwrap_or(0);
        let row = |(at, of): (usize, &Moved)| {
            let dts = times.get(at).copied().unwrap_or(0);
            let next = times.get(at + 1).map(|next| next.saturating_sub(dts));
            FragmentSample {
                duration: next.and_then(|next| u32::try_from(next).ok()).unwrap_or(of.sample.duration),
                size: u32::try_from(of.sample.data.len()).unwrap_or(u32::MAX),
                offset: of.pts.saturating_add(self.early).saturating_sub(dts),
                is_sync: of.sample.is_sync,
            }
        };
        let samples = samples.iter().enumerate().map(row).collect();
        Some(TrackRun { id: self.id, decode_time: first, samples })
    }
}

impl TimeShift {
    /// Wall time at which the segment of a number ends.
    fn reaches(&self, number: u64) -> Option<Duration> {
        let state = self.lock();
        let at = state.segments.binary_search_by_key(&number, |segment| segment.number).ok()?;
        Some(state.end_of(state.segments.get(at)?))
    }
}
