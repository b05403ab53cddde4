//! Assembles frames of sound, each of which begins with a sync word and states its length.

use super::{CLOCK_MASK, FrameFault, Framed, TsConfiguration, TsFrame, anchors::Anchors};
use crate::{ts::event::PesUnit, units::ByteRange};
use bytes::Bytes;
use std::fmt::Debug;

/// Most bytes of a PES packet of sound that are read. Its length has 16 bits; some multiplexers state none.
const MOST_UNIT: usize = 256 << 10;

/// Differences between the codings.
pub(super) trait SoundCode: Debug {
    /// Looks for a frame at the beginning of `bytes`. `is_end` tells that no more bytes of the unit follow.
    fn look(&self, bytes: &[u8], is_end: bool) -> Look;

    /// Takes a whole frame apart. Appends one frame for MP4, or several.
    fn open(&mut self, frame: &[u8], out: &mut Vec<SoundFrame>) -> Result<(), FrameFault>;

    /// Configuration of the last frame.
    fn configuration(&self) -> Option<&TsConfiguration>;
}

/// Bytes where a frame should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A frame of `length` bytes, which may not all have arrived. `fixed` has the bits that are equal in all frames of a
    /// stream.
    Frame { length: usize, fixed: u32 },
    /// More bytes are needed.
    Short,
    /// No frame.
    Garbage,
}

/// A frame as MP4 files hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SoundFrame {
    pub(super) data: Bytes,
    /// Samples per channel.
    pub(super) samples: u32,
    /// Samples per second.
    pub(super) rate: u32,
}

/// Assembler of one stream.
#[derive(Debug, Default)]
pub(super) struct SoundFrames<C> {
    code: C,
    /// Bytes that are not used yet.
    buffer: Vec<u8>,
    /// Position of the first byte of `buffer` in the stream.
    position: u64,
    anchors: Anchors,
    /// Fixed bits of the frame before, where the next frame must follow it at once.
    locked: Option<u32>,
    clock: Option<SoundClock>,
    configuration: Option<TsConfiguration>,
    /// Whether skipped bytes were reported since the last frame.
    has_reported: bool,
}

/// Time of the next frame: an anchor, and the samples since.
#[derive(Clone, Copy, Debug)]
struct SoundClock {
    pts: u64,
    samples: u64,
    rate: u32,
}

impl SoundClock {
    fn now(self) -> u64 {
        (self.pts + self.samples * 90_000 / u64::from(self.rate.max(1))) & CLOCK_MASK
    }

    /// Returns the time of a frame, and moves to its end.
    fn step(&mut self, frame: &SoundFrame) -> u64 {
        let now = self.now();
        if self.rate != frame.rate {
            *self = Self { pts: now, samples: 0, rate: frame.rate };
        }
        self.samples += u64::from(frame.samples);
        now
    }
}

impl<C: SoundCode> SoundFrames<C> {
    pub(super) fn new(code: C) -> Self
    where
        C: Default,
    {
        Self { code, ..Self::default() }
    }

    /// The coding.
    pub(super) fn code(&mut self) -> &mut C {
        &mut self.code
    }

    /// Bytes that are not used yet.
    pub(super) fn held(&self) -> usize {
        self.buffer.len()
    }

    /// Takes the next unit of the stream.
    pub(super) fn push(&mut self, unit: &PesUnit, out: &mut Vec<Framed>) {
        if unit.follows_loss {
            self.forget(out);
        }
        if unit.data.len() > MOST_UNIT {
            self.forget(out);
            self.position += unit.data.len() as u64;
            return out.push(Framed::Fault(FrameFault::TooLarge));
        }
        self.anchors.push(self.position + self.buffer.len() as u64, unit);
        self.buffer.extend_from_slice(&unit.data);
        let mut buffer = std::mem::take(&mut self.buffer);
        let used = self.read(&buffer, !unit.is_broken, out);
        buffer.drain(..used);
        self.buffer = buffer;
        self.position += used as u64;
        if unit.is_broken {
            self.forget(out);
        }
    }

    /// Drops the frame that is being assembled: bytes after it are missing.
    fn forget(&mut self, out: &mut Vec<Framed>) {
        if !self.buffer.is_empty() {
            out.push(Framed::Fault(FrameFault::Incomplete));
        }
        self.position += self.buffer.len() as u64;
        self.buffer.clear();
        self.anchors.clear();
        self.locked = None;
        self.clock = None;
    }

    /// Reads all frames that `bytes` hold; returns the number of bytes used.
    fn read(&mut self, bytes: &[u8], is_end: bool, out: &mut Vec<Framed>) -> usize {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match self.frame(rest, is_end) {
                Look::Short => break,
                Look::Garbage => {
                    self.locked = None;
                    if !std::mem::replace(&mut self.has_reported, true) {
                        out.push(Framed::Fault(FrameFault::Garbage));
                    }
                    at += 1;
                }
                Look::Frame { length, fixed } => {
                    self.locked = Some(fixed);
                    self.has_reported = false;
                    let frame = rest.get(..length).unwrap_or(rest);
                    self.emit(frame, self.position + at as u64, out);
                    at += frame.len().max(1);
                }
            }
        }
        at
    }

    /// Looks for a whole frame that is surely one: it follows another frame of the stream, is followed by one, or ends
    /// with its unit.
    fn frame(&self, rest: &[u8], is_end: bool) -> Look {
        let look = self.code.look(rest, is_end);
        let Look::Frame { length, fixed } = look else { return look };
        if self.locked == Some(fixed) || is_end && rest.len() == length {
            return if rest.len() < length { Look::Short } else { look };
        }
        match rest.get(length..).map(|next| if next.is_empty() { Look::Short } else { self.code.look(next, is_end) }) {
            None | Some(Look::Short) => Look::Short,
            Some(Look::Frame { fixed: next, .. }) if next == fixed => look,
            Some(_) => Look::Garbage,
        }
    }

    fn emit(&mut self, frame: &[u8], at: u64, out: &mut Vec<Framed>) {
        let source = ByteRange::at(at, frame.len() as u64);
        let mut frames = Vec::new();
        let opened = self.code.open(frame, &mut frames);
        if let Some(anchor) = self.anchors.take(at) {
            let rate = frames.first().map_or(1, |frame| frame.rate);
            self.clock = Some(SoundClock { pts: anchor.pts, samples: 0, rate });
        }
        if let Err(fault) = opened {
            // Without its length, the next frames have no time either.
            self.clock = None;
            return out.push(Framed::Fault(fault));
        }
        if self.configuration.as_ref() != self.code.configuration() {
            self.configuration = self.code.configuration().cloned();
            out.extend(self.configuration.clone().map(Framed::Configuration));
        }
        for frame in frames {
            let Some(clock) = &mut self.clock else {
                out.push(Framed::Fault(FrameFault::Untimed));
                continue;
            };
            let pts = clock.step(&frame);
            let (is_sync, is_estimated) = (true, false);
            out.push(Framed::Frame(TsFrame { pts, dts: pts, data: frame.data, source, is_sync, is_estimated }));
        }
    }
}
