//! `Cues` (RFC 9559 5.1.5): where key frames and texts are.

use super::{ebml::Element, ids};
use crate::{error::MediaError, work::Work};

/// Most cues of a file: three days of key frames, a second apart.
const MOST: usize = 1 << 18;

/// A key frame or a text of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cue {
    pub(super) track: u64,
    /// Time in ticks of the segment.
    pub(super) time: i64,
    /// Offset of its cluster from the beginning of the segment's body.
    pub(super) cluster: u64,
    /// Offset of its block from the beginning of the cluster's body.
    pub(super) place: Option<u64>,
    /// Ticks of the segment for which a text is shown.
    pub(super) duration: Option<u64>,
}

/// Reads the cues of all tracks, in the order of the file.
///
/// # Errors
/// A number of them is no number, there are more than 262,144, or `work` has ended.
pub(super) fn read(cues: &Element<'_>, work: &Work) -> Result<Vec<Cue>, MediaError> {
    let mut found = Vec::new();
    for point in cues.children().filter(|element| element.id == ids::CUE_POINT) {
        work.spend(1).map_err(|error| MediaError::work("Cues", point.offset, error))?;
        let Some(time) = point.child(ids::CUE_TIME) else { continue };
        let Ok(time) = i64::try_from(time.unsigned()?) else { continue };
        for position in point.children().filter(|element| element.id == ids::CUE_TRACK_POSITIONS) {
            work.spend(1).map_err(|error| MediaError::work("Cues", position.offset, error))?;
            let number = |id: u32| position.child(id).map(|element| element.unsigned()).transpose();
            let (Some(track), Some(cluster)) = (number(ids::CUE_TRACK)?, number(ids::CUE_CLUSTER_POSITION)?) else {
                continue;
            };
            let (place, duration) = (number(ids::CUE_RELATIVE_POSITION)?, number(ids::CUE_DURATION)?);
            if found.len() >= MOST {
                return Err(MediaError::too_large("Cues", cues.offset, MOST as u64 + 1, MOST as u64, "cues"));
            }
            found.push(Cue { track, time, cluster, place, duration });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cues of a point that names `positions` clusters.
    fn point(positions: usize) -> Vec<u8> {
        let mut body = vec![0xb3, 0x81, 7];
        body.extend([0xb7, 0x86, 0xf7, 0x81, 1, 0xf1, 0x81, 9].repeat(positions));
        let size = (1_u64 << 56 | body.len() as u64).to_be_bytes();
        [&[0xbb][..], &size, &body].concat()
    }

    #[test]
    fn too_many_cues_are_refused() {
        let read = |positions: usize| {
            let body = point(positions);
            read(&Element { id: ids::CUES, body: &body, offset: 5 }, &Work::unlimited())
        };
        let cue = Cue { track: 1, time: 7, cluster: 9, place: None, duration: None };
        assert_eq!(read(2), Ok(vec![cue; 2]));
        assert_eq!(read(MOST).map(|cues| cues.len()), Ok(MOST));
        assert!(matches!(read(MOST + 1), Err(MediaError::TooLarge { offset: 5, .. })));
    }
}
