//! Measures the beginning of a title: its tracks, their reordering, and its grid.

use super::{
    cutter::{CutSegment, TitleCutter, TitleSample},
    error::RemoteError,
    fragment::{Reordering, reordering},
    grid::Grid,
};
use crate::{
    Format,
    fragmenter::fits,
    reception::{Playback, PlayedFrame},
    source_health::{SourceError, SourceErrorKind},
};
use bytes::Bytes;
use millpond_media::{Timescale, codec::Codec};
use millpond_package::MediaKind;
use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

/// Most frames that the formats of a title are waited for.
const MOST_FRAMES: usize = 4096;

/// The beginning of a title.
pub(super) struct Measured {
    /// Formats with their measured bandwidth. All are known.
    pub(super) formats: Vec<Option<Format>>,
    pub(super) tracks: TitleTracks,
    pub(super) grid: Grid,
    /// Name of the version in URLs.
    pub(super) version: String,
    /// Segments that are complete.
    pub(super) done: Vec<CutSegment>,
    /// Whether the title is over with them.
    pub(super) is_over: bool,
}

/// The tracks of a title, in the order of its formats.
#[derive(Debug)]
pub(super) struct TitleTracks {
    /// Index of each track among those of a playback.
    pub(super) received: Vec<usize>,
    /// Clock of each track, and whether it has pictures.
    pub(super) clocks: Vec<(Timescale, bool)>,
    pub(super) reorderings: Vec<Reordering>,
    /// Bytes a second of each track, as its beginning has them.
    pub(super) rates: Vec<f64>,
    /// Ticks from one frame to the next of each track of a playback.
    pub(super) usual: Vec<i64>,
}

/// Plays the beginning of a title, until its grid is known. `None` where fragmented MP4 would lose a track, such as G.711: as a live stream
/// the title has all of them by RTSP.
///
/// # Errors
/// The server can't play it from its beginning.
pub(super) async fn measure(
    playback: &mut Playback,
    (least, length): (Duration, Duration),
) -> Result<Option<Measured>, SourceError> {
    playback.play(Duration::ZERO, None).await?;
    let early = until_formats(playback).await?;
    let all: Vec<_> = playback.formats().map(|format| format.cloned()).collect();
    // Segments of titles are kept as they are; FLAC is made of live frames only.
    let is_packaged = |format: &Format| {
        fits(format) && format.kind != MediaKind::Text && !matches!(format.track.codec, Codec::Pcm(_))
    };
    let received: Vec<usize> = (0..all.len()).filter(|index| all[*index].as_ref().is_some_and(is_packaged)).collect();
    let formats: Vec<Format> = received.iter().filter_map(|index| all[*index].clone()).collect();
    if formats.is_empty() || formats.len() < all.iter().flatten().count() {
        return Ok(None);
    }
    let clocks: Vec<_> = formats.iter().map(|format| (format.track.timescale, format.is_video())).collect();
    let mut cutter = TitleCutter::measuring(&clocks, least, length);
    let (done, is_over) = until_grid(playback, (&mut cutter, early), &received).await?;
    let samples = |track| {
        let first = done.iter().filter_map(move |segment| segment.tracks.get(track)).flatten();
        first.chain(cutter.samples(track))
    };
    let numbered = || formats.iter().enumerate();
    let reorderings: Vec<_> = numbered().map(|(track, format)| reordering(format, samples(track))).collect();
    let rates: Vec<_> = numbered().map(|(track, format)| rate(format, samples(track))).collect();
    let mut usual = vec![0; all.len()];
    received.iter().zip(&reorderings).for_each(|(index, of)| usual[*index] = of.interval());
    let grid = cutter.grid().unwrap_or(Grid { segment: length, length });
    let first = samples(0).next().map(|sample| sample.data.clone()).unwrap_or_default();
    let version = version(playback.fingerprint(), grid, &first, &reorderings);
    let told = |(format, rate): (Format, &f64)| Some(Format { bandwidth: (rate * 8.0) as u64, ..format });
    let formats = formats.into_iter().zip(&rates).map(told).collect();
    let tracks = TitleTracks { received, clocks, reorderings, rates, usual };
    Ok(Some(Measured { formats, tracks, grid, version, done, is_over }))
}

/// Plays until all formats are known. Returns the frames so far.
async fn until_formats(playback: &mut Playback) -> Result<Vec<PlayedFrame>, SourceError> {
    let mut frames = Vec::new();
    while playback.formats().any(|format| format.is_none()) && frames.len() < MOST_FRAMES {
        let Some(frame) = playback.next().await? else { break };
        frames.push(frame);
    }
    Ok(frames)
}

/// Cuts the frames that came `early`, and further ones until the grid is known. Returns the complete segments, and whether the title is over.
async fn until_grid(
    playback: &mut Playback,
    (cutter, early): (&mut TitleCutter, Vec<PlayedFrame>),
    received: &[usize],
) -> Result<(Vec<CutSegment>, bool), SourceError> {
    let (mut done, mut early) = (Vec::new(), early.into_iter());
    loop {
        let frame = match early.next() {
            Some(frame) => frame,
            None if cutter.grid().is_some() => return Ok((done, false)),
            None => match playback.next().await? {
                Some(frame) => frame,
                None => break,
            },
        };
        let Some(track) = received.iter().position(|index| *index == frame.track) else { continue };
        let too_large = |_| playback.error(SourceErrorKind::TooMuch, RemoteError::TooLarge.to_string());
        done.extend(cutter.push(track, TitleSample::from(frame)).map_err(too_large)?);
    }
    done.extend(cutter.finish());
    Ok((done, true))
}

/// Returns the name of a version: a hash of the description, of the grid, of the first frame, and of the frames before time 0.
fn version(fingerprint: u64, grid: Grid, first: &Bytes, reorderings: &[Reordering]) -> String {
    let mut hasher = DefaultHasher::new();
    (fingerprint, grid.segment, first).hash(&mut hasher);
    reorderings.iter().for_each(|reordering| reordering.frames_before().hash(&mut hasher));
    format!("{:016x}", hasher.finish())
}

/// Returns the bytes a second of a track's samples.
fn rate<'a>(format: &Format, samples: impl Iterator<Item = &'a TitleSample>) -> f64 {
    let (mut bytes, mut first, mut last) = (0, i64::MAX, i64::MIN);
    for sample in samples {
        bytes += sample.data.len();
        (first, last) = (first.min(sample.time), last.max(sample.time));
    }
    let seconds = last.saturating_sub(first).max(1) as f64 / f64::from(format.timescale());
    bytes as f64 / seconds
}
