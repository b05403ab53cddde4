//! Preroll of audio: samples that a decoder needs before the first sample that is heard.

use crate::{codec::Codec, movie::Track};

/// Frames that cover an encoder's delay: 2,112 samples of AAC are most usual.
const DELAY: u32 = 2;
/// Frames of spectral band replication whose filters overlap (ISO/IEC 14496-3 4.6.18); other transforms overlap by one
/// frame.
const REPLICATION: u32 = 2;
/// Object types of AAC with spectral band replication (ISO/IEC 14496-3 table 1.17).
const REPLICATED: [u8; 2] = [5, 29];
/// Most bytes before an MP3 frame that `main_data_begin` can refer to (ISO/IEC 11172-3 2.4.2.7).
const RESERVOIR: u64 = 511;
/// Most MP3 frames that are searched for the bit reservoir: frames of 8 kbit/s have 24 bytes.
const MOST_FRAMES: u32 = 24;
/// Time in which Opus decoders converge: 80 ms (RFC 7845 4.6).
const OPUS_MILLIS: i64 = 80;

/// Returns the sample with which decoding must begin so that sample `shown` is decoded correctly.
pub(super) fn start(track: &Track, shown: u32) -> u32 {
    match &track.codec {
        Codec::Pcm(_) | Codec::Flac(_) | Codec::Alac(_) => shown,
        Codec::MpegAudio(config) if config.layer == 3 => reservoir(track, shown),
        Codec::Opus(_) => convergence(track, shown),
        _ if shown <= DELAY => 0,
        Codec::Aac(config) if REPLICATED.contains(&config.signalled_object_type) => shown - REPLICATION,
        _ => shown - 1,
    }
}

/// Steps back over the bytes that a frame may refer to, and one frame more, whose transform overlaps.
fn reservoir(track: &Track, shown: u32) -> u32 {
    let mut bytes = 0;
    let least = shown.saturating_sub(MOST_FRAMES);
    let mut first = shown;
    while first > least && bytes < RESERVOIR {
        first -= 1;
        bytes += track.samples.get(first).map_or(0, |sample| sample.range.len());
    }
    first.saturating_sub(1)
}

/// Steps back over the convergence time of a decoder. Its output never becomes quite identical, so cuts in the first
/// second keep all samples. Containers of Opus have edit lists, and players follow them.
fn convergence(track: &Track, shown: u32) -> u32 {
    let second = i64::from(track.timescale.get());
    let Some(time) = track.samples.get(shown).map(|sample| sample.dts) else { return shown };
    if time.saturating_sub(track.samples.start_dts()) < second {
        return 0;
    }
    track.samples.at_dts(time.saturating_sub(second * OPUS_MILLIS / 1000)).unwrap_or(0).min(shown)
}
