//! Media segments: `styp`, `moof`, and the unchanged samples.

use super::{boxes::BoxWriter, init::TRACK_ID, protection};
use crate::{
    plan::{ObjectIndex, ObjectRange, Plan, PlanItem},
    presentation::Presentation,
    timeline::Timed,
    track::{MediaTrack, PresentedTrack},
};
use millpond_media::units::ByteRange;

/// Sample flags (ISO/IEC 14496-12 8.8.3.1) of a sync sample, which depends on no other.
const SYNC: u32 = 0x0200_0000;
/// Sample flags of other samples, which depend on others.
const NOT_SYNC: u32 = 0x0101_0000;

/// `tfhd` flags (8.8.7.1).
const DEFAULT_DURATION: u32 = 0x08;
const DEFAULT_SIZE: u32 = 0x10;
const DEFAULT_FLAGS: u32 = 0x20;
const BASE_IS_MOOF: u32 = 0x02_0000;

/// `trun` flags (8.8.8.1).
const DATA_OFFSET: u32 = 0x01;
const FIRST_FLAGS: u32 = 0x04;
const DURATIONS: u32 = 0x100;
const SIZES: u32 = 0x200;
const FLAGS: u32 = 0x400;
const OFFSETS: u32 = 0x800;

/// Row of one sample in `trun`.
#[derive(Clone, Copy)]
struct Row {
    duration: u32,
    size: u32,
    offset: u32,
    sync: bool,
}

/// Returns segment `number` (from 1) of a track; `None` where there is no such segment, and for sidecars and PCM.
#[must_use]
pub fn segment(_presentation: &Presentation, track: &PresentedTrack, number: u32) -> Option<Plan> {
    let media = track.packaged()?;
    let info = track.segment(number).filter(|s| !s.samples.is_empty())?;
    let table = &media.track().samples;
    let samples: Vec<Timed> = media.timeline.walk(table, info.samples.clone()).collect();
    let end = media.timeline.dts_at(table, info.samples.end);
    Some(fragment(media, &samples, end, number))
}

/// Returns picture `number` (from 1) for trick play: the fragment of one sync sample, as long as it is shown.
#[must_use]
pub fn iframe(_presentation: &Presentation, track: &PresentedTrack, number: u32) -> Option<Plan> {
    let media = track.media()?;
    let (ordinal, duration) = media.iframes(track.segments.end()).get(number)?;
    let sample = media.timeline.at(&media.track().samples, ordinal)?;
    Some(fragment(media, &[sample], sample.dts.saturating_add(duration), number))
}

/// Returns the fragment of `samples`; the next sample is decoded at `end`.
fn fragment(media: &MediaTrack, samples: &[Timed], end: i64, sequence: u32) -> Plan {
    let rows = rows(samples, end, media.facts.reorder);
    let ranges = merged(media.object, samples);
    let bytes: u64 = ranges.iter().map(|r| r.range.len()).sum();
    let shift = media.facts.early.saturating_sub(media.facts.reorder);
    let decode_time = samples.first().map_or(0, |s| s.dts).saturating_add(shift);
    let mut w = BoxWriter::with_capacity(160 + rows.len() * 16);
    segment_type(&mut w);
    let moof = w.out.len();
    let mut data_offset = 0;
    w.put(b"moof", |w| {
        w.full(b"mfhd", 0, 0, |w| w.u32(sequence));
        protection::fragment_headers(w, media, samples);
        w.put(b"traf", |w| {
            let columns = Columns::of(&rows);
            columns.track_fragment_header(w);
            w.full(b"tfdt", 1, 0, |w| w.u64(u64::try_from(decode_time).unwrap_or(0)));
            data_offset = columns.run(w, &rows);
            protection::sample_boxes(w, media, samples, moof);
        });
    });
    let large = bytes > u64::from(u32::MAX) - 8;
    let head: usize = if large { 16 } else { 8 };
    let offset = i32::try_from(w.out.len() - moof + head).unwrap_or(i32::MAX);
    w.out[data_offset..data_offset + 4].copy_from_slice(&offset.to_be_bytes());
    match u32::try_from(bytes + 8) {
        Ok(size) => {
            w.u32(size);
            w.bytes(b"mdat");
        }
        Err(_) => {
            w.u32(1);
            w.bytes(b"mdat");
            w.u64(bytes.saturating_add(16));
        }
    }
    let mut parts = Vec::with_capacity(ranges.len() + 1);
    parts.push(PlanItem::Bytes(w.out.into()));
    parts.extend(ranges.into_iter().map(PlanItem::Object));
    Plan::Items(parts)
}

/// Writes `styp` (8.16.2), with the brands of a CMAF segment (23000-19 7.2).
fn segment_type(w: &mut BoxWriter) {
    w.put(b"styp", |w| {
        w.bytes(b"msdh");
        w.u32(0);
        w.bytes(b"msdhcmfs");
    });
}

fn rows(samples: &[Timed], end: i64, reorder: i64) -> Vec<Row> {
    let next = samples.iter().skip(1).map(|s| s.dts).chain([end]);
    samples
        .iter()
        .zip(next)
        .map(|(s, next)| Row {
            duration: u32::try_from(next.saturating_sub(s.dts).max(0)).unwrap_or(u32::MAX),
            size: u32::try_from(s.sample.range.len()).unwrap_or(u32::MAX),
            offset: u32::try_from(s.pts.saturating_sub(s.dts).saturating_add(reorder)).unwrap_or(0),
            sync: s.sample.sync,
        })
        .collect()
}

/// Returns the ranges of samples. Samples that are consecutive in the object share a range.
fn merged(object: ObjectIndex, samples: &[Timed]) -> Vec<ObjectRange> {
    let mut ranges: Vec<ObjectRange> = Vec::new();
    for range in samples.iter().map(|s| s.sample.range).filter(|r| !r.is_empty()) {
        match ranges.last_mut() {
            Some(last) if last.range.end == range.start => last.range = ByteRange::new(last.range.start, range.end),
            _ => ranges.push(ObjectRange { object, range }),
        }
    }
    ranges
}

/// Fields that all samples share, and fields of each.
struct Columns {
    duration: Option<u32>,
    size: Option<u32>,
    flags: Flags,
    has_offsets: bool,
}

enum Flags {
    /// All samples have the same flags.
    Same(u32),
    /// One sync sample, then others.
    First,
    Each,
}

impl Columns {
    fn of(rows: &[Row]) -> Self {
        let same = |value: fn(&Row) -> u32| {
            let first = rows.first().map(value)?;
            rows.iter().all(|r| value(r) == first).then_some(first)
        };
        let rest_sync = rows.iter().skip(1).any(|r| r.sync);
        let flags = match rows.first().is_some_and(|r| r.sync) {
            true if rows.len() > 1 && !rest_sync => Flags::First,
            sync if rows.iter().all(|r| r.sync == sync) => Flags::Same(if sync { SYNC } else { NOT_SYNC }),
            _ => Flags::Each,
        };
        Self {
            duration: same(|r| r.duration),
            size: same(|r| r.size),
            flags,
            has_offsets: rows.iter().any(|r| r.offset != 0),
        }
    }

    /// Writes `tfhd` (8.8.7).
    fn track_fragment_header(&self, w: &mut BoxWriter) {
        let default_flags = match self.flags {
            Flags::Same(flags) => Some(flags),
            Flags::First => Some(NOT_SYNC),
            Flags::Each => None,
        };
        let flag = |value: Option<u32>, flag| if value.is_some() { flag } else { 0 };
        let flags = BASE_IS_MOOF
            | flag(self.duration, DEFAULT_DURATION)
            | flag(self.size, DEFAULT_SIZE)
            | flag(default_flags, DEFAULT_FLAGS);
        w.full(b"tfhd", 0, flags, |w| {
            w.u32(TRACK_ID);
            [self.duration, self.size, default_flags].into_iter().flatten().for_each(|value| w.u32(value));
        });
    }

    /// Writes `trun` (8.8.8). Returns the position of the data offset, which isn't known yet.
    fn run(&self, w: &mut BoxWriter, rows: &[Row]) -> usize {
        let flag = |wanted: bool, flag| if wanted { flag } else { 0 };
        let each = matches!(self.flags, Flags::Each);
        let flags = DATA_OFFSET
            | flag(matches!(self.flags, Flags::First), FIRST_FLAGS)
            | flag(self.duration.is_none(), DURATIONS)
            | flag(self.size.is_none(), SIZES)
            | flag(each, FLAGS)
            | flag(self.has_offsets, OFFSETS);
        let mut place = 0;
        w.full(b"trun", 0, flags, |w| {
            w.u32(u32::try_from(rows.len()).unwrap_or(u32::MAX));
            place = w.out.len();
            w.u32(0);
            if matches!(self.flags, Flags::First) {
                w.u32(SYNC);
            }
            for row in rows {
                if self.duration.is_none() {
                    w.u32(row.duration);
                }
                if self.size.is_none() {
                    w.u32(row.size);
                }
                if each {
                    w.u32(if row.sync { SYNC } else { NOT_SYNC });
                }
                if self.has_offsets {
                    w.u32(row.offset);
                }
            }
        });
        place
    }
}
