//! Finds frames that begin with a sync word and state their length: MPEG audio and ADTS.
//!
//! A sync word alone may be anything. The first frames, and those behind bytes that are no frame, count only where others of the
//! same kind follow.

use super::{gapless::Gapless, id3_text, nothing, tags};
use crate::{
    codec::make::Made,
    error::MediaError,
    lost::Lost,
    movie::{
        Movie, Track,
        sample_table::{SampleTable, SampleTableBuilder},
        tags::Tags,
    },
    scan::{FileReader, Progress},
    units::{ByteRange, Timescale},
    window::Window,
    work::Work,
};
use std::{fmt::Debug, marker::PhantomData};

/// Frames that must follow one another.
const ROW: usize = 3;
/// Most bytes without a frame that are passed.
const MOST_PASSED: u64 = 1 << 20;
/// Bytes searched in one step of work.
const SEARCHED_A_STEP: u64 = 64;

/// Differences between the codings.
pub(super) trait FrameCode: Debug + Default + Send + 'static {
    /// Name of the format.
    const NAME: &'static str;
    /// Bytes that tell all of a frame's header.
    const HEADER: usize;

    /// Reads the header of a frame; `None` where the bytes begin with none.
    fn frame(bytes: &[u8]) -> Option<Frame>;

    /// Makes the sample entry from the header of a frame.
    fn made(header: &[u8]) -> Result<Made, MediaError>;

    /// Reads a first frame that has no sound, but tells of the others.
    fn gapless(_frame: &[u8]) -> Option<Gapless> {
        None
    }
}

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Bytes of the whole frame; more than `header`.
    pub(super) length: u32,
    /// Bytes before those of the sample.
    pub(super) header: u32,
    /// Samples per channel.
    pub(super) samples: u32,
    pub(super) rate: Timescale,
    /// Bits that all frames of a stream have in common.
    pub(super) fixed: u32,
    /// A property that is not supported.
    pub(super) refused: Option<&'static str>,
}

/// Bytes where a frame should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Frame(Frame),
    /// This many bytes are needed to decide.
    Short(usize),
    Garbage,
}

/// Looks for `row` frames of one kind that follow one another, or that all bytes up to the end are. `ends`: no bytes follow.
fn look<C: FrameCode>(bytes: &[u8], ends: bool, kind: Option<u32>, row: usize) -> Look {
    let (mut at, mut first): (usize, Option<Frame>) = (0, None);
    for _ in 0..row {
        let rest = bytes.get(at..).unwrap_or_default();
        if rest.len() < C::HEADER && !ends {
            return Look::Short(at + C::HEADER);
        }
        let is_over = at == bytes.len() || at < bytes.len() && tags::begins_tail(rest);
        if let (Some(first), true) = (first, is_over) {
            return Look::Frame(first);
        }
        let kind = first.map(|frame| frame.fixed).or(kind);
        let Some(frame) = C::frame(rest).filter(|frame| kind.is_none_or(|kind| kind == frame.fixed)) else {
            return Look::Garbage;
        };
        first.get_or_insert(frame);
        at += frame.length as usize;
    }
    first.map_or(Look::Garbage, Look::Frame)
}

/// Returns the place of the first frames that follow one another.
pub(super) fn first<C: FrameCode>(bytes: &[u8], ends: bool) -> Option<usize> {
    let sync = |place: &usize| bytes.get(*place) == Some(&0xff);
    let is_first = |place: &usize| {
        matches!(look::<C>(bytes.get(*place..).unwrap_or_default(), ends && *place == 0, None, ROW), Look::Frame(_))
    };
    (0..bytes.len()).filter(sync).find(is_first)
}

/// Reads all frames of a file.
#[derive(Debug)]
pub(super) struct FrameReader<C> {
    /// Sample entry and clock, and the fixed bits of all frames.
    track: Option<(Made, Timescale, u32)>,
    table: SampleTableBuilder,
    gapless: Option<Gapless>,
    /// Samples per channel of a frame.
    length: u32,
    /// Whether the bytes at the position follow a frame at once.
    follows: bool,
    /// Bytes since the last frame.
    passed: u64,
    /// Places between frames whose bytes are no frames.
    lost: Lost,
    /// Why frames behind the last one are left out.
    left_out: Option<String>,
    /// Texts of the tag behind the frames.
    tags: Tags,
    is_cut_short: bool,
    code: PhantomData<C>,
}

impl<C> Default for FrameReader<C> {
    fn default() -> Self {
        Self {
            track: None,
            table: SampleTable::builder(),
            gapless: None,
            length: 0,
            follows: false,
            passed: 0,
            lost: Lost::default(),
            left_out: None,
            tags: Tags::default(),
            is_cut_short: false,
            code: PhantomData,
        }
    }
}

impl<C: FrameCode> FileReader for FrameReader<C> {
    fn read(&mut self, window: &mut Window, work: &Work) -> Result<Progress, MediaError> {
        loop {
            let at = window.at();
            work.spend(1).map_err(|error| MediaError::work(C::NAME, at, error))?;
            if window.left() == 0 {
                return self.finish(at);
            }
            if tags::is_last(window.held(), window.left()) {
                let Some(tag) = window.bytes(tags::ID3V1) else { return Ok(Progress::Scans(tags::ID3V1)) };
                self.tags = id3_text::of_id3v1(&tag);
                return self.finish(at);
            }
            let (held, ends) = (window.held(), window.holds_end());
            if (held.len() as u64) < tags::HEADER && !ends {
                return Ok(Progress::Scans(tags::HEADER));
            }
            let kind = self.track.as_ref().map(|(_, _, kind)| *kind);
            match look::<C>(held, ends, kind, if self.follows { 1 } else { ROW }) {
                Look::Short(size) => return Ok(Progress::Scans(size as u64)),
                Look::Frame(frame) if u64::from(frame.length) > window.left() => {
                    self.is_cut_short = true;
                    return self.finish(at);
                }
                Look::Frame(frame) if kind.is_none() && window.bytes(frame.length.into()).is_none() => {
                    return Ok(Progress::Scans(frame.length.into()));
                }
                Look::Frame(frame) => {
                    if let Some(what) = frame.refused {
                        let error = MediaError::unsupported(C::NAME, at, what);
                        if self.table.is_empty() {
                            return Err(error);
                        }
                        self.left_out = Some(error.to_string());
                        return self.finish(at);
                    }
                    self.take(frame, held, at)?;
                    window.advance(frame.length.into());
                }
                Look::Garbage => match tags::front(held) {
                    Some(size) => window.advance(size),
                    None if self.passed >= MOST_PASSED => {
                        let found = format!("{} bytes without frames", self.passed);
                        let error = MediaError::invalid(C::NAME, at - self.passed, found, "a frame");
                        self.left_out = Some(error.to_string());
                        return self.finish(at);
                    }
                    None => {
                        let passed = self.pass(window);
                        let steps = passed / SEARCHED_A_STEP;
                        work.spend(steps).map_err(|error| MediaError::work(C::NAME, at, error))?;
                    }
                },
            }
        }
    }

    fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }
}

impl<C: FrameCode> FrameReader<C> {
    /// Adds the frame at offset `at`, with which `bytes` begin.
    fn take(&mut self, frame: Frame, bytes: &[u8], at: u64) -> Result<(), MediaError> {
        if let Some((_, rate, _)) = &self.track
            && self.passed > 0
        {
            let seconds = rate.seconds(self.table.next_dts());
            self.lost.push(ByteRange::new(at.saturating_sub(self.passed), at), Some(seconds));
        }
        (self.follows, self.passed) = (true, 0);
        if self.track.is_none() {
            let whole = bytes.get(..frame.length as usize).unwrap_or(bytes);
            self.track = Some((C::made(whole)?, frame.rate, frame.fixed));
            self.length = frame.samples;
            self.gapless = C::gapless(whole);
            if self.gapless.is_some() {
                return Ok(());
            }
        }
        let size = frame.length.saturating_sub(frame.header);
        self.table.push(at.saturating_add(frame.header.into()), size, frame.samples, 0, true);
        Ok(())
    }

    /// Passes bytes up to the next one that may begin a frame or a tag. Returns their number.
    fn pass(&mut self, window: &mut Window) -> u64 {
        self.follows = false;
        let rest = window.held().get(1..).unwrap_or_default();
        let most = usize::try_from(MOST_PASSED).unwrap_or(usize::MAX);
        let found = rest.iter().take(most).position(|byte| matches!(byte, 0xff | b'I' | b'A' | b'T'));
        let passed = found.unwrap_or(rest.len().min(most)) as u64 + 1;
        self.passed += passed;
        window.advance(passed);
        passed
    }

    fn finish(&mut self, at: u64) -> Result<Progress, MediaError> {
        let table = std::mem::take(&mut self.table).finish();
        let Some((made, rate, _)) = self.track.take().filter(|_| !table.is_empty()) else {
            return Err(nothing(C::NAME, at, "no frames with sound", self.is_cut_short));
        };
        let shown = self.gapless.and_then(|gapless| gapless.shown(table.len(), self.length));
        let track = Track { samples: table, ..Track::live(1, made, rate, "und") };
        let lost = self
            .lost
            .places()
            .map(|places| format!("{}: {} bytes that are no frames were passed {places}", C::NAME, self.lost.bytes()));
        let movie = super::movie(track, shown, self.left_out.take().into_iter().chain(lost).collect());
        let tags = std::mem::take(&mut self.tags);
        Ok(Progress::Done(Box::new(Movie { cut_short: self.is_cut_short, tags, ..movie })))
    }
}
