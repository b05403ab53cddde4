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
}

/// Returns the reordering that the parameter sets of a format state, and that its first samples in decode order show.
pub(super) fn reordering<'a>(format: &Format, samples: impl Iterator<Item = &'a TitleSample>) -> Reordering {
    let times: Vec<i64> = samples.map(|sample| sample.time).collect();
    if !format.is_video() {
        let usual = format.track.codec.samples_per_frame().map_or_else(|| interval(&times), i64::from);
        return Reordering { depth: 0, interval: usual };
    }
    let (syntax, sps) = match &format.track.codec {
        Codec::Avc(config) => (NalSyntax::Avc, config.sps.first()),
        Codec::Hevc(config) => (NalSyntax::Hevc, config.sps.first()),
        _ => return Reordering { depth: 0, interval: interval(&times) },
    };
    let sequence = sps.and_then(|sps| PictureSequence::read(syntax, sps).ok());
    let stated = sequence.and_then(|sequence| sequence.reorder_depth).map_or(0, usize::from);
    Reordering { depth: stated.max(depth(&times)).min(MOST_DEPTH), interval: interval(&times) }
}

impl Reordering {
    /// Returns the ticks by which the first picture of the title is decoded before time 0.
    pub(super) fn early(self) -> i64 {
        self.interval.saturating_mul(self.depth as i64)
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
        let mut last = i64::MIN;
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
        let reordering = Reordering { depth: depth(&all), interval: interval(&all) };
        assert_eq!(reordering, Reordering { depth: 1, interval: 3000 });
        let (first, second) = (samples(&all[..4]), samples(&all[4..]));
        assert_eq!(reordering.decode_times(&first), [-3000, 0, 3000, 6000]);
        assert_eq!(reordering.decode_times(&second), [9000, 12_000, 15_000, 18_000]);
    }

    #[test]
    fn equal_times_rise() {
        let reordering = Reordering { depth: 0, interval: 10 };
        assert_eq!(reordering.decode_times(&samples(&[5, 5, 5])), [5, 6, 7]);
    }

    #[test]
    fn an_empty_segment_is_a_fragment_for_each_track() {
        let segment = CutSegment { number: 3, tracks: vec![Vec::new(), Vec::new()] };
        let bytes = fragments(&segment, &[Reordering::default(); 2]);
        let kinds: Vec<_> = bytes.windows(4).filter(|four| *four == b"moof" || *four == b"mdat").collect();
        assert_eq!(kinds, [b"moof", b"mdat", b"moof", b"mdat"]);
    }
}
