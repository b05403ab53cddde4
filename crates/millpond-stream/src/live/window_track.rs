//! Tracks of a feed as a window has them.

use crate::{Format, fragmenter::fits};
use millpond_media::units::Timescale;
use millpond_package::{
    MediaKind, language,
    live::{CutTrack, LiveFormat, TRACK_ID, WindowTrack},
};
use std::sync::Arc;

/// Pictures a second where nothing is known of them: for the first parts only.
const USUAL_RATE: u32 = 25;

/// A track of a feed that a window has. Its name, kind and clock are those of the first epoch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PackagedTrack {
    /// Index in the formats of the feed.
    pub(crate) track: u16,
    pub(crate) name: String,
    pub(crate) kind: MediaKind,
    pub(crate) timescale: Timescale,
    /// Usual duration of a frame in ticks.
    frame: u32,
}

/// Returns the tracks that live segments can carry, of formats by their indexes.
pub(crate) fn packaged<'a>(formats: impl IntoIterator<Item = (u16, &'a Format)>) -> Vec<PackagedTrack> {
    let takes = |format: &Format| fits(format) && format.kind != MediaKind::Text;
    formats.into_iter().filter(|(_, format)| takes(format)).map(PackagedTrack::of).collect()
}

impl PackagedTrack {
    fn of((track, format): (u16, &Format)) -> Self {
        let (kind, timescale) = (format.kind, format.track.timescale);
        let frame = format.track.codec.samples_per_frame().unwrap_or(timescale.get() / USUAL_RATE);
        Self { track, name: format.name.clone(), kind, timescale, frame: frame.max(1) }
    }

    /// Whether another epoch's track can take the place of this one.
    pub(crate) fn is_followed_by(&self, other: &Self) -> bool {
        self.track == other.track && self.kind == other.kind
    }

    pub(crate) fn is_video(&self) -> bool {
        self.kind == MediaKind::Video
    }

    pub(crate) fn of_cutter(&self) -> CutTrack {
        CutTrack { timescale: self.timescale, is_video: self.is_video(), frame: self.frame }
    }

    pub(crate) fn of_window(&self) -> WindowTrack {
        WindowTrack { name: self.name.clone(), kind: self.kind, timescale: self.timescale }
    }
}

/// Returns the formats of a window's tracks in an epoch with `formats`.
pub(crate) fn live_formats(tracks: &[PackagedTrack], formats: &[Option<Format>]) -> Vec<Option<LiveFormat>> {
    let mut labels: Vec<(MediaKind, String)> = Vec::new();
    let each = tracks.iter().map(|track| {
        let format = formats.get(usize::from(track.track))?.as_ref()?;
        let label = label(format, &labels);
        labels.push((format.kind, label.clone()));
        let media = millpond_media::movie::Track { timescale: track.timescale, ..format.track.clone() };
        Some(LiveFormat {
            track: Arc::new(media),
            language: format.language.clone(),
            label,
            is_default: format.is_default,
            frame_rate: None,
            id: TRACK_ID,
            early: 0,
        })
    });
    each.collect()
}

/// Returns a name for menus that no other track of its kind has.
fn label(format: &Format, known: &[(MediaKind, String)]) -> String {
    let kind = if format.is_video() { "Video" } else { "Audio" };
    let name = format.language.as_deref().map_or_else(|| kind.to_owned(), language::display_name);
    let is_free = |label: &String| !known.iter().any(|(kind, other)| *kind == format.kind && other == label);
    let mut numbered = (2_u32..).map(|number| format!("{name} {number}"));
    Some(name.clone()).filter(is_free).or_else(|| numbered.find(is_free)).unwrap_or(name)
}
