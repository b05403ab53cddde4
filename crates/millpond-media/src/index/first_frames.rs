//! Reads what sample entries don't tell from some frames of a track.
//!
//! Layer, channels and sampling rate of MPEG audio: ffmpeg writes two channels for mono. Whether samples of `hev1` and
//! `avc3` hold parameter sets: see [`in_band`].

use crate::{
    boxes::Node,
    codec::{Codec, MpegAudioConfig, TrackKind, from_quicktime},
    index::{in_band, lane::Arrived},
    movie::{Movie, Track},
    units::ByteRange,
};

/// Length of a frame header in bytes.
const HEADER: u64 = 4;
/// Most tracks of each kind whose frames are read.
const MOST: usize = 16;

/// Returns the ranges to read; none where the media is in another object.
pub(crate) fn wanted(movie: &Movie) -> Vec<ByteRange> {
    if movie.external_media.is_some() {
        return Vec::new();
    }
    let headers = movie.tracks.iter().filter_map(header).take(MOST);
    let pictures =
        movie.tracks.iter().chain(&movie.clips).map(in_band::wanted).filter(|ranges| !ranges.is_empty()).take(MOST);
    let mut ranges: Vec<ByteRange> = headers.chain(pictures.flatten()).collect();
    ranges.sort_unstable();
    ranges.dedup();
    ranges
}

/// Corrects the tracks by the frames that arrived.
pub(crate) fn learn(movie: &mut Movie, arrived: &Arrived) {
    for track in movie.tracks.iter_mut().chain(&mut movie.clips) {
        in_band::learn(track, arrived);
        let read =
            header(track).and_then(|range| arrived.get(range)).and_then(|bytes| MpegAudioConfig::of_frame(bytes));
        let Some(config) = read else { continue };
        track.kind = TrackKind::Audio { channels: config.channels, sample_rate: config.sample_rate };
        track.codec = Codec::MpegAudio(config);
        if let Some(entry) = Node::new(&track.sample_entry, 0, "stsd") {
            track.sample_entry = from_quicktime::sample_entry(&entry, &track.codec, track.kind);
        }
    }
}

/// Returns the range of the first frame of MPEG audio's header.
fn header(track: &Track) -> Option<ByteRange> {
    let first = matches!(track.codec, Codec::MpegAudio(_)).then(|| track.samples.get(0))??.range;
    (first.len() >= HEADER).then(|| ByteRange::at(first.start, HEADER))
}
