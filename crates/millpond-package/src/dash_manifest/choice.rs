//! The choice of what is received of a Period.

use super::{
    Common, Level, LiveManifest, PeriodElement, RepresentationElement, Run, SetElement, TemplateElement, refused,
    shown,
    uri_template::{Identifiers, differs},
};
use crate::PackageError;
use millpond_media::Timescale;
use std::{sync::Arc, time::Duration};

/// Most tracks of sound.
const MOST_SOUNDS: usize = 4;
/// Shortest segments that time adds.
const LEAST_SEGMENT: Duration = Duration::from_millis(20);
/// Media types of fragmented MP4.
const MP4: [&str; 5] = ["video/mp4", "audio/mp4", "application/mp4", "video/iso.segment", "audio/iso.segment"];
/// Beginnings of codecs of pictures.
const PICTURES: [&str; 11] = ["avc", "hvc1", "hev1", "dvh", "dva", "av01", "vp09", "vp08", "mp4v", "vvc1", "vp9"];
/// Beginnings of codecs of sound.
const SOUND: [&str; 8] = ["mp4a", "ac-3", "ec-3", "opus", "Opus", "fLaC", "flac", "alac"];

/// The media type and language by which a track is found in each Period of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackRole {
    /// Whether it has pictures; otherwise it has sound.
    pub is_pictures: bool,
    /// Language that the manifest states.
    pub language: Option<Arc<str>>,
    /// Place among the tracks of its kind.
    pub place: usize,
}

/// A Representation that is received in one Period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) role: TrackRole,
    /// The `BaseURL`s of all levels, from the MPD down.
    pub(super) bases: Vec<Arc<str>>,
    pub(super) timescale: Timescale,
    /// Media time at which the Period begins, `presentationTimeOffset`.
    pub(super) offset: u64,
    /// Time by which segments exist before they are complete.
    pub(super) early: Duration,
    pub(super) runs: Arc<[Run]>,
    representation: Arc<str>,
    bandwidth: u64,
    media: Arc<str>,
    initialization: Arc<str>,
    first_number: u64,
}

/// Kind of media of a Representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pictures,
    Sound,
}

impl Track {
    /// Returns the URI of a segment.
    pub(super) fn uri(&self, index: u64, time: u64) -> Option<String> {
        self.identifiers(self.first_number.saturating_add(index), time).uri(&self.media).ok()
    }

    /// Returns the URI of the init section.
    pub(super) fn init(&self) -> Option<String> {
        self.identifiers(0, 0).uri(&self.initialization).ok()
    }

    /// Returns the number of a segment.
    pub(super) fn number(&self, index: u64) -> u64 {
        self.first_number.saturating_add(index)
    }

    fn identifiers(&self, number: u64, time: u64) -> Identifiers<'_> {
        Identifiers { representation: &self.representation, bandwidth: self.bandwidth, number, time }
    }
}

/// A Representation within all that surrounds it.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    manifest: &'a LiveManifest,
    period: &'a PeriodElement,
    set: &'a SetElement,
    representation: &'a RepresentationElement,
}

impl<'a> Candidate<'a> {
    fn levels(self) -> [&'a Level; 4] {
        [&self.manifest.level, &self.period.level, &self.set.level, &self.representation.level]
    }

    /// A value of the Representation, else of its AdaptationSet.
    fn common<T>(self, value: impl Fn(&'a Common) -> Option<T>) -> Option<T> {
        value(&self.representation.common).or_else(|| value(&self.set.common))
    }

    /// The kind of its media; `None` for text, images and what is to be ignored.
    fn kind(self) -> Option<Kind> {
        if self.set.common.is_special || self.representation.common.is_special {
            return None;
        }
        let media_type = self.common(|common| common.media_type.as_deref()).unwrap_or_default();
        let by_type = |text: &str| match text.split('/').next() {
            Some("video") => Some(Kind::Pictures),
            Some("audio") => Some(Kind::Sound),
            _ => None,
        };
        let codecs = self.common(|common| common.codecs.as_deref()).unwrap_or_default();
        let has =
            |known: &[&str]| codecs.split(',').any(|codec| known.iter().any(|begin| codec.trim().starts_with(begin)));
        let by_codecs = || match (has(&PICTURES), has(&SOUND)) {
            (true, _) => Some(Kind::Pictures),
            (false, true) => Some(Kind::Sound),
            (false, false) => None,
        };
        by_type(self.set.content.as_deref().unwrap_or_default()).or_else(|| by_type(media_type)).or_else(by_codecs)
    }

    /// The `SegmentTemplate` of all levels: an inner one overrides single values.
    fn template(self) -> Option<TemplateElement> {
        let templates = self.levels().into_iter().filter_map(|level| level.template.as_ref());
        templates.cloned().reduce(|outer, inner| TemplateElement {
            media: inner.media.or(outer.media),
            initialization: inner.initialization.or(outer.initialization),
            timescale: inner.timescale.or(outer.timescale),
            duration: inner.duration.or(outer.duration),
            first_number: inner.first_number.or(outer.first_number),
            offset: inner.offset.or(outer.offset),
            early: inner.early.or(outer.early),
            timeline: inner.timeline.or(outer.timeline),
        })
    }

    /// Returns it as a track.
    fn track(self, role: TrackRole) -> Result<Track, PackageError> {
        let refuse = |what: String, expected| {
            let id = shown(&self.representation.id);
            Err(refused(self.representation.line, format!("the Representation {id:?} {what}"), expected))
        };
        let media_type = self.common(|common| common.media_type.as_deref());
        if let Some(found) = media_type.filter(|found| !MP4.contains(found)) {
            return refuse(format!("of the type {}", shown(found)), "fragmented MP4 (video/mp4, audio/mp4)");
        }
        if let Some(name) = self.common(|common| common.protection.as_deref()) {
            return refuse(format!("that is encrypted (ContentProtection {name})"), "clear media");
        }
        let Some(template) = self.template() else {
            let other = self.levels().into_iter().rev().find_map(|level| level.other).unwrap_or("BaseURL");
            return refuse(format!("whose segments are in a {other}"), "a SegmentTemplate");
        };
        let TemplateElement { media, initialization, timescale, duration, first_number, offset, early, timeline } =
            template;
        let Some(media) = media.filter(|media| differs(media)) else {
            return refuse("without $Number$ or $Time$ in media".to_owned(), "a template of its segments");
        };
        let Some(initialization) = initialization else {
            return refuse("without initialization".to_owned(), "a template of its init section");
        };
        let offset = offset.unwrap_or(0);
        let runs: Arc<[Run]> = match (timeline, duration) {
            (Some(runs), _) => runs,
            (None, Some(duration)) => [Run { first: 0, start: offset, duration, count: None }].into(),
            (None, None) => return refuse("without segments".to_owned(), "a SegmentTimeline or a duration"),
        };
        let Some(timescale) = timescale.or_else(|| Timescale::new(1)) else {
            return refuse("without a timescale".to_owned(), "at least one tick per second");
        };
        let is_short = |run: &&Run| run.count.is_none() && time_of(run.duration, timescale) < LEAST_SEGMENT;
        if let Some(short) = runs.last().filter(is_short) {
            return refuse(
                format!("with segments of {} ticks of {}", short.duration, timescale.get()),
                "at least 20 ms",
            );
        }
        let early = self.levels().into_iter().map(|level| level.early).sum::<Duration>() + early.unwrap_or_default();
        let bases = self.levels().into_iter().filter_map(|level| level.base.clone()).collect();
        let (representation, bandwidth) = (self.representation.id.clone(), self.representation.bandwidth);
        let first_number = first_number.unwrap_or(1);
        let track = Track {
            role,
            bases,
            timescale,
            offset,
            early,
            runs,
            representation,
            bandwidth,
            media,
            initialization,
            first_number,
        };
        for template in [&track.media, &track.initialization] {
            if let Err(why) = track.identifiers(u64::MAX, u64::MAX).uri(template) {
                return refuse(format!("with {why} in a template"), "identifiers of ISO/IEC 23009-1");
            }
        }
        Ok(track)
    }
}

/// Returns the length of ticks.
pub(super) fn time_of(ticks: u64, timescale: Timescale) -> Duration {
    let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(timescale.get());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Returns the ticks of a time, rounded up.
pub(super) fn ticks_of(time: Duration, timescale: Timescale) -> u64 {
    let ticks = (time.as_nanos() * u128::from(timescale.get())).div_ceil(1_000_000_000);
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// Chooses the tracks of a Period: the pictures with the greatest bandwidth of at most `most`, and sound in each language.
///
/// # Errors
/// The pictures can't be received, or nothing can.
pub(super) fn tracks(
    manifest: &LiveManifest,
    period: &PeriodElement,
    most: Option<u64>,
) -> Result<Vec<Track>, PackageError> {
    let mut sets: Vec<&SetElement> = period.sets.iter().collect();
    sets.sort_by_key(|set| set.is_alternate);
    let within = (manifest, period);
    let main: Vec<&SetElement> = sets.iter().copied().filter(|set| !set.is_alternate).collect();
    let pictures = TrackRole { is_pictures: true, language: None, place: 0 };
    let found = best(&candidates(within, &main, Kind::Pictures), most, &pictures);
    let found = found.or_else(|| best(&candidates(within, &sets, Kind::Pictures), most, &pictures)).transpose()?;
    let mut chosen: Vec<Track> = found.into_iter().collect();
    let most = most.filter(|_| chosen.is_empty());
    let (mut sounds, mut refusal): (Vec<Track>, _) = (Vec::new(), None);
    for set in &sets {
        let is_known = sounds.iter().any(|track| track.role.language == set.language);
        if is_known || sounds.len() == MOST_SOUNDS {
            continue;
        }
        let role = TrackRole { is_pictures: false, language: set.language.clone(), place: sounds.len() };
        match best(&candidates(within, &[*set], Kind::Sound), most, &role) {
            Some(Ok(track)) => sounds.push(track),
            Some(Err(error)) => refusal = refusal.or(Some(error)),
            None => {}
        }
    }
    chosen.append(&mut sounds);
    let nothing = || refused(1, "a Period without pictures and sound", "a Representation of video/mp4 or audio/mp4");
    if chosen.is_empty() { Err(refusal.unwrap_or_else(nothing)) } else { Ok(chosen) }
}

/// The Representations of some AdaptationSets with a kind of media.
fn candidates<'a>(
    (manifest, period): (&'a LiveManifest, &'a PeriodElement),
    sets: &[&'a SetElement],
    kind: Kind,
) -> Vec<Candidate<'a>> {
    let of_set = |set: &&'a SetElement| {
        let set = *set;
        set.representations.iter().map(move |representation| Candidate { manifest, period, set, representation })
    };
    sets.iter().flat_map(of_set).filter(|candidate| candidate.kind() == Some(kind)).collect()
}

/// Chooses the track with the greatest bandwidth of at most `most`, else the smallest one; `None` without candidates.
fn best(candidates: &[Candidate<'_>], most: Option<u64>, role: &TrackRole) -> Option<Result<Track, PackageError>> {
    let (mut fitting, mut refusal): (Vec<Track>, _) = (Vec::new(), None);
    for candidate in candidates {
        match candidate.track(role.clone()) {
            Ok(track) => fitting.push(track),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    // Of equal ones the first.
    let within = fitting.iter().rev().filter(|track| most.is_none_or(|most| track.bandwidth <= most));
    let greatest = within.max_by_key(|track| track.bandwidth);
    let chosen = greatest.or_else(|| fitting.iter().min_by_key(|track| track.bandwidth));
    chosen.cloned().map(Ok).or(refusal.map(Err))
}
