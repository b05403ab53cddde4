//! Delivers text tracks of a presentation as WebVTT.

use crate::{
    PackageError, Plan, PlanItem,
    delivery::container::Container,
    presentation::{
        Presentation,
        track::{Content, MediaKind, MediaTrack, PresentedTrack},
    },
    text::{self, TextUnit, Window, webvtt},
    timeline::Timed,
};
use bytes::Bytes;
use millpond_media::{codec::Codec, units::Timescale};

/// Whether a text track is delivered as WebVTT: sidecars, `tx3g` and `wvtt`.
#[must_use]
pub fn is_webvtt(track: &PresentedTrack) -> bool {
    track.kind == MediaKind::Text && !matches!(track.codec(), Some(Codec::Stpp(_)))
}

/// Returns segment `number` of a text track as WebVTT with `X-TIMESTAMP-MAP` (RFC 8216 3.5); `None` where there is no
/// such segment. Each segment contains all cues shown during it. The map refers to the clock of the media in
/// `container`.
///
/// # Errors
/// As [`text::segment`].
pub fn segment(
    _presentation: &Presentation,
    track: &PresentedTrack,
    number: u32,
    container: Container,
) -> Result<Option<Plan>, PackageError> {
    let base = match container {
        Container::Fmp4 => 0,
        Container::Ts => webvtt::MPEGTS_BASE,
    };
    let Some(info) = track.segment(number).filter(|_| is_webvtt(track)) else { return Ok(None) };
    let millis = |ticks: i64| info.timescale.convert(ticks, Timescale::MILLIS);
    let window = millis(info.start)..millis(info.start.saturating_add(info.duration));
    match &track.content {
        Content::Sidecar(sidecar) => Ok(Some(generated(webvtt::segment(&sidecar.cues, window, base)))),
        Content::Media(media) => {
            let units = units(media, track.samples(&info).into_iter());
            text::segment(&media.movie, media.index, media.object, units, Window::Segment(window, base)).map(Some)
        }
    }
}

/// Returns a whole text track, or a period's text track, as one WebVTT file. `None` for tracks that aren't delivered as WebVTT.
///
/// # Errors
/// As [`text::segment`].
pub fn whole(presentation: &Presentation, track: &PresentedTrack) -> Result<Option<Plan>, PackageError> {
    if !is_webvtt(track) {
        return Ok(None);
    }
    let millis = |nanos: &i64| nanos / 1_000_000;
    let period = presentation.shown.as_ref().map(|shown| millis(&shown.start)..millis(&shown.end));
    match &track.content {
        Content::Sidecar(sidecar) => Ok(Some(generated(match period {
            Some(window) => webvtt::period(&sidecar.cues, window),
            None => webvtt::whole(&sidecar.cues),
        }))),
        Content::Media(media) => {
            let units = units(media, track.all_samples());
            let window = period.map_or(Window::Whole, Window::Period);
            text::segment(&media.movie, media.index, media.object, units, window).map(Some)
        }
    }
}

fn generated(text: String) -> Plan {
    Plan::Items(vec![PlanItem::Bytes(Bytes::from(text))])
}

fn units(media: &MediaTrack, samples: impl Iterator<Item = Timed>) -> Vec<TextUnit> {
    let millis = |ticks: i64| media.track().timescale.convert(ticks, Timescale::MILLIS);
    samples
        .map(|t| TextUnit {
            range: t.sample.range,
            start_ms: millis(t.pts),
            end_ms: millis(t.pts.saturating_add(i64::from(t.sample.duration))),
        })
        .collect()
}
