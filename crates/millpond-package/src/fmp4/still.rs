//! Single pictures as complete files, for posters and previews.

use super::{
    fragment::{FragmentSample, TrackRun, fragment_head},
    init::{TRACK_ID, TrackHeader, clip_init},
};
use crate::{
    plan::{Plan, PlanItem},
    presentation::{
        Presentation,
        track::{MediaKind, PresentedTrack},
    },
    timeline::loads::written,
};
use bytes::Bytes;
use std::time::Duration;

/// Time for which the picture of a still is shown.
const SHOWN: Duration = Duration::from_secs(1);

/// Returns picture `number` (from 1) for trick play as an MP4 file of one sample, which is presented at time 0. The sample is not
/// re-encoded, so that any player of the codec shows it.
///
/// `None` where there is no such picture, and for encrypted tracks, sound and text.
#[must_use]
pub fn still(_presentation: &Presentation, presented: &PresentedTrack, number: u32) -> Option<Plan> {
    let media = presented.packaged().filter(|media| media.track().protection.is_none())?;
    if presented.kind != MediaKind::Video {
        return None;
    }
    let track = media.track();
    let (ordinal, _) = media.iframes(presented.segments.end()).get(number)?;
    let shown = media.timeline.at(&track.samples, ordinal)?.sample;
    let (kind, timescale) = (presented.kind, track.timescale);
    let header = TrackHeader { id: TRACK_ID, track, kind, language: None, label: "", timescale, early: 0 };
    let ticks = SHOWN.as_secs().saturating_mul(u64::from(track.timescale.get()));
    let sample = FragmentSample {
        duration: u32::try_from(ticks).unwrap_or(u32::MAX),
        size: u32::try_from(written(track, &shown)).ok()?,
        offset: 0,
        is_sync: true,
    };
    let run = TrackRun { id: TRACK_ID, decode_time: 0, samples: vec![sample] };
    Some(Plan::Items(vec![
        PlanItem::Bytes(clip_init(&[header], SHOWN)),
        PlanItem::Bytes(fragment_head(1, &[run])),
        PlanItem::Bytes(Bytes::copy_from_slice(track.sets_of(&shown))),
        PlanItem::Object(media.place(shown.range)),
    ]))
}
