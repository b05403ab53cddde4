//! Upper bounds of segment sizes, for the bit rates in manifests.

use crate::{
    text::Cue,
    timeline::{bandwidth::Load, segmentation::Segments},
};
use millpond_media::{Protection, Sample, Timescale, Track};

/// Most bytes of a fragment besides its samples and their rows: `styp`, `moof`, the header of `mdat`.
pub(crate) const FRAGMENT: u64 = 136;
/// Bytes of the 64-bit size of a large `mdat`.
const LARGE: u64 = 8;
/// Bytes before the cues of a WebVTT segment.
const TEXT_HEAD: u64 = 64;
/// Most bytes of a cue besides its text, settings and identifier.
const CUE: u64 = 40;
/// Most bytes that a byte of text becomes when escaped: `&` is `&amp;`.
const ESCAPED: u64 = 5;

/// Bytes of `saiz`, `saio` and `senc` without entries, and of a group with its description.
const ENCRYPTED: u64 = 17 + 20 + 16 + 28 + 60;

/// The most bytes that encryption adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Added {
    /// To each fragment.
    pub(crate) fragment: u64,
    /// To each sample of it.
    pub(crate) row: u64,
}

/// Returns the most bytes that encryption adds to fragments.
pub(crate) fn added_by_encryption(protection: Option<&Protection>) -> Added {
    // `saiz` also has the size of each entry. A run of a group may be one sample, a clear sample may be one subsample.
    protection.map_or(Added::default(), |protection| {
        let grouped = if protection.groups.is_empty() { 0 } else { 24 };
        Added { fragment: ENCRYPTED, row: u64::from(protection.samples.largest()) + 1 + grouped }
    })
}

/// Returns the bytes of a sample in segments: its own, and those of the parameter sets that precede it.
pub(crate) fn written(track: &Track, sample: &Sample) -> u64 {
    match sample.range.len() {
        0 => 0,
        own => own.saturating_add(track.sets_of(sample).len() as u64),
    }
}

/// Returns the loads of fragmented MP4 segments whose samples have `bytes`, and rows of `row` bytes. Each fragment has
/// `more` bytes of optional boxes.
pub(crate) fn of_fragments(segments: &Segments, bytes: &[u64], more: u64, row: u64) -> Vec<Load> {
    let rows = segments.iter().map(|s| u64::from(s.samples.end.saturating_sub(s.samples.start)));
    let load = |(micros, (rows, bytes)): (u64, (u64, &u64))| {
        let large = if *bytes > u64::from(u32::MAX) - 8 { LARGE } else { 0 };
        Load { micros, bytes: bytes.saturating_add(FRAGMENT + more + large + row * rows) }
    };
    segments.micros().zip(rows.zip(bytes)).map(load).collect()
}

/// Returns the loads of WebVTT segments of text samples with `bytes`. A segment also contains the sample before it
/// where that is still shown.
pub(crate) fn of_text(segments: &Segments, bytes: &[u64]) -> Vec<Load> {
    let samples = segments.iter().map(|s| u64::from(s.samples.end.saturating_sub(s.samples.start)));
    let mut before = 0;
    let load = |(micros, (samples, bytes)): (u64, (u64, &u64))| {
        let text = bytes.saturating_add(std::mem::replace(&mut before, *bytes));
        let cues = CUE * (samples + 1);
        Load { micros, bytes: text.saturating_mul(ESCAPED).saturating_add(TEXT_HEAD + cues) }
    };
    segments.micros().zip(samples.zip(bytes)).map(load).collect()
}

/// Returns the loads of WebVTT segments of a file's cues. A cue is in every segment during which it is shown.
pub(crate) fn of_cues(segments: &Segments, cues: &[Cue]) -> Vec<Load> {
    let millis = |ticks: &i64| segments.timescale().convert(*ticks, Timescale::MILLIS);
    let starts: Vec<i64> = segments.times().iter().map(millis).collect();
    // Bytes of cues that begin, and that end, with each segment.
    let mut begin = vec![0_u64; starts.len() + 1];
    let mut end = vec![0_u64; starts.len() + 1];
    for cue in cues {
        let bytes = CUE + (cue.text.len() + cue.settings.len() + cue.id.as_ref().map_or(0, String::len)) as u64;
        // The segment in which the cue begins, and the first segment after it.
        let from = starts.partition_point(|start| *start <= cue.start).saturating_sub(1);
        let to = starts.partition_point(|start| *start < cue.end).max(from + 1);
        begin[from] = begin[from].saturating_add(bytes);
        end[to] = end[to].saturating_add(bytes);
    }
    let mut held = 0_u64;
    let load = |(micros, (begun, ended)): (u64, (&u64, &u64))| {
        held = held.saturating_add(*begun).saturating_sub(*ended);
        Load { micros, bytes: held.saturating_add(TEXT_HEAD) }
    };
    segments.micros().zip(begin.iter().zip(&end)).map(load).collect()
}

#[cfg(test)]
mod tests {
    use crate::{
        Plan, Presentation, PresentationOptions, Sidecar, SourceObject,
        delivery::{container::Container, text_track, transport},
        fmp4,
        presentation::track::PresentedTrack,
        testing::{Made, audio, frames, joined, movie, reordered, table, video},
        text::Cue,
    };
    use millpond_media::Work;
    use std::sync::Arc;

    fn len(plan: Plan) -> u64 {
        match plan {
            Plan::Items(parts) => parts.iter().map(crate::PlanItem::len).sum(),
            Plan::Rewrite(rewrite) => rewrite.len().unwrap(),
        }
    }

    /// Returns the peak segment bit rate of RFC 8216 4.1, by trying all runs.
    fn peak(track: &PresentedTrack, size: impl Fn(u32) -> u64) -> u64 {
        let all: Vec<(f64, u64)> =
            track.segments().iter().map(|s| (s.timescale.seconds(s.duration), size(s.number))).collect();
        let target = all.iter().map(|(seconds, _)| seconds.round().max(1.0)).fold(0.0, f64::max);
        let mut peak = 0.0_f64;
        for first in 0..all.len() {
            let (mut seconds, mut bytes) = (0.0, 0);
            for (more, len) in &all[first..] {
                (seconds, bytes) = (seconds + more, bytes + len);
                if (0.5 * target..=1.5 * target).contains(&seconds) {
                    peak = peak.max(bytes as f64 * 8.0 / seconds);
                }
            }
        }
        peak as u64
    }

    fn shapes() -> Vec<Vec<Made>> {
        let varying = |i: u32| Made { size: 900, duration: 512 + i % 3, composition: 0, sync: i.is_multiple_of(40) };
        let last = |i: u32| Made { size: 900, duration: if i == 99 { 700 } else { 512 }, composition: 0, sync: i == 0 };
        vec![
            reordered(250, 25, 300),
            reordered(250, 100, 300),
            reordered(30, 30, 300),
            (0..500).map(varying).collect(),
            (0..100).map(last).collect(),
            (0..100).map(|i| Made { size: 50 + i, duration: 512, composition: 0, sync: true }).collect(),
        ]
    }

    #[test]
    fn no_stated_rate_is_under_the_true_peak() {
        for (number, shape) in shapes().into_iter().enumerate() {
            let tracks = || {
                let pictures = video(table(&shape, 48, 1), 12_800, Vec::new());
                let pictures = if number % 2 == 0 { joined(pictures, 20, 70) } else { pictures };
                vec![pictures, audio(table(&frames(468), 1 << 24, 1), "eng", Vec::new())]
            };
            // A manifest that states less than the actual bit rate.
            let sources =
                vec![SourceObject { bandwidth: Some(10), ..SourceObject::new(movie(tracks()), "a.mp4".into()) }];
            let p =
                Presentation::build(sources, Vec::new(), &PresentationOptions::default(), &Work::unlimited()).unwrap();
            for track in p.tracks() {
                let stated = track.bandwidth().peak;
                let found = peak(track, |n| fmp4::segment(&p, track, n).map_or(0, len));
                assert!(stated >= found, "shape {number} {}: {stated} stated, {found} found", track.name());
                assert!(stated <= found + found / 20 + 2000, "shape {number} {}: {stated}, {found}", track.name());
                if transport::is_carried(&p, track) {
                    let stated = transport::bandwidth(&p, track).peak;
                    let found = peak(track, |n| transport::segment(&p, track, n).unwrap().map_or(0, len));
                    assert!(stated >= found, "shape {number} {}: TS {stated} stated, {found} found", track.name());
                    assert!(stated <= found + found / 10, "shape {number} {}: TS {stated}, {found}", track.name());
                }
            }
        }
    }

    #[test]
    fn no_stated_rate_of_subtitles_is_under_the_true_peak() {
        let cue = |start: i64, end: i64, text: &str| Cue { start, end, text: text.to_owned(), ..Cue::default() };
        let long = "word ".repeat(100);
        let cues =
            [cue(0, 9_500, "a sign"), cue(3_000, 5_000, &long), cue(3_900, 4_000, &long), cue(20_000, 30_000, "x")];
        let film = movie(vec![video(table(&reordered(250, 25, 300), 48, 1), 12_800, Vec::new())]);
        let sidecar = Sidecar {
            language: "eng".into(),
            name: String::new(),
            cues: Arc::new(cues.to_vec()),
            default: false,
            forced: false,
        };
        let sources = vec![SourceObject::new(film, "a.mp4".into())];
        let p =
            Presentation::build(sources, vec![sidecar], &PresentationOptions::default(), &Work::unlimited()).unwrap();
        let text = p.track("s1").unwrap();
        for container in [Container::Fmp4, Container::Ts] {
            let found = peak(text, |n| len(text_track::segment(&p, text, n, container).unwrap().unwrap()));
            let stated = text.bandwidth().peak;
            assert!(stated >= found && stated < found * 2, "{stated} stated, {found} found");
        }
    }
}
