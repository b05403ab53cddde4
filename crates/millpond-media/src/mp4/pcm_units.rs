//! Groups PCM into access units that fit into packets. In files a PCM sample is one frame of a few bytes, millions an
//! hour, or any amount that the writer had in memory.

use crate::{
    codec::{Codec, PcmConfig},
    movie::sample_table::SampleTableBuilder,
};

/// Makes access units from the samples of a PCM track, which arrive in order.
#[derive(Debug)]
pub(crate) struct PcmUnits {
    /// Bytes of a frame.
    frame: u32,
    /// Most frames in a unit.
    most: u32,
    /// Frames in a unit of the current chunk.
    size: u32,
    open: Option<Open>,
}

/// A unit to which further frames may be added.
#[derive(Clone, Copy, Debug)]
struct Open {
    offset: u64,
    frames: u32,
    ticks: u64,
}

impl PcmUnits {
    /// Creates the converter for a codec; `None` unless it is PCM.
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

    /// Most frames in a unit.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Number of units that hold `frames` frames.
    pub(crate) fn needed(&self, frames: u32) -> u32 {
        frames.div_ceil(self.most)
    }

    /// Begins a chunk of `frames` single frames. Its units have one size, except for the last.
    pub(crate) fn begin(&mut self, frames: u32) {
        self.size = self.even(frames);
    }

    /// Appends `count` samples of one frame and `duration` ticks each.
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

    /// Appends a sample of whole frames. A single frame joins those before it; a long sample is divided.
    pub(crate) fn sample(&mut self, out: &mut SampleTableBuilder, offset: u64, size: u32, duration: u32) {
        let frames = size / self.frame;
        if frames == 1 {
            return self.frames(out, offset, 1, duration);
        }
        self.close(out);
        if frames == 0 {
            // The sample has no frame, only a duration.
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

    /// Ends a chunk: no unit extends past its end.
    pub(crate) fn end(&mut self, out: &mut SampleTableBuilder) {
        self.close(out);
        self.size = self.most;
    }

    /// Returns the number of frames per unit that spreads `frames` evenly over the fewest units.
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
