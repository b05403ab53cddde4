//! The access units of one track as packets of Opus.

use crate::{
    decoder::Decoder,
    resampler::{RATE, Resampler},
};
use bytes::Bytes;
use millpond_media::{codec::make, movie::Track, units::Timescale};
use opus_rs::{Application, OpusEncoder};

/// Samples per channel of a packet: 20 ms.
const PACKET: usize = 960;
/// Samples by which a decoder's output is later than the encoder's input: the overlap of its windows (RFC 6716 4.3.7).
const LOOKAHEAD: i64 = 120;
/// Bits a second of a channel, at which music is transparent to most.
const BIT_RATE: u32 = 64_000;
/// Most bytes of a frame (RFC 6716 3.2.1).
const MOST_BYTES: usize = 1275;
/// Highest work of the encoder, from 0 to 10. Beyond it takes more time than it gains.
const COMPLEXITY: i32 = 5;

/// A packet of Opus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpusPacket {
    /// Presentation time in 48 kHz, on the clock of the track's times.
    pub pts: i64,
    /// Its bytes.
    pub data: Bytes,
}

/// Makes packets of Opus of the access units of one track, in their order.
pub struct OpusTranscoder {
    decoder: Decoder,
    resampler: Resampler,
    encoder: Box<OpusEncoder>,
    timescale: Timescale,
    /// Time of the unit with which the samples began, in the track's ticks, and samples per channel since then.
    began: Option<(i64, u64)>,
    /// Samples in 48 kHz that wait for a whole packet.
    waiting: Vec<f32>,
    /// Time of the next packet. Times never go back.
    at: i64,
    samples: Vec<f32>,
    /// Units that could not be decoded.
    damaged: u64,
}

impl OpusTranscoder {
    /// Makes that of a track, and the track as it is delivered; `None` where the track is not of AAC LC, HE-AAC, PCM or G.711, is
    /// encrypted, has more than two channels, or a rate that is not in use.
    #[must_use]
    pub fn of(track: &Track) -> Option<(Self, Track)> {
        let decoder = Decoder::of(&track.codec).filter(|_| track.protection.is_none())?;
        let channels = decoder.channels();
        let resampler = Resampler::new(decoder.rate(), channels)?;
        let mut encoder = OpusEncoder::new(RATE as i32, channels, Application::RestrictedLowDelay).ok()?;
        encoder.bitrate_bps = (BIT_RATE * channels as u32) as i32;
        encoder.complexity = COMPLEXITY;
        let made = make::opus(channels as u8).ok()?;
        let delivered = Track::live(track.id, made, Timescale::new(RATE)?, &track.language);
        let this = Self {
            decoder,
            resampler,
            encoder: Box::new(encoder),
            timescale: track.timescale,
            began: None,
            waiting: Vec::new(),
            at: i64::MIN,
            samples: Vec::new(),
            damaged: 0,
        };
        Some((this, delivered))
    }

    /// Whether a track can be transcoded.
    #[must_use]
    pub fn takes(track: &Track) -> bool {
        Self::of(track).is_some()
    }

    /// Bits a second of the packets.
    #[must_use]
    pub fn bit_rate(&self) -> u32 {
        BIT_RATE * self.decoder.channels() as u32
    }

    /// Units so far that could not be decoded, and became silence.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Takes an access unit with its presentation time in the track's ticks. Appends the packets that are complete now.
    ///
    /// Where the time is another one than that of the samples before, as after a loss, their rest is dropped, and packets begin at the new time.
    pub fn push(&mut self, pts: i64, unit: &[u8], out: &mut Vec<OpusPacket>) {
        if !self.goes_on(pts) {
            self.decoder.reset();
            self.resampler.reset();
            self.waiting.clear();
            self.began = Some((pts, 0));
            self.at = self.at.max(rescaled(pts, self.timescale.get(), RATE) - LOOKAHEAD);
        }
        self.samples.clear();
        self.damaged += u64::from(!self.decoder.decode(unit, &mut self.samples));
        if let Some((_, count)) = &mut self.began {
            *count += (self.samples.len() / self.decoder.channels()) as u64;
        }
        self.resampler.push(&self.samples, &mut self.waiting);
        self.encode(out);
    }

    /// Whether a unit of a time follows the samples before, with a difference of at most 10 ms.
    fn goes_on(&self, pts: i64) -> bool {
        let Some((began, samples)) = self.began else { return false };
        let samples = i64::try_from(samples).unwrap_or(i64::MAX);
        let expected = began.saturating_add(rescaled(samples, self.decoder.rate(), self.timescale.get()));
        pts.abs_diff(expected) <= u64::from(self.timescale.get() / 100)
    }

    fn encode(&mut self, out: &mut Vec<OpusPacket>) {
        let length = PACKET * self.decoder.channels();
        let whole = self.waiting.len() / length * length;
        let mut buffer = [0; MOST_BYTES];
        for samples in self.waiting[..whole].chunks(length) {
            // All its arguments are as it needs them. A packet that fails is one that is lost.
            if let Ok(bytes) = self.encoder.encode(samples, PACKET, &mut buffer) {
                out.push(OpusPacket { pts: self.at, data: Bytes::copy_from_slice(&buffer[..bytes]) });
            }
            self.at += PACKET as i64;
        }
        self.waiting.drain(..whole);
    }
}

impl std::fmt::Debug for OpusTranscoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpusTranscoder").field("began", &self.began).field("at", &self.at).finish_non_exhaustive()
    }
}

/// Converts ticks to another timescale, rounded down.
fn rescaled(ticks: i64, from: u32, to: u32) -> i64 {
    let ticks = i128::from(ticks) * i128::from(to);
    i64::try_from(ticks.div_euclid(i128::from(from.max(1)))).unwrap_or(i64::MAX)
}
