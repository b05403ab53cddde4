//! Pictures of several sizes in one track of fragmented MP4: parameter sets precede each key frame, and the sample entry allows it.

use super::{Program, following::in_band};
use crate::{
    Format, Frame,
    fragmenter::{FragmentLimits, Fragmenter},
};
use bytes::{Bytes, BytesMut};

/// The pictures of a program, with their parameter sets in band: those of a clip can follow those of its stream.
#[derive(Debug)]
pub struct MixedPictures {
    track: u16,
    /// The format of the sample entry.
    first: Format,
    /// Parameter sets of the current epoch, in the form of frames.
    sets: Bytes,
}

impl MixedPictures {
    /// Makes those of a program, and a fragmenter of their frames. `None` where the program leads with no pictures, or with a codec whose
    /// parameter sets can't be in band.
    #[must_use]
    pub fn of(program: &Program, limits: FragmentLimits) -> Option<(Self, Fragmenter)> {
        let lead = program.lead();
        let (track, format) = program.formats().find(|(track, format)| *track == lead && format.is_video())?;
        let (first, sets) = in_band::in_band(format)?;
        let formats = program.formats().map(|(track, format)| (track, if track == lead { &first } else { format }));
        let fragmenter = Fragmenter::new(formats, lead, limits)?.with_clean_holes();
        Some((Self { track, first, sets }, fragmenter))
    }

    /// The format of the pictures, as the sample entry has it.
    #[must_use]
    pub fn format(&self) -> &Format {
        &self.first
    }

    /// Begins an epoch of the program. Returns whether its frames can follow in the same track.
    pub fn enter(&mut self, program: &Program, epoch: u32) -> bool {
        let Some(formats) = program.formats_of(epoch) else { return true };
        program.formats().all(|(track, known)| {
            let new = formats.iter().find(|(of, _)| *of == track).map(|(_, format)| format);
            let is_on_clock = |new: &&Format| new.timescale() == known.timescale();
            let Some(new) = new.filter(is_on_clock) else { return false };
            if track != self.track {
                // Sample entries of sound state bit rates too.
                return new.track.codec == known.track.codec;
            }
            match in_band::in_band(new).filter(|_| in_band::follows(new, known)) {
                Some((_, sets)) => {
                    self.sets = sets;
                    true
                }
                None => false,
            }
        })
    }

    /// Returns a frame with what it needs to be decoded after those of another size.
    #[must_use]
    pub fn with_sets(&self, frame: &Frame) -> Frame {
        let mut frame = frame.clone();
        if frame.track == self.track && frame.is_sync && !self.sets.is_empty() {
            let mut whole = BytesMut::with_capacity(self.sets.len() + frame.data.len());
            whole.extend_from_slice(&self.sets);
            whole.extend_from_slice(&frame.data);
            frame.data = whole.freeze();
        }
        frame
    }
}
