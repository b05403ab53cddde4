//! What is left of an object without its media: tracks, edits and sample tables.

use crate::{
    codec::Codec,
    protection::{Protection, SystemHeader},
    sample_table::SampleTable,
    units::Timescale,
};
use serde::{Deserialize, Serialize};

/// The index of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Movie {
    /// Clock of `duration` and of [`Edit::duration`].
    pub timescale: Timescale,
    /// Duration in `timescale` ticks as `mvhd` (or `mehd`) states it; 0 where it states none.
    pub duration: u64,
    /// Whether samples come from movie fragments.
    pub fragmented: bool,
    /// Playable tracks in file order.
    pub tracks: Vec<Track>,
    /// Tracks left out, and those whose samples end early (these are in `tracks` too), each with the reason: they
    /// never stop the others.
    pub skipped: Vec<SkippedTrack>,
    /// Where the media is, when a data reference names another file (8.7.2): the URL as written.
    pub external_media: Option<String>,
    /// Protection system headers (`pssh`) of the movie box.
    pub system_headers: Vec<SystemHeader>,
    /// Those of fragments, each once; [`Protection::headers`] says which samples they come before.
    pub fragment_headers: Vec<SystemHeader>,
    /// Whether samples of the movie box are left out because the object ends before them: a file that is still being
    /// copied, or was cut off.
    pub cut_short: bool,
}

/// One playable track.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Track {
    /// `track_ID` of `tkhd`.
    pub id: u32,
    /// What kind of media, with what only that kind has.
    pub kind: TrackKind,
    /// Clock of the samples.
    pub timescale: Timescale,
    /// ISO 639-2/T code of `mdhd`, or the BCP 47 tag of `elng`; `und` where unknown.
    pub language: String,
    /// Track name, where `hdlr` or `udta/name` carries a useful one.
    pub name: Option<String>,
    /// `track_enabled` of `tkhd`.
    pub enabled: bool,
    /// Codec and its configuration.
    pub codec: Codec,
    /// The whole sample entry box (with its header), as ISO base media files have it: init segments contain it.
    pub sample_entry: Vec<u8>,
    /// Edit list, in order; empty where the file has none.
    pub edits: Vec<Edit>,
    /// Sizes, places and times of the samples.
    pub samples: SampleTable,
    /// Encryption of the samples; `None` where they are clear.
    pub protection: Option<Box<Protection>>,
}

impl Track {
    fn heap_bytes(&self) -> usize {
        let texts = self.language.len() + self.name.as_ref().map_or(0, String::len);
        let edits = self.edits.capacity() * size_of::<Edit>();
        let codec = self.sample_entry.len() + self.codec.heap_bytes();
        let protection = self.protection.as_ref().map_or(0, |protection| protection.heap_bytes());
        protection + size_of::<Self>() + texts + edits + codec + self.samples.heap_bytes()
    }
}

/// Kinds of track.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum TrackKind {
    /// Pictures.
    Video {
        /// Coded width in pixels.
        width: u16,
        /// Coded height in pixels.
        height: u16,
        /// Clockwise rotation for display in degrees: 0, 90, 180 or 270 (from the `tkhd` matrix).
        rotation: u16,
        /// Pixel aspect ratio (`pasp`), horizontal and vertical spacing.
        pixel_aspect: (u32, u32),
    },
    /// Sound.
    Audio {
        /// Channels as the codec configuration says (falling back to the sample entry).
        channels: u16,
        /// Samples a second as the codec configuration says (falling back to the sample entry).
        sample_rate: u32,
    },
    /// Timed text.
    Text,
}

/// One entry of an edit list (8.6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Length in movie ticks; 0 in the last entry means "to the end".
    pub duration: u64,
    /// Media time in track ticks, or `None` for an empty edit.
    pub media_time: Option<i64>,
}

/// A track that can't be played, or not to its end, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedTrack {
    /// `track_ID`, or 0 where not even that could be read.
    pub id: u32,
    /// One line: box path, offset, what was found and what was expected.
    pub reason: String,
}

impl Movie {
    /// Bytes of heap the index holds, for memory budgets.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.tracks.iter().map(Track::heap_bytes).sum::<usize>()
            + self.system_headers.iter().chain(&self.fragment_headers).map(SystemHeader::heap_bytes).sum::<usize>()
            + self.skipped.iter().map(|s| std::mem::size_of::<SkippedTrack>() + s.reason.len()).sum::<usize>()
    }
}
