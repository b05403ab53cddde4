//! Reads the past of a stream from its ring.

use super::{
    DEFAULT, State, StoredCues,
    entry::{INDEPENDENT, StoredEpoch, StoredSegment, StoredTrack, ticks},
};
use millpond_media::{
    fragment_stream::{FragmentEvent, FragmentStream},
    movie::{Track, TrackKind},
    units::Timescale,
};
use millpond_package::{
    language,
    live::{LiveFormat, TRACK_ID, TargetDuration},
};
use millpond_store::{
    Chunk,
    ring::{Found, Ring, RingKind, RingPlace, RingRecord},
};
use std::{collections::BTreeMap, os::unix::fs::FileExt as _, sync::Arc, time::Duration};

/// Most tracks of a window, with its subtitles.
const MOST_TRACKS: usize = 32;
/// Most bytes of an init segment.
const MOST_INIT: u32 = 1 << 20;

/// The records of an epoch.
#[derive(Default)]
struct FoundEpoch {
    from: Duration,
    wall: Duration,
    /// Flags and place of each track's last init segment.
    inits: Vec<Option<(u32, RingPlace)>>,
}

/// Reads what the records of a ring mean. Segments without their epoch are left out, and tracks without a part become gaps.
pub(super) fn recover(ring: &Ring, found: &[Found]) -> State {
    let epochs = epochs(found);
    let read = |epoch: FoundEpoch| StoredEpoch {
        from: epoch.from,
        wall: epoch.wall,
        formats: epoch.inits.iter().map(|init| format(ring, (*init)?)).collect(),
    };
    let epochs: BTreeMap<_, _> = epochs.into_iter().map(|(key, epoch)| (key, read(epoch))).collect();
    let mut state = State { epochs, cues: StoredCues::recover(ring, found), ..State::default() };
    let mut segments: BTreeMap<u64, StoredSegment> = BTreeMap::new();
    for Found { record, place, .. } in found {
        let Some(epoch) = state.epochs.get(&(record.run, record.epoch)) else { continue };
        let format = epoch.formats.get(usize::from(record.track)).and_then(Option::as_ref);
        let Some(scale) = format.map(|format| format.track.timescale) else { continue };
        let segment = match record.kind {
            RingKind::Part | RingKind::SegmentEnd => {
                segments.entry(record.segment).or_insert_with(|| opened(record, epoch.formats.len()))
            }
            _ => continue,
        };
        if segment.key() != (record.run, record.epoch) {
            // A later run took the number again, after this one's end was lost.
            *segment = opened(record, epoch.formats.len());
        }
        if record.kind == RingKind::SegmentEnd {
            state.target = (record.part > 0).then(|| TargetDuration::new(record.part));
        }
        if let Some(track) = segment.tracks.get_mut(usize::from(record.track)) {
            take(track, (record, *place), scale);
        }
    }
    state.segments = segments.into_values().filter(has_media).collect();
    state
}

fn has_media(segment: &StoredSegment) -> bool {
    segment.tracks.iter().any(|track| !track.places.is_empty())
}

fn opened(record: &RingRecord, tracks: usize) -> StoredSegment {
    StoredSegment {
        number: record.segment,
        run: record.run,
        epoch: record.epoch,
        discontinuity: u64::from(record.flags >> 1),
        // All records of a segment have its wall time.
        start: record.start,
        wall: record.wall,
        is_independent: record.flags & INDEPENDENT != 0,
        tracks: vec![StoredTrack::default(); tracks].into(),
    }
}

/// Takes a part or the end of a track's segment. A track with a missing part loses all of them.
fn take(track: &mut StoredTrack, (record, place): (&RingRecord, RingPlace), scale: Timescale) {
    let (start, duration) = (ticks(record.start, scale), ticks(record.duration, scale));
    if record.kind == RingKind::SegmentEnd {
        let parts = track.closed.map_or(0, |(_, parts)| parts);
        // Ends of segments tell the sum of their parts.
        if parts != duration {
            track.places.clear();
        }
        track.closed = Some((start, duration));
        return;
    }
    let index = usize::try_from(record.part).unwrap_or(usize::MAX);
    match &mut track.closed {
        None if index == 0 => track.closed = Some((start, duration)),
        Some((_, whole)) if index == track.places.len() => *whole = whole.saturating_add(duration),
        _ => return track.places.clear(),
    }
    track.places.push(place);
}

fn epochs(found: &[Found]) -> BTreeMap<(u64, u32), FoundEpoch> {
    let mut epochs: BTreeMap<(u64, u32), FoundEpoch> = BTreeMap::new();
    for Found { record, place, .. } in found {
        let key = (record.run, record.epoch);
        match record.kind {
            RingKind::Epoch => {
                let epoch = epochs.entry(key).or_default();
                (epoch.from, epoch.wall) = (record.start, record.wall);
                epoch.inits.resize(usize::from(record.track).min(MOST_TRACKS), None);
            }
            RingKind::Init => {
                let init = epochs.get_mut(&key).and_then(|epoch| epoch.inits.get_mut(usize::from(record.track)));
                if let Some(init) = init {
                    *init = Some((record.flags, *place));
                }
            }
            _ => {}
        }
    }
    epochs
}

/// Reads the format of a track from its init segment.
fn format(ring: &Ring, (flags, place): (u32, RingPlace)) -> Option<LiveFormat> {
    let Ok(Chunk::File { file, range, .. }) = ring.read(place) else { return None };
    let mut bytes = vec![0; usize::try_from(place.length().min(MOST_INIT)).ok()?];
    file.read_exact_at(&mut bytes, range.start).ok()?;
    let mut events = Vec::new();
    FragmentStream::new().push(&bytes, &mut events).ok()?;
    let track = events.into_iter().find_map(|event| match event {
        FragmentEvent::Tracks { tracks, .. } => tracks.into_iter().next(),
        _ => None,
    })?;
    let language = language::tag(&track.language);
    Some(LiveFormat {
        label: label(&track, language.as_deref()),
        language,
        is_default: flags & DEFAULT != 0,
        frame_rate: None,
        track: Arc::new(track),
        id: TRACK_ID,
        early: 0,
    })
}

/// Name of a track for menus.
fn label(track: &Track, language: Option<&str>) -> String {
    let kind = match track.kind {
        TrackKind::Video { .. } => "Video",
        TrackKind::Audio { .. } => "Audio",
        TrackKind::Text => "Subtitles",
    };
    track.name.clone().unwrap_or_else(|| language.map_or_else(|| kind.to_owned(), language::display_name))
}
