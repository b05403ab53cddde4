//! Where playing begins: the first sample of every track, and its time.

use super::Session;
use crate::rtsp::{block::seconds, track::SentTrack};
use millpond_package::{Kind, PresentedTrack};
use std::{sync::Arc, time::Duration};

impl Session {
    /// Moves every track to a time: pictures to the key frame before it, sound along with them. Gives the time at which
    /// playing begins.
    pub(super) fn seek(&mut self, asked: f64) -> f64 {
        let tracks = self.asset.presentation.tracks();
        let video = self.tracks.iter().find_map(|track| key_frame(&tracks[track.track], asked));
        // Where the first picture comes later, what is heard before it is not left out.
        let from = video.map_or(asked, |(_, at)| at.clamp(0.0, asked));
        for sent in &mut self.tracks {
            let presented = &tracks[sent.track];
            let ordinal = match key_frame(presented, from) {
                Some((ordinal, _)) => ordinal,
                // What lies before the beginning primes the decoder.
                None if from <= 0.0 => 0,
                None => presented.ordinal_at(from).unwrap_or(0),
            };
            sent.begin(ordinal, from);
        }
        from
    }

    /// As [`seek`](Self::seek), for a way through key frames, which have numbers of their own.
    pub(super) fn begin_keys(&mut self, from: f64) -> f64 {
        self.tracks.iter_mut().for_each(|sent| sent.begin(0, from));
        from
    }

    /// When the first of the next frames is due.
    pub(super) fn first_due(&self) -> Duration {
        let tracks = self.asset.presentation.tracks();
        let due = self.tracks.iter().filter_map(|sent| {
            let first = tracks[sent.track].samples_of(sent.next..sent.next.saturating_add(1)).pop()?;
            Some(seconds(first.dts, sent.timescale))
        });
        due.min().unwrap_or_default()
    }

    /// The tracks in the presentation, in order, and the next sample of each.
    pub(super) fn cursors(&self) -> (Arc<[u16]>, Vec<u32>) {
        let mut cursors: Vec<_> = self.tracks.iter().map(|sent| (sent.track as u16, sent.next)).collect();
        cursors.sort_unstable();
        (cursors.iter().map(|(track, _)| *track).collect(), cursors.iter().map(|(_, next)| *next).collect())
    }

    /// Name, sequence number and timestamp of a time, track by track.
    pub(super) fn beginnings(&self, from: f64) -> Vec<(String, u16, u32)> {
        let beginning = |sent: &SentTrack| {
            let name = self.asset.presentation.tracks()[sent.track].name().to_owned();
            (name, sent.sequence, sent.timestamp(ticks(from, sent.timescale)))
        };
        self.tracks.iter().map(beginning).collect()
    }
}

/// The key frame that decoding begins with to show a moment, where the track has such, and when it shows.
fn key_frame(track: &PresentedTrack, at: f64) -> Option<(u32, f64)> {
    if track.kind() != Kind::Video {
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
