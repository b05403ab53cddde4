//! Media playlists of live streams, with low latency where the stream has parts (RFC 8216 and rfc8216bis).
//!
//! A playlist has a stable address, `v1/index.m3u8`. All its addresses are below the run of the stream, `~RUN/v1/`, so a restart
//! never reuses an address. Segments are `12.m4s`, parts `12.3.m4s`, and the init segment of an epoch is `init-EPOCH.mp4`.
//! Playlists of transport streams list only complete segments, `12.ts`, and so do those of subtitles, `12.vtt`.

use super::{Container, date_ranges};
use crate::{
    live::{Edge, Extent, Part, Segment, SegmentNumber, Targets, TrackSegment, Window, WindowTrack, time},
    presentation::track::MediaKind,
    writing::digits,
};
use millpond_media::units::Timescale;
use std::time::Duration;

/// Target durations before the end of a playlist within which parts are listed (rfc8216bis 6.2.2).
const WITH_PARTS: u64 = 3;
/// Target durations before the end of a playlist behind which a delta update skips segments; at least six
/// (rfc8216bis 4.4.3.8).
const SKIP_UNTIL: u64 = 6;
/// Most bytes of a segment's entry, without parts.
const ENTRY: usize = 128;

/// The parameters of a media playlist of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaylistView<'a> {
    /// Name of the stream's run in URIs.
    pub run: &'a str,
    /// Format of the segments.
    pub container: Container,
    /// Whether segments before the skip boundary are left out (`_HLS_skip`).
    pub skip: bool,
    /// The segments listed.
    pub extent: Extent,
    /// Query of playlists with the same extent, with its `?`.
    pub query: &'a str,
}

/// Returns the media playlist of a track; `None` for unknown tracks, for tracks without segments of their own, and until the
/// track has a complete segment.
#[must_use]
pub fn media(window: &Window, track: usize, view: &PlaylistView<'_>) -> Option<String> {
    let playlist = Playlist::of(window, track, view)?;
    let mut out = String::with_capacity(1024 + playlist.listed.len() * ENTRY);
    let is_fmp4 = playlist.form == Form::Fmp4;
    let skipped = if view.skip && is_fmp4 { playlist.skipped() } else { 0 };
    playlist.head(&mut out, skipped);
    playlist.events(&mut out);
    playlist.segments(&mut out, skipped);
    if view.extent.is_clip() {
        out.push_str("#EXT-X-ENDLIST\n");
    } else if is_fmp4 {
        playlist.hint(&mut out);
        playlist.reports(&mut out);
    }
    Some(out)
}

/// Appends the report of a rendition in another stream (rfc8216bis 4.4.5.4) to a media playlist: the address of its playlist, and
/// its newest position. Nothing is reported before it has a part, or a segment where the stream has no parts.
pub fn push_report(out: &mut String, uri: &str, window: &Window, track: usize) {
    let has_parts = window.targets().is_some_and(|targets| targets.parts.is_some());
    let closed = || window.last_closed(track).map(|segment| Edge { segment, part: 0 });
    let Some(edge) = (if has_parts { window.edge(track) } else { closed() }) else { return };
    out.push_str("#EXT-X-RENDITION-REPORT:URI=\"");
    out.push_str(uri);
    out.push_str("\",LAST-MSN=");
    digits::push(out, edge.segment.0);
    if has_parts {
        out.push_str(",LAST-PART=");
        digits::push(out, edge.part.into());
    }
    out.push('\n');
}

/// Form of the segments of a playlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Fmp4,
    Ts,
    WebVtt,
}

/// A playlist while it is written.
struct Playlist<'a> {
    window: &'a Window,
    targets: &'a Targets,
    track: usize,
    name: &'a str,
    scale: Timescale,
    view: &'a PlaylistView<'a>,
    /// Whether parts are listed.
    has_parts: bool,
    /// Form of the segments.
    form: Form,
    /// Complete segments, and the unfinished one where it has parts, each with the microseconds from its end to the
    /// playlist's end.
    listed: Vec<(&'a Segment, &'a TrackSegment, u64)>,
}

impl<'a> Playlist<'a> {
    fn of(window: &'a Window, track: usize, view: &'a PlaylistView<'a>) -> Option<Self> {
        let WindowTrack { name, timescale: scale, .. } = window.tracks().get(track)?;
        let scale = *scale;
        let form = match view.container {
            _ if window.is_text(track) => Form::WebVtt,
            Container::Fmp4 => Form::Fmp4,
            Container::Ts => Form::Ts,
        };
        let (targets, mut first) = (window.targets()?, window.first_listed_with_sound(view.extent)?);
        if view.container == Container::Ts {
            // Transport streams are made of parts in memory.
            first = first.max(window.with_parts().next()?.number);
        }
        let last = if form == Form::Ts { window.last_transport(track) } else { window.last_closed(track) };
        let last = last.filter(|last| *last >= first)?;
        let has_parts = form == Form::Fmp4 && targets.parts.is_some() && !view.extent.is_clip();
        let end = if form == Form::Fmp4 { last.next() } else { last };
        let is_listed = |segment: &&Segment| {
            segment.number >= first && segment.number <= end && view.extent.reaches(segment.number)
        };
        let mut listed: Vec<_> = window
            .segments()
            .filter(is_listed)
            .filter_map(|segment| Some((segment, segment.track(track)?, 0)))
            .filter(|(_, of_track, _)| of_track.is_closed() || (has_parts && !of_track.parts().is_empty()))
            .collect();
        let mut behind = 0_u64;
        for (_, of_track, to_end) in listed.iter_mut().rev() {
            *to_end = behind;
            behind = behind.saturating_add(digits::micros(of_track.duration(), scale.get()));
        }
        Some(Self { window, targets, track, name, scale, view, has_parts, form, listed })
    }

    fn target_micros(&self, targets: u64) -> u64 {
        u64::from(self.targets.segment.seconds()) * targets * 1_000_000
    }

    /// Number of segments that a delta update leaves out: those that end before the skip boundary.
    fn skipped(&self) -> usize {
        let boundary = self.target_micros(SKIP_UNTIL);
        self.listed.iter().take_while(|(_, _, to_end)| *to_end >= boundary).count()
    }

    fn head(&self, out: &mut String, skipped: usize) {
        out.push_str("#EXTM3U\n#EXT-X-VERSION:");
        digits::push(out, if self.form == Form::Fmp4 { 9 } else { 4 });
        out.push_str("\n#EXT-X-TARGETDURATION:");
        digits::push(out, self.targets.segment.seconds().into());
        if self.view.extent.is_clip() {
            out.push_str("\n#EXT-X-PLAYLIST-TYPE:VOD");
        } else if self.view.container == Container::Fmp4 {
            self.control(out);
        }
        if let Some((first, ..)) = self.listed.first() {
            out.push_str("\n#EXT-X-MEDIA-SEQUENCE:");
            digits::push(out, first.number.0);
            out.push_str("\n#EXT-X-DISCONTINUITY-SEQUENCE:");
            digits::push(out, first.discontinuity);
        }
        out.push('\n');
        if self.is_independent() {
            out.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
        }
        if skipped > 0 {
            out.push_str("#EXT-X-SKIP:SKIPPED-SEGMENTS=");
            digits::push(out, skipped as u64);
            out.push('\n');
        }
    }

    /// Writes what a live playlist says about reloads and parts.
    fn control(&self, out: &mut String) {
        out.push_str("\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES");
        if self.form == Form::WebVtt {
            return;
        }
        out.push_str(",CAN-SKIP-UNTIL=");
        digits::push(out, u64::from(self.targets.segment.seconds()) * SKIP_UNTIL);
        // Equal in all playlists of a stream: three times the longest part target (rfc8216bis 4.4.3.8).
        if let Some(longest) = self.targets.longest_part() {
            out.push_str(".0,PART-HOLD-BACK=");
            push_seconds(out, longest.saturating_mul(3));
        } else {
            out.push_str(".0");
        }
        if let Some(part) = self.targets.parts.as_ref().and_then(|parts| parts.get(self.track)) {
            out.push_str("\n#EXT-X-PART-INF:PART-TARGET=");
            push_seconds(out, *part);
        }
    }

    /// Whether each listed segment can be decoded without others.
    fn is_independent(&self) -> bool {
        let is_video = self.window.tracks().get(self.track).is_some_and(|track| track.kind == MediaKind::Video);
        !is_video || self.listed.iter().all(|(segment, ..)| segment.is_independent)
    }

    fn segments(&self, out: &mut String, skipped: usize) {
        let mut previous = skipped.checked_sub(1).and_then(|last| self.listed.get(last)).map(|(segment, ..)| *segment);
        let mut map = None;
        for (segment, of_track, to_end) in self.listed.iter().skip(skipped) {
            if previous.is_some_and(|previous| previous.discontinuity != segment.discontinuity) {
                out.push_str("#EXT-X-DISCONTINUITY\n");
            }
            if self.form == Form::Fmp4 && map.replace(segment.epoch) != Some(segment.epoch) {
                self.map(out, segment.epoch);
            }
            previous = Some(segment);
            self.date(out, segment, of_track);
            if self.has_parts && *to_end < self.target_micros(WITH_PARTS) {
                self.parts(out, segment, of_track);
            }
            if of_track.is_closed() {
                self.entry(out, segment, of_track);
            }
        }
    }

    /// Writes the events of the listed time. Delta updates have them too: no playlist says that it skips them.
    fn events(&self, out: &mut String) {
        let Some((first, ..)) = self.listed.first() else { return };
        let end = self.listed.last().filter(|_| self.view.extent.is_clip()).map(|(last, of_track, _)| {
            last.wall + Duration::from_micros(digits::micros(of_track.duration(), self.scale.get()))
        });
        for range in self.window.cues_since(first.wall) {
            if end.is_none_or(|end| range.begin.wall < end) {
                date_ranges::push(out, range);
            }
        }
    }

    fn entry(&self, out: &mut String, segment: &Segment, of_track: &TrackSegment) {
        if of_track.is_gap() || (self.form == Form::Ts && !self.window.has_transport(segment, self.track)) {
            out.push_str("#EXT-X-GAP\n");
        }
        out.push_str("#EXTINF:");
        digits::push_micros(out, self.segment_micros(of_track));
        out.push_str(",\n");
        self.address(out, self.name);
        digits::push(out, segment.number.0);
        out.push_str(match self.form {
            Form::Fmp4 => ".m4s\n",
            Form::Ts => ".ts\n",
            Form::WebVtt => ".vtt\n",
        });
    }

    /// Returns the stated duration of a segment: of sound, rounded up to the next microsecond.
    ///
    /// hls.js up to 1.7 subtracts these durations from the time of a segment that it has, which gives the beginning of the list. Where
    /// sound seems to begin after the pictures, even by its rounding, a seek to the first picture never ends.
    fn segment_micros(&self, of_track: &TrackSegment) -> u64 {
        let is_audio = self.window.tracks().get(self.track).is_some_and(|track| track.kind == MediaKind::Audio);
        let exact = digits::micros(of_track.duration(), self.scale.get());
        if is_audio { micros_above(of_track.duration(), self.scale) } else { exact }
    }

    /// Writes the path of a track's media before their names.
    fn address(&self, out: &mut String, name: &str) {
        out.push_str("../~");
        out.push_str(self.view.run);
        out.push('/');
        out.push_str(name);
        out.push('/');
    }

    fn map(&self, out: &mut String, epoch: u32) {
        out.push_str("#EXT-X-MAP:URI=\"");
        self.address(out, self.name);
        out.push_str("init-");
        digits::push(out, epoch.into());
        out.push_str(".mp4\"\n");
    }

    fn date(&self, out: &mut String, segment: &Segment, of_track: &TrackSegment) {
        let start = of_track.start().map_or(segment.start, |start| time(start, self.scale));
        if let Some(epoch) = self.window.epoch(segment.epoch).filter(|epoch| !epoch.wall.is_zero()) {
            out.push_str("#EXT-X-PROGRAM-DATE-TIME:");
            millpond_utc::push(out, epoch.wall_of(start));
            out.push('\n');
        }
    }

    fn parts(&self, out: &mut String, segment: &Segment, of_track: &TrackSegment) {
        for part in of_track.parts() {
            out.push_str("#EXT-X-PART:DURATION=");
            digits::push_micros(out, self.part_micros(part));
            out.push_str(",URI=\"");
            self.part_address(out, Edge { segment: segment.number, part: part.index });
            out.push_str(if part.is_independent { "\",INDEPENDENT=YES\n" } else { "\"\n" });
        }
    }

    /// Returns the stated duration of a part: the exact one, rounded up to the next microsecond, but at most the part target.
    ///
    /// Shaka Player up to 5.2 adds these durations up, and resets its decoder pipeline where the sum moves back against the timestamps
    /// of the media. It then drops pictures up to the next key frame. Exact durations would let the rounding of its sums decide.
    fn part_micros(&self, part: &Part) -> u64 {
        let above = micros_above(part.duration, self.scale);
        let target = self.targets.parts.as_ref().and_then(|parts| parts.get(self.track));
        above.min(target.map_or(u64::MAX, |target| u64::try_from(target.as_micros()).unwrap_or(u64::MAX)))
    }

    fn part_address(&self, out: &mut String, place: Edge) {
        let SegmentNumber(segment) = place.segment;
        self.address(out, self.name);
        digits::push(out, segment);
        out.push('.');
        digits::push(out, place.part.into());
        out.push_str(".m4s");
    }

    /// Hints at the next part (rfc8216bis 4.4.5.3).
    fn hint(&self, out: &mut String) {
        if let Some(place) = self.window.hint(self.track).filter(|_| self.has_parts) {
            out.push_str("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"");
            self.part_address(out, place);
            out.push_str("\"\n");
        }
    }

    /// Reports how far the other tracks are (rfc8216bis 4.4.5.4).
    fn reports(&self, out: &mut String) {
        let is_other = |index: usize| index != self.track && !self.window.is_text(index);
        for (index, track) in self.window.tracks().iter().enumerate().filter(|(index, _)| is_other(*index)) {
            let uri = format!("../{}/index.m3u8{}", track.name, self.view.query);
            push_report(out, &uri, self.window, index);
        }
    }
}

/// Returns the next microsecond after a duration.
fn micros_above(ticks: i64, scale: Timescale) -> u64 {
    u64::try_from(ticks).unwrap_or(0).saturating_mul(1_000_000) / u64::from(scale.get()) + 1
}

/// Appends a duration in seconds with milliseconds.
pub(super) fn push_seconds(out: &mut String, duration: Duration) {
    digits::push(out, duration.as_secs());
    out.push('.');
    for place in [100, 10, 1] {
        digits::push(out, u64::from(duration.subsec_millis() / place % 10));
    }
}

#[cfg(test)]
mod tests;
