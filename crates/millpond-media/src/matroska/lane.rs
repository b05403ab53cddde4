//! A track that is being read: its entry, its codec once that is known, and its samples.

use super::{
    clusters::Block,
    codecs::{self, FirstFrame, Way},
    extracting::Extracting,
    head::Found,
    samples::{Clock, Course, Samples},
    segment::Info,
    texts::Texts,
    track_entry::{EntryKind, TrackEntry},
};
use crate::{
    codec::{Codec, PictureSequence, TrackKind, captions::CaptionSearch, make::Made, nal::NalSyntax},
    error::MediaError,
    movie::{Edit, Track, whole_frames::WholeFrames},
    units::{ByteRange, Timescale},
};
use bytes::Bytes;

/// Finest clock of pictures: the fields of their durations have 32 bits.
const FINEST: u32 = 1_000_000;
const NANOSECONDS: u64 = 1_000_000_000;
/// Nanoseconds of a picture of a track that states none.
const USUAL: u64 = 41_708_333;
/// Pictures that H.264 may present later than it decodes them, where the parameter sets state no number.
const USUAL_DEPTH: u8 = 2;
/// Longest delay of pictures, in ticks: half of the largest composition offset. Reordered pictures need the other half.
const MOST_DELAY: i64 = (i32::MAX / 2) as i64;
/// Ticks by which rounded times of pictures may differ.
const ROUNDED: i64 = 2;
/// `alternate_group` of tracks of pictures, of sound and of text.
const GROUPS: [u16; 3] = [1, 2, 3];

/// A track.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) entry: TrackEntry,
    state: State,
    captions: CaptionSearch,
    /// Its frames in the extracted object; empty without one.
    frames: WholeFrames,
}

#[derive(Debug)]
enum State {
    /// The next frame tells the codec.
    Waiting(FirstFrame),
    Read(Box<Parts>),
    Text(Box<(Made, Texts)>),
    /// The track can't be played.
    Left(MediaError),
}

impl Lane {
    pub(super) fn new(entry: TrackEntry, info: &Info) -> Self {
        let state = match codecs::way(&entry) {
            Ok(Way::Made(made)) if matches!(made.kind, TrackKind::Text) => {
                let texts = Texts::new(clock(&made.kind, info.scale));
                State::Text(Box::new((made, texts)))
            }
            Ok(Way::Made(made)) => State::read(made, &entry, info),
            Ok(Way::FirstFrame(first)) => State::Waiting(first),
            Err(error) => State::Left(error),
        };
        let prefix = if matches!(state, State::Left(_)) { Vec::new() } else { entry.prefix().to_vec() };
        Self { entry, state, captions: CaptionSearch::default(), frames: WholeFrames::behind(prefix) }
    }

    /// Whether the beginning of the next frame is needed.
    pub(super) fn waits(&self) -> bool {
        matches!(self.state, State::Waiting(_))
    }

    /// Whether the track can be played, as far as is known.
    pub(super) fn plays(&self) -> bool {
        !matches!(self.state, State::Left(_))
    }

    /// Whether the track can be played, as far as is known, and its frames lack their common beginning.
    pub(super) fn is_stripped(&self) -> bool {
        self.plays() && !self.frames.prefix().is_empty()
    }

    /// Adds the frames of a block to the extracted object, and their places there to the samples.
    pub(super) fn extract(&mut self, mut block: Block, frames: &[ByteRange], info: &Info, extracting: &mut Extracting) {
        let prefix = self.frames.prefix();
        if !prefix.is_empty() {
            block.first = block.first.map(|first| Bytes::from([prefix, &first].concat()));
            let mut opening = prefix.iter().chain(&block.opening).copied();
            block.opening = std::array::from_fn(|_| opening.next().unwrap_or(0));
        }
        self.learn(&block, info);
        let places: Vec<ByteRange> = match &self.state {
            State::Read(_) => frames.iter().map(|frame| extracting.append(&mut self.frames, *frame)).collect(),
            // A text is read with the elements of its block.
            State::Text(_) => {
                block.element = extracting.append(&mut self.frames, block.element);
                Vec::new()
            }
            State::Waiting(_) | State::Left(_) => return,
        };
        self.push(&block, &places, info);
    }

    /// Learns the codec from the first frame of a block.
    fn learn(&mut self, block: &Block, info: &Info) {
        let State::Waiting(first) = self.state else { return };
        // Decoding begins with a key frame.
        let Some(bytes) = block.first.as_ref().filter(|_| block.is_key) else { return };
        self.state = match first.made(bytes, &self.entry) {
            Ok(made) => State::read(made, &self.entry, info),
            Err(error) => State::Left(error),
        };
    }

    /// Adds the frames of a block.
    pub(super) fn push(&mut self, block: &Block, frames: &[ByteRange], info: &Info) {
        self.learn(block, info);
        match &mut self.state {
            State::Read(parts) => parts.samples.push(block, frames),
            State::Text(parts) => parts.1.push(block),
            State::Waiting(_) | State::Left(_) => {}
        }
    }

    /// Searches the stored beginning of a picture for captions.
    pub(super) fn search_captions(&mut self, picture: &[u8]) {
        if let State::Read(parts) = &self.state
            && let Some(form) = NalSyntax::of(&parts.made.codec)
        {
            match self.frames.prefix() {
                [] => self.captions.picture(form, picture),
                prefix => self.captions.picture(form, &[prefix, picture].concat()),
            }
        }
    }

    /// Takes its frames in the extracted object.
    pub(super) fn take_frames(&mut self) -> WholeFrames {
        std::mem::take(&mut self.frames)
    }

    /// Gives a track of text the blocks that the cues name. `false` where they don't tell all.
    pub(super) fn read_cues(&mut self, found: &Found) -> bool {
        let State::Text(parts) = &mut self.state else { return true };
        let texts = Texts::of_cues(found, &self.entry, clock(&parts.0.kind, found.info.scale));
        texts.map(|texts| parts.1 = texts).is_some()
    }

    /// Whether the track has text, and cues or blocks of it were read.
    pub(super) fn has_texts(&self) -> bool {
        matches!(&self.state, State::Text(parts) if !parts.1.is_empty())
    }

    /// Whether the track has text that can be read.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.state, State::Text(_))
    }

    /// Least time of a picture or of sound, in ticks of the segment.
    pub(super) fn first(&self) -> Option<i64> {
        match &self.state {
            State::Read(parts) => parts.samples.first(),
            _ => None,
        }
    }

    /// Whether its sound ends more than `1 / part` seconds away from `time`, which is in ticks of the segment.
    pub(super) fn is_sound_off(&self, time: i64, part: i64) -> bool {
        let (EntryKind::Audio(_), State::Read(parts)) = (&self.entry.kind, &self.state) else { return false };
        let clock = parts.samples.clock();
        let most = i64::from(clock.timescale.get()) / part;
        parts.samples.end().abs_diff(clock.ticks(time)) > most.unsigned_abs()
    }

    /// Bytes of heap that its samples and frames hold.
    pub(super) fn heap_bytes(&self) -> usize {
        let samples = match &self.state {
            State::Read(parts) => parts.samples.heap_bytes(),
            State::Text(parts) => parts.1.heap_bytes(),
            State::Waiting(_) | State::Left(_) => 0,
        };
        samples + self.frames.heap_bytes()
    }

    /// Returns the track, whose presentation begins at `base` ticks of the segment, and the course of its frames.
    ///
    /// # Errors
    /// It can't be played, or has no frames.
    pub(super) fn finish(self, id: u32, base: i64, info: &Info) -> Result<(Track, Course), MediaError> {
        let entry = self.entry;
        let (Made { codec, kind, sample_entry }, samples, edits, course) = match self.state {
            State::Read(parts) => {
                let Parts { made, samples } = *parts;
                let clock = clock(&made.kind, info.scale);
                let course = samples.course();
                let delay = match course {
                    Course::Pictures { delay } => delay,
                    _ => Timescale::NANOS.convert(i64::try_from(entry.codec_delay).unwrap_or(0), clock.timescale),
                };
                let edits = edits(clock, delay, base, samples.first().unwrap_or(base));
                (made, samples.finish(), edits, course)
            }
            State::Text(parts) => {
                let (made, texts) = *parts;
                let clock = clock(&made.kind, info.scale);
                (made, texts.finish(base), edits(clock, 0, base, base), Course::Stated)
            }
            State::Left(error) => return Err(error),
            State::Waiting(_) => return Err(no_frames(&entry)),
        };
        if samples.is_empty() {
            return Err(no_frames(&entry));
        }
        let [pictures, sound, text] = GROUPS;
        let alternate_group = match kind {
            TrackKind::Video { .. } => pictures,
            TrackKind::Audio { .. } => sound,
            TrackKind::Text => text,
        };
        let track = Track {
            id,
            kind,
            timescale: clock(&kind, info.scale).timescale,
            language: entry.language,
            name: entry.name,
            enabled: entry.is_default,
            alternate_group,
            purposes: entry.purposes,
            captions: self.captions.partial(),
            codec,
            sample_entry,
            edits,
            samples,
            descriptions: None,
            protection: None,
        };
        Ok((track, course))
    }
}

/// Clock of a movie's edits: finer than ticks of segments mostly are.
pub(super) const MOVIE: Timescale = Timescale::MPEG;

/// Returns the edits of a track whose first frame is stated at `first`, in a presentation that begins at `base`: nothing is presented
/// until then. `delay` is in ticks of the track.
fn edits(clock: Clock, delay: i64, base: i64, first: i64) -> Vec<Edit> {
    let waits = clock.timescale.convert(clock.ticks(first).saturating_sub(clock.ticks(base)), MOVIE);
    let empty = u64::try_from(waits).ok().filter(|duration| *duration > 0);
    let empty = empty.map(|duration| Edit { duration, media_time: None });
    let shown = Edit { duration: 0, media_time: Some(clock.ticks(first).saturating_add(delay)) };
    empty.into_iter().chain([shown]).collect()
}

impl State {
    fn read(made: Made, entry: &TrackEntry, info: &Info) -> Self {
        let samples = samples(&made.codec, &made.kind, entry.default_duration, info.scale);
        Self::Read(Box::new(Parts { made, samples }))
    }
}

/// Returns an empty table of a track's samples. `frame` are the nanoseconds of a frame, where these are stated.
pub(super) fn samples(codec: &Codec, kind: &TrackKind, frame: Option<u64>, scale: u64) -> Samples {
    let clock = clock(kind, scale);
    let frame = i64::try_from(frame.unwrap_or(USUAL)).unwrap_or(i64::MAX);
    let course = course(codec, kind, frame, clock);
    let usual = match course {
        Course::Even { length } => length,
        _ => u32::try_from(Timescale::NANOS.convert(frame, clock.timescale)).unwrap_or(1),
    };
    Samples::new(clock, course, usual)
}

fn no_frames(entry: &TrackEntry) -> MediaError {
    MediaError::invalid("Tracks/TrackEntry", entry.offset, "no frames of the track", "one")
}

/// Returns the clock of a track: samples of sound, and ticks of the segment for pictures.
fn clock(kind: &TrackKind, scale: u64) -> Clock {
    let of_segment = if NANOSECONDS.is_multiple_of(scale) { NANOSECONDS / scale } else { u64::from(FINEST) };
    let ticks = u32::try_from(of_segment).unwrap_or(FINEST).min(FINEST);
    let rate = match kind {
        TrackKind::Audio { sample_rate, .. } => *sample_rate,
        _ => ticks,
    };
    Clock { scale, timescale: Timescale::new(rate).unwrap_or(Timescale::MILLIS) }
}

fn course(codec: &Codec, kind: &TrackKind, frame: i64, clock: Clock) -> Course {
    match (codec, codec.samples_per_frame()) {
        (Codec::Avc(_) | Codec::Hevc(_), _) => {
            let stated = PictureSequence::of(codec).and_then(|set| set.reorder_depth);
            let depth = stated.unwrap_or(USUAL_DEPTH);
            if depth == 0 {
                return Course::Pictures { delay: 0 };
            }
            let delay = Timescale::NANOS.convert(frame.saturating_mul(i64::from(depth)), clock.timescale);
            Course::Pictures { delay: delay.saturating_add(clock.ticks(ROUNDED)).min(MOST_DELAY) }
        }
        _ if matches!(kind, TrackKind::Video { .. }) => Course::Pictures { delay: 0 },
        (Codec::Pcm(config), _) => Course::Pcm { bytes: config.frame_bytes(), most: config.frames_per_unit() },
        (Codec::Opus(_), _) => Course::Opus,
        (_, Some(length)) => Course::Even { length },
        _ => Course::Stated,
    }
}

/// A track whose codec is known.
#[derive(Debug)]
struct Parts {
    made: Made,
    samples: Samples,
}

/// Whether the track is one of pictures or sound.
pub(super) fn is_media(entry: &TrackEntry) -> bool {
    matches!(entry.kind, EntryKind::Video(_) | EntryKind::Audio(_))
}
