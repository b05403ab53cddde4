//! Where playing begins: the first sample of every track, and its time.

use crate::{
    manager::opened::Beginning,
    stored::{StoredMedia, seconds},
    transmission::TrackSender,
};
use millpond_package::{MediaKind, PresentedTrack};
use std::{sync::Arc, time::Duration};

/// Moves every track to a time: pictures to the key frame before it, sound to the time of that key frame. Returns the time at
/// which playing begins.
pub(super) fn seek(media: &StoredMedia, senders: &mut [TrackSender], asked: f64) -> f64 {
    let video = senders.iter().find_map(|sender| key_frame(media.track(sender.track)?, asked));
    // Where the first picture shows later, the sound before it is not left out.
    let from = video.map_or(asked, |(_, at)| at.clamp(0.0, asked));
    for sender in senders {
        let Some(presented) = media.track(sender.track) else { continue };
        let ordinal = match key_frame(presented, from) {
            Some((ordinal, _)) => ordinal,
            // Samples before the beginning prime the decoder.
            None if from <= 0.0 => 0,
            None => presented.ordinal_at(from).unwrap_or(0),
        };
        sender.begin(ordinal, from);
    }
    from
}

/// The due time of the first of the next frames.
pub(super) fn first_due(media: &StoredMedia, senders: &[TrackSender]) -> Duration {
    let due = senders.iter().filter_map(|sender| {
        let track = media.track(sender.track)?;
        let first = track.samples_of(sender.next..sender.next.saturating_add(1)).pop()?;
        Some(seconds(first.dts, sender.timescale))
    });
    due.min().unwrap_or_default()
}

/// Indexes of the tracks in rising order, and the next sample of each.
pub(super) fn cursors(senders: &[TrackSender]) -> (Arc<[u16]>, Vec<u32>) {
    let mut cursors: Vec<_> = senders.iter().map(|sender| (sender.track, sender.next)).collect();
    cursors.sort_unstable();
    (cursors.iter().map(|(track, _)| *track).collect(), cursors.iter().map(|(_, next)| *next).collect())
}

/// Name, sequence number and timestamp of a time, track by track.
pub(super) fn beginnings(media: &StoredMedia, senders: &[TrackSender], from: f64) -> Vec<Beginning> {
    let beginning = |sender: &TrackSender| {
        let name = media.format(sender.track.into()).map(|format| format.name.clone()).unwrap_or_default();
        (name, sender.sequence, sender.timestamp(ticks(from, sender.timescale)))
    };
    senders.iter().map(beginning).collect()
}

/// The key frame that decoding begins with to show a moment, and the time at which it shows; `None` for tracks without pictures.
fn key_frame(track: &PresentedTrack, at: f64) -> Option<(u32, f64)> {
    if track.kind() != MediaKind::Video {
        return None;
    }
    let timescale = f64::from(track.source_track()?.timescale.get());
    let ordinal = track.sync_before(at)?;
    let sample = track.samples_of(ordinal..ordinal.saturating_add(1)).pop()?;
    Some((ordinal, sample.pts as f64 / timescale))
}

fn ticks(seconds: f64, timescale: u32) -> i64 {
    (seconds * f64::from(timescale)).round() as i64
}
