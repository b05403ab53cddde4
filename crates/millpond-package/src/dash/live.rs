//! The MPD of a live stream (ISO/IEC 23009-1 5.3.1.2, type `dynamic`), with low latency where the stream has parts.
//!
//! Each epoch is a Period. Its segments are addressed by their times in a `SegmentTimeline` (5.3.9.6): ffmpeg loses its
//! place at each update of an MPD with both a timeline and numbers. Those of earlier runs are addressed by numbers. With parts, the unfinished segment is listed too, with
//! the duration that is expected: its chunks can be fetched as they are made.

mod events;
mod ladder;

pub use ladder::ladder_mpd;

use super::{
    duration,
    sets::{Templates, sets, timeline},
};
use crate::{
    live::{Extent, Segment, SegmentNumber, TargetDuration, TrackSegment, Window, WindowEpoch, ticks},
    manifest::{captions::CaptionListing, track_listing::TrackListing},
    writing::xml::Writer,
};
use std::time::Duration;

/// Most bytes of an entry in a segment timeline.
const ENTRY: usize = 40;

/// Number of segments whose shortest duration is expected of the unfinished one.
const COMPARED: usize = 4;
/// Part of a duration that an unfinished segment may be shorter than those before it: drift is corrected by up to 500 ppm.
const MARGIN: i64 = 100;

/// The parameters of an MPD of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestView<'a> {
    /// Name of the stream's run in URIs.
    pub run: &'a str,
    /// URL of the server's time (`UTCTiming`, 5.8.4.11), relative to the MPD or absolute.
    pub clock: &'a str,
    /// Wall time of the MPD's last change, since the Unix epoch.
    pub published: Duration,
    /// Time for which the source has been away; zero while media arrive. The time shift buffer grows by it: dash.js can't go on where
    /// its position has left that buffer.
    pub away: Duration,
    /// The segments listed.
    pub extent: Extent,
}

/// Returns the MPD of a window; `None` until all tracks have a complete segment.
///
/// The presentation begins with the Unix epoch, and a Period is named by its wall time: both are to stay from one MPD to the next
/// (5.4.1), also where the server was started again.
#[must_use]
pub fn mpd(window: &Window, view: &ManifestView<'_>) -> Option<String> {
    if !window.is_ready() {
        return None;
    }
    let first = window.first_listed(view.extent)?;
    let periods: Vec<_> = window.epochs().filter_map(|epoch| Period::of(window, epoch, view, first)).collect();
    // A clip begins at 0.
    let origin = periods.first().filter(|_| view.extent.is_clip()).map_or(Duration::ZERO, Period::wall);
    let end = periods.last().and_then(Period::wall_end).filter(|_| view.extent.is_clip());
    let entries: usize = periods.iter().map(|period| period.segments.len()).sum();
    let mut w = Writer::new(2048 + periods.len() * 1024 + ENTRY * entries * window.tracks().len());
    match end {
        Some(end) => clip_head(&mut w, window, end.saturating_sub(origin)),
        None => head(&mut w, window, view),
    }
    for (index, period) in periods.iter().enumerate() {
        let next = periods.get(index + 1).map(Period::wall);
        period.write(&mut w, origin, next);
    }
    if end.is_none() {
        clock(&mut w, view);
    }
    Some(w.finish())
}

/// Starts the MPD element of a clip, which does not change (5.3.1.2).
fn clip_head(w: &mut Writer, window: &Window, lasts: Duration) {
    let target = window.targets().map_or(Duration::from_secs(1), |targets| targets.segment.duration());
    w.start("MPD")
        .attribute("xmlns", "urn:mpeg:dash:schema:mpd:2011")
        .attribute("profiles", "urn:mpeg:dash:profile:isoff-live:2011")
        .attribute("type", "static")
        .attribute("mediaPresentationDuration", &duration(micros(lasts)))
        .attribute("maxSegmentDuration", &duration(micros(target)))
        .attribute("minBufferTime", &duration(micros(target)));
}

/// Writes the server's clock.
fn clock(w: &mut Writer, view: &ManifestView<'_>) {
    w.start("UTCTiming")
        .attribute("schemeIdUri", "urn:mpeg:dash:utc:http-iso:2014")
        .attribute("value", view.clock)
        .end();
}

/// Returns the longest duration of parts; `None` without low latency. Players that rewind play without: dash.js would return to the
/// live edge by itself after a pause.
fn longest_part(window: &Window, extent: Extent) -> Option<Duration> {
    window.targets()?.longest_part().filter(|_| extent == Extent::Edge)
}

/// Returns the delay that players with low latency keep.
fn latency(part: Option<Duration>) -> Option<Duration> {
    // Three parts must be buffered. A chunk and a request take up to half a second more.
    part.map(|part| part.saturating_mul(3).saturating_add(Duration::from_millis(500)))
}

/// Starts the MPD element, and describes the service.
fn head(w: &mut Writer, window: &Window, view: &ManifestView<'_>) {
    let text = |wall| {
        let mut out = String::new();
        millpond_utc::push(&mut out, wall);
        out
    };
    let Some(targets) = window.targets() else { return };
    let (target, part) = (targets.segment.duration(), longest_part(window, view.extent));
    let update = if part.is_some() { Duration::from_secs(1) } else { target / 2 };
    // Shaka reads no ServiceDescription unless it is told to: this is its delay with parts too.
    let delay = latency(part).unwrap_or(target * 3);
    // Players need at least five segments.
    let depth = window.depth(view.extent, view.away).max(target * 5);
    w.start("MPD")
        .attribute("xmlns", "urn:mpeg:dash:schema:mpd:2011")
        .attribute("profiles", "urn:mpeg:dash:profile:isoff-live:2011")
        .attribute("type", "dynamic")
        .attribute("availabilityStartTime", &text(Duration::ZERO))
        .attribute("publishTime", &text(view.published))
        .attribute("minimumUpdatePeriod", &duration(micros(update)))
        .attribute("timeShiftBufferDepth", &duration(micros(depth)))
        .attribute("suggestedPresentationDelay", &duration(micros(delay)))
        .attribute("maxSegmentDuration", &duration(micros(target)))
        .attribute("minBufferTime", &duration(micros(part.unwrap_or(target))));
    let Some(latency) = latency(part) else { return };
    let latency = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
    w.start("ServiceDescription").attribute("id", "0");
    w.start("Latency")
        .number("target", latency)
        .number("min", latency / 2)
        .number("max", 3000 * u64::from(targets.segment.seconds()));
    w.end();
    w.start("PlaybackRate").attribute("min", "0.96").attribute("max", "1.04").end();
    w.end();
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// One epoch.
struct Period<'a> {
    window: &'a Window,
    epoch: &'a WindowEpoch,
    /// Stream time of its beginning.
    began: Duration,
    run: &'a str,
    /// Reference from the MPD to the stream.
    base: &'a str,
    segments: Vec<&'a Segment>,
    part: Option<Duration>,
    target: TargetDuration,
}

impl<'a> Period<'a> {
    /// Returns the Period of an epoch from segment `first` on; `None` where it has no segments.
    fn of(window: &'a Window, epoch: &'a WindowEpoch, view: &ManifestView<'a>, first: SegmentNumber) -> Option<Self> {
        let extent = view.extent;
        let is_listed = |segment: &&Segment| {
            segment.epoch == epoch.number && segment.number >= first && extent.reaches(segment.number)
        };
        let segments: Vec<_> = window.segments().filter(is_listed).collect();
        let (part, target) = (longest_part(window, extent), window.targets()?.segment);
        // Periods of a clip begin with what is listed of them.
        let listed = segments.first().map(|first| first.start)?;
        let began = if extent.is_clip() { listed } else { epoch.began? };
        Some(Self { window, epoch, began, run: view.run, base: "", segments, part, target })
    }

    /// Writes it. `origin` is the wall time at which the presentation begins, `next` the one at which another Period follows.
    fn write(&self, w: &mut Writer, origin: Duration, next: Option<Duration>) {
        w.start("Period").attribute("id", &micros(self.epoch.wall).to_string());
        w.attribute("start", &duration(micros(self.wall().saturating_sub(origin))));
        if let Some(end) = self.end().filter(|_| next.is_some()) {
            w.attribute("duration", &duration(micros(end.saturating_sub(self.began))));
        }
        self.events(w, next);
        let mut tracks = self.window.listings(self.epoch);
        // A timeline has a segment at least (5.3.9.6.2). Subtitles may have none yet.
        tracks.retain(|track| !self.window.is_text(track.place) || !self.times(track.place).is_empty());
        for (id, set) in (0..).zip(sets(&tracks, true)) {
            set.write(w, id, self);
        }
        w.end();
    }

    /// Writes its cues, up to the wall time at which another Period follows.
    fn events(&self, w: &mut Writer, next: Option<Duration>) {
        if let Some(first) = self.segments.first() {
            events::write(w, self.window, &(self.wall()..next.unwrap_or(Duration::MAX)), first.wall);
        }
    }

    /// Wall time of its beginning.
    fn wall(&self) -> Duration {
        self.epoch.wall_of(self.began)
    }

    /// Wall time of its end.
    fn wall_end(&self) -> Option<Duration> {
        self.end().map(|end| self.epoch.wall_of(end))
    }

    /// Stream time at which the last segment ends in all tracks.
    fn end(&self) -> Option<Duration> {
        let last = self.segments.last()?;
        let ends = self.window.tracks().iter().enumerate().filter_map(|(index, track)| {
            let of_track = last.track(index)?;
            Some(crate::live::time(of_track.start()?.saturating_add(of_track.duration()), track.timescale))
        });
        ends.max()
    }

    /// Returns start and duration of the track's segments. The unfinished segment is stated as almost as long as the shortest of
    /// the segments just before it. Some players skip the next segment if it begins before the stated end. FFmpeg does where a
    /// whole second lies between both.
    fn times(&self, track: usize) -> Vec<(i64, i64)> {
        let mut times: Vec<(i64, i64)> = Vec::with_capacity(self.segments.len());
        for of_track in self.segments.iter().filter_map(|segment| segment.track(track)) {
            match of_track.start().filter(|_| self.window.is_timed(of_track)) {
                Some(start) if of_track.is_closed() => times.push((start, of_track.duration())),
                Some(start) if self.part.is_some() => {
                    let before = times.iter().rev().take(COMPARED).map(|(_, duration)| *duration).min();
                    times.push((start, self.expected(track, of_track, before)));
                }
                _ => break,
            }
        }
        times
    }

    fn expected(&self, track: usize, of_track: &TrackSegment, before: Option<i64>) -> i64 {
        let Some(timescale) = self.window.tracks().get(track).map(|track| track.timescale) else { return 0 };
        let second = ticks(Duration::from_secs(1), timescale);
        // FFmpeg loads a segment again where a second does not fit into it.
        let shorter = |shortest: i64| (shortest - shortest / MARGIN).max(shortest.min(second));
        let target = || ticks(self.target.duration(), timescale);
        before.map_or_else(target, shorter).max(of_track.duration())
    }
}

impl Templates for Period<'_> {
    fn base(&self) -> &str {
        ""
    }

    fn same_times(&self, _: &TrackListing<'_>, _: &TrackListing<'_>) -> bool {
        false
    }

    fn captions(&self, tracks: &[TrackListing<'_>]) -> CaptionListing<'_> {
        CaptionListing::of(self.window.caption_rule(), tracks)
    }

    /// Writes the template of a track (5.3.9.4).
    fn template(&self, w: &mut Writer, track: &TrackListing<'_>) {
        let Some(of_track) = self.window.tracks().get(track.place) else { return };
        let (scale, run) = (of_track.timescale, self.run);
        let offset = u64::try_from(ticks(self.began, scale)).unwrap_or(0);
        w.start("SegmentTemplate").number("timescale", scale.get().into()).number("presentationTimeOffset", offset);
        // IDs of a ladder's representations are no names of tracks.
        let name = if self.base.is_empty() { "$RepresentationID$" } else { &of_track.name };
        let media = format!("{}~{run}/{name}/", self.base);
        w.attribute("initialization", &format!("{media}init-{}.mp4", self.epoch.number));
        match self.segments.first().filter(|first| !self.window.is_own(first)) {
            // Segments of other runs can have equal times. Their timelines never grow.
            Some(first) => {
                w.attribute("media", &format!("{media}$Number$.m4s")).number("startNumber", first.number.0);
            }
            None => {
                w.attribute("media", &format!("{media}t$Time$.m4s"));
            }
        }
        let times = self.times(track.place);
        let part = self.part.filter(|_| !self.window.is_text(track.place));
        if let (Some(part), Some((_, last))) = (part, times.last()) {
            // Chunks can be fetched when they are complete, not when their segment is (5.3.9.5.3).
            let early = crate::live::time(*last, scale).saturating_sub(part);
            w.attribute("availabilityTimeOffset", &format!("{:.3}", early.as_secs_f64()));
            w.attribute("availabilityTimeComplete", "false");
        }
        timeline(w, times.into_iter());
        w.end();
    }
}

#[cfg(test)]
mod tests;
