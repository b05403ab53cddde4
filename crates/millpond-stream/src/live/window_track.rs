//! Tracks of a feed as a window has them.

use crate::{Format, fragmenter::fits};
use millpond_media::{Codec, Purpose, codec::make, movie::Track, teletext::TeletextPage, units::Timescale};
use millpond_package::{
    MediaKind, language,
    live::{CutTrack, FlacUnits, LiveFormat, TEXT_CLOCK, TRACK_ID, WindowTrack},
};
use std::sync::Arc;

/// Pictures a second where nothing is known of them: for the first parts only.
const USUAL_RATE: u32 = 25;

/// Most pages of subtitles of a window.
const MOST_TEXTS: usize = 16;

/// A track of a feed that a window has. Its name, kind and clock are those of the first epoch. Each page of subtitles of a teletext track is
/// a track of the window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PackagedTrack {
    /// Index in the formats of the feed.
    pub(crate) track: u16,
    pub(crate) name: String,
    pub(crate) kind: MediaKind,
    pub(crate) timescale: Timescale,
    /// Usual duration of a frame in ticks.
    frame: u32,
    /// Page of subtitles; `None` for pictures and sound.
    pub(crate) page: Option<TeletextPage>,
}

/// Returns the tracks that live segments can carry, of formats by their indexes: pictures and sound, then pages of subtitles. None
/// where there are neither pictures nor sound.
pub(crate) fn packaged<'a>(formats: impl IntoIterator<Item = (u16, &'a Format)>) -> Vec<PackagedTrack> {
    let takes = |format: &Format| fits(format) && format.kind != MediaKind::Text;
    let all: Vec<_> = formats.into_iter().collect();
    let mut tracks: Vec<_> = all.iter().copied().filter(|(_, format)| takes(format)).map(PackagedTrack::of).collect();
    if !tracks.is_empty() {
        let pages = all.iter().flat_map(|(track, format)| pages(format).iter().map(|page| (*track, page)));
        tracks.extend((1..).zip(pages.take(MOST_TEXTS)).map(PackagedTrack::of_page));
    }
    tracks
}

/// Returns the pages of subtitles of a teletext track; none for other tracks.
fn pages(format: &Format) -> &[TeletextPage] {
    match &format.track.codec {
        Codec::PrivateText(config) => &config.pages,
        _ => &[],
    }
}

impl PackagedTrack {
    fn of((track, format): (u16, &Format)) -> Self {
        let (kind, timescale) = (format.kind, format.track.timescale);
        let frame = format.track.codec.samples_per_frame().unwrap_or(timescale.get() / USUAL_RATE);
        Self { track, name: format.name.clone(), kind, timescale, frame: frame.max(1), page: None }
    }

    /// Subtitles number `number` of a window, on a page of a feed's track.
    fn of_page((number, (track, page)): (u16, (u16, &TeletextPage))) -> Self {
        let (kind, timescale) = (MediaKind::Text, TEXT_CLOCK);
        Self { track, name: format!("text{number}"), kind, timescale, frame: 1, page: Some(page.clone()) }
    }

    /// Whether another epoch's track can take the place of this one.
    pub(crate) fn is_followed_by(&self, other: &Self) -> bool {
        (self.track, self.kind, &self.page) == (other.track, other.kind, &other.page)
    }

    pub(crate) fn is_text(&self) -> bool {
        self.page.is_some()
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
        if let Some(page) = &track.page {
            let format = of_page(page, &labels)?;
            labels.push((MediaKind::Text, format.label.clone()));
            return Some(format);
        }
        let kind = if format.is_video() { "Video" } else { "Audio" };
        let name = format.language.as_deref().map_or_else(|| kind.to_owned(), language::display_name);
        let label = label(name, format.kind, &labels);
        labels.push((format.kind, label.clone()));
        let delivered = FlacUnits::delivered(&format.track).unwrap_or_else(|| format.track.clone());
        let media = millpond_media::movie::Track { timescale: track.timescale, ..delivered };
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

/// Returns the format of a page of subtitles.
fn of_page(page: &TeletextPage, labels: &[(MediaKind, String)]) -> Option<LiveFormat> {
    let language = page.language.as_deref().and_then(language::tag);
    let mut track = Track::live(TRACK_ID, make::wvtt().ok()?, TEXT_CLOCK, page.language.as_deref().unwrap_or("und"));
    track.purposes = page.is_for_deaf.then_some(Purpose::Captions).into_iter().collect();
    let mut name = language.as_deref().map_or_else(|| "Subtitles".to_owned(), language::display_name);
    if page.is_for_deaf {
        name.push_str(language::FOR_DEAF);
    }
    let label = label(name, MediaKind::Text, labels);
    let track = Arc::new(track);
    Some(LiveFormat { track, language, label, is_default: false, frame_rate: None, id: TRACK_ID, early: 0 })
}

/// Returns a name for menus that no other track of its kind has.
fn label(name: String, kind: MediaKind, known: &[(MediaKind, String)]) -> String {
    let is_free = |label: &String| !known.iter().any(|(other, known)| *other == kind && known == label);
    let mut numbered = (2_u32..).map(|number| format!("{name} {number}"));
    Some(name.clone()).filter(is_free).or_else(|| numbered.find(is_free)).unwrap_or(name)
}
