//! The pieces of one rendition: bytes in, frames with their formats out.

mod fragments;
mod transport;

use super::{event::Dating, media_time::MediaTime};
use crate::{
    Format,
    reception::{assembly::Arrived, transport::Faults},
};
use bytes::Bytes;
use fragments::Fragments;
use millpond_media::{Timescale, ts::SpliceSection};
use std::{sync::Arc, time::Duration};
use transport::Programme;

/// Bytes by which the container of a piece is known.
const KNOWN: usize = 8;
/// Boxes that segments of fragmented MP4 begin with.
const BOXES: [&[u8]; 8] = [b"ftyp", b"styp", b"moov", b"moof", b"sidx", b"emsg", b"prft", b"free"];

/// Reads the pieces of a stretch of a rendition.
#[derive(Debug, Default)]
pub(super) struct Reader {
    kind: Kind,
    /// Wall time by which the next key frame of the leading lane is dated.
    dating: Option<Dating>,
    /// Media time that is zero for the stretch, of fragmented MP4.
    offset: Duration,
}

#[derive(Debug, Default)]
enum Kind {
    /// The first bytes of the first piece.
    #[default]
    Unknown,
    Begun(Vec<u8>),
    Transport(Box<Programme>),
    Fragments(Box<Fragments>),
}

/// A lane's format, as it is before the lane has a track.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LaneFormat {
    /// `video` or `audio`.
    pub(super) media: &'static str,
    /// Ticks per second of its track.
    pub(super) rate: Timescale,
    /// Ticks per second of its timestamps.
    pub(super) clock: Timescale,
    /// Format of the track, with the name, identifier and timescale of another one.
    pub(super) format: Format,
}

/// The findings of a reader.
#[derive(Debug)]
pub(super) enum Read {
    /// A frame of a lane.
    Frame(ReadFrame),
    /// A cue, whose time is on the clock of the frames.
    Cue(SpliceSection, Bytes),
}

/// A frame of a lane.
#[derive(Debug)]
pub(super) struct ReadFrame {
    /// Number of the lane in the rendition.
    pub(super) lane: u32,
    /// Decoding time.
    pub(super) time: MediaTime,
    pub(super) format: Arc<LaneFormat>,
    /// Wall time of its presentation since the Unix epoch, where the source states it.
    pub(super) date: Option<Duration>,
    pub(super) arrived: Arrived,
}

impl Reader {
    /// Begins a piece, whose media times are reduced by `offset`. Its source may state wall times.
    pub(super) fn begin(&mut self, dating: Option<Dating>, offset: Duration, is_torn: bool) {
        self.dating = dating.or(self.dating.filter(|_| !is_torn));
        self.offset = offset;
        if let Kind::Fragments(fragments) = &mut self.kind {
            fragments.set_offset(offset);
        }
        if let (Kind::Transport(programme), true) = (&mut self.kind, is_torn) {
            programme.lose();
        }
    }

    /// Returns a reader of the same stretch that has read nothing.
    pub(super) fn anew(&self) -> Self {
        Self { offset: self.offset, ..Self::default() }
    }

    /// Takes bytes of a piece, or its init section.
    ///
    /// # Errors
    /// They are of no container that is read, in words.
    pub(super) fn push(&mut self, bytes: &Bytes, found: &mut Vec<Read>, faults: &mut Faults) -> Result<(), String> {
        let from = found.len();
        if let Kind::Unknown | Kind::Begun(_) = self.kind {
            return self.recognise(bytes, found, faults);
        }
        let result = match &mut self.kind {
            Kind::Transport(programme) => programme.push(bytes, found, faults),
            Kind::Fragments(fragments) => fragments.push(bytes, found, faults),
            Kind::Unknown | Kind::Begun(_) => Ok(()),
        };
        self.state_date(found.get_mut(from..).unwrap_or_default());
        result
    }

    fn recognise(&mut self, bytes: &Bytes, found: &mut Vec<Read>, faults: &mut Faults) -> Result<(), String> {
        let mut begun = match std::mem::take(&mut self.kind) {
            Kind::Begun(begun) => begun,
            _ => Vec::new(),
        };
        begun.extend_from_slice(bytes);
        let Some(head) = begun.get(..KNOWN) else {
            self.kind = Kind::Begun(begun);
            return Ok(());
        };
        self.kind = match head {
            [0x47, ..] => Kind::Transport(Box::default()),
            [.., a, b, c, d] if BOXES.contains(&&[*a, *b, *c, *d][..]) => {
                Kind::Fragments(Box::new(Fragments::new(self.offset)))
            }
            head => {
                let sound = if head.starts_with(b"ID3") || matches!(head, [0xff, 0xe0..=0xff, ..]) {
                    " (packed audio)"
                } else {
                    ""
                };
                let found = head.escape_ascii();
                return Err(format!(
                    "found segments that begin with \"{found}\"{sound}, expected a transport stream or fragmented MP4"
                ));
            }
        };
        self.push(&Bytes::from(begun), found, faults)
    }

    /// Ends a piece, which may end a segment or break off.
    pub(super) fn end(&mut self, is_broken: bool, found: &mut Vec<Read>, faults: &mut Faults) {
        match &mut self.kind {
            Kind::Fragments(fragments) => fragments.end_piece(found, faults),
            Kind::Transport(programme) if is_broken => programme.lose(),
            Kind::Begun(_) => self.kind = Kind::Unknown,
            _ => {}
        }
    }

    /// Ends the stretch: frames that were complete follow.
    pub(super) fn finish(&mut self, found: &mut Vec<Read>, faults: &mut Faults) {
        if let Kind::Transport(programme) = &mut self.kind {
            programme.finish(found, faults);
        }
    }

    /// Number of lanes that are expected to give frames; `None` while that is not known.
    pub(super) fn lanes(&self) -> Option<usize> {
        match &self.kind {
            Kind::Transport(programme) => programme.lanes(),
            Kind::Fragments(fragments) => fragments.lanes(),
            Kind::Unknown | Kind::Begun(_) => None,
        }
    }

    /// The part that a rendition without frames lacks.
    pub(super) fn missing(&self) -> &'static str {
        match &self.kind {
            Kind::Transport(programme) => programme.missing(),
            Kind::Fragments(fragments) => fragments.missing(),
            Kind::Unknown | Kind::Begun(_) => "no segment",
        }
    }

    /// Gives the date of the piece to its first key frame: frames of the piece before may still come.
    fn state_date(&mut self, found: &mut [Read]) {
        let is_sound_only = self.is_sound_only();
        for read in found {
            let Read::Frame(frame) = read else { continue };
            if is_sound_only || (frame.arrived.is_key && frame.format.media == "video") {
                frame.date = self.dating.take().map(|dating| dating.of(frame));
            }
        }
    }

    fn is_sound_only(&self) -> bool {
        match &self.kind {
            Kind::Transport(programme) => programme.is_sound_only(),
            Kind::Fragments(fragments) => fragments.is_sound_only(),
            Kind::Unknown | Kind::Begun(_) => false,
        }
    }
}
