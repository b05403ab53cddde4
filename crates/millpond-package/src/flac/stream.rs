//! Properties of a stream, as its STREAMINFO states them (RFC 9639 8.2).

use crate::flac::bits;
use millpond_media::{
    codec::{PcmConfig, make},
    movie::Track,
};

/// Most samples per channel in a frame. The subset of streams allows 4,608 up to 48 kHz (RFC 9639 7).
const MOST_BLOCK: u16 = 4096;
/// Fewest samples per channel in a frame.
const LEAST_BLOCK: u16 = 256;
/// Least number of frames per second: segments begin with a frame, near the boundaries of the pictures.
const FRAMES_A_SECOND: u32 = 10;
/// Most channels.
const MOST_CHANNELS: u16 = 8;
/// Bits of the sampling rate in STREAMINFO.
const RATE_BITS: u32 = 20;

/// Fewest samples per channel in any frame but the last (RFC 9639 8.2).
const LEAST_VARYING: u16 = 16;

/// The number in the headers of frames (RFC 9639 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// Number of the frame. All frames have one length, except for the last.
    Frames,
    /// Number of the frame's first sample. Frames vary in length.
    Samples,
}

/// Properties of all frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlacStream {
    pub(crate) numbering: Numbering,
    /// Samples per channel in a full frame; at least 16.
    pub(crate) block: u16,
    /// Samples per second; at most 20 bits.
    pub(crate) sample_rate: u32,
    /// Channels: 1 to 8.
    pub(crate) channels: u8,
    /// Bits per sample: 8, 12, 16, 20 or 24.
    pub(crate) bits: u8,
}

impl FlacStream {
    /// Returns the stream that has the values of PCM or G.711. Integers of 32 bits and floating point have 24 bits then, because browsers
    /// decode no more. `None` for more channels or a higher rate than FLAC has.
    pub(crate) fn of(config: &PcmConfig) -> Option<Self> {
        let bits = bits(config.coding);
        let channels = u8::try_from(config.channels).ok().filter(|_| (1..=MOST_CHANNELS).contains(&config.channels))?;
        let sample_rate = Some(config.sample_rate).filter(|rate| (1..1 << RATE_BITS).contains(rate))?;
        Some(Self { numbering: Numbering::Frames, block: block(sample_rate), sample_rate, channels, bits })
    }

    /// Returns the samples per channel of each frame that `samples` are cut into: all frames are full except for the last. Where lengths
    /// vary, other frames may follow. If the last frame is too short for that, it takes samples of the frame before it.
    pub(crate) fn lengths(&self, samples: u64) -> Vec<u32> {
        let (full, least) = (u32::from(self.block), u32::from(LEAST_VARYING));
        let (whole, rest) = (samples / u64::from(full), (samples % u64::from(full)) as u32);
        let mut lengths = vec![full; usize::try_from(whole).unwrap_or(0)];
        match lengths.last_mut() {
            _ if rest == 0 => {}
            Some(last) if self.numbering == Numbering::Samples && rest < least => {
                *last = full + rest - least;
                lengths.push(least);
            }
            _ => lengths.push(rest),
        }
        lengths
    }

    /// Returns the body of the STREAMINFO block: lengths of frames in samples and in bytes (unknown), rate, channels, bits, and an
    /// unknown number of samples and checksum.
    pub(crate) fn info(&self) -> [u8; 34] {
        let mut info = [0; 34];
        let shortest = match self.numbering {
            Numbering::Frames => self.block,
            Numbering::Samples => LEAST_VARYING,
        };
        info[..2].copy_from_slice(&shortest.to_be_bytes());
        info[2..4].copy_from_slice(&self.block.to_be_bytes());
        let fields = self.sample_rate << 12 | u32::from(self.channels - 1) << 9 | u32::from(self.bits - 1) << 4;
        info[10..14].copy_from_slice(&fields.to_be_bytes());
        info
    }

    /// Returns a track of PCM as it is delivered in this stream, without samples.
    pub(crate) fn delivered(&self, track: &Track) -> Option<Track> {
        let made = make::flac(&self.info()).ok()?;
        Some(Track {
            name: track.name.clone(),
            enabled: track.enabled,
            alternate_group: track.alternate_group,
            purposes: track.purposes,
            ..Track::live(track.id, made, track.timescale, &track.language)
        })
    }

    /// Most bytes of a frame of `samples` per channel.
    pub(crate) fn most_bytes(&self, samples: u64) -> u64 {
        let bits = samples.saturating_mul(self.channels.into()).saturating_mul(self.bits.into());
        bits.div_ceil(8).saturating_add(OVERHEAD)
    }
}

/// Most bytes of a frame besides its values: header, checksums, and the headers of eight subframes with their wasted bits.
const OVERHEAD: u64 = 16 + 2 + 8 * 5;

/// Returns the samples of a frame: a power of 2, and at most a tenth of a second.
fn block(sample_rate: u32) -> u16 {
    let mut block = MOST_BLOCK;
    while block > LEAST_BLOCK && u32::from(block) * FRAMES_A_SECOND > sample_rate {
        block /= 2;
    }
    block
}
