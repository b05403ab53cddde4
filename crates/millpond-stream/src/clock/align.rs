//! Places of tracks beside each other.

use super::{ORIGIN, SECOND, timeline::Timeline, track::TrackTimes};

/// Greatest distance between a track's place by `RTP-Info` and by arrival.
const STARTS_AGREE: i64 = SECOND;
/// The same by sender reports.
const REPORTS_AGREE: i64 = 5 * SECOND;
/// The same by a shared clock: fragments of whole tracks arrive one after the other.
const SHARED_AGREES: i64 = 30 * SECOND;

impl Timeline {
    /// Source time of a track's first frame, by the best that is known: a shared clock, `RTP-Info`, sender reports, arrival.
    pub(super) fn first_source(&self, track: usize, media: i64, arrival: i64) -> i64 {
        let Some(known) = self.reference else { return ORIGIN };
        let by_arrival = known.source.saturating_add(arrival.saturating_sub(known.arrival));
        let agrees = |source: &i64, within: i64| source.saturating_sub(by_arrival).saturating_abs() <= within;
        let times = &self.tracks[track];
        let shared = if times.has_jumped() { SECOND } else { SHARED_AGREES };
        self.by_shared_clock(track, media)
            .filter(|source| agrees(source, shared))
            .or_else(|| self.by_start(times, media).filter(|source| agrees(source, STARTS_AGREE)))
            .or_else(|| self.by_reports(track, media).filter(|source| agrees(source, REPORTS_AGREE)))
            .unwrap_or_else(|| {
                // Arrivals are no better than the end of what the track has given.
                let missing = times.floor.saturating_sub(self.stream_time(times, by_arrival));
                by_arrival.saturating_add(missing.max(0))
            })
    }

    /// Corrects the places of tracks by what sender reports tell. `reported` is the track of the last report.
    pub(super) fn approach(&mut self, reported: usize) {
        for track in 0..self.tracks.len() {
            if self.shares_clock || track == self.lead || (reported != self.lead && reported != track) {
                continue;
            }
            let lead = self.tracks.get(self.lead).filter(|lead| lead.offset().is_some());
            let confirmed = |times: &TrackTimes| times.reports.are_confirmed();
            if !lead.is_some_and(confirmed) || !confirmed(&self.tracks[track]) {
                continue;
            }
            let Some(offset) = self.tracks[track].offset() else { continue };
            let deviation = self.by_reports(track, 0).map(|told| told.saturating_sub(offset));
            if let Some(deviation) = deviation.filter(|deviation| deviation.saturating_abs() <= REPORTS_AGREE) {
                self.tracks[track].approach(deviation);
            }
        }
    }

    /// Another track that others are aligned with: the leading one where it has a place.
    fn other(&self, track: usize) -> Option<&TrackTimes> {
        let has_place = |times: &&TrackTimes| times.offset().is_some();
        let lead = self.tracks.get(self.lead).filter(has_place).filter(|_| track != self.lead);
        lead.or_else(|| {
            self.tracks.iter().enumerate().filter(|(other, _)| *other != track).map(|(_, times)| times).find(has_place)
        })
    }

    fn by_shared_clock(&self, track: usize, media: i64) -> Option<i64> {
        self.other(track).filter(|_| self.shares_clock)?.source(media)
    }

    fn by_start(&self, times: &TrackTimes, media: i64) -> Option<i64> {
        let has_start = |other: &&TrackTimes| other.offset().is_some() && other.start.is_some();
        let other = self.tracks.iter().find(has_start)?;
        Some(other.source(other.start?)?.saturating_add(media.saturating_sub(times.start?)))
    }

    /// Source time of a media time: both tracks are compared at a moment before both of their last reports.
    fn by_reports(&self, track: usize, media: i64) -> Option<i64> {
        let (other, times) = (self.other(track)?, &self.tracks[track]);
        let moment = other.reports.last()?.clock.min(times.reports.last()?.clock);
        let there = other.source(other.reports.media_at(moment)?)?;
        Some(there.saturating_add(media.saturating_sub(times.reports.media_at(moment)?)))
    }
}
