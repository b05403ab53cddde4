//! Facts about a track that one pass over its samples yields.

use crate::timeline::{Timed, Timeline, loads::written, segmentation::SyncPoint};
use millpond_media::{movie::Track, units::Timescale};
use std::collections::VecDeque;

/// Facts about a track that need every sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Facts {
    /// Earliest presentation time of a sample, in ticks.
    pub(crate) start: i64,
    /// Ticks by which the first samples are decoded or presented before time 0. In fragments this is the media time of
    /// time 0.
    pub(crate) early: i64,
    /// Most ticks by which a sample is presented before it is decoded. Written decode times are earlier by this difference.
    pub(crate) reorder: i64,
    /// Whether fragments have composition offsets below 0, so that decode times are not written earlier.
    pub(crate) has_signed_offsets: bool,
    /// End of the last sample, or of the edit list if that is earlier.
    pub(crate) end: i64,
    pub(crate) bytes: u64,
    /// Shortest and longest sample duration, without the last sample.
    pub(crate) shortest: u32,
    pub(crate) longest: u32,
    /// Whether the first sample is a sync sample.
    pub(crate) begins_sync: bool,
    /// Shortest and longest difference to the next decoding time, including the last sample's duration.
    steps: (i64, i64),
    /// Most ticks by which a presentation time is after its decoding time.
    latest: i64,
    /// Number of sync samples.
    syncs: u32,
    /// Durations of all samples but the last, in ticks. Squeezed samples count as in the media.
    ticks: i64,
    /// Most samples in a second.
    most: u32,
    samples: u32,
}

impl Facts {
    /// Walks over all samples of a track, and passes each one to `each`. `None` where there are none.
    pub(crate) fn of(track: &Track, timeline: &Timeline, mut each: impl FnMut(&Timed)) -> Option<Self> {
        let mut facts: Option<Self> = None;
        let (mut first_dts, mut last) = (0, (0, 0_u32));
        let mut second = Second::default();
        timeline.walk(&track.samples, 0..timeline.len()).for_each(|timed| {
            each(&timed);
            let f = facts.get_or_insert_with(|| {
                first_dts = timed.dts;
                Self::first(&timed)
            });
            f.start = f.start.min(timed.pts);
            f.reorder = f.reorder.max(timed.dts.saturating_sub(timed.pts));
            f.end = f.end.max(timed.pts.saturating_add(i64::from(timed.sample.duration)));
            f.bytes = f.bytes.saturating_add(written(track, &timed.sample));
            f.latest = f.latest.max(timed.pts.saturating_sub(timed.dts));
            f.syncs += u32::from(timed.sample.sync);
            if f.samples > 0 {
                f.step(timed.dts.saturating_sub(last.0));
                f.shortest = f.shortest.min(last.1);
                f.longest = f.longest.max(last.1);
                f.ticks = f.ticks.saturating_add(last.1.into());
            }
            f.most = f.most.max(second.add(f.ticks, track.timescale));
            f.samples += 1;
            last = (timed.dts, timed.sample.duration);
        });
        let mut facts = facts?;
        facts.step(last.1.into());
        if facts.samples == 1 {
            (facts.shortest, facts.longest) = (last.1, last.1);
        }
        facts.early = facts.start.min(first_dts.saturating_sub(facts.reorder)).saturating_neg().max(0);
        facts.end = facts.end.min(timeline.edit_end()).max(facts.start.saturating_add(1));
        Some(facts)
    }

    /// Returns the facts of a track of `bytes` that ends at `end`, of which these are facts of the beginning.
    pub(crate) fn of_beginning(self, end: i64, bytes: u64) -> Self {
        Self { end: end.max(self.start.saturating_add(1)), bytes, ..self }
    }

    fn first(timed: &Timed) -> Self {
        Self {
            start: timed.pts,
            early: 0,
            reorder: 0,
            has_signed_offsets: false,
            end: i64::MIN,
            bytes: 0,
            shortest: u32::MAX,
            longest: 0,
            begins_sync: timed.sample.sync,
            steps: (i64::MAX, 0),
            latest: i64::MIN,
            syncs: 0,
            ticks: 0,
            most: 0,
            samples: 0,
        }
    }

    fn step(&mut self, step: i64) {
        self.steps = (self.steps.0.min(step), self.steps.1.max(step));
    }

    /// Largest duration or composition offset of a sample, in ticks.
    pub(crate) fn largest_field(&self) -> i64 {
        self.steps.1.max(self.latest.saturating_add(self.reorder))
    }

    /// Most bytes of a sample's row in `trun` (ISO/IEC 14496-12 8.8.8), where the track is cut into `segments`: the
    /// size, and the fields that differ within the track.
    pub(crate) fn row_bytes(&self, segments: u32) -> u64 {
        let has_durations = self.steps.0 != self.steps.1;
        let has_offsets = self.latest.saturating_add(self.reorder) != 0;
        let has_flags = self.syncs > segments && self.syncs < self.samples;
        4 * (1 + u64::from(has_durations) + u64::from(has_offsets) + u64::from(has_flags))
    }

    /// Returns the highest number of samples per second as a fraction (RFC 8216 4.3.4.2). Rates that only waver a little
    /// are even.
    pub(crate) fn rate(&self, timescale: Timescale) -> Option<(u32, u32)> {
        let (n, d) = self.even_rate(timescale)?;
        let is_even = f64::from(self.most) <= UNEVEN * f64::from(n) / f64::from(d) + 1.0;
        Some(if is_even { (n, d) } else { (self.most, 1) })
    }

    /// Returns the mean number of samples per second: exact where all samples have the same duration, else the usual
    /// rate within 0.1 %, else rounded to the thousandth.
    fn even_rate(&self, timescale: Timescale) -> Option<(u32, u32)> {
        let scale = u64::from(timescale.get());
        if self.shortest == self.longest && self.longest > 0 {
            return reduced(scale, u64::from(self.longest));
        }
        let ticks = u64::try_from(self.ticks).ok().filter(|t| *t > 0)?;
        let frames = u64::from(self.samples.saturating_sub(1));
        let rate = frames as f64 * scale as f64 / ticks as f64;
        let off = |(n, d): &(u32, u32)| (f64::from(*n) / f64::from(*d) / rate - 1.0).abs();
        let usual = USUAL_RATES.iter().min_by(|a, b| off(a).total_cmp(&off(b))).filter(|r| off(r) < 0.001);
        match usual {
            Some(usual) => Some(*usual),
            None => reduced((rate * 1000.0).round() as u64, 1000),
        }
    }
}

/// Share of the mean rate up to which the highest rate is that of even samples.
const UNEVEN: f64 = 1.1;
/// Most samples in a second that are counted. Tables may give all samples one time.
const MOST_A_SECOND: usize = 1000;

/// Times of the samples of the last second, in ticks.
#[derive(Default)]
struct Second(VecDeque<i64>);

impl Second {
    /// Adds a sample. Returns the number of samples in the second that ends with it.
    fn add(&mut self, time: i64, timescale: Timescale) -> u32 {
        let begin = time.saturating_sub(timescale.get().into());
        while self.0.len() >= MOST_A_SECOND || self.0.front().is_some_and(|first| *first <= begin) {
            self.0.pop_front();
        }
        self.0.push_back(time);
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// Rates to which variable or coarse sample durations are rounded.
const USUAL_RATES: [(u32, u32); 12] = [
    (24, 1),
    (25, 1),
    (30, 1),
    (50, 1),
    (60, 1),
    (24_000, 1001),
    (30_000, 1001),
    (60_000, 1001),
    (15, 1),
    (48, 1),
    (100, 1),
    (120, 1),
];

fn reduced(mut numerator: u64, mut denominator: u64) -> Option<(u32, u32)> {
    let (mut a, mut b) = (numerator, denominator);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    numerator /= a.max(1);
    denominator /= a.max(1);
    Some((u32::try_from(numerator).ok().filter(|n| *n > 0)?, u32::try_from(denominator).ok().filter(|d| *d > 0)?))
}

/// Returns the sync samples of a track as possible boundaries, in order of time. The first sample always counts as one.
///
/// The time of a boundary is the time of the earliest picture after the sync sample in decoding order. This picture is in the
/// same segment. In an open group of pictures some of these are presented before the sync sample.
pub(crate) fn sync_points<'a>(track: &'a Track, timeline: &'a Timeline) -> impl Iterator<Item = SyncPoint> + 'a {
    let (mut bytes, mut latest) = (0_u64, None);
    let mut samples = timeline.walk(&track.samples, 0..timeline.len());
    let mut pending: Option<SyncPoint> = None;
    std::iter::from_fn(move || {
        for timed in samples.by_ref() {
            let before = bytes;
            bytes = bytes.saturating_add(written(track, &timed.sample));
            if latest.is_none_or(|latest| timed.sample.sync && timed.pts > latest) {
                latest = Some(timed.pts);
                let point = SyncPoint { ordinal: timed.ordinal, time: timed.pts, bytes: before, is_open: false };
                if let Some(done) = pending.replace(point) {
                    return Some(done);
                }
            } else if let Some(point) = pending.as_mut().filter(|point| timed.pts < point.time) {
                (point.time, point.is_open) = (timed.pts, true);
            }
        }
        pending.take()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Made, table, video};

    /// Groups of I B B P B B in decoding order. In an open group the first two B pictures are presented before the I
    /// picture.
    fn groups(count: u32, is_open: bool) -> Track {
        let composition = if is_open { [2, 0, 0, 2, 0, 0] } else { [0, 2, 0, 0, 2, 0] };
        let made = |i: u32| Made {
            size: 10,
            duration: 512,
            composition: 512 * composition[i as usize % 6],
            sync: i.is_multiple_of(6),
        };
        video(table(&(0..count * 6).map(made).collect::<Vec<_>>(), 0, 0), 12_800, Vec::new())
    }

    fn points(track: &Track) -> Vec<(u32, i64, u64, bool)> {
        let timeline = Timeline::new(track, Timescale::MILLIS, 0);
        sync_points(track, &timeline).map(|p| (p.ordinal, p.time / 512, p.bytes, p.is_open)).collect()
    }

    #[test]
    fn the_rate_is_the_highest() {
        let rate = |durations: &[u32]| {
            let made = |duration: &u32| Made { size: 10, duration: *duration, composition: 0, sync: true };
            let track = video(table(&durations.iter().map(made).collect::<Vec<_>>(), 0, 0), 600, Vec::new());
            let timeline = Timeline::new(&track, Timescale::MILLIS, 0);
            Facts::of(&track, &timeline, |_| {}).unwrap().rate(track.timescale)
        };
        assert_eq!(rate(&[24; 100]), Some((25, 1)));
        assert_eq!(rate(&[20, 20, 20, 21].repeat(50)), Some((5927, 200)));
        assert_eq!(rate(&[[24; 100], [10; 100]].concat()), Some((60, 1)), "the second half has 60 a second");
    }

    #[test]
    fn hidden_pictures_do_not_count_for_the_rate() {
        // In thousandths, a rate of 29.97 is uneven.
        let made = |i: u32| Made {
            size: 10,
            duration: if i.is_multiple_of(3) { 34 } else { 33 },
            composition: 0,
            sync: i == 0,
        };
        let edit = millpond_media::movie::Edit { duration: 0, media_time: Some(5000) };
        let track = video(table(&(0..300).map(made).collect::<Vec<_>>(), 0, 0), 1000, vec![edit]);
        let timeline = Timeline::new(&track, Timescale::MILLIS, 0);
        assert_eq!(Facts::of(&track, &timeline, |_| {}).unwrap().rate(track.timescale), Some((30, 1)));
    }

    #[test]
    fn closed_groups_begin_with_their_sync_sample() {
        assert_eq!(points(&groups(3, false)), [(0, 0, 0, false), (6, 6, 60, false), (12, 12, 120, false)]);
    }

    #[test]
    fn open_groups_begin_with_what_shows_first() {
        let expected = [(0, 1, 0, true), (6, 7, 60, true), (12, 13, 120, true)];
        assert_eq!(points(&groups(3, true)), expected);
    }
}
