//! The movie box (`moov`, ISO/IEC 14496-12 8.2.1), and the movie that is built from it and its fragments.

use crate::{
    boxes::{FullBox, Node},
    budget::{Budget, MOST_SKIPPED, MOST_TRACKS},
    codec::TrackKind,
    error::MediaError,
    movie::{
        Movie, SkippedTrack, Track,
        artwork::ImageRange,
        chapter::Chapter,
        edits,
        sample_table::{SampleTable, SampleTableBuilder},
        tags::Tags,
    },
    mp4::{
        artwork,
        chapters::{self, ChapterTrack},
        clips::Clips,
        item_list,
        pcm_units::PcmUnits,
        progressive::Tables,
        trak::{self, Tkhd, TrackHeader},
    },
    protection::{Container, ProtectionDraft, SystemHeaders},
    units::Timescale,
    work::Work,
};
use std::collections::HashMap;

/// A movie that is being built.
#[derive(Debug)]
pub(crate) struct MovieDraft {
    moov_offset: u64,
    timescale: Timescale,
    duration: u64,
    fragmented: bool,
    external_media: Option<String>,
    /// Tracks that are playable so far, in file order.
    pub(crate) tracks: Vec<TrackDraft>,
    /// Defaults of all tracks, including tracks that are not playable.
    pub(crate) defaults: HashMap<u32, Trex>,
    pub(crate) skipped: Vec<SkippedTrack>,
    chapters: Vec<Chapter>,
    artwork: Option<ImageRange>,
    tags: Tags,
    /// Track of text with the titles of chapters. It is no track of subtitles.
    chapter_track: Option<ChapterTrack>,
    pub(crate) budget: Budget,
    object_len: u64,
    pub(crate) system_headers: SystemHeaders,
    /// Whether samples lie past the end of the object.
    cut_short: bool,
}

/// A track that is being built.
#[derive(Debug)]
pub(crate) struct TrackDraft {
    pub(crate) header: TrackHeader,
    pub(crate) samples: SampleTableBuilder,
    /// Converter of PCM samples to access units.
    pub(crate) pcm: Option<PcmUnits>,
    /// Encryption of the samples.
    pub(crate) protection: Option<ProtectionDraft>,
    /// Path and offset of the `trak` box, for error messages.
    place: (String, u64),
    /// Reason why later samples are left out.
    pub(crate) cut: Option<String>,
    /// Number of samples in the movie box.
    pub(crate) unfragmented: u32,
    /// Decode time at which the last fragment began.
    pub(crate) fragment_start: i64,
    /// Warning about the first fragment that overlaps the one before.
    pub(crate) overlap: Option<String>,
    /// The clips of the track, where they need decoders of several kinds.
    pub(crate) clips: Option<Clips>,
}

/// Defaults for the fragments of a track (`trex`, 8.8.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trex {
    pub(crate) track: u32,
    pub(crate) description: u32,
    pub(crate) duration: u32,
    pub(crate) size: u32,
    pub(crate) flags: u32,
}

impl MovieDraft {
    /// Parses `moov` of an object of `object_len` bytes. Steps are spent on `work`.
    pub(crate) fn parse(moov: &Node<'_>, object_len: u64, work: Work) -> Result<Self, MediaError> {
        // QuickTime File Format, "Compressed movie resources".
        if let Some(compressed) = moov.child(b"cmov") {
            return Err(
                compressed.unsupported("a compressed movie box (ffmpeg -i FILE -c copy COPY.mp4 writes a plain one)")
            );
        }
        let (timescale, duration) = movie_header(moov)?;
        let mvex = moov.child(b"mvex");
        let mut draft = Self {
            moov_offset: moov.offset,
            timescale,
            duration,
            fragmented: mvex.is_some(),
            external_media: None,
            tracks: Vec::new(),
            defaults: mvex.as_ref().map(defaults).unwrap_or_default(),
            skipped: Vec::new(),
            chapters: chapters::listed(moov),
            artwork: artwork::listed(moov),
            tags: item_list::tags(moov),
            chapter_track: None,
            budget: Budget::new(work),
            object_len,
            system_headers: SystemHeaders::default(),
            cut_short: false,
        };
        draft.budget.justify(moov.whole.len());
        // The parser visits each box about twenty times.
        draft.budget.step(moov, u32::try_from(moov.whole.len() / 8).unwrap_or(u32::MAX))?;
        if let Err(error) = draft.system_headers.of_movie(moov) {
            draft.skip(0, error.to_string());
        }
        let of_chapters = chapters::named_tracks(moov);
        for (number, trak) in (1_usize..).zip(moov.children_of(b"trak")) {
            if number > MOST_TRACKS {
                let (found, most) = (number as u64, MOST_TRACKS as u64);
                draft.skip(0, MediaError::too_large(trak.path, trak.offset, found, most, "tracks").to_string());
                break;
            }
            let tkhd = Tkhd::parse(&trak);
            let id = tkhd.as_ref().map_or(0, |tkhd| tkhd.id);
            if of_chapters.contains(&id) && ChapterTrack::has_text(&trak) {
                draft.chapter_track = draft.chapter_track.or_else(|| ChapterTrack::parse(&trak, timescale, object_len));
                continue;
            }
            match tkhd.and_then(|tkhd| draft.track(moov, &trak, tkhd)) {
                Ok(track) => draft.tracks.push(track),
                Err(error @ MediaError::Work { .. }) => return Err(error),
                Err(error) => draft.leave(SkippedTrack::of_error(id, &error)),
            }
        }
        Ok(draft)
    }

    /// Whether movie fragments may follow.
    pub(crate) fn fragmented(&self) -> bool {
        self.fragmented
    }

    /// Offset at or before which samples must end; `None` if they are in another object.
    pub(crate) fn media_end(&self) -> Option<u64> {
        self.external_media.is_none().then_some(self.object_len)
    }

    /// Takes the track whose samples are the titles of chapters; `None` where the movie box lists them, or they are in another object.
    pub(crate) fn take_chapter_track(&mut self) -> Option<ChapterTrack> {
        let track = self.chapter_track.take();
        track.filter(|_| self.chapters.is_empty() && self.external_media.is_none())
    }

    /// Records why a track, or a part of it, is left out, up to the limit of reasons.
    pub(crate) fn skip(&mut self, id: u32, reason: String) {
        self.leave(SkippedTrack::new(id, reason));
    }

    fn leave(&mut self, track: SkippedTrack) {
        if self.skipped.len() < MOST_SKIPPED {
            self.skipped.push(track);
        }
    }

    /// Returns the movie, or an error where no track has a sample.
    pub(crate) fn finish(mut self) -> Result<Movie, MediaError> {
        let (mut tracks, mut clips) = (Vec::with_capacity(self.tracks.len()), Vec::new());
        for mut draft in std::mem::take(&mut self.tracks) {
            draft.open_edits();
            let id = draft.header.id;
            let empty = draft.samples.is_empty();
            let (path, offset) = draft.place;
            if let Some(overlap) = draft.overlap {
                self.skip(id, overlap);
            }
            match draft.cut {
                Some(reason) => self.skip(id, reason),
                None if empty => {
                    self.skip(
                        id,
                        format!(
                            "{path} at byte {offset}: found no samples in the movie or any fragment, expected some"
                        ),
                    );
                }
                None => {}
            }
            let own = draft.clips.map(|clips| clips.finish(&draft.header)).unwrap_or_default();
            for warning in draft.header.entries.warnings(!own.is_empty()) {
                self.skip(id, warning);
            }
            if !empty {
                clips.extend(own);
                let track = draft.header.with_samples(draft.samples.finish(), draft.protection);
                match self.check_edits(&track, &path, offset) {
                    Ok(()) => tracks.push(track),
                    Err(error @ MediaError::Work { .. }) => return Err(error),
                    Err(error) => self.skip(id, error.to_string()),
                }
            }
        }
        if tracks.is_empty() {
            let found = self.skipped.into_iter().map(|skipped| skipped.reason).collect();
            let (path, offset, cut_short) = ("moov".to_owned(), self.moov_offset, self.cut_short);
            return Err(MediaError::NoPlayableTrack { path, offset, found, cut_short });
        }
        // A movie has places in one object alone. The artwork lies in this object, external media in another.
        let artwork = self.artwork.filter(|_| self.external_media.is_none()).map(Into::into);
        Ok(Movie {
            timescale: self.timescale,
            duration: self.duration,
            fragmented: self.fragmented,
            tracks,
            clips,
            chapters: self.chapters,
            artwork,
            tags: self.tags,
            programmes: Vec::new(),
            skipped: self.skipped,
            external_media: self.external_media,
            system_headers: self.system_headers.movie,
            fragment_headers: self.system_headers.fragments,
            cut_short: self.cut_short,
            outline: None,
            is_indivisible: false,
            extraction: None,
            stitched: None,
        })
    }

    /// Returns an error where the track exceeds the budget of edits, or of samples that its edits present.
    fn check_edits(&mut self, track: &Track, path: &str, offset: u64) -> Result<(), MediaError> {
        // A single edit presents no sample twice.
        if track.edits.len() < 2 {
            return Ok(());
        }
        let path = format!("{path}/edts/elst");
        self.budget.edits(&path, offset, track.edits.len())?;
        let steps = u64::from(track.samples.len()) + 64 * track.edits.len() as u64;
        self.budget.spend(steps).map_err(|error| MediaError::work(&*path, offset, error))?;
        let presented = edits::spans(track, self.timescale).iter().map(|span| span.samples.len() as u64).sum();
        self.budget.repeated(&path, offset, presented, track.samples.len())
    }

    /// Leaves out the tracks that can't be read as a stream of fragments, and those beyond `most`.
    pub(crate) fn limit_to_stream(mut self, most: usize) -> Self {
        let mut kept = Vec::new();
        for mut draft in std::mem::take(&mut self.tracks) {
            let reason = if draft.protection.is_some() {
                "an encrypted track in a live stream is not supported".to_owned()
            } else if self.external_media.is_some() {
                "media in another file".to_owned()
            } else if kept.len() >= most {
                format!("more than {most} tracks")
            } else {
                draft.header.entries.keep_first();
                kept.push(draft);
                continue;
            };
            self.skip(draft.header.id, format!("{} at byte {}: {reason}", draft.place.0, draft.place.1));
        }
        self.tracks = kept;
        self
    }

    /// Returns the tracks without samples, and the skipped ones.
    pub(crate) fn into_tracks(self) -> (Vec<Track>, Vec<SkippedTrack>) {
        let tracks = self.tracks.into_iter().map(|draft| draft.header.with_samples(SampleTable::default(), None));
        (tracks.collect(), self.skipped)
    }

    /// Begins a fragment of a stream without end, whose samples only its own bytes justify.
    pub(crate) fn begin_fragment(&mut self, work: Work) {
        self.budget = Budget::of_fragment(work);
    }

    fn track(&mut self, moov: &Node<'_>, trak: &Node<'_>, tkhd: Tkhd) -> Result<TrackDraft, MediaError> {
        if self.tracks.iter().any(|track| track.header.id == tkhd.id) {
            return Err(trak.invalid(format!("a second track {}", tkhd.id), "an id of its own"));
        }
        let stbl = trak.need(b"mdia")?.need(b"minf")?.need(b"stbl")?;
        let tables = Tables::parse(&stbl);
        let mut described = tables.as_ref().map(Tables::descriptions).unwrap_or_default();
        if described.is_empty() {
            described.extend(self.defaults.get(&tkhd.id).map(|trex| trex.description));
        }
        // The headers are read first, because a codec that is not playable explains more than invalid tables.
        let mut header = trak::parse(trak, tkhd, &described, self.fragmented)?;
        let tables = tables?;
        if tables.is_empty() && !self.fragmented {
            return Err(stbl.invalid("no samples", "one at least"));
        }
        self.agree_on_location(trak, &header)?;
        let mut samples = SampleTable::builder();
        // A text of no duration is not shown, and must not shorten the next one.
        if header.kind != TrackKind::Text {
            samples = samples.even(header.usual_duration(tables.len()));
        }
        if matches!(header.kind, TrackKind::Video { .. }) {
            samples = samples.keep_presentation();
        }
        let mut pcm = PcmUnits::of(&header.codec);
        let (end, budget) = (self.media_end(), &mut self.budget);
        let mut clips = Clips::of(&header);
        let cut = match &mut pcm {
            Some(units) => tables.fill_pcm(units, &mut samples, end, budget)?,
            None => tables.fill(&mut samples, (&mut header.entries, &mut clips), end, budget)?,
        };
        let mut protection = None;
        if let Some(found) = header.protection.take() {
            if pcm.is_some() {
                return Err(trak.unsupported("encrypted PCM"));
            }
            let mut draft = ProtectionDraft::new(found, &stbl, budget)?;
            draft.add(Container { tables: &stbl, track: trak, whole: moov, base: 0 }, 0, samples.len(), budget)?;
            protection = Some(draft);
        }
        self.cut_short |= cut.as_ref().is_some_and(|cut| cut.by_end);
        let cut = cut.map(|cut| cut.reason);
        let place = (trak.path.clone(), trak.offset);
        let unfragmented = samples.len();
        let (fragment_start, overlap) = (samples.next_dts(), None);
        Ok(TrackDraft { header, samples, pcm, protection, place, cut, unfragmented, fragment_start, overlap, clips })
    }

    /// Checks that all tracks have their media in one object: that of the first track.
    fn agree_on_location(&mut self, trak: &Node<'_>, header: &TrackHeader) -> Result<(), MediaError> {
        if self.tracks.is_empty() {
            self.external_media.clone_from(&header.location);
        } else if self.external_media != header.location {
            return Err(trak.unsupported("media in another file than that of the tracks before"));
        }
        Ok(())
    }
}

impl TrackHeader {
    pub(crate) fn with_samples(self, samples: SampleTable, protection: Option<ProtectionDraft>) -> Track {
        let (entry, descriptions) = self.entries.finish();
        let (codec, kind, sample_entry) = match entry {
            Some(entry) => (entry.codec, entry.kind, entry.sample_entry),
            None => (self.codec, self.kind, self.sample_entry),
        };
        Track {
            id: self.id,
            kind,
            timescale: self.timescale,
            language: self.language,
            name: self.name,
            enabled: self.enabled,
            alternate_group: self.alternate_group,
            purposes: self.purposes,
            captions: None,
            codec,
            sample_entry,
            edits: self.edits,
            samples,
            descriptions: descriptions.map(Box::new),
            protection: protection.map(|protection| Box::new(protection.finish())),
        }
    }
}

impl TrackDraft {
    /// Returns the samples so far. Later ones continue at their end.
    pub(crate) fn take_samples(&mut self) -> SampleTable {
        let mut next = SampleTable::builder();
        if self.header.kind != TrackKind::Text {
            next = next.even(self.header.usual_duration(0));
        }
        let start = self.samples.next_dts();
        let samples = std::mem::replace(&mut self.samples, next).finish();
        self.samples.set_start_dts(if samples.is_empty() { start } else { samples.end_dts() });
        samples
    }

    /// Begins a fragment at a decode time that its `tfdt` (8.8.12) states; `place` names that box. A time that is not after
    /// the start of the last fragment is no time of this recording, and counts for nothing: its samples follow the others.
    pub(crate) fn begin_at(&mut self, time: i64, place: impl FnOnce() -> String) {
        let end = self.samples.next_dts();
        if time >= self.samples.last_dts() || self.samples.is_empty() {
            self.samples.set_start_dts(time);
        } else {
            let is_overlap = time > self.fragment_start;
            if is_overlap {
                self.samples.set_start_dts(time);
            }
            self.overlap.get_or_insert_with(|| {
                let then = if is_overlap { "the fragment has that time" } else { "the fragment follows it" };
                format!(
                    "{}: found a decode time of {time}, before the end of the fragment before at {end}: {then}",
                    place()
                )
            });
        }
        self.fragment_start = if time > self.fragment_start { time } else { self.samples.next_dts() };
    }

    /// Makes the last edit open-ended where fragments follow the samples of the movie box: the edit list was written
    /// before the fragments, and ends with those samples.
    fn open_edits(&mut self) {
        if (1..self.samples.len()).contains(&self.unfragmented)
            && let Some(last) = self.header.edits.last_mut()
        {
            last.duration = 0;
        }
    }

    /// Whether sync flags of fragments count. Sound and text can be decoded from any sample.
    pub(crate) fn is_video(&self) -> bool {
        matches!(self.header.kind, TrackKind::Video { .. })
    }
}

/// Returns the defaults of all tracks in `mvex` (8.8.1), by track id; the first entry of a track counts.
fn defaults(mvex: &Node<'_>) -> HashMap<u32, Trex> {
    let mut defaults = HashMap::new();
    for trex in mvex.children_of(b"trex").filter_map(|node| Trex::parse(&node)) {
        defaults.entry(trex.track).or_insert(trex);
    }
    defaults
}

impl Trex {
    fn parse(node: &Node<'_>) -> Option<Self> {
        let FullBox { mut fields, .. } = node.full().ok()?;
        let mut next = || fields.u32().ok();
        let (track, description) = (next()?, next()?.max(1));
        Some(Self { track, description, duration: next()?, size: next()?, flags: next()? })
    }
}

/// Reads timescale and duration of `mvhd` (8.2.2), or the duration of `mehd` (8.8.2) where `mvhd` has none.
fn movie_header(moov: &Node<'_>) -> Result<(Timescale, u64), MediaError> {
    let node = moov.need(b"mvhd")?;
    let FullBox { version, mut fields, .. } = node.full()?;
    fields.skip(if version == 1 { 16 } else { 8 })?;
    // A timescale of 0 counts as one tick per second, as in ffmpeg. Only the timescales of the tracks matter.
    let timescale = Timescale::new(fields.u32()?.max(1)).unwrap_or(Timescale::MILLIS);
    let unknown = if version == 1 { u64::MAX } else { u64::from(u32::MAX) };
    let mut duration = fields.versioned(version)?;
    if duration == 0 || duration == unknown {
        let mehd = moov.child(b"mvex").and_then(|mvex| mvex.child(b"mehd"));
        duration = mehd
            .and_then(|mehd| mehd.full().and_then(|FullBox { version, mut fields, .. }| fields.versioned(version)).ok())
            .unwrap_or(0);
    }
    Ok((timescale, duration))
}
