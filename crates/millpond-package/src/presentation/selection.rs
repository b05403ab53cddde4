//! Selects the tracks of the sources that are presented.

use crate::{
    PackageError,
    flac::Numbering,
    language,
    object::ObjectIndex,
    presentation::{
        SourceObject,
        budget::Budget,
        flac_track::FlacForm,
        ladder::{Picture, ladders},
    },
    timeline::{Timeline, outlined::Outlined},
};
use millpond_media::{
    Span, clip_spans,
    codec::Codec,
    movie::{Movie, Track, TrackKind},
    spans,
    units::Timescale,
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// A track to present.
#[derive(Clone)]
pub(crate) struct Picked {
    pub(crate) object: ObjectIndex,
    pub(crate) movie: Arc<Movie>,
    pub(crate) index: usize,
    pub(crate) timeline: Timeline,
    pub(crate) language: Option<String>,
    /// File name, for warnings.
    pub(crate) label: String,
    pub(crate) bandwidth: Option<u64>,
    /// Ladder of a video: 0 for the main one, others for the alternatives of one file.
    pub(crate) ladder: u16,
    /// Places and timelines of its clips in the movie, in order; none where one decoder plays all its samples.
    pub(crate) clips: Vec<(usize, Timeline)>,
    /// Name in URLs, of a track of one period; empty before the track has one.
    pub(crate) name: String,
    /// Whether the sound becomes FLAC in HLS and DASH.
    pub(crate) becomes_flac: bool,
}

impl Picked {
    pub(crate) fn track(&self) -> &Track {
        of_movie(&self.movie, self.index)
    }

    /// Returns its fragments where the index has the samples of the first one only.
    pub(crate) fn outlined(&self) -> Option<Outlined<'_>> {
        Outlined::of(&self.movie, self.index, &self.timeline)
    }

    /// Returns the track and its clips.
    fn parts(&self) -> impl Iterator<Item = &Track> {
        let clips = self.clips.iter().map(|(place, _)| of_movie(&self.movie, *place));
        std::iter::once(self.track()).chain(clips)
    }

    /// Whether all its samples are PCM or G.711.
    pub(crate) fn is_pcm(&self) -> bool {
        self.parts().all(|track| matches!(track.codec, Codec::Pcm(_)))
    }

    /// Returns the form in which the sound becomes FLAC; `None` where samples stay as they are.
    pub(crate) fn flac(&self) -> Option<FlacForm> {
        let form = || FlacForm::of(self.track(), self.numbering());
        self.becomes_flac.then(form).flatten()
    }

    /// Returns the kind of number in the headers of frames of FLAC. Frames of an outlined track vary in length.
    fn numbering(&self) -> Numbering {
        if self.outlined().is_some() { Numbering::Samples } else { Numbering::Frames }
    }

    /// Number of ordinals: of samples, or of fragments.
    pub(crate) fn len(&self) -> u32 {
        self.outlined().map_or(self.timeline.len(), |outlined| outlined.len())
    }
}

/// Returns a track or clip that a movie is known to have.
pub(crate) fn of_movie(movie: &Movie, place: usize) -> &Track {
    match place.checked_sub(movie.tracks.len()) {
        Some(clip) => &movie.clips[clip],
        None => &movie.tracks[place],
    }
}

/// Tracks to present, by kind, in order.
#[derive(Default)]
pub(crate) struct Selection {
    pub(crate) video: Vec<Picked>,
    pub(crate) audio: Vec<Picked>,
    pub(crate) text: Vec<Picked>,
    /// Reasons for skipped tracks.
    pub(crate) skipped: Vec<String>,
}

/// Properties that audio and text tracks of different sources share when they have the same content.
type Alike = (bool, Option<String>, &'static str, u16, Option<String>);

/// Identity of audio and text tracks across sources: tracks with the same identity have the same content. The last part
/// counts similar tracks within a source, so that two in one source stay two.
type Identity = (Alike, usize);

/// Kinds of which a source names tracks.
#[derive(Default)]
struct NamedKinds {
    video: bool,
    audio: bool,
    text: bool,
    /// Whether the source has a video track.
    has_video: bool,
}

impl NamedKinds {
    fn of(source: &SourceObject) -> Self {
        let ids: HashSet<u32> = source.named.iter().map(|named| named.id).collect();
        let mut kinds = Self::default();
        for track in &source.movie.tracks {
            let named = ids.contains(&track.id);
            match track.kind {
                TrackKind::Video { .. } => (kinds.has_video, kinds.video) = (true, kinds.video || named),
                TrackKind::Audio { .. } => kinds.audio |= named,
                TrackKind::Text => kinds.text |= named,
            }
        }
        kinds
    }

    fn has(&self, kind: TrackKind) -> bool {
        match kind {
            TrackKind::Video { .. } => self.video,
            TrackKind::Audio { .. } => self.audio,
            TrackKind::Text => self.text,
        }
    }
}

impl Selection {
    /// Selects from all sources, enabled tracks first. Audio and text that every rendition repeats is taken once.
    pub(crate) fn of(sources: &[SourceObject], budget: &Budget<'_>) -> Result<Self, PackageError> {
        if sources.len() > usize::from(u16::MAX) + 1 {
            let (found, limit) = (sources.len() as u64, u64::from(u16::MAX) + 1);
            return Err(PackageError::TooMany { what: "objects of one asset", found, limit });
        }
        let origin = origin(sources);
        let mut selection = Self::default();
        let mut seen = HashSet::new();
        for (object, source) in (0_u16..).zip(sources) {
            let reasons = source.movie.skipped.iter();
            selection.skipped.extend(reasons.map(|s| format!("{}: track {}: {}", source.label, s.id, s.reason)));
            let mut own = HashMap::new();
            let kinds = NamedKinds::of(source);
            for (index, track) in source.movie.tracks.iter().enumerate() {
                budget.pick(track)?;
                budget.clips(&source.movie, track)?;
                if let Some(picked) = pick(source, &kinds, ObjectIndex(object), index, origin, &mut selection.skipped) {
                    selection.add(picked, &seen, &mut own);
                    budget.tracks(selection.video.len() + selection.audio.len() + selection.text.len())?;
                }
            }
            let alike = |(identity, count): (Alike, usize)| (0..count).map(move |place| (identity.clone(), place));
            seen.extend(own.into_iter().flat_map(alike));
        }
        selection.part_ladders(sources);
        selection.choose_flac();
        for list in [&mut selection.audio, &mut selection.text] {
            list.sort_by_key(|p| !p.track().enabled);
        }
        Ok(selection)
    }

    /// Removes videos of one file that differ from its main one from the ladder: a still of a motion photo is no
    /// rendition of the film beside it, nor is a second camera. Disabled ones are left out. Videos that a server manifest
    /// names, and those of different files, count as renditions.
    fn part_ladders(&mut self, sources: &[SourceObject]) {
        let (mut next, mut absent) = (1, HashSet::new());
        for run in self.video.chunk_by_mut(|a, b| a.object == b.object) {
            let named = |picked: &Picked| {
                let source = sources.get(usize::from(picked.object.0));
                source.is_some_and(|source| source.named.iter().any(|named| named.id == picked.track().id))
            };
            if run.len() < 2 || run.iter().all(named) {
                continue;
            }
            let pictures: Vec<_> = run.iter().map(|picked| Picture::of(picked.track(), &picked.movie)).collect();
            let ladders = ladders(&pictures);
            for (picked, ladder) in run.iter_mut().zip(&ladders) {
                match ladder {
                    Some(0) => {}
                    Some(ladder) => picked.ladder = ladder.saturating_add(next - 1),
                    None => {
                        absent.insert((picked.object, picked.index));
                        let id = picked.track().id;
                        self.skipped.push(format!("{}: track {id}: its header disables it", picked.label));
                    }
                }
            }
            next = ladders.iter().flatten().max().map_or(next, |most| most.saturating_add(next));
        }
        self.video.retain(|picked| !absent.contains(&(picked.object, picked.index)));
    }

    /// Chooses the sound that becomes FLAC, in assets whose sound is all PCM or G.711. Players of other assets have sound that browsers
    /// decode.
    fn choose_flac(&mut self) {
        if !self.audio.iter().all(Picked::is_pcm) {
            return;
        }
        for picked in &mut self.audio {
            let fits = picked.parts().all(|track| FlacForm::of(track, picked.numbering()).is_some());
            picked.becomes_flac = fits;
        }
    }

    fn add(&mut self, picked: Picked, seen: &HashSet<Identity>, own: &mut HashMap<Alike, usize>) {
        let track = picked.track();
        let (list, text, channels) = match track.kind {
            TrackKind::Video { .. } => return self.video.push(picked),
            TrackKind::Audio { channels, .. } => (&mut self.audio, false, channels),
            TrackKind::Text => (&mut self.text, true, 0),
        };
        let family = if text { "" } else { family(&track.codec) };
        let alike = (text, picked.language.clone(), family, channels, track.name.clone());
        let count = own.entry(alike.clone()).or_default();
        let identity = (alike, *count);
        *count += 1;
        if !seen.contains(&identity) {
            list.push(picked);
        }
    }
}

fn pick(
    source: &SourceObject,
    kinds: &NamedKinds,
    object: ObjectIndex,
    index: usize,
    origin: Option<i64>,
    skipped: &mut Vec<String>,
) -> Option<Picked> {
    let track = source.movie.tracks.get(index)?;
    let video = matches!(track.kind, TrackKind::Video { .. });
    let used = match track.kind {
        TrackKind::Video { .. } => source.use_video,
        TrackKind::Audio { .. } => source.use_audio,
        TrackKind::Text => source.use_text,
    };
    let named = source.named.iter().find(|named| named.id == track.id);
    if !used || (named.is_none() && kinds.has(track.kind)) {
        return None;
    }
    let said = named.and_then(|named| named.language.as_deref()).or(source.language.as_deref());
    let origin = origin.map_or(0, |o| Timescale::MILLIS.convert(o, track.timescale));
    let timeline = Timeline::new(track, source.movie.timescale, origin);
    if timeline.is_empty() {
        skipped.push(format!("{}: track {}: found no sample that its edit list presents", source.label, track.id));
        return None;
    }
    Some(Picked {
        object,
        movie: source.movie.clone(),
        index,
        timeline,
        // The language of a file in a manifest is that of its audio and text.
        language: language::tag(said.filter(|_| !video).unwrap_or(&track.language)),
        label: source.label.clone(),
        bandwidth: source.bandwidth.filter(|_| video || !source.use_video || !kinds.has_video),
        ladder: 0,
        clips: clips(&source.movie, track, origin),
        name: String::new(),
        becomes_flac: false,
    })
}

/// Returns places and timelines of the clips of a track that its edit list presents, if these are several.
fn clips(movie: &Movie, track: &Track, origin: i64) -> Vec<(usize, Timeline)> {
    let places: Vec<usize> = movie.clips_of(track.id).collect();
    let tracks: Vec<&Track> = places.iter().map(|place| of_movie(movie, *place)).collect();
    // Clips of a stitched title have edit lists of their own.
    let spans: Vec<Vec<Span>> = match &movie.stitched {
        Some(_) => tracks.iter().map(|clip| spans(clip, movie.timescale)).collect(),
        None => clip_spans(&tracks, movie.timescale).into_iter().map(|span| span.into_iter().collect()).collect(),
    };
    let timelines = places.into_iter().zip(tracks).zip(spans).filter_map(|((place, clip), span)| {
        let origin = track.timescale.convert(origin, clip.timescale);
        let timeline = Timeline::of(clip, span, origin);
        (!timeline.is_empty()).then_some((place, timeline))
    });
    let timelines: Vec<_> = timelines.collect();
    // A track may have the clip of one item, and the title several items.
    let parts = movie.stitched.as_ref().map_or(timelines.len(), |stitched| stitched.starts.len());
    if parts > 1 { timelines } else { Vec::new() }
}

/// Returns the time, in milliseconds, at which the clocks of all sources begin. `None` if this is less than a second, or an edit
/// list defines time 0. Recordings of live streams keep the clock of the stream.
pub(crate) fn origin(sources: &[SourceObject]) -> Option<i64> {
    let tracks = || sources.iter().flat_map(|s| &s.movie.tracks);
    if tracks().any(|t| !t.edits.is_empty()) {
        return None;
    }
    let starts = tracks().filter_map(|t| Some(t.timescale.convert(t.samples.get(0)?.pts(), Timescale::MILLIS)));
    starts.min().filter(|start| *start >= 1000)
}

/// Returns the codec family: tracks of one family can replace each other in a group.
pub(crate) fn family(codec: &Codec) -> &'static str {
    match codec {
        Codec::Avc(_) => "avc",
        Codec::Hevc(_) => "hevc",
        Codec::Av1(_) => "av1",
        Codec::Vp9(_) => "vp9",
        Codec::Aac(_) => "aac",
        Codec::MpegAudio(config) => match config.layer {
            1 => "mp1",
            2 => "mp2",
            _ => "mp3",
        },
        Codec::Ac3(_) => "ac3",
        Codec::Eac3(_) => "eac3",
        Codec::Opus(_) => "opus",
        Codec::Flac(_) => "flac",
        Codec::Alac(_) => "alac",
        Codec::Pcm(_) => "pcm",
        Codec::Tx3g | Codec::Wvtt(_) | Codec::MatroskaText(_) => "webvtt",
        Codec::Stpp(_) => "stpp",
        Codec::PrivateText(_) => "private",
    }
}
