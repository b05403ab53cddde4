//! PCM: `ipcm` with `pcmC` (ISO/IEC 23003-5 5.1), and QuickTime's types for G.711 and values of 8 bits.

use super::{Made, PATH, entry};
use crate::{
    codec::{PcmCoding, PcmConfig, audio::pcm, parse_sample_entry},
    error::MediaError,
    units::Timescale,
};

/// Makes an entry for PCM with this coding. `channels` is at least 1; `sample_rate` is in frames per second.
///
/// # Errors
/// A frame is longer than an access unit.
pub fn pcm(coding: PcmCoding, channels: u16, sample_rate: Timescale) -> Result<Made, MediaError> {
    let rate = sample_rate.get();
    let (kind, value_bits) = match coding {
        PcmCoding::MuLaw => (*b"ulaw", 16),
        PcmCoding::ALaw => (*b"alaw", 16),
        PcmCoding::Unsigned8 => (*b"raw ", 8),
        PcmCoding::Signed8 => (*b"twos", 8),
        PcmCoding::Signed16(_) => (*b"ipcm", 16),
        PcmCoding::Signed24(_) => (*b"ipcm", 24),
        PcmCoding::Signed32(_) => (*b"ipcm", 32),
        PcmCoding::Float32(_) => (*b"fpcm", 32),
        PcmCoding::Float64(_) => (*b"fpcm", 64),
    };
    let config = PcmConfig { fourcc: kind, coding, channels, sample_rate: rate };
    let configuration = pcm::configuration(&config);
    let is_iso = config.iso_type().is_some();
    let sample_entry = entry::audio(&kind, channels, value_bits, rate, is_iso.then_some((b"pcmC", &configuration[..])));
    let parsed = parse_sample_entry(&sample_entry, *b"soun", PATH, 0)?.with_clock(sample_rate);
    Ok(Made { codec: parsed.codec, kind: parsed.kind, sample_entry })
}
