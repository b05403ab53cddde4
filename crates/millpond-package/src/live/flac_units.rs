//! PCM and G.711 of live streams as FLAC, which browsers decode: each access unit becomes a frame (RFC 9639). No value of up to 24 bits changes.

use crate::flac::{self, FlacEncoder, FlacStream, Numbering};
use bytes::Bytes;
use millpond_media::{
    codec::{Codec, PcmCoding},
    movie::Track,
};

/// Most samples per channel of a unit: more than any packet has, and as many as the subset of streams allows at most (RFC 9639 7).
const MOST: u16 = 16_384;

/// Makes frames of FLAC of the access units of one track, in their order.
#[derive(Debug)]
pub struct FlacUnits {
    encoder: FlacEncoder,
    coding: PcmCoding,
    channels: usize,
    /// Number of the next sample.
    next: u64,
    values: Vec<i32>,
}

impl FlacUnits {
    /// Makes that of a track, and the track as it is delivered; `None` for other codecs than PCM, and for PCM that no browser decodes as FLAC.
    #[must_use]
    pub fn of(track: &Track) -> Option<(Self, Track)> {
        let Codec::Pcm(config) = &track.codec else { return None };
        let stream = FlacStream::of(config).filter(|_| track.protection.is_none())?;
        let stream = FlacStream { numbering: Numbering::Samples, block: MOST, ..stream };
        let delivered = stream.delivered(track)?;
        let channels = usize::from(stream.channels);
        let encoder = FlacEncoder::new(stream);
        Some((Self { encoder, coding: config.coding, channels, next: 0, values: Vec::new() }, delivered))
    }

    /// Returns the track as it is delivered; `None` as for [`of`](Self::of).
    #[must_use]
    pub fn delivered(track: &Track) -> Option<Track> {
        Self::of(track).map(|(_, track)| track)
    }

    /// Makes the frame of an access unit. Samples beyond the longest frame, and a part of a sample, are left out.
    pub fn encode(&mut self, unit: &[u8]) -> Bytes {
        self.values.clear();
        flac::values(self.coding, unit, &mut self.values);
        let count = (self.values.len() / self.channels).min(usize::from(MOST));
        self.values.truncate(count * self.channels);
        let mut out = Vec::new();
        self.encoder.encode(self.next, &self.values, &mut out);
        self.next += count as u64;
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_media::{codec::make::pcm, units::Timescale};

    #[test]
    fn units_of_g711_become_frames_of_flac() {
        let rate = Timescale::new(8000).unwrap();
        let track = Track::live(1, pcm(PcmCoding::MuLaw, 1, rate).unwrap(), rate, "und");
        let (mut units, delivered) = FlacUnits::of(&track).unwrap();
        assert_eq!(delivered.codec.parameter(), "fLaC");
        let unit: Vec<u8> = (0..160_u32).map(|sample| (sample * 7) as u8).collect();
        let (first, second) = (units.encode(&unit), units.encode(&unit));
        // A frame that varies in length begins with this code; the second one has the number of another sample.
        assert_eq!((&first[..2], &second[..2]), (&[0xff, 0xf9][..], &[0xff, 0xf9][..]));
        assert!(first.len() < 330 && first != second);
        assert!(units.encode(&[]).is_empty() && FlacUnits::of(&delivered).is_none());
    }
}
