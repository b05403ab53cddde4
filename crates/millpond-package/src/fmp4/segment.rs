//! Media segments as plans: `styp`, `moof`, and the unchanged samples. Those of sound that becomes FLAC are in [`encoded`].

use super::{
    boxes::BoxWriter,
    clock::Clock,
    encoded,
    fragment::{Columns, FragmentSample, media_data_header},
    init::TRACK_ID,
    protection,
};
use crate::{
    plan::{Plan, PlanItem},
    presentation::{
        Presentation,
        track::{MediaTrack, PresentedTrack},
    },
    timeline::{Timed, loads::written},
};
use bytes::Bytes;
use millpond_media::Track;

/// Returns segment `number` (from 1) of a track; `None` where there is no such segment, for sidecars, for tracks that are not
/// [packaged](PresentedTrack::is_packaged), and for tracks with [fragments](PresentedTrack::fragments) to be loaded.
#[must_use]
pub fn segment(_presentation: &Presentation, track: &PresentedTrack, number: u32) -> Option<Plan> {
    let media = track.packaged()?;
    if let Some(flac) = &media.flac {
        return encoded::segment(media, flac, number);
    }
    let info = track.segment(number).filter(|s| !s.samples.is_empty() && media.outlined().is_none())?;
    let table = &media.track().samples;
    let samples: Vec<Timed> = media.timeline.walk(table, info.samples.clone()).collect();
    let end = media.timeline.dts_at(table, info.samples.end);
    Some(fragment(media, &samples, end, number))
}

/// Returns picture `number` (from 1) for trick play: the fragment of one sync sample, with the duration for which it is shown.
#[must_use]
pub fn iframe(_presentation: &Presentation, track: &PresentedTrack, number: u32) -> Option<Plan> {
    let media = track.media()?;
    let (ordinal, duration) = media.iframes(track.segments.end()).get(number)?;
    let sample = media.timeline.at(&media.track().samples, ordinal)?;
    Some(fragment(media, &[sample], sample.dts.saturating_add(duration), number))
}

/// Returns the fragment of `samples`; the next sample is decoded at `end`. Without samples the fragment is at `end`.
pub(super) fn fragment(media: &MediaTrack, samples: &[Timed], end: i64, sequence: u32) -> Plan {
    let clock = Clock::of(media);
    let rows = rows(&clock, media.track(), samples, end);
    let items = items(media, samples);
    let bytes: u64 = items.iter().map(PlanItem::len).sum();
    let shift = clock.early().saturating_sub(clock.reorder());
    let decode_time = clock.at(samples.first().map_or(end, |s| s.dts)).saturating_add(shift);
    let mut w = BoxWriter::with_capacity(160 + rows.len() * 16);
    segment_type(&mut w);
    let moof = w.out.len();
    let mut data_offset = 0;
    w.put(b"moof", |w| {
        w.full(b"mfhd", 0, 0, |w| w.u32(sequence));
        protection::fragment_headers(w, media, samples);
        w.put(b"traf", |w| {
            let columns = Columns::of(&rows);
            columns.track_fragment_header(w, TRACK_ID);
            w.full(b"tfdt", 1, 0, |w| w.u64(u64::try_from(decode_time).unwrap_or(0)));
            data_offset = columns.run(w, &rows);
            protection::sample_boxes(w, media, samples, moof);
        });
    });
    let header = media_data_header(bytes);
    let offset = i32::try_from(w.out.len() - moof + header.len()).unwrap_or(i32::MAX);
    w.out[data_offset..data_offset + 4].copy_from_slice(&offset.to_be_bytes());
    w.bytes(&header);
    let mut parts = Vec::with_capacity(items.len() + 1);
    parts.push(PlanItem::Bytes(w.out.into()));
    parts.extend(items);
    Plan::Items(parts)
}

/// Writes `styp` (8.16.2), with the brands of a CMAF segment (23000-19 7.2).
pub(super) fn segment_type(w: &mut BoxWriter) {
    w.put(b"styp", |w| {
        w.bytes(b"msdh");
        w.u32(0);
        w.bytes(b"msdhcmfs");
    });
}

fn rows(clock: &Clock<'_>, track: &Track, samples: &[Timed], end: i64) -> Vec<FragmentSample> {
    let next = samples.iter().skip(1).map(|s| s.dts).chain([end]);
    let row = |(s, next): (&Timed, i64)| {
        let (dts, pts) = (clock.at(s.dts), clock.at(s.pts));
        FragmentSample {
            duration: u32::try_from(clock.at(next).saturating_sub(dts).max(0)).unwrap_or(u32::MAX),
            size: u32::try_from(written(track, &s.sample)).unwrap_or(u32::MAX),
            offset: pts.saturating_sub(dts).saturating_add(clock.reorder()),
            is_sync: s.sample.sync,
        }
    };
    samples.iter().zip(next).map(row).collect()
}

/// Returns the samples as items, with parameter sets before those that need them. Samples that are consecutive in the
/// object share a range.
fn items(media: &MediaTrack, samples: &[Timed]) -> Vec<PlanItem> {
    let track = media.track();
    let mut items: Vec<PlanItem> = Vec::new();
    let mut last_sets = Bytes::new();
    for sample in samples.iter().map(|timed| &timed.sample).filter(|sample| !sample.range.is_empty()) {
        let (place, sets) = (media.place(sample.range), track.sets_of(sample));
        if !sets.is_empty() {
            if last_sets != sets {
                last_sets = Bytes::copy_from_slice(sets);
            }
            items.push(PlanItem::Bytes(last_sets.clone()));
        }
        match items.last_mut() {
            Some(PlanItem::Object(last)) if last.object == place.object && last.range.end == place.range.start => {
                last.range.end = place.range.end;
            }
            _ => items.push(PlanItem::Object(place)),
        }
    }
    items
}
