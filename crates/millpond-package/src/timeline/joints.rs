//! Finds where the timeline of an asset is divided into periods: at the joints of clips that need another decoder.

use crate::timeline::segmentation::SyncPoint;

/// Longest time between joints of several tracks that are one, in nanoseconds: sound and pictures of a clip differ in length.
pub(crate) const NEAR: i64 = 500_000_000;

/// The clips of one track.
pub(crate) struct Joined {
    /// Times at which its clips begin, except for the first one, in nanoseconds.
    pub(crate) starts: Vec<i64>,
    /// Whether it is a video.
    pub(crate) is_video: bool,
}

/// A joint of clips.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joint {
    /// Time at which a period begins, in nanoseconds.
    pub(crate) time: i64,
    /// Tracks of which a clip begins there.
    pub(crate) tracks: Vec<usize>,
}

/// Returns the joints of the tracks of an asset, in order. At joints without a clip of a video, the period begins with the
/// nearest of `entries`, the times at which the main video can be entered. Empty where there is no such time for each joint.
pub(crate) fn joints(tracks: &[Joined], entries: Option<Vec<i64>>) -> Vec<Joint> {
    let starts =
        |(place, track): (usize, &Joined)| track.starts.iter().map(move |time| (*time, place)).collect::<Vec<_>>();
    let mut all: Vec<(i64, usize)> = tracks.iter().enumerate().flat_map(starts).collect();
    all.sort_unstable();
    let mut groups: Vec<Vec<(i64, usize)>> = Vec::new();
    for (time, place) in all {
        let is_near = |group: &&mut Vec<(i64, usize)>| {
            let first = group.first().map_or(i64::MIN, |(first, _)| *first);
            time.saturating_sub(first) <= NEAR && group.iter().all(|(_, other)| *other != place)
        };
        match groups.last_mut().filter(is_near) {
            Some(group) => group.push((time, place)),
            None => groups.push(vec![(time, place)]),
        }
    }
    let mut joints: Vec<Joint> = Vec::with_capacity(groups.len());
    for group in groups {
        let after = joints.last().map_or(entries.as_ref().and_then(|all| all.first().copied()), |last| Some(last.time));
        let is_video = |place: usize| tracks.get(place).is_some_and(|track| track.is_video);
        let of_video = group.iter().find(|(_, place)| is_video(*place)).map(|(time, _)| *time);
        let first = group.first().map_or(0, |(time, _)| *time);
        let time = match (of_video, &entries) {
            (Some(time), _) => Some(time),
            (None, None) => Some(first),
            (None, Some(entries)) => {
                let later = entries.iter().filter(|entry| after.is_none_or(|after| **entry > after));
                later.min_by_key(|entry| entry.abs_diff(first)).copied()
            }
        };
        let Some(time) = time.filter(|time| after.is_none_or(|after| *time > after)) else { return Vec::new() };
        joints.push(Joint { time, tracks: group.into_iter().map(|(_, place)| place).collect() });
    }
    joints
}

/// Returns the point nearest to `time`, in ticks.
pub(crate) fn nearest(points: impl Iterator<Item = SyncPoint>, time: i64) -> Option<SyncPoint> {
    points.min_by_key(|point| point.time.abs_diff(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn times(tracks: &[(bool, &[i64])], entries: Option<&[i64]>) -> Vec<(i64, Vec<usize>)> {
        let nanos = |times: &[i64]| times.iter().map(|time| time * MS).collect::<Vec<_>>();
        let tracks: Vec<_> =
            tracks.iter().map(|(is_video, starts)| Joined { starts: nanos(starts), is_video: *is_video }).collect();
        let found = joints(&tracks, entries.map(nanos));
        found.into_iter().map(|joint| (joint.time / MS, joint.tracks)).collect()
    }

    #[test]
    fn joints_of_sound_are_those_of_the_pictures() {
        let entries = [0, 1000, 2000, 3000, 4000];
        let found = times(&[(true, &[2000, 4000]), (false, &[1980, 4030])], Some(&entries));
        assert_eq!(found, [(2000, vec![1, 0]), (4000, vec![0, 1])]);
    }

    #[test]
    fn sound_alone_divides_at_the_nearest_key_frame() {
        assert_eq!(times(&[(true, &[]), (false, &[1400])], Some(&[0, 1000, 2000])), [(1000, vec![1])]);
        assert_eq!(
            times(&[(true, &[]), (false, &[400])], Some(&[0, 1000])),
            [(1000, vec![1])],
            "the first is the start"
        );
        assert_eq!(times(&[(true, &[]), (false, &[400])], Some(&[0])), [], "one group of pictures");
        assert_eq!(times(&[(false, &[1400])], None), [(1400, vec![0])]);
    }

    #[test]
    fn two_joints_of_a_track_are_two() {
        assert_eq!(times(&[(false, &[1000, 1200])], None), [(1000, vec![0]), (1200, vec![0])]);
        assert_eq!(times(&[(true, &[]), (false, &[1000, 1200])], Some(&[0, 1000])), [], "one key frame for both");
    }
}
