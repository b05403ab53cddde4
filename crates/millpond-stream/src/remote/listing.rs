//! Playlists and manifests of a title: all of its segments at once, with nominal times.

use super::{grid::Grid, measured::TitleTracks};
use crate::{
    Format,
    live::{LiveText, live_formats, packaged},
};
use bytes::Bytes;
use millpond_package::{
    dash::live::{ManifestView, mpd},
    fmp4::clip_init,
    hls::{
        Container,
        live::{PlaylistView, media},
        live_multivariant,
    },
    live::{Extent, PastSegment, PastTrack, SegmentNumber, TargetDuration, Window, WindowEpoch, WindowLimits},
};
use std::time::Duration;

/// Number of the epoch in names of init segments.
pub(super) const EPOCH: u32 = 0;

/// Playlists, manifests and init segments of a title. Segments count from 1 in URLs.
#[derive(Debug)]
pub struct TitleListing {
    window: Window,
    extent: Extent,
    long_init: Bytes,
}

impl TitleListing {
    /// Creates the listing of a title's tracks.
    pub(super) fn new(known: &[Option<Format>], media: &TitleTracks, grid: Grid) -> Self {
        let TitleTracks { reorderings, rates, .. } = media;
        let formats: Vec<&Format> = known.iter().flatten().collect();
        let tracks = packaged((0..).zip(formats.iter().copied()));
        let mut live = live_formats(&tracks, known);
        for ((id, format), reordering) in (1..).zip(live.iter_mut().flatten()).zip(reorderings) {
            (format.id, format.early) = (id, reordering.early());
        }
        let headers: Vec<_> = live.iter().flatten().map(|format| format.header()).collect();
        let long_init = clip_init(&headers, grid.length);
        let count = grid.count();
        let segment = |number: u64| {
            let (start, duration) = (grid.start(number), grid.duration(number));
            let track = |(format, rate): (&&Format, &f64)| PastTrack {
                start: ticks(start, format),
                duration: ticks(start + duration, format) - ticks(start, format),
                bytes: (duration.as_secs_f64() * rate) as u64 + 1,
            };
            PastSegment {
                number: SegmentNumber(number + 1),
                epoch: EPOCH,
                discontinuity: 0,
                start,
                wall: start,
                is_independent: false,
                tracks: formats.iter().zip(rates).map(track).collect(),
            }
        };
        let limits = WindowLimits {
            segments: usize::try_from(count).unwrap_or(usize::MAX),
            bytes: u64::MAX,
            age: Duration::MAX,
            listed: Duration::MAX,
        };
        let of_window = tracks.iter().map(|track| track.of_window()).collect();
        let mut window = Window::new(limits, of_window, 0);
        let epoch = WindowEpoch::new(EPOCH, Duration::ZERO, Duration::ZERO, live);
        window.restore(vec![epoch], (0..count).map(segment).collect());
        let longest = (0..count).map(|number| grid.duration(number)).max().unwrap_or_default();
        window.end(TargetDuration::new(u32::try_from(longest.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)));
        Self { window, extent: Extent::Clip(SegmentNumber(1), SegmentNumber(count)), long_init }
    }

    /// Returns the index of the track of a name, such as `v1`.
    pub fn track(&self, name: &str) -> Option<usize> {
        self.window.track(name)
    }

    /// Returns whether a track has pictures.
    pub fn is_video(&self, track: usize) -> bool {
        self.window.tracks().get(track).is_some_and(|track| track.kind == millpond_package::MediaKind::Video)
    }

    /// Returns the init segment of a track.
    pub fn init(&self, track: usize, epoch: u32) -> Option<Bytes> {
        self.window.epoch(epoch)?.init(track).cloned()
    }

    /// Returns the init segment of all tracks, before which the segments of the title make one file.
    pub fn long_init(&self) -> Bytes {
        self.long_init.clone()
    }

    /// Returns the HLS multivariant playlist.
    pub fn multivariant(&self) -> Option<LiveText> {
        live_multivariant(&self.window, Container::Fmp4).map(LiveText::from)
    }

    /// Returns the HLS playlist of a track. `version` is that of the title.
    pub fn media(&self, track: usize, version: &str) -> Option<LiveText> {
        let view =
            PlaylistView { run: version, container: Container::Fmp4, skip: false, extent: self.extent, query: "" };
        media(&self.window, track, &view).map(LiveText::from)
    }

    /// Returns the MPD. `version` is that of the title.
    pub fn mpd(&self, version: &str) -> Option<LiveText> {
        let (published, away) = (Duration::ZERO, Duration::ZERO);
        let view = ManifestView { run: version, clock: "", published, away, extent: self.extent };
        mpd(&self.window, &view).map(LiveText::from)
    }
}

/// Converts a time to ticks of a track.
fn ticks(time: Duration, format: &Format) -> i64 {
    crate::frame::ticks(time, format.timescale())
}
