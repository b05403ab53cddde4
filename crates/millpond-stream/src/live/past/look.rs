//! Looks the samples of parts up: in a window, and on the disk.

use super::super::LiveWindow;
use crate::stored::held;
use bytes::Bytes;
use millpond_media::fragment_stream::{FragmentEvent, FragmentStream};
use millpond_package::live::{Part, SegmentNumber, Window};
use millpond_store::Holds;
use std::{os::unix::fs::FileExt as _, sync::Arc};

/// Bytes that are read from the disk together; one part may have more.
const READ: u64 = 256 << 10;

/// The next part of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: SegmentNumber,
    pub(super) part: usize,
}

/// One sample of a part, with times in ticks of the window's track.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) dts: i64,
    pub(super) pts: i64,
    pub(super) duration: i64,
    pub(super) is_sync: bool,
    pub(super) data: Bytes,
}

/// The result of looking a part up.
#[derive(Debug)]
pub(super) enum Look {
    /// It is in memory.
    Samples(Vec<Sample>),
    /// It is on the disk, or there is none. This is its init segment.
    Stored(Bytes),
    /// No further part follows in its segment.
    Over,
    /// The segment has no media of the track.
    Gap,
    /// It was not cut yet.
    Ahead,
    /// The segment left the window, or belongs to another epoch.
    Left,
}

/// Looks a part of a track up in a window. `epoch` is that of the segments before.
pub(super) fn look(window: &Window, track: usize, place: Place, epoch: u32) -> Look {
    let Some(segment) = window.segment(place.segment) else {
        let is_next = window.segments().next_back().is_none_or(|last| last.number < place.segment);
        return if is_next { Look::Ahead } else { Look::Left };
    };
    let Some(of_track) = segment.track(track).filter(|_| segment.epoch == epoch) else { return Look::Left };
    if of_track.is_gap() {
        return Look::Gap;
    }
    match of_track.parts().get(place.part) {
        Some(part) => Look::Samples(samples(part)),
        None if !of_track.is_closed() => Look::Ahead,
        None if !of_track.parts().is_empty() => Look::Over,
        None => window.init(track, epoch).cloned().map_or(Look::Gap, Look::Stored),
    }
}

fn samples(part: &Part) -> Vec<Sample> {
    let mut dts = part.decode_time;
    // The first piece is the head.
    let pieces = part.rows.iter().zip(part.bytes.iter().skip(1));
    let sample = pieces.map(|(row, data)| {
        let duration = i64::from(row.duration);
        let pts = dts.saturating_add(row.offset);
        let sample = Sample { dts, pts, duration, is_sync: row.is_sync, data: data.clone() };
        dts = dts.saturating_add(duration);
        sample
    });
    sample.collect()
}

/// Reads parts of a track's segment from the disk. Returns their samples and number; no samples where no further part follows.
///
/// # Errors
/// The segment is not on the disk any more, or can't be read.
pub(super) async fn read(
    window: &Arc<LiveWindow>,
    (track, place): (usize, Place),
    init: Bytes,
    holds: &Holds,
) -> Result<(Vec<Sample>, usize), String> {
    let (window, holds) = (window.clone(), holds.clone());
    let reading = move || {
        let parts = window.stored(track, place.segment).ok_or_else(|| "it left the disk".to_owned())?;
        let (mut stream, mut events) = (FragmentStream::new(), Vec::new());
        let broken = |error: millpond_media::MediaError| error.to_string();
        stream.push(&init, &mut events).map_err(broken)?;
        let (mut taken, mut bytes) = (0, 0);
        for (file, range) in parts.into_iter().skip(place.part) {
            let length = range.end.saturating_sub(range.start);
            if taken > 0 && bytes + length > READ {
                break;
            }
            let mut buffer = vec![0; usize::try_from(length).map_err(|error| error.to_string())?];
            file.read_exact_at(&mut buffer, range.start).map_err(|error| error.to_string())?;
            stream.push(&buffer, &mut events).map_err(broken)?;
            (taken, bytes) = (taken + 1, bytes + length);
        }
        let hold = Arc::new(holds.take(bytes));
        let sample = |event| match event {
            FragmentEvent::Sample(sample) => Some(Sample {
                dts: sample.dts,
                pts: sample.pts,
                duration: i64::from(sample.duration),
                is_sync: sample.is_sync,
                data: held(sample.data, &hold),
            }),
            FragmentEvent::Tracks { .. } | FragmentEvent::Fault(_) => None,
        };
        Ok((events.into_iter().filter_map(sample).collect(), taken))
    };
    tokio::task::spawn_blocking(reading).await.map_err(|error| error.to_string())?
}
