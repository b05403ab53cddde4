//! The clips of a track: stretches of its samples, each of which needs another decoder than the stretch before.

use super::parts::Part;

/// Shortest clip of another kind than most samples, in ticks of 90 kHz. For a shorter clip, players would set up a decoder twice.
/// Damaged headers look like other kinds, too.
const SHORTEST: i64 = 90_000;
/// Most clips of a track. A track with more clips keeps only the samples of its main kind.
const MOST_CLIPS: usize = 64;
/// Fate of samples of another kind than the main one, as the end of a reason: they are a clip.
const AS_CLIPS: &str = "they are played by HLS and DASH, and left out of RTSP";
/// Fate of samples that are too few for a clip.
const AS_SHORT: &str = "clips shorter than a second are left out";
/// Fate of samples of other kinds in a track with too many clips.
const AS_TOO_MANY: &str = "the track has more than 64 clips, so they are left out";

/// The parts of a track that are played.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) parts: Vec<Part>,
    /// Kind of most samples.
    pub(super) main: usize,
    /// Samples of other kinds.
    pub(super) others: Vec<OtherKind>,
    /// Whether the first samples are of another kind than the main one.
    pub(super) begins_otherwise: bool,
}

/// Samples of another kind than the main one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OtherKind {
    pub(super) kind: usize,
    pub(super) samples: u64,
    /// Fate of the samples, as the end of a reason.
    pub(super) fate: &'static str,
}

impl Played {
    /// Chooses among the parts of a track.
    pub(super) fn of(mut parts: Vec<Part>) -> Self {
        let main = main_kind(&parts);
        let begins_otherwise = parts.first().is_some_and(|first| first.kind != main);
        let mut others = Vec::new();
        let short: Vec<bool> = stretches(&parts).into_iter().flat_map(|stretch| is_short(stretch, main)).collect();
        leave_out(&mut parts, short, AS_SHORT, &mut others);
        if stretches(&parts).len() > MOST_CLIPS {
            let other = parts.iter().map(|part| part.kind != main).collect();
            leave_out(&mut parts, other, AS_TOO_MANY, &mut others);
        }
        parts.iter().filter(|part| part.kind != main).for_each(|part| count(part, AS_CLIPS, &mut others));
        Self { parts, main, others, begins_otherwise }
    }

    /// Returns the parts of the main kind.
    pub(super) fn main_parts(&self) -> Vec<&Part> {
        self.parts.iter().filter(|part| part.kind == self.main).collect()
    }

    /// Returns the parts of each clip; none where all parts are of one kind.
    pub(super) fn clips(&self) -> Vec<Vec<&Part>> {
        let clips = stretches(&self.parts);
        if clips.len() < 2 { Vec::new() } else { clips.into_iter().map(|clip| clip.iter().collect()).collect() }
    }
}

/// Returns the runs of parts of one kind.
fn stretches(parts: &[Part]) -> Vec<&[Part]> {
    parts.chunk_by(|a, b| a.kind == b.kind).collect()
}

/// Returns the kind with most samples; the first one among equals.
fn main_kind(parts: &[Part]) -> usize {
    let most = parts.iter().map(|part| part.kind).max().unwrap_or(0);
    let mut samples = vec![0_u64; most + 1];
    for part in parts {
        if let Some(samples) = samples.get_mut(part.kind) {
            *samples += u64::from(part.samples.len());
        }
    }
    (0..=most).rev().max_by_key(|kind| samples.get(*kind).copied()).unwrap_or(0)
}

/// Returns for each part of a stretch whether it is too short for a clip.
fn is_short(stretch: &[Part], main: usize) -> impl Iterator<Item = bool> {
    let length = stretch.iter().fold(0_i64, |sum, part| sum.saturating_add(part.end.saturating_sub(part.first)));
    let is_other = stretch.first().is_some_and(|part| part.kind != main);
    std::iter::repeat_n(is_other && length < SHORTEST, stretch.len())
}

/// Removes parts, and counts their samples.
fn leave_out(parts: &mut Vec<Part>, which: Vec<bool>, fate: &'static str, others: &mut Vec<OtherKind>) {
    let mut which = which.into_iter();
    parts.retain(|part| {
        let is_out = which.next().unwrap_or(false);
        if is_out {
            count(part, fate, others);
        }
        !is_out
    });
}

/// Counts the samples of a part.
fn count(part: &Part, fate: &'static str, others: &mut Vec<OtherKind>) {
    let samples = u64::from(part.samples.len());
    match others.iter_mut().find(|other| (other.kind, other.fate) == (part.kind, fate)) {
        Some(other) => other.samples += samples,
        None => others.push(OtherKind { kind: part.kind, samples, fate }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{movie::sample_table::SampleTable, units::Timescale};

    /// A part of some seconds, with two samples a second.
    fn part(kind: usize, halves: u32) -> Part {
        let mut table = SampleTable::builder();
        (0..halves).for_each(|_| table.push(0, 1, 45_000, 0, true));
        let (first, end) = (0, i64::from(halves) * 45_000);
        Part { base: 0, kind, start: 0, clock: Timescale::MPEG, first, end, samples: table.finish() }
    }

    type Left = Vec<(usize, u64, &'static str)>;

    /// Kinds of the clips with their number of parts, and the samples of other kinds.
    fn played(parts: &[(usize, u32)]) -> (Vec<(usize, usize)>, Left) {
        let played = Played::of(parts.iter().map(|(kind, halves)| part(*kind, *halves)).collect());
        let clips = played.clips().iter().map(|clip| (clip[0].kind, clip.len())).collect();
        (clips, played.others.iter().map(|other| (other.kind, other.samples, other.fate)).collect())
    }

    #[test]
    fn stretches_of_one_kind_are_clips() {
        assert_eq!(played(&[(0, 8), (0, 8)]), (vec![], vec![]));
        let expected = (vec![(0, 2), (1, 1), (0, 1)], vec![(1, 4, AS_CLIPS)]);
        assert_eq!(played(&[(0, 8), (0, 8), (1, 4), (0, 1)]), expected);
        assert_eq!(played(&[(0, 2), (1, 4)]).1, [(0, 2, AS_CLIPS)], "the kind of most samples is the main one");
        assert_eq!(Played::of(vec![part(0, 2), part(1, 4)]).main_parts().len(), 1);
        assert!(Played::of(Vec::new()).clips().is_empty());
    }

    #[test]
    fn short_clips_are_left_out() {
        assert_eq!(played(&[(0, 8), (1, 1), (0, 8)]), (vec![], vec![(1, 1, AS_SHORT)]));
        let expected = (vec![(0, 2), (1, 1)], vec![(1, 1, AS_SHORT), (1, 3, AS_CLIPS)]);
        assert_eq!(played(&[(0, 8), (1, 1), (0, 8), (1, 3)]), expected);
        assert_eq!(played(&[(0, 1), (0, 1)]), (vec![], vec![]));
    }

    #[test]
    fn too_many_clips_are_left_out() {
        let parts: Vec<_> = (0..66).map(|number| (number % 2, 4)).collect();
        assert_eq!(played(&parts), (vec![], vec![(1, 132, AS_TOO_MANY)]));
        assert_eq!(played(&parts[..64]).0.len(), 64);
    }
}
