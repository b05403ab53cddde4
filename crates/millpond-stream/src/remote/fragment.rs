//! Segments of a title as movie fragments.

use super::cutter::{CutSegment, TitleSample};
use crate::Format;
use bytes::Bytes;
use millpond_media::{Codec, NalSyntax, PictureSequence};
use millpond_package::fmp4::{FragmentSample, TrackRun, fragment_head};

/// Greatest reorder depth of H.264 and HEVC.
const MOST_DEPTH: usize = 16;

/// How the pictures of a title are reordered: the same in all of its segments, so that each can be made alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reordering {
    /// Pictures that are decoded before one that is presented earlier.
    depth: usize,
    /// Usual ticks from one picture to the next.
    interval: i64,
    /// Ticks by which samples are presented before time 0, in whole intervals: encoders of sound begin with such ones.
    before: i64,
}

/// Returns the reordering that the parameter sets of a format state, and that its first samples in decode order show. These begin the title.
pub(super) fn reordering<'a>(format: &Format, samples: impl Iterator<Item = &'a TitleSample>) -> Reordering {
    let times: Vec<i64> = samples.map(|sample| sample.time).collect();
    let (depth, interval) = order(format, &times);
    Reordering { depth, interval, before: before(&times, interval, i64::from(format.timescale())) }
}

/// Returns the reorder depth of a format, and the usual ticks from one sample to the next.
fn order(format: &Format, times: &[i64]) -> (usize, i64) {
    if !format.is_video() {
        return (0, format.track.codec.samples_per_frame().map_or_else(|| interval(times), i64::from));
    }
    let (syntax, sps) = match &format.track.codec {
        Codec::Avc(config) => (NalSyntax::Avc, config.sps.first()),
        Codec::Hevc(config) => (NalSyntax::Hevc, config.sps.first()),
        _ => return (0, interval(times)),
    };
    let sequence = sps.and_then(|sps| PictureSequence::read(syntax, sps).ok());
    let stated = sequence.and_then(|sequence| sequence.reorder_depth).map_or(0, usize::from);
    (stated.max(depth(times)).min(MOST_DEPTH), interval(times))
}

/// Returns the ticks by which samples are presented before time 0, in whole intervals; 0 where that is more than a second.
fn before(times: &[i64], interval: i64, second: i64) -> i64 {
    let ticks = times.iter().copied().min().unwrap_or(0).saturating_neg();
    // Servers round times.
    let (step, least) = (interval.max(1), interval.max(1) / 8);
    if ticks <= least || ticks > second { 0 } else { ((ticks - least - 1) / step + 1).saturating_mul(step) }
}

impl Reordering {
    /// Returns the ticks by which the first sample of the title is decoded before time 0.
    pub(super) fn early(self) -> i64 {
        self.interval.saturating_mul(self.depth as i64).saturating_add(self.before)
    }

    /// Returns the number of intervals in which samples are presented before time 0.
    pub(super) fn frames_before(self) -> i64 {
        self.before / self.interval.max(1)
    }

    /// Returns the usual ticks from one sample to the next.
    pub(super) fn interval(self) -> i64 {
        self.interval
    }

    /// Returns the decode times of samples in decode order: presentation times, some places earlier.
    fn decode_times(self, samples: &[TitleSample]) -> Vec<i64> {
        let mut sorted: Vec<i64> = samples.iter().map(|sample| sample.time).collect();
        sorted.sort_unstable();
        let first = sorted.first().copied().unwrap_or(0);
        // Fragments have no earlier decode times. Clamping the first one alone would shift all of the segment.
        let mut last = self.early().saturating_neg().saturating_sub(1);
        let time = |index: usize| {
            let time = match index.checked_sub(self.depth) {
                Some(place) => sorted[place],
                None => first.saturating_sub(self.interval.saturating_mul((self.depth - index) as i64)),
            };
            last = time.max(last.saturating_add(1));
            last
        };
        (0..samples.len()).map(time).collect()
    }
}

/// Returns the number of places by which a picture is presented earlier than decoded, at most.
fn depth(times: &[i64]) -> usize {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let late = times.iter().enumerate().map(|(place, time)| {
        let shown = sorted.partition_point(|other| other < time);
        place.saturating_sub(shown)
    });
    late.max().unwrap_or(0)
}

/// Returns the usual distance between presentation times: the median.
fn interval(times: &[i64]) -> i64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let mut steps: Vec<i64> = sorted.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied().unwrap_or(1).max(1)
}

/// Returns a segment as movie fragments: one `moof` and one `mdat` for each track, in order. The ID of a track is its place, from 1.
pub(super) fn fragments(segment: &CutSegment, tracks: &[Reordering]) -> Bytes {
    let media: usize = segment.tracks.iter().flatten().map(|sample| sample.data.len()).sum();
    let mut out = Vec::with_capacity(media + 1024 + 16 * segment.tracks.iter().map(Vec::len).sum::<usize>());
    for (place, (samples, reordering)) in segment.tracks.iter().zip(tracks).enumerate() {
        let sequence = segment.number.saturating_mul(tracks.len() as u64).saturating_add(place as u64 + 1);
        let times = reordering.decode_times(samples);
        let rows = samples.iter().enumerate().map(|(index, sample)| {
            let step = times.get(index + 1).map_or(reordering.interval, |next| next - times[index]);
            FragmentSample {
                duration: u32::try_from(step).unwrap_or(1),
                size: u32::try_from(sample.data.len()).unwrap_or(u32::MAX),
                offset: sample.time.saturating_sub(times[index]),
                is_sync: sample.is_key,
            }
        });
        let begins = times.first().map_or(0, |first| first.saturating_add(reordering.early()));
        let run = TrackRun {
            id: u32::try_from(place + 1).unwrap_or(u32::MAX),
            decode_time: u64::try_from(begins).unwrap_or(0),
            samples: rows.collect(),
        };
        out.extend_from_slice(&fragment_head(u32::try_from(sequence).unwrap_or(u32::MAX), &[run]));
        samples.iter().for_each(|sample| out.extend_from_slice(&sample.data));
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(times: &[i64]) -> Vec<TitleSample> {
        times.iter().map(|time| TitleSample { time: *time, is_key: false, data: Bytes::from_static(b"x") }).collect()
    }

    #[test]
    fn decode_times_continue_from_segment_to_segment() {
        // I P B B in decode order, twice.
        let all = [0, 3, 1, 2, 4, 7, 5, 6].map(|time| time * 3000);
        let reordering = Reordering { depth: depth(&all), interval: interval(&all), before: 0 };
        assert_eq!(reordering, Reordering { depth: 1, interval: 3000, before: 0 });
        let (first, second) = (samples(&all[..4]), samples(&all[4..]));
        assert_eq!(reordering.decode_times(&first), [-3000, 0, 3000, 6000]);
        assert_eq!(reordering.decode_times(&second), [9000, 12_000, 15_000, 18_000]);
    }

    #[test]
    fn equal_times_rise() {
        let reordering = Reordering { depth: 0, interval: 10, before: 0 };
        assert_eq!(reordering.decode_times(&samples(&[5, 5, 5])), [5, 6, 7]);
    }

    #[test]
    fn sound_before_time_0_keeps_its_times() {
        let before = |first: i64| before(&[first, first + 1024, first + 2048], 1024, 48_000);
        assert_eq!([0, -1, -500, -1023, -1024, -1025].map(before), [0, 0, 1024, 1024, 1024, 1024]);
        assert_eq!([-2112, -48_001].map(before), [2048, 0]);
        let times = [-1024, 0, 1024];
        let sound = Reordering { depth: 0, interval: 1024, before: before(times[0]) };
        assert_eq!((sound.early(), sound.frames_before()), (1024, 1));
        assert_eq!(sound.decode_times(&samples(&times)), times);
        let rounded = Reordering { before: 0, ..sound };
        assert_eq!(rounded.decode_times(&samples(&[-1, 1023, 2047])), [0, 1023, 2047], "the second one is not shifted");
    }

    #[test]
    fn an_empty_segment_is_a_fragment_for_each_track() {
        let segment = CutSegment { number: 3, tracks: vec![Vec::new(), Vec::new()] };
        let bytes = fragments(&segment, &[Reordering::default(); 2]);
        let kinds: Vec<_> = bytes.windows(4).filter(|four| *four == b"moof" || *four == b"mdat").collect();
        assert_eq!(kinds, [b"moof", b"mdat", b"moof", b"mdat"]);
    }
}
