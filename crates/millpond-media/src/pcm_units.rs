//! PCM in access units that fit into packets. What files call a sample of it is a frame of a few bytes, millions of
//! them in an hour, or as much as a writer had at hand.

use crate::{
    codec::{Codec, PcmConfig},
    sample_table::SampleTableBuilder,
};

/// Makes access units of the samples of a PCM track, which are handed over in order.
#[derive(Debug)]
pub(crate) struct PcmUnits {
    /// Bytes of a frame.
    frame: u32,
    /// Most frames of a unit.
    most: u32,
    /// Frames of a unit of this chunk.
    size: u32,
    open: Option<Open>,
}

/// A unit that single frames may still come to.
#[derive(Clone, Copy, Debug)]
struct Open {
    offset: u64,
    frames: u32,
    ticks: u64,
}

impl PcmUnits {
    /// For the track of a codec, if that is PCM.
    pub(crate) fn of(codec: &Codec) -> Option<Self> {
        let Codec::Pcm(config) = codec else { return None };
        Some(Self::new(config))
    }

    fn new(config: &PcmConfig) -> Self {
        let most = config.frames_per_unit();
        Self { frame: config.frame_bytes(), most, size: most, open: None }
    }

    /// Bytes of a frame.
    pub(crate) fn frame(&self) -> u32 {
        self.frame
    }

    /// Most frames of a unit.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Units that so many frames take.
    pub(crate) fn needed(&self, frames: u32) -> u32 {
        frames.div_ceil(self.most)
    }

    /// Begins a chunk of so many single frames: its units are of one size, but for the last.
    pub(crate) fn begin(&mut self, frames: u32) {
        self.size = self.even(frames);
    }

    /// Appends `count` samples of one frame each, of `duration` ticks each.
    pub(crate) fn frames(&mut self, out: &mut SampleTableBuilder, offset: u64, count: u32, duration: u32) {
        let (mut offset, mut left) = (offset, count);
        while left > 0 {
            let mut open = self.open.take().unwrap_or(Open { offset, frames: 0, ticks: 0 });
            let taken = left.min(self.size.saturating_sub(open.frames).max(1));
            open.frames += taken;
            open.ticks += u64::from(taken) * u64::from(duration);
            offset += u64::from(taken) * u64::from(self.frame);
            left -= taken;
            self.open = Some(open);
            if open.frames >= self.size {
                self.close(out);
            }
        }
    }

    /// Appends a sample of whole frames: a single one comes to those before it, many are divided.
    pub(crate) fn sample(&mut self, out: &mut SampleTableBuilder, offset: u64, size: u32, duration: u32) {
        let frames = size / self.frame;
        if frames == 1 {
            return self.frames(out, offset, 1, duration);
        }
        self.close(out);
        if frames == 0 {
            // Nothing but time goes by.
            return push(out, offset, 0, u64::from(duration));
        }
        let step = self.even(frames);
        let ticks = |frame: u32| u64::from(duration) * u64::from(frame) / u64::from(frames);
        for from in (0..frames).step_by(step as usize) {
            let to = frames.min(from + step);
            let offset = offset + u64::from(from) * u64::from(self.frame);
            push(out, offset, (to - from) * self.frame, ticks(to) - ticks(from));
        }
    }

    /// Ends a chunk: no unit goes on over its end.
    pub(crate) fn end(&mut self, out: &mut SampleTableBuilder) {
        self.close(out);
        self.size = self.most;
    }

    /// Frames of each of the fewest units that so many frames take.
    fn even(&self, frames: u32) -> u32 {
        frames.div_ceil(self.needed(frames).max(1)).max(1)
    }

    fn close(&mut self, out: &mut SampleTableBuilder) {
        if let Some(Open { offset, frames, ticks }) = self.open.take() {
            push(out, offset, frames * self.frame, ticks);
        }
    }
}

fn push(out: &mut SampleTableBuilder, offset: u64, size: u32, ticks: u64) {
    out.push(offset, size, u32::try_from(ticks).unwrap_or(u32::MAX), 0, true);
}

#[cfg(test)]
mod tests;
