//! Playlists and manifests of a title: all of its segments at once, with nominal times.

use super::{grid::Grid, measured::TitleTracks};
use crate::{
    Format,
    live::{LiveText, live_formats, packaged},
};
use bytes::Bytes;
use millpond_package::{
    MediaKind,
    dash::live::{ManifestView, mpd},
    fmp4::clip_init,
    hls::{
        Container,
        live::{PlaylistView, media},
        live_multivariant,
    },
    live::{
        Extent, PastSegment, PastTrack, SegmentNumber, TargetDuration, Window, WindowEpoch, WindowLimits, WindowTrack,
    },
};
use std::time::Duration;

/// Number of the epoch in names of init segments.
pub(super) const EPOCH: u32 = 0;

/// Playlists, manifests and init segments of a title. Segments count from 1 in URLs.
///
/// It keeps no list of segments: a day of them takes megabytes, and many titles are known. Each text is made from the grid.
#[derive(Debug)]
pub struct TitleListing {
    grid: Grid,
    tracks: Vec<ListedTrack>,
    epoch: WindowEpoch,
    long_init: Bytes,
}

/// A track of a listing.
#[derive(Debug)]
struct ListedTrack {
    track: WindowTrack,
    /// Bytes a second.
    rate: f64,
}

impl TitleListing {
    /// Creates the listing of a title's tracks.
    pub(super) fn new(known: &[Option<Format>], media: &TitleTracks, grid: Grid) -> Self {
        let TitleTracks { reorderings, rates, .. } = media;
        let tracks = packaged((0..).zip(known.iter().flatten()));
        let mut live = live_formats(&tracks, known);
        for ((id, format), reordering) in (1..).zip(live.iter_mut().flatten()).zip(reorderings) {
            (format.id, format.early) = (id, reordering.early());
        }
        let headers: Vec<_> = live.iter().flatten().map(|format| format.header()).collect();
        let long_init = clip_init(&headers, grid.length);
        let listed = tracks.iter().map(|track| track.of_window()).zip(rates);
        let tracks = listed.map(|(track, rate)| ListedTrack { track, rate: *rate }).collect();
        let epoch = WindowEpoch::new(EPOCH, Duration::ZERO, Duration::ZERO, live);
        Self { grid, tracks, epoch, long_init }
    }

    /// Returns all segments, for one text.
    fn window(&self) -> Window {
        let (grid, count) = (self.grid, self.grid.count());
        let limits = WindowLimits {
            segments: usize::try_from(count).unwrap_or(usize::MAX),
            bytes: u64::MAX,
            age: Duration::MAX,
            listed: Duration::MAX,
        };
        let tracks = self.tracks.iter().map(|listed| listed.track.clone()).collect();
        let mut window = Window::new(limits, tracks, 0);
        window.restore(vec![self.epoch.clone()], (0..count).map(|number| self.segment(number)).collect());
        let longest = (0..count).map(|number| grid.duration(number)).max().unwrap_or_default();
        window.end(TargetDuration::new(u32::try_from(longest.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)));
        window
    }

    /// Returns a segment, from 0.
    fn segment(&self, number: u64) -> PastSegment {
        let (start, duration) = (self.grid.start(number), self.grid.duration(number));
        PastSegment {
            number: SegmentNumber(number + 1),
            epoch: EPOCH,
            discontinuity: 0,
            start,
            wall: start,
            is_independent: false,
            tracks: self.tracks.iter().map(|listed| listed.part(start, duration)).collect(),
        }
    }

    /// Returns the segments that playlists list: all of them.
    fn extent(&self) -> Extent {
        Extent::Clip(SegmentNumber(1), SegmentNumber(self.grid.count()))
    }

    /// Returns the index of the track of a name, such as `v1`.
    pub fn track(&self, name: &str) -> Option<usize> {
        self.tracks.iter().position(|listed| listed.track.name == name)
    }

    /// Returns whether a track has pictures.
    pub fn is_video(&self, track: usize) -> bool {
        self.tracks.get(track).is_some_and(|listed| listed.track.kind == MediaKind::Video)
    }

    /// Returns the init segment of a track.
    pub fn init(&self, track: usize, epoch: u32) -> Option<Bytes> {
        self.epoch.init(track).filter(|_| epoch == EPOCH).cloned()
    }

    /// Returns the init segment of all tracks, before which the segments of the title make one file.
    pub fn long_init(&self) -> Bytes {
        self.long_init.clone()
    }

    /// Returns the HLS multivariant playlist.
    pub fn multivariant(&self) -> Option<LiveText> {
        live_multivariant(&self.window(), Container::Fmp4).map(LiveText::from)
    }

    /// Returns the HLS playlist of a track. `version` is that of the title.
    pub fn media(&self, track: usize, version: &str) -> Option<LiveText> {
        let extent = self.extent();
        let view = PlaylistView { run: version, container: Container::Fmp4, skip: false, extent, query: "" };
        media(&self.window(), track, &view).map(LiveText::from)
    }

    /// Returns the MPD. `version` is that of the title.
    pub fn mpd(&self, version: &str) -> Option<LiveText> {
        let (published, away) = (Duration::ZERO, Duration::ZERO);
        let view = ManifestView { run: version, clock: "", published, away, extent: self.extent() };
        mpd(&self.window(), &view).map(LiveText::from)
    }
}

impl ListedTrack {
    /// Returns its part of a segment, with the bytes that segments have on average.
    fn part(&self, start: Duration, duration: Duration) -> PastTrack {
        let ticks = |time| crate::frame::ticks(time, self.track.timescale.get());
        let begin = ticks(start);
        let bytes = (duration.as_secs_f64() * self.rate) as u64 + 1;
        PastTrack { start: begin, duration: ticks(start + duration) - begin, bytes }
    }
}
