//! An asset as players see it: its tracks, their names and segments.

pub(crate) mod artwork;
pub(crate) mod budget;
mod build;
pub(crate) mod captions;
pub mod common_clock;
pub(crate) mod counters;
pub(crate) mod flac_track;
mod growth;
pub(crate) mod iframes;
pub(crate) mod keys;
pub mod ladder;
pub(crate) mod muxed_audio;
pub(crate) mod period;
pub(crate) mod selection;
mod so_far;
pub(crate) mod track;
pub(crate) mod unlisted;

use crate::{
    PackageError,
    presentation::{
        artwork::PresentedArtwork,
        captions::CaptionRule,
        keys::KeyAddress,
        muxed_audio::MuxedAudio,
        period::Period,
        so_far::SoFar,
        track::{Content, MediaKind, PresentedTrack},
        unlisted::Unlisted,
    },
    text::Cue,
};
use millpond_media::{
    Chapter, Tags, Work,
    codec::Codec,
    movie::{Movie, Stitched},
};
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

/// One object of an asset.
#[derive(Clone, Debug)]
pub struct SourceObject {
    /// Index of the object.
    pub movie: Arc<Movie>,
    /// File name, for warnings and errors.
    pub label: String,
    /// Language of its audio and text, where a server manifest states it.
    pub language: Option<String>,
    /// Tracks that a server manifest names by id. Of their kinds, no other tracks are used.
    pub named: Vec<NamedTrack>,
    /// Peak bits per second of its video, or of its audio if it has no video. `None` unless a server manifest states it.
    pub bandwidth: Option<u64>,
    /// Whether its video is used.
    pub use_video: bool,
    /// Whether its audio is used.
    pub use_audio: bool,
    /// Whether its text is used.
    pub use_text: bool,
}

/// A track that a server manifest names by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTrack {
    /// `track_ID` (ISO/IEC 14496-12, 8.3.2).
    pub id: u32,
    /// Language, where the manifest states it.
    pub language: Option<String>,
}

impl SourceObject {
    /// Selects all tracks of an object, without overrides.
    #[must_use]
    pub const fn new(movie: Arc<Movie>, label: String) -> Self {
        Self {
            movie,
            label,
            language: None,
            named: Vec::new(),
            bandwidth: None,
            use_video: true,
            use_audio: true,
            use_text: true,
        }
    }
}

/// Subtitles from a file next to the media.
#[derive(Clone, Debug)]
pub struct Sidecar {
    /// Language code or BCP 47 tag; empty where unknown.
    pub language: String,
    /// Name for menus; empty to use the language.
    pub name: String,
    /// Cues, by start time.
    pub cues: Arc<Vec<Cue>>,
    /// Whether players show it unless the viewer chooses otherwise.
    pub default: bool,
    /// Whether players show it even with subtitles off.
    pub forced: bool,
}

impl Sidecar {
    pub(crate) fn heap_bytes(&self) -> usize {
        self.language.len() + self.name.len() + self.cue_bytes()
    }

    /// Bytes of heap held by its cues, which periods share.
    fn cue_bytes(&self) -> usize {
        self.cues.capacity() * size_of::<Cue>() + self.cues.iter().map(Cue::heap_bytes).sum::<usize>()
    }
}

/// Settings of a presentation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PresentationOptions {
    /// Target duration of segments in seconds: 0.5 to 60.
    pub target_duration: f64,
}

impl Default for PresentationOptions {
    fn default() -> Self {
        Self { target_duration: 4.0 }
    }
}

/// Coding of a track, as it is stored and as HLS with fMP4 and DASH deliver it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackCoding {
    /// Codec parameter of RFC 6381 in manifests.
    pub parameter: String,
    /// Codec parameter of the stored samples.
    pub stored: String,
    /// Name of the codec of the stored samples; `None` for sidecars.
    pub name: Option<&'static str>,
    /// Whether the sound is PCM or G.711 that is delivered as FLAC.
    pub becomes_flac: bool,
    /// Whether manifests list the track.
    pub is_listed: bool,
}

/// An asset, ready to be packaged. It is built once and shared: every response is a function of it.
#[derive(Debug)]
pub struct Presentation {
    pub(crate) tracks: Vec<PresentedTrack>,
    pub(crate) warnings: Vec<String>,
    pub(crate) duration: f64,
    /// Whether all video tracks have common segment boundaries, so that players can switch between them at each.
    pub(crate) aligned: bool,
    /// Target duration of segments in nanoseconds.
    pub(crate) target: i64,
    pub(crate) muxed: OnceLock<Option<MuxedAudio>>,
    /// Template of key addresses, for HLS.
    pub(crate) key_address: Option<Arc<KeyAddress>>,
    /// Path before the URIs of tracks, see [`Self::below`].
    pub(crate) base: String,
    /// Whether manifests list thumbnails.
    pub(crate) lists_thumbnails: bool,
    /// The rule by which manifests announce captions within pictures.
    pub(crate) captions: Arc<CaptionRule>,
    /// Times of a period, in nanoseconds; `None` for a whole asset.
    pub(crate) shown: Option<Range<i64>>,
    /// Version of the tables of transport streams: periods have other streams.
    pub(crate) table_version: u8,
    /// The periods of the timeline, in order; none where all of it is one.
    pub(crate) periods: Vec<Period>,
    /// The final segments, if only the beginning of the file is known.
    pub(crate) so_far: Option<SoFar>,
}

impl Presentation {
    /// Builds the presentation of an asset's objects (renditions of one title, in any order) and sidecars. An
    /// [`ObjectIndex`](crate::ObjectIndex) is an index in `sources`.
    ///
    /// Walks twice over the sample tables, and reads no media. Each sample, edit and segment is a step of `work`.
    ///
    /// # Errors
    /// Options out of range, more than 65,536 sources, no playable track, or the end of `work`. Tracks that can't be
    /// presented are left out with a [warning](Self::warnings).
    pub fn build(
        sources: Vec<SourceObject>,
        sidecars: Vec<Sidecar>,
        options: &PresentationOptions,
        work: &Work,
    ) -> Result<Self, PackageError> {
        build::presentation(sources, sidecars, options, work)
    }

    /// Returns the same presentation with addresses of its keys, for HLS.
    #[must_use]
    pub fn with_key_address(mut self, key_address: Option<Arc<KeyAddress>>) -> Self {
        self.periods.iter_mut().for_each(|period| period.presentation.key_address.clone_from(&key_address));
        Self { key_address, ..self }
    }

    /// Returns the same presentation whose manifests list its [thumbnails](crate::delivery::thumbnails::Thumbnails), or do not.
    #[must_use]
    pub fn with_thumbnails(self, lists_thumbnails: bool) -> Self {
        Self { lists_thumbnails, ..self }
    }

    /// Returns the same presentation whose manifests announce captions within pictures by a rule.
    #[must_use]
    pub fn with_captions(mut self, captions: Arc<CaptionRule>) -> Self {
        self.periods.iter_mut().for_each(|period| period.presentation.captions.clone_from(&captions));
        Self { captions, ..self }
    }

    /// Puts a relative path such as `~0a1b/` before each URI of a track in multivariant playlists and MPDs. All
    /// resources of a track are then below that path, so a path that names a version makes them immutable. The path is
    /// empty by default, and must not contain special characters of playlists, XML or templates (`"`, `&`, `<`, `$`).
    #[must_use]
    pub fn below(mut self, base: impl Into<String>) -> Self {
        self.base = base.into();
        self.periods.iter_mut().for_each(|period| period.presentation.base.clone_from(&self.base));
        self
    }

    /// Returns all tracks: video, audio, text.
    #[must_use]
    pub fn tracks(&self) -> &[PresentedTrack] {
        &self.tracks
    }

    /// Returns all tracks, then the tracks of all periods if there are several.
    pub fn all_tracks(&self) -> impl Iterator<Item = &PresentedTrack> {
        self.tracks.iter().chain(self.periods.iter().flat_map(|period| &period.presentation.tracks))
    }

    /// Returns the track of a name such as `v1`, or `v1p2` for the second period.
    #[must_use]
    pub fn track(&self, name: &str) -> Option<&PresentedTrack> {
        self.all_tracks().find(|t| t.name == name)
    }

    /// Returns the presentation that has the track of a name: a period's for names such as `v1p2`, else this one.
    #[must_use]
    pub fn of_track(&self, name: &str) -> &Self {
        let has = |presentation: &&Self| presentation.tracks.iter().any(|track| track.name == name);
        self.periods.iter().map(|period| &period.presentation).find(has).unwrap_or(self)
    }

    /// Returns the tracks of one kind.
    pub fn of_kind(&self, kind: MediaKind) -> impl Iterator<Item = &PresentedTrack> {
        self.tracks.iter().filter(move |t| t.kind == kind)
    }

    /// Returns the tracks that HLS and DASH list.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &PresentedTrack> {
        self.tracks.iter().filter(|track| self.lists(track))
    }

    /// Whether HLS with fMP4 and DASH list a track: all that can be packaged, except for sound that does
    /// not fit beside video.
    #[must_use]
    pub fn lists(&self, track: &PresentedTrack) -> bool {
        self.unlisted(track).is_none()
    }

    fn unlisted(&self, track: &PresentedTrack) -> Option<Unlisted> {
        // Video comes first.
        let is_film = self.tracks.first().is_some_and(|first| first.kind == MediaKind::Video);
        Unlisted::of(track.delivered_codec()?, is_film)
    }

    /// Returns why HLS with fMP4 and DASH do not [list](Self::lists) a track, as the end of a sentence about the track.
    pub(crate) fn absence(&self, track: &PresentedTrack) -> Option<&'static str> {
        let mut sound = self.all_tracks().filter(|track| track.kind == MediaKind::Audio);
        let has_other_sound = sound.any(|track| !matches!(track.codec(), Some(Codec::Pcm(_))));
        Some(self.unlisted(track)?.words(track.codec()?, has_other_sound))
    }

    /// Whether all tracks are text.
    pub(crate) fn is_text(&self) -> bool {
        self.tracks.iter().all(|track| track.kind == MediaKind::Text)
    }

    /// Returns the error for a container that can carry no video and no audio of the asset.
    pub(crate) fn not_carried(&self, container: &'static str, expected: &'static str) -> PackageError {
        let is_text = self.is_text();
        let media = self.tracks.iter().filter(|track| is_text || track.kind != MediaKind::Text);
        let found: Vec<String> = media.map(PresentedTrack::codec_and_encryption).collect();
        PackageError::Container { container, found: found.join(", "), expected }
    }

    /// The objects of a stitched title; `None` for other assets.
    #[must_use]
    pub fn stitched(&self) -> Option<&Stitched> {
        self.stitched_movie()?.stitched.as_deref()
    }

    /// Bytes of heap held by the index of a stitched title, which no object has; 0 for other assets.
    #[must_use]
    pub fn stitched_bytes(&self) -> usize {
        self.stitched_movie().map_or(0, |movie| movie.heap_bytes())
    }

    fn stitched_movie(&self) -> Option<&Movie> {
        let movie = self.tracks.iter().find_map(PresentedTrack::movie)?;
        movie.stitched.is_some().then_some(movie)
    }

    /// Returns the chapters of the first object that has any.
    #[must_use]
    pub fn chapters(&self) -> &[Chapter] {
        let mut movies = self.tracks.iter().filter_map(PresentedTrack::movie);
        movies.find(|movie| !movie.chapters.is_empty()).map_or(&[][..], |movie| &movie.chapters[..])
    }

    /// Returns the picture that an object has beside its media, of the first object that has any.
    #[must_use]
    pub fn artwork(&self) -> Option<PresentedArtwork<'_>> {
        self.tracks.iter().filter_map(PresentedTrack::media).find_map(PresentedArtwork::of)
    }

    /// Returns the tags of the first object that has any; `None` where none has.
    #[must_use]
    pub fn tags(&self) -> Option<&Tags> {
        let movies = self.tracks.iter().filter_map(PresentedTrack::movie);
        movies.map(|movie| &movie.tags).find(|tags| !tags.is_empty())
    }

    /// Returns the coding of a track: the only source of what is told of it beside manifests.
    #[must_use]
    pub fn coding(&self, track: &PresentedTrack) -> TrackCoding {
        TrackCoding {
            parameter: track.codec_parameter(),
            stored: track.stored_parameter(),
            name: track.codec().map(|codec| codec.name()),
            becomes_flac: track.becomes_flac(),
            is_listed: self.lists(track),
        }
    }

    /// Duration in seconds.
    #[must_use]
    pub const fn duration(&self) -> f64 {
        self.duration
    }

    /// Bytes of heap held, without the indexes of the sources.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let muxed = self.muxed.get().and_then(Option::as_ref).map_or(0, MuxedAudio::heap_bytes);
        let of_period = |period: &Presentation| period.heap_bytes().saturating_sub(period.cue_bytes());
        let periods: usize = self.periods.iter().map(|period| of_period(&period.presentation)).sum();
        let warnings: usize = self.warnings.iter().map(String::len).sum();
        self.tracks.iter().map(PresentedTrack::heap_bytes).sum::<usize>() + muxed + warnings + self.base.len() + periods
    }

    /// Bytes of heap held by the cues of its sidecars.
    fn cue_bytes(&self) -> usize {
        let of_track = |track: &PresentedTrack| match &track.content {
            Content::Sidecar(sidecar) => sidecar.cue_bytes(),
            Content::Media(_) => 0,
        };
        self.tracks.iter().map(of_track).sum()
    }

    /// Warnings for the operator: tracks left out, renditions without common boundaries.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
