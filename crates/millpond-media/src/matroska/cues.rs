//! `Cues` (RFC 9559 5.1.5): where key frames and texts are.

use super::{ebml::Element, ids};
use crate::{error::MediaError, work::Work};

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
/// A number of them is no number, or `work` has ended.
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
            found.push(Cue { track, time, cluster, place, duration });
        }
    }
    Ok(found)
}
