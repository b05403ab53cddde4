//! The presentation of a live DASH source: Periods and tracks, merged from each version of its manifest.

use super::{
    LiveManifest, PeriodElement,
    choice::{Track, TrackRole, ticks_of, time_of, tracks},
    runs::{Bounds, last},
};
use crate::PackageError;
use std::{sync::Arc, time::Duration};

/// Durations of segments behind the live edge at which playback begins, where the manifest does not tell.
const DELAY: u32 = 3;
/// Bounds of the duration by which requests are paced.
const STEP: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(600));
/// Shortest time between two requests for the manifest.
const LEAST_WAIT: Duration = Duration::from_millis(100);
/// Greatest difference of two beginnings of one presentation.
const SAME: Duration = Duration::from_secs(1);
/// Durations of segments without a new one after which a manifest stands still, and the least such time.
const STILL: (u32, Duration) = (3, Duration::from_secs(6));

/// The presentation of a source, as the versions of its manifest have described it. Times count from the Unix epoch on the clock of the source, unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct Presentation {
    most_bandwidth: Option<u64>,
    /// Beginning of the presentation.
    pub(super) begins: Duration,
    has_ended: bool,
    update: Option<Duration>,
    pub(super) depth: Option<Duration>,
    delay: Option<Duration>,
    buffer: Duration,
    pub(super) periods: Vec<Period>,
    /// Number of the next new stretch, and the first one of the present presentation.
    next_stretch: u64,
    pub(super) first_stretch: u64,
    /// Presentation time at which playback of the present presentation begins.
    pub(super) start: Duration,
    /// Time of the last request for the manifest.
    asked: Duration,
    has_news: bool,
    /// Time of the last news, and what was known then.
    news: Duration,
    extent: (u64, u64),
}

/// A Period, with times since the beginning of the presentation.
#[derive(Clone, Debug)]
pub(super) struct Period {
    id: Option<Arc<str>>,
    /// Number of its stretch. Times of different stretches have nothing to do with each other.
    pub(super) stretch: u64,
    pub(super) start: Duration,
    pub(super) end: Option<Duration>,
    tracks: Vec<Track>,
}

/// Relation of a manifest that was read to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Its segments follow those before.
    Follows,
    /// It is of another presentation.
    Anew,
}

impl Presentation {
    /// Creates the presentation of a source whose pictures have at most `most_bandwidth` bits per second, if there are such.
    #[must_use]
    pub fn new(most_bandwidth: Option<u64>) -> Self {
        Self { most_bandwidth, ..Self::default() }
    }

    /// Takes a reading of the manifest, which was requested at `asked`.
    ///
    /// # Errors
    /// Nothing in it can be received. The presentation stays as it was.
    pub fn take(&mut self, manifest: &LiveManifest, asked: Duration, now: Duration) -> Result<Turn, PackageError> {
        let found = periods(manifest, self.most_bandwidth)?;
        let begins = manifest.begins.filter(|_| manifest.is_dynamic).unwrap_or(self.begins);
        let is_first = self.periods.is_empty();
        let is_same = begins.abs_diff(self.begins) <= SAME;
        let known: Vec<Option<u64>> = found.iter().map(|period| self.stretch_of(period).filter(|_| is_same)).collect();
        let is_later =
            matches!((self.periods.last(), found.first()), (Some(last), Some(first)) if first.start > last.start);
        let is_another = !is_same || !in_order(&known) || (known.iter().all(Option::is_none) && !is_later);
        if is_another {
            self.first_stretch = self.next_stretch;
        }
        self.periods = Vec::with_capacity(found.len());
        for (period, known) in found.into_iter().zip(known) {
            let stretch = known.filter(|_| !is_another).unwrap_or(self.next_stretch);
            self.next_stretch = self.next_stretch.max(stretch.saturating_add(1));
            self.periods.push(Period { stretch, ..period });
        }
        self.begins = begins;
        self.has_ended = !manifest.is_dynamic;
        let LiveManifest { update, depth, delay, buffer, .. } = *manifest;
        (self.update, self.depth, self.delay, self.buffer) = (update, depth, delay, buffer);
        self.asked = asked;
        let extent = self.known_extent();
        self.has_news = self.extent != extent || is_another;
        if self.has_news {
            (self.extent, self.news) = (extent, now);
        }
        if is_another {
            self.start = self.live_point(now);
        }
        Ok(if is_another && !is_first { Turn::Anew } else { Turn::Follows })
    }

    /// The stretch of a Period that was known before.
    fn stretch_of(&self, period: &Period) -> Option<u64> {
        let is_same = |known: &&Period| (known.id.is_some() && known.id == period.id) || known.start == period.start;
        self.periods.iter().find(is_same).map(|known| known.stretch)
    }

    /// Returns what its tracks are; the first one leads.
    #[must_use]
    pub fn roles(&self) -> Vec<TrackRole> {
        self.leading()
            .map_or_else(Vec::new, |(period, _)| period.tracks.iter().map(|track| track.role.clone()).collect())
    }

    /// The first track of the last Period that has tracks.
    fn leading(&self) -> Option<(&Period, &Track)> {
        self.periods.iter().rev().find_map(|period| Some((period, period.tracks.first()?)))
    }

    /// Returns the typical duration of segments.
    #[must_use]
    pub fn segment_duration(&self) -> Duration {
        let run = self.leading().and_then(|(_, track)| Some((track.runs.last()?.duration, track.timescale)));
        let step = run.map_or(STEP.0, |(ticks, timescale)| time_of(ticks, timescale));
        step.clamp(STEP.0, STEP.1)
    }

    /// Distance from the live edge at which playback begins.
    pub(super) fn hold_back(&self) -> Duration {
        self.delay.unwrap_or_else(|| self.segment_duration().saturating_mul(DELAY)).max(self.buffer)
    }

    /// Presentation time at which playback begins.
    pub(super) fn live_point(&self, now: Duration) -> Duration {
        let role = self.leading().map(|(_, track)| track.role.clone());
        let edge = role.and_then(|role| self.edge(&role, now)).unwrap_or_default();
        let back = self.hold_back();
        edge.saturating_sub(self.depth.map_or(back, |depth| back.min(depth)))
    }

    /// End of the last segment of a track that exists, as presentation time.
    pub(super) fn edge(&self, role: &TrackRole, now: Duration) -> Option<Duration> {
        self.periods.iter().rev().find_map(|period| {
            let track = period.track(role)?;
            let segment = last(&track.runs, self.bounds(period, track, now, track.early))?;
            Some(period.presented(track, segment.time.saturating_add(segment.duration)))
        })
    }

    /// Bounds of the segments of a track, in media time.
    pub(super) fn bounds(&self, period: &Period, track: &Track, now: Duration, early: Duration) -> Bounds {
        let media = |time: Duration| period.media(track, time);
        let end = period.end.map(media);
        let present = now.saturating_add(early).saturating_sub(self.begins);
        let available = if self.has_ended { end.unwrap_or(0) } else { media(present) };
        Bounds { available, end }
    }

    /// Stretch and end of what is listed. With segments that time adds, it does not matter.
    fn known_extent(&self) -> (u64, u64) {
        let Some((period, track)) = self.leading() else { return (0, 0) };
        let listed = track
            .runs
            .last()
            .map_or(0, |run| run.start.saturating_add(run.count.unwrap_or(0).saturating_mul(run.duration)));
        (period.stretch.saturating_add(1), listed)
    }

    /// Whether only readings of the manifest tell of new segments.
    fn is_listed(&self) -> bool {
        self.leading().is_some_and(|(_, track)| track.runs.last().is_none_or(|run| run.count.is_some()))
    }

    /// Returns when the manifest is to be requested again; `None` where it does not change. `is_wanted` tells that segments were missing.
    #[must_use]
    pub fn reload(&self, is_wanted: bool) -> Option<Duration> {
        if self.periods.is_empty() {
            return Some(Duration::ZERO);
        }
        let step = self.segment_duration();
        let by_segments = if self.has_news { step } else { step / 2 };
        let stated = self.update.map(|update| if update.is_zero() { by_segments } else { update });
        let wait = match (stated, is_wanted) {
            (Some(wait), false) => wait,
            (None, false) if self.is_listed() => by_segments,
            (None, false) => return None,
            (stated, true) => stated.unwrap_or(step).min(step),
        };
        Some(self.asked.saturating_add(wait.max(LEAST_WAIT)))
    }

    /// Returns the time for which the manifest has had no news, where it stands still.
    #[must_use]
    pub fn stands_still(&self, now: Duration) -> Option<Duration> {
        let still = now.saturating_sub(self.news);
        let least = self
            .segment_duration()
            .saturating_mul(STILL.0)
            .max(STILL.1)
            .saturating_add(self.update.unwrap_or_default());
        (self.is_listed() && !self.has_ended && still > least).then_some(still)
    }

    /// Returns whether no segment follows those that are known.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }
}

impl Period {
    /// The track with a role, else one of the same kind in the same place.
    pub(super) fn track(&self, role: &TrackRole) -> Option<&Track> {
        let kind = || self.tracks.iter().filter(|track| track.role.is_pictures == role.is_pictures);
        let by_language = kind().find(|track| track.role.language == role.language);
        by_language.or_else(|| kind().find(|track| track.role.place == role.place))
    }

    /// Media time of a presentation time.
    pub(super) fn media(&self, track: &Track, time: Duration) -> u64 {
        ticks_of(time.saturating_sub(self.start), track.timescale).saturating_add(track.offset)
    }

    /// Presentation time of a media time.
    pub(super) fn presented(&self, track: &Track, media: u64) -> Duration {
        let time = time_of(media, track.timescale).saturating_sub(time_of(track.offset, track.timescale));
        self.start.saturating_add(time)
    }
}

/// Whether Periods that are known come first, in their order.
fn in_order(stretches: &[Option<u64>]) -> bool {
    stretches.is_sorted_by(|one, other| match (one, other) {
        (Some(one), Some(other)) => one < other,
        (None, Some(_)) => false,
        (_, None) => true,
    })
}

/// The Periods of a manifest whose beginnings are known (ISO/IEC 23009-1 5.3.2.1).
fn periods(manifest: &LiveManifest, most: Option<u64>) -> Result<Vec<Period>, PackageError> {
    let mut found: Vec<(Duration, Option<Duration>, &PeriodElement)> = Vec::new();
    for element in &manifest.periods {
        let before = found.last().copied();
        let by_length = || match before {
            Some((start, _, before)) => before.duration.map(|length| start.saturating_add(length)),
            None => Some(Duration::ZERO),
        };
        let Some(start) = element.start.or_else(by_length) else { continue };
        if before.is_some_and(|(before, ..)| start < before) {
            continue;
        }
        if let Some((_, end, _)) = found.last_mut() {
            *end = Some(end.map_or(start, |end| end.min(start)));
        }
        let end = element.duration.map(|length| start.saturating_add(length)).or(manifest.length);
        found.push((start, end, element));
    }
    let mut refusal = None;
    let period = |(start, end, element): (Duration, Option<Duration>, &PeriodElement)| {
        let tracks = match tracks(manifest, element, most) {
            Ok(tracks) => tracks,
            Err(error) => {
                refusal.get_or_insert(error);
                Vec::new()
            }
        };
        Period { id: element.id.clone(), stretch: 0, start, end, tracks }
    };
    let all: Vec<Period> = found.into_iter().map(period).collect();
    if all.iter().all(|period| period.tracks.is_empty()) {
        return Err(refusal.unwrap_or_else(|| super::refused(1, "no Period with a beginning", "at least one")));
    }
    Ok(all)
}
