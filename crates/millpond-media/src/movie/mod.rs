//! The index of an object: tracks, edits and sample tables, without the media.

pub(crate) mod artwork;
pub(crate) mod chapter;
pub(crate) mod descriptions;
pub(crate) mod edits;
pub(crate) mod extraction;
pub(crate) mod image_text;
pub(crate) mod outline;
pub(crate) mod purpose;
pub(crate) mod sample_table;
pub(crate) mod stitched;
pub(crate) mod tags;
pub(crate) mod whole_frames;

/// The kind of a track is that of its codec.
pub use crate::codec::TrackKind;
pub use stitched::Stitched;

use crate::{
    budget::MOST_SKIPPED,
    codec::{Codec, UnreadCodec, captions::CaptionChannels, make::Made},
    error::MediaError,
    movie::{
        artwork::Artwork, chapter::Chapter, descriptions::Descriptions, extraction::Extraction, outline::Outline,
        purpose::Purposes, sample_table::SampleTable, tags::Tags,
    },
    programme::FileProgramme,
    protection::{Protection, SystemHeader},
    units::Timescale,
};
use serde::{Deserialize, Serialize};

/// The index of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Movie {
    /// Clock of `duration` and of [`Edit::duration`].
    pub timescale: Timescale,
    /// Duration in `timescale` ticks, as stated by `mvhd` or `mehd`; 0 where neither states one.
    pub duration: u64,
    /// Whether samples come from movie fragments.
    pub fragmented: bool,
    /// Playable tracks in file order.
    pub tracks: Vec<Track>,
    /// The clips of tracks whose samples need decoders of several kinds, in order: each a track of its own with the `id` of its
    /// track, and with all samples up to the next clip. The track itself has only the samples of its main kind.
    pub clips: Vec<Track>,
    /// Chapters, in the order of their times. Those of Matroska files count from the segment's time 0.
    pub chapters: Vec<Chapter>,
    /// Places of the file's cover or poster.
    pub artwork: Option<Artwork>,
    /// Title, artist and album that the file states.
    pub tags: Tags,
    /// Programmes of a transport stream, in the order of its association table; empty for other files.
    pub programmes: Vec<FileProgramme>,
    /// Tracks left out, and tracks whose samples end early (also in `tracks`), each with the reason. Other tracks are
    /// not affected.
    pub skipped: Vec<SkippedTrack>,
    /// URL of the file with the media, as written, where a data reference (8.7.2) names another file.
    pub external_media: Option<String>,
    /// Protection system headers (`pssh`) of the movie box.
    pub system_headers: Vec<SystemHeader>,
    /// Protection system headers of fragments, each once. [`Protection::headers`] lists the samples that they precede.
    pub fragment_headers: Vec<SystemHeader>,
    /// Whether samples of the movie box are missing because the object ends before them. The file is still being
    /// copied, or was truncated.
    pub cut_short: bool,
    /// Table of its fragments, where the tracks hold the samples of the first fragment only. `None` where they hold all samples.
    pub outline: Option<Box<Outline>>,
    /// Whether no outline can be made, so that every index of the object holds all samples.
    pub is_indivisible: bool,
    /// Map of the extracted object to the file. If there is one, the ranges of samples are ranges of the extracted object.
    pub extraction: Option<Box<Extraction>>,
    /// The objects of its samples, where these are several. No index file holds such a movie.
    #[serde(skip)]
    pub stitched: Option<Box<Stitched>>,
}

/// One playable track.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Track {
    /// `track_ID` of `tkhd`.
    pub id: u32,
    /// Kind of media, with the properties of that kind.
    pub kind: TrackKind,
    /// Clock of the samples: the file's clock, or a multiple if that has too few ticks for hidden pictures.
    pub timescale: Timescale,
    /// ISO 639-2/T code of `mdhd`, or the BCP 47 tag of `elng`; `und` where unknown.
    pub language: String,
    /// Track name, where `hdlr` or `udta/name` has a meaningful one.
    pub name: Option<String>,
    /// `track_enabled` of `tkhd`.
    pub enabled: bool,
    /// `alternate_group` of `tkhd`: tracks of one group replace each other. 0 says nothing.
    pub alternate_group: u16,
    /// Purposes that `kind` boxes state.
    pub purposes: Purposes,
    /// Channels of captions within its pictures. `None` where they are not known, and except for video.
    pub captions: Option<CaptionChannels>,
    /// Codec and its configuration.
    pub codec: Codec,
    /// The whole sample entry box with its header, in ISO form: init segments contain it.
    pub sample_entry: Vec<u8>,
    /// Edit list, in order; empty where the file has none.
    pub edits: Vec<Edit>,
    /// Sizes, offsets and times of the samples.
    pub samples: SampleTable,
    /// Sample entries that differ in their parameter sets; `None` where `sample_entry` describes all samples.
    pub descriptions: Option<Box<Descriptions>>,
    /// Encryption of the samples; `None` where they are clear.
    pub protection: Option<Box<Protection>>,
}

impl Track {
    /// Returns a track of a live stream: it has no samples, edits, name or protection. `language` is a code of ISO
    /// 639-2/T or a BCP 47 tag; `und` where unknown.
    #[must_use]
    pub fn live(id: u32, made: Made, timescale: Timescale, language: &str) -> Self {
        let Made { codec, kind, sample_entry } = made;
        Self {
            id,
            kind,
            timescale,
            language: language.to_owned(),
            name: None,
            enabled: true,
            alternate_group: 0,
            purposes: Purposes::default(),
            captions: None,
            codec,
            sample_entry,
            edits: Vec::new(),
            samples: SampleTable::default(),
            descriptions: None,
            protection: None,
        }
    }

    fn heap_bytes(&self) -> usize {
        let texts = self.language.len() + self.name.as_ref().map_or(0, String::len);
        let edits = self.edits.capacity() * size_of::<Edit>();
        let codec = self.sample_entry.len() + self.codec.heap_bytes();
        let protection = self.protection.as_ref().map_or(0, |protection| protection.heap_bytes());
        let descriptions = self.descriptions.as_ref().map_or(0, |descriptions| descriptions.heap_bytes());
        descriptions + protection + size_of::<Self>() + texts + edits + codec + self.samples.heap_bytes()
    }
}

/// One entry of an edit list (8.6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Length in movie ticks; 0 in the last entry means "to the end".
    pub duration: u64,
    /// Media time in track ticks, or `None` for an empty edit.
    pub media_time: Option<i64>,
}

impl Edit {
    /// Returns an edit that presents nothing for `duration` ticks of the movie.
    const fn empty(duration: u64) -> Self {
        Self { duration, media_time: None }
    }
}

/// A track that is not playable, or not to its end, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedTrack {
    /// `track_ID`, or 0 where not even that could be read.
    pub id: u32,
    /// One line: box path, offset, found value and expected value.
    pub reason: String,
    /// The codec that is not read, where the whole track is left out for it.
    pub codec: Option<UnreadCodec>,
}

impl SkippedTrack {
    /// Creates an entry whose reason is no codec.
    pub(crate) fn new(id: u32, reason: impl Into<String>) -> Self {
        Self { id, reason: reason.into(), codec: None }
    }

    /// Creates the entry of a track that is left out for an error.
    pub(crate) fn of_error(id: u32, error: &MediaError) -> Self {
        Self { codec: error.unread_codec().cloned(), ..Self::new(id, error.to_string()) }
    }

    /// Bytes of memory that it takes.
    fn bytes(&self) -> usize {
        std::mem::size_of::<Self>() + self.reason.len() + self.codec.as_ref().map_or(0, |codec| codec.name.len())
    }
}

impl Movie {
    /// Returns a movie of tracks that hold all their samples.
    pub(crate) fn of_tracks(timescale: Timescale, tracks: Vec<Track>, mut skipped: Vec<SkippedTrack>) -> Self {
        skipped.truncate(MOST_SKIPPED);
        Self {
            timescale,
            duration: 0,
            fragmented: false,
            tracks,
            clips: Vec::new(),
            chapters: Vec::new(),
            artwork: None,
            tags: Tags::default(),
            programmes: Vec::new(),
            skipped,
            external_media: None,
            system_headers: Vec::new(),
            fragment_headers: Vec::new(),
            cut_short: false,
            outline: None,
            is_indivisible: false,
            extraction: None,
            stitched: None,
        }
    }

    /// Returns the movie with all tracks delayed by `ticks` of 90 kHz. `sound`, if present, becomes the name of its sound tracks.
    #[must_use]
    pub fn later(&self, ticks: u64, sound: Option<&str>) -> Self {
        let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
        let duration = Timescale::MPEG.convert(ticks, self.timescale).unsigned_abs();
        let mut movie = self.clone();
        for track in movie.tracks.iter_mut().chain(&mut movie.clips) {
            if duration > 0 {
                match track.edits.first_mut() {
                    Some(edit) if edit.media_time.is_none() => edit.duration = edit.duration.saturating_add(duration),
                    // Without edits, the media is presented from its time 0 on.
                    None => track.edits = vec![Edit::empty(duration), Edit { duration: 0, media_time: Some(0) }],
                    Some(_) => track.edits.insert(0, Edit::empty(duration)),
                }
            }
            if matches!(track.kind, TrackKind::Audio { .. }) {
                track.name = sound.map(str::to_owned).or_else(|| track.name.take());
            }
        }
        movie
    }

    /// Returns a track by its place: the tracks are followed by the clips.
    #[must_use]
    pub fn track(&self, place: usize) -> Option<&Track> {
        self.tracks.get(place).or_else(|| self.clips.get(place.checked_sub(self.tracks.len())?))
    }

    /// Returns the places of the clips of a track; none where all its samples need one kind of decoder.
    pub fn clips_of(&self, id: u32) -> impl Iterator<Item = usize> + '_ {
        let places = (self.tracks.len()..).zip(&self.clips);
        places.filter(move |(_, clip)| clip.id == id).map(|(place, _)| place)
    }

    /// Returns the item of a stitched title that the clip at a place shows, counted from 0. `None` for other places and movies.
    #[must_use]
    pub fn item_of(&self, place: usize) -> Option<usize> {
        let clip = place.checked_sub(self.tracks.len())?;
        self.stitched.as_ref()?.clip_items.get(clip).copied()
    }

    /// Returns the composition times of the fragments of one of the tracks, and the end of the last; `None` without outline.
    #[must_use]
    pub fn times_of(&self, track: &Track) -> Option<&[i64]> {
        let place = self.tracks.iter().position(|other| other.id == track.id)?;
        Some(self.outline.as_ref()?.times(place)?.times())
    }

    /// Bytes of heap that the index holds, for memory budgets.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.tracks.iter().chain(&self.clips).map(Track::heap_bytes).sum::<usize>()
            + self.system_headers.iter().chain(&self.fragment_headers).map(SystemHeader::heap_bytes).sum::<usize>()
            + self.outline.as_ref().map_or(0, |outline| outline.heap_bytes())
            + self.artwork.as_ref().map_or(0, Artwork::heap_bytes)
            + self.extraction.as_ref().map_or(0, |extraction| extraction.heap_bytes())
            + self.stitched.as_ref().map_or(0, |stitched| stitched.heap_bytes())
            + self.tags.heap_bytes()
            + self.chapters.iter().map(Chapter::heap_bytes).sum::<usize>()
            + self.programmes.iter().map(FileProgramme::heap_bytes).sum::<usize>()
            + self.skipped.iter().map(SkippedTrack::bytes).sum::<usize>()
    }
}
