//! Media segments of PCM and G.711, which become FLAC while the segment is made.
//!
//! The sizes of all frames stand before them, so nothing is written before the last value was read.

use super::{
    boxes::BoxWriter,
    fragment::{FragmentSample, TrackRun, fragment_head},
    init::TRACK_ID,
    segment::segment_type,
};
use crate::{
    ObjectIndex, PackageError,
    flac::{FlacEncoder, Numbering, values},
    plan::{ObjectRange, Plan, Rewrite, RewriteJob, reads},
    presentation::{
        flac_track::{FlacForm, FlacTrack, SegmentBlocks},
        track::MediaTrack,
    },
    timeline::{
        Timed,
        blocks::{self, Blocks},
    },
};
use millpond_media::{codec::PcmCoding, units::ByteRange};

/// Most bytes of a read of several access units.
const MOST_READ: u64 = 64 << 10;
/// Most bytes of the boxes before the frames, without the rows of `trun`.
const HEAD: u64 = 256;
/// Bytes of a row of `trun`: duration and size.
const ROW: u64 = 8;

/// Returns segment `number` (from 1) of a track; `None` where there is no such segment, and where its access units are loaded.
pub(super) fn segment(media: &MediaTrack, flac: &FlacTrack, number: u32) -> Option<Plan> {
    let blocks = flac.segment(number)?;
    let (reads, times) = places(media, flac, &blocks);
    let (early, next) = (flac.early(), blocks.next.time);
    let place = Place { sequence: number, early, first: blocks.start.number.into(), next };
    Some(Encoding::plan(&flac.form, place, blocks.frames, reads, &times))
}

/// Returns segment `number` of a track, whose access units were loaded into `media`. The last one ends at `end`.
pub(super) fn loaded(media: &MediaTrack, flac: &FlacTrack, units: &[Timed], end: i64, number: u32) -> Plan {
    let (form, mut reads, mut frames) = (&flac.form, Vec::new(), 0_u64);
    for unit in units {
        let count = form.shape.frames_in(unit);
        frames = frames.saturating_add(count);
        add_read(&mut reads, read(media, form, unit, 0, count));
    }
    let times = blocks::times(form.shape, units, &form.stream.lengths(frames));
    let early = flac.early();
    let ticks = times.first().map_or(0, |first| first.saturating_add(early));
    let samples = i128::from(ticks) * i128::from(form.shape.rate) / i128::from(form.shape.timescale.max(1));
    let first = u64::try_from(samples).unwrap_or(0);
    Encoding::plan(form, Place { sequence: number, early, first, next: end }, frames, reads, &times)
}

/// Place of a segment in its track.
struct Place {
    /// Number of the segment.
    sequence: u32,
    /// Ticks by which the track begins before time 0.
    early: i64,
    /// Number of the first frame of FLAC, or of its first sample.
    first: u64,
    /// Time of the next frame.
    next: i64,
}

/// Returns the reads of a segment, which are whole frames of PCM, and the presentation times of its blocks.
fn places(media: &MediaTrack, flac: &FlacTrack, segment: &SegmentBlocks) -> (Vec<ObjectRange>, Vec<i64>) {
    let (shape, table) = (flac.form.shape, &media.track().samples);
    let mut blocks = Blocks::from(shape, &segment.start);
    let (mut skip, mut left) = (u64::from(segment.start.skip), segment.frames);
    let (mut reads, mut times) = (Vec::new(), Vec::new());
    for unit in media.timeline.walk(table, segment.start.ordinal..media.timeline.len()) {
        if left == 0 {
            break;
        }
        blocks.add(&unit, |block| {
            if block.number < segment.next.number {
                times.push(block.time);
            }
        });
        let frames = shape.frames_in(&unit).saturating_sub(skip).min(left);
        add_read(&mut reads, read(media, &flac.form, &unit, skip, frames));
        (skip, left) = (0, left - frames);
    }
    (reads, times)
}

/// Returns the place of `frames` of PCM of an access unit, behind `skip` others.
fn read(media: &MediaTrack, form: &FlacForm, unit: &Timed, skip: u64, frames: u64) -> ObjectRange {
    let ObjectRange { object, range } = media.place(unit.sample.range);
    let bytes = |frames: u64| frames.saturating_mul(form.shape.frame.into());
    ObjectRange { object, range: ByteRange::at(range.start.saturating_add(bytes(skip)), bytes(frames)) }
}

/// Appends a range, or lengthens the last one where it goes on.
fn add_read(reads: &mut Vec<ObjectRange>, next: ObjectRange) {
    if next.range.is_empty() {
        return;
    }
    match reads.last_mut() {
        Some(last)
            if last.object == next.object
                && last.range.end == next.range.start
                && last.range.len() + next.range.len() <= MOST_READ =>
        {
            last.range.end = next.range.end;
        }
        _ => reads.push(next),
    }
}

/// Returns, for each read, the lowest offset at which it or a later one of its object begins.
fn floors(reads: &[ObjectRange]) -> Vec<u64> {
    let mut least: Vec<(ObjectIndex, u64)> = Vec::new();
    let mut floors = Vec::with_capacity(reads.len());
    for read in reads.iter().rev() {
        let start = read.range.start;
        match least.iter_mut().find(|(object, _)| *object == read.object) {
            Some((_, known)) => {
                *known = start.min(*known);
                floors.push(*known);
            }
            None => {
                least.push((read.object, start));
                floors.push(start);
            }
        }
    }
    floors.reverse();
    floors
}

/// A segment that is being made.
struct Encoding {
    /// Number of the segment.
    sequence: u32,
    decode_time: u64,
    /// Ticks of each frame of FLAC.
    durations: Vec<u32>,
    reads: Vec<ObjectRange>,
    floors: Vec<u64>,
    /// Number of reads that were answered.
    at: usize,
    /// The last read, which counts as one unit.
    pending: Option<(usize, ObjectRange)>,
    coding: PcmCoding,
    numbering: Numbering,
    channels: usize,
    /// Samples per channel in each frame of FLAC.
    lengths: Vec<u32>,
    /// Number of the next frame of FLAC, or of its first sample.
    number: u64,
    encoder: FlacEncoder,
    /// Interleaved values of the next frame.
    values: Vec<i32>,
    /// Bytes of each frame of FLAC.
    sizes: Vec<u32>,
    media: Vec<u8>,
}

impl Encoding {
    /// Returns the plan of a segment of `frames` of PCM, whose frames of FLAC are presented at `times`.
    fn plan(form: &FlacForm, place: Place, frames: u64, reads: Vec<ObjectRange>, times: &[i64]) -> Plan {
        let ends = times.iter().skip(1).copied().chain([place.next]);
        let duration = |(start, end): (&i64, i64)| u32::try_from(end.saturating_sub(*start)).unwrap_or(u32::MAX);
        let start = times.first().map_or(0, |first| first.saturating_add(place.early));
        Plan::Rewrite(Box::new(Self {
            sequence: place.sequence,
            decode_time: u64::try_from(start).unwrap_or(0),
            durations: times.iter().zip(ends).map(duration).collect(),
            floors: floors(&reads),
            reads,
            at: 0,
            pending: None,
            coding: form.coding,
            numbering: form.stream.numbering,
            channels: form.stream.channels.into(),
            lengths: form.stream.lengths(frames),
            number: place.first,
            encoder: FlacEncoder::new(form.stream),
            values: Vec::new(),
            sizes: Vec::new(),
            media: Vec::new(),
        }))
    }

    /// Encodes the values that fill frames.
    fn encode(&mut self) {
        let mut used = 0_usize;
        while let Some(length) = self.lengths.get(self.sizes.len()) {
            let count = usize::try_from(*length).unwrap_or(usize::MAX).saturating_mul(self.channels);
            let Some(frame) = self.values.get(used..used.saturating_add(count)) else { break };
            let before = self.media.len();
            self.encoder.encode(self.number, frame, &mut self.media);
            self.sizes.push(u32::try_from(self.media.len() - before).unwrap_or(u32::MAX));
            self.number += match self.numbering {
                Numbering::Frames => 1,
                Numbering::Samples => u64::from(*length),
            };
            used += count;
        }
        self.values.drain(..used);
    }
}

impl Rewrite for Encoding {
    fn len(&self) -> Option<u64> {
        None
    }

    fn covering(&self) -> Vec<ObjectRange> {
        reads::cover(self.reads.iter().copied())
    }

    fn next_read(&mut self) -> Option<ObjectRange> {
        if self.pending.is_none() {
            self.pending = self.reads.get(self.at).map(|read| (1, *read));
        }
        self.pending.map(|(_, read)| read)
    }

    fn floor(&self, object: ObjectIndex) -> u64 {
        let mut rest = self.reads.iter().zip(&self.floors).skip(self.at);
        rest.find(|(read, _)| read.object == object).map_or(u64::MAX, |(_, floor)| *floor)
    }

    fn push(&mut self, sample: &[u8], _: &mut Vec<u8>) -> Result<(), PackageError> {
        self.at += reads::claim(&mut self.pending, sample)?;
        values(self.coding, sample, &mut self.values);
        self.encode();
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), PackageError> {
        reads::check_finished(self.reads.len().saturating_sub(self.at))?;
        let row = |(duration, size): (&u32, &u32)| FragmentSample {
            duration: *duration,
            size: *size,
            offset: 0,
            is_sync: true,
        };
        let samples = self.durations.iter().zip(&self.sizes).map(row).collect();
        let run = TrackRun { id: TRACK_ID, decode_time: self.decode_time, samples };
        let mut head = BoxWriter::with_capacity(24);
        segment_type(&mut head);
        let head = [&head.out[..], &fragment_head(self.sequence, &[run])].concat();
        // Within the memory of the frames, which is the largest part of the segment.
        let mut made = std::mem::take(&mut self.media);
        made.splice(..0, head);
        if out.is_empty() {
            *out = made;
        } else {
            out.append(&mut made);
        }
        Ok(())
    }

    fn job(&self) -> Option<RewriteJob> {
        let frames = self.lengths.iter().map(|length| self.encoder.most_bytes(*length) + ROW);
        Some(RewriteJob { reads: self.reads.clone(), most_bytes: frames.fold(HEAD, u64::saturating_add) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Presentation,
        flac::FlacStream,
        fmp4::{init, segment},
        plan::made,
        presentation::track::PresentedTrack,
        testing::{Made, audio, movie, presentation, reordered, table, video},
    };
    use millpond_media::{
        Codec,
        codec::{ByteOrder, PcmConfig},
        index_bytes,
        movie::{Edit, Movie, Track},
    };

    const CODING: PcmCoding = PcmCoding::Signed16(ByteOrder::Little);
    /// Offset of the first value in the object, and frames of an access unit.
    const BEGIN: usize = 48;
    const UNIT: u32 = 300;
    const STREAM: FlacStream =
        FlacStream { numbering: Numbering::Frames, block: 4096, sample_rate: 48_000, channels: 2, bits: 16 };

    fn config() -> PcmConfig {
        PcmConfig { fourcc: *b"sowt", coding: CODING, channels: 2, sample_rate: 48_000 }
    }

    /// A track of PCM in units with `gap` bytes behind each.
    fn pcm(frames: u32, gap: u64, edits: Vec<Edit>) -> Track {
        let made = |first: u32| {
            let frames = UNIT.min(frames - first);
            Made { size: frames * 4, duration: frames, composition: 0, sync: true }
        };
        let units: Vec<Made> = (0..frames).step_by(UNIT as usize).map(made).collect();
        Track { codec: Codec::Pcm(config()), ..audio(table(&units, BEGIN as u64, gap), "eng", edits) }
    }

    /// Values of two channels: a tone with some noise.
    fn sound(frames: u32) -> Vec<i16> {
        let value =
            |frame: u32| (f64::from(frame) / 30.0).sin() * 9000.0 + f64::from(frame.wrapping_mul(40_503) >> 9 & 255);
        (0..frames).map(value).flat_map(|value| [value as i16, (value / 2.0) as i16]).collect()
    }

    /// The bytes of an object with these values in units with `gap` bytes behind each.
    fn object(values: &[i16], gap: usize) -> Vec<u8> {
        let mut bytes = vec![0; BEGIN];
        for unit in values.chunks(2 * UNIT as usize) {
            bytes.extend(unit.iter().flat_map(|value| value.to_le_bytes()));
            bytes.resize(bytes.len() + gap, 0x55);
        }
        bytes
    }

    /// Makes a segment of an object's bytes.
    fn run(plan: Plan, object: &[u8]) -> Vec<u8> {
        let Plan::Rewrite(mut rewrite) = plan else { panic!("not a rewriting plan") };
        assert!(rewrite.len().is_none() && rewrite.job().is_some_and(|job| !job.reads.is_empty()));
        let covering = rewrite.covering();
        let mut out = Vec::new();
        while let Some(ObjectRange { object: index, range }) = rewrite.next_read() {
            assert!(range.len() <= MOST_READ && rewrite.floor(index) <= range.start);
            assert!(covering[0].range.start <= range.start && range.end <= covering[0].range.end);
            rewrite.push(&object[range.start as usize..range.end as usize], &mut out).unwrap();
            assert!(out.is_empty());
        }
        rewrite.finish(&mut out).unwrap();
        out
    }

    /// Reads back the init segment and one segment. Returns the index, and the bytes of each frame of FLAC.
    fn read_back(p: &Presentation, track: &PresentedTrack, number: u32, object: &[u8]) -> (Movie, Vec<Vec<u8>>) {
        let mut file = init(p, track).to_vec();
        file.extend(run(segment(p, track, number).unwrap(), object));
        let back = index_bytes(&file).unwrap();
        let bytes = |range: ByteRange| file[range.start as usize..range.end as usize].to_vec();
        let frames = back.tracks[0].samples.iter().map(|sample| bytes(sample.range)).collect();
        (back, frames)
    }

    /// The frames of all values, encoded one after the other.
    fn encoded(values: &[i16]) -> Vec<Vec<u8>> {
        let values: Vec<i32> = values.iter().copied().map(i32::from).collect();
        let mut encoder = FlacEncoder::new(STREAM);
        let mut frame = |(number, values): (u64, &[i32])| {
            let mut out = Vec::new();
            encoder.encode(number, values, &mut out);
            out
        };
        (0..).zip(values.chunks(2 * 4096)).map(&mut frame).collect()
    }

    #[test]
    fn segments_are_the_frames_of_one_stream() {
        let frames = 504_000;
        let values = sound(frames);
        let whole = encoded(&values);
        for gap in [0, 16] {
            let object = object(&values, gap);
            let p = presentation(vec![movie(vec![pcm(frames, gap as u64, Vec::new())])]);
            let a = p.track("a1").unwrap();
            assert_eq!(a.segments().times(), [0, 192_512, 385_024, 504_000], "blocks behind 4 s and 8 s");
            let mut found = Vec::new();
            for (number, start) in (1..=3).zip([0, 192_512, 385_024]) {
                let (back, frames) = read_back(&p, a, number, &object);
                let track = &back.tracks[0];
                let Codec::Flac(config) = &track.codec else { panic!("{:?}", track.codec) };
                assert_eq!((config.min_block, config.max_block, config.bit_depth), (4096, 4096, 16));
                assert_eq!((track.timescale.get(), track.edits.len()), (48_000, 0));
                assert_eq!(track.samples.start_dts(), start);
                let end = if number == 3 { 504_000 } else { a.segment(number + 1).unwrap().start };
                assert_eq!(track.samples.end_dts(), end);
                found.extend(frames);
            }
            assert!(found == whole, "{} frames, {} in one stream", found.len(), whole.len());
        }
    }

    /// The frames of FLAC of a segment, as its `trun` and its bytes tell.
    fn frames_of(segment: &[u8], header: &[u8]) -> Vec<Vec<u8>> {
        let file = [header, segment].concat();
        let back = index_bytes(&file).unwrap();
        let bytes = |range: ByteRange| file[range.start as usize..range.end as usize].to_vec();
        back.tracks[0].samples.iter().map(|sample| bytes(sample.range)).collect()
    }

    #[test]
    fn loaded_segments_have_their_own_frames() {
        let frames = 100_000;
        let values = sound(frames);
        let object = object(&values, 0);
        let p = presentation(vec![movie(vec![pcm(frames, 0, Vec::new())])]);
        let a = p.track("a1").unwrap();
        let media = a.media().unwrap();
        let form = FlacForm::of(media.track(), Numbering::Samples).unwrap();
        let stream = form.stream;
        let flac = FlacTrack::loaded(form, 0, Default::default());
        let units: Vec<Timed> = media.timeline.walk(&media.track().samples, 0..media.timeline.len()).collect();
        let (mut at, mut encoder) = (0, FlacEncoder::new(stream));
        // 31 units have a frame of 4,096 samples twice, and 1,108 more.
        for units in units.chunks(31) {
            let end = units.last().map_or(0, |unit| unit.pts + i64::from(unit.sample.duration));
            let made = run(loaded(media, &flac, units, end, 1), &object);
            let mut expected = Vec::new();
            for length in stream.lengths((end - at) as u64) {
                let of_frame = &values[2 * at as usize..2 * (at + i64::from(length)) as usize];
                let of_frame: Vec<i32> = of_frame.iter().copied().map(i32::from).collect();
                let mut out = Vec::new();
                encoder.encode(at as u64, &of_frame, &mut out);
                expected.push(out);
                at += i64::from(length);
            }
            assert!(frames_of(&made, &init(&p, a)) == expected, "up to frame {end}");
        }
        assert_eq!(at, 100_000);
    }

    #[test]
    fn a_start_within_a_unit_is_before_time_0() {
        let values = sound(48_000);
        let edits = vec![Edit { duration: 0, media_time: Some(1000) }];
        let p = presentation(vec![movie(vec![pcm(48_000, 0, edits)])]);
        let a = p.track("a1").unwrap();
        assert_eq!(a.segment(1).unwrap().start, 0);
        let (back, frames) = read_back(&p, a, 1, &object(&values, 0));
        assert_eq!(back.tracks[0].edits[0].media_time, Some(100));
        assert!(frames == encoded(&values[2 * 900..]), "from the unit with frame 1000 on");
    }

    #[test]
    fn segments_beside_pictures_begin_with_the_next_block() {
        let pictures = video(table(&reordered(250, 25, 1000), 1 << 24, 1), 12_800, Vec::new());
        let values = sound(480_000);
        let p = presentation(vec![movie(vec![pictures, pcm(480_000, 0, Vec::new())])]);
        let (v, a) = (p.track("v1").unwrap(), p.track("a1").unwrap());
        assert_eq!(v.segment_count(), a.segment_count());
        let object = object(&values, 0);
        let whole = encoded(&values);
        let found: Vec<_> = (1..=a.segment_count()).flat_map(|number| read_back(&p, a, number, &object).1).collect();
        assert!(found == whole);
    }

    #[test]
    fn segments_of_long_groups_of_pictures_are_divided() {
        let pictures = video(table(&reordered(3000, 3000, 100), 1 << 30, 0), 12_800, Vec::new());
        let frames = 120 * 48_000;
        let p = presentation(vec![movie(vec![pictures, pcm(frames, 0, Vec::new())])]);
        let (v, a) = (p.track("v1").unwrap(), p.track("a1").unwrap());
        assert_eq!((v.segment_count(), a.segment_count()), (1, 3), "23 MB");
        let read = |number| {
            let Some(Plan::Rewrite(mut rewrite)) = segment(&p, a, number) else { panic!("no segment {number}") };
            let mut bytes = 0;
            while let Some(read) = rewrite.next_read() {
                bytes += read.range.len();
                rewrite.push(&vec![0; read.range.len() as usize], &mut Vec::new()).unwrap();
            }
            bytes
        };
        let all: Vec<u64> = (1..=3).map(read).collect();
        assert!(
            all.iter().sum::<u64>() == u64::from(frames) * 4 && all.iter().all(|bytes| *bytes <= 8 << 20),
            "{all:?}"
        );
    }

    #[test]
    fn no_stated_rate_is_under_the_true_peak() {
        let mut state = 7_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as i16
        };
        let values: Vec<i16> = (0..2 * 504_000).map(|_| noise()).collect();
        let object = object(&values, 0);
        let p = presentation(vec![movie(vec![pcm(504_000, 0, Vec::new())])]);
        let a = p.track("a1").unwrap();
        let bits = |number| {
            let seconds = a.segment(number).unwrap().duration as f64 / 48_000.0;
            run(segment(&p, a, number).unwrap(), &object).len() as f64 * 8.0 / seconds
        };
        let peak = (1..=3).map(bits).fold(0.0, f64::max);
        let stated = a.bandwidth().peak as f64;
        assert!(stated >= peak && stated < peak * 1.02, "{stated} stated, {peak} found");
        let stored = a.stored_bandwidth();
        assert!(stored.average > 1_536_000 && stored.average < 1_560_000, "{stored:?}");
    }

    #[test]
    fn other_bytes_than_requested_are_refused() {
        let p = presentation(vec![movie(vec![pcm(48_000, 0, Vec::new())])]);
        let a = p.track("a1").unwrap();
        assert!(segment(&p, a, 0).is_none() && segment(&p, a, 2).is_none());
        let Some(Plan::Rewrite(mut rewrite)) = segment(&p, a, 1) else { panic!("no segment") };
        let mut out = Vec::new();
        assert!(matches!(rewrite.push(&[0; 4], &mut out), Err(PackageError::Call { .. })));
        let read = rewrite.next_read().unwrap();
        assert!(matches!(
            rewrite.push(&vec![0; read.range.len() as usize - 1], &mut out),
            Err(PackageError::Call { .. })
        ));
        assert!(matches!(rewrite.finish(&mut out), Err(PackageError::Call { .. })));
    }

    #[test]
    fn a_job_makes_the_same_bytes() {
        let object = object(&sound(100_000), 16);
        let p = presentation(vec![movie(vec![pcm(100_000, 16, Vec::new())])]);
        let a = p.track("a1").unwrap();
        let rewrite = || match segment(&p, a, 1) {
            Some(Plan::Rewrite(rewrite)) => rewrite,
            _ => panic!("no segment"),
        };
        let bytes = |read: &ObjectRange| object[read.range.start as usize..read.range.end as usize].to_vec();
        let input: Vec<u8> = rewrite().job().unwrap().reads.iter().flat_map(bytes).collect();
        assert!(made(rewrite(), &input).unwrap() == run(segment(&p, a, 1).unwrap(), &object));
        assert!(matches!(made(rewrite(), &input[1..]), Err(PackageError::Call { .. })));
    }

    /// Noise can't be compressed. The last frame is short.
    #[test]
    fn the_most_bytes_of_a_segment_are_known_before_it_is_made() {
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as i16
        };
        for frames in [1, 4095, 4097, 100_000] {
            let values: Vec<i16> = (0..2 * frames).map(|_| noise()).collect();
            let p = presentation(vec![movie(vec![pcm(frames, 0, Vec::new())])]);
            let Some(Plan::Rewrite(rewrite)) = segment(&p, p.track("a1").unwrap(), 1) else { panic!("no segment") };
            let job = rewrite.job().unwrap();
            let read: u64 = job.reads.iter().map(|read| read.range.len()).sum();
            let made = run(Plan::Rewrite(rewrite), &object(&values, 0)).len() as u64;
            assert!((read..=job.most_bytes).contains(&made), "{frames}: {made} bytes, {read} read, {job:?}");
            let slack = job.most_bytes - made;
            assert!(slack < HEAD + 64 * (read / (4 * 4096) + 1), "{frames}: {slack} bytes less");
        }
    }

    #[test]
    fn a_floor_is_the_lowest_offset_to_come_in_the_object() {
        let read = |object: u16, start| ObjectRange { object: ObjectIndex(object), range: ByteRange::at(start, 10) };
        let reads = [read(0, 50), read(1, 90), read(0, 20), read(0, 70), read(1, 80)];
        assert_eq!(floors(&reads), [20, 80, 20, 70, 80]);
    }
}
