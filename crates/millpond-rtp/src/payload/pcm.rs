//! Linear PCM of 8, 16 and 24 bits (RFC 3551 4.5.10 and 4.5.11, RFC 3190 4) and G.711 (RFC 3551 4.5.14): whole frames
//! of one value per channel, without a header.

use super::{
    PayloadError, Piece,
    building::{Building, Join, Progress, Start},
};
use bytes::{Bytes, BytesMut};
use millpond_media::codec::{ByteOrder, Codec, PcmCoding, PcmConfig};

/// Format of PCM in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pcm {
    /// Coding of a value.
    pub values: Values,
    /// Channels; at least one.
    pub channels: u16,
}

/// Coding of a PCM value in packets; the most significant byte is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// 8 bits, where 128 is silence.
    L8,
    /// 16 bits, two's complement.
    L16,
    /// 24 bits, two's complement.
    L24,
    /// G.711 μ-law.
    Pcmu,
    /// G.711 A-law.
    Pcma,
}

impl Pcm {
    /// Returns the format for a codec; `None` for values of more than 24 bits, which have no payload format.
    pub(super) fn of(config: &PcmConfig) -> Option<Self> {
        let values = match config.coding {
            PcmCoding::Unsigned8 | PcmCoding::Signed8 => Values::L8,
            PcmCoding::Signed16(_) => Values::L16,
            PcmCoding::Signed24(_) => Values::L24,
            PcmCoding::MuLaw => Values::Pcmu,
            PcmCoding::ALaw => Values::Pcma,
            PcmCoding::Signed32(_) | PcmCoding::Float32(_) | PcmCoding::Float64(_) => return None,
        };
        Some(Self { values, channels: config.channels })
    }

    /// Returns the format of an encoding name in lower case, if it is PCM.
    pub(super) fn named(name: &str, channels: u16) -> Option<Self> {
        let values = [Values::L8, Values::L16, Values::L24, Values::Pcmu, Values::Pcma];
        let values = values.into_iter().find(|values| values.name().eq_ignore_ascii_case(name))?;
        Some(Self { values, channels: channels.max(1) })
    }

    /// Returns the static payload type (RFC 3551 6), if any. Those of L16 are for 44.1 kHz, and seldom supported.
    pub(super) fn payload_type(self, clock_rate: u32) -> Option<u8> {
        match (self.values, self.channels, clock_rate) {
            (Values::Pcmu, 1, 8000) => Some(0),
            (Values::Pcma, 1, 8000) => Some(8),
            _ => None,
        }
    }

    /// Length of a frame in bytes.
    fn frame(self) -> usize {
        usize::from(self.channels) * self.values.bytes()
    }

    /// Whether `bytes` are whole frames.
    fn is_whole(self, bytes: usize) -> bool {
        bytes.is_multiple_of(self.frame().max(1))
    }
}

impl Values {
    /// Name of the encoding.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::L8 => "L8",
            Self::L16 => "L16",
            Self::L24 => "L24",
            Self::Pcmu => "PCMU",
            Self::Pcma => "PCMA",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::L8 | Self::Pcmu | Self::Pcma => 1,
            Self::L16 => 2,
            Self::L24 => 3,
        }
    }
}

/// Conversion of a track's frames, done once for all receivers before a [`Packetizer`](super::Packetizer) divides them:
/// PCM has one form in packets, but several in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// No conversion.
    None,
    /// Reverses the bytes of each value.
    Swap(u8),
    /// Changes signed values of one byte to values with an offset of 128.
    Offset,
}

impl Conversion {
    /// Returns the conversion for frames of a codec.
    #[must_use]
    pub fn of(codec: &Codec) -> Self {
        let Codec::Pcm(config) = codec else { return Self::None };
        match config.coding {
            PcmCoding::Signed8 => Self::Offset,
            PcmCoding::Signed16(ByteOrder::Little) => Self::Swap(2),
            PcmCoding::Signed24(ByteOrder::Little) => Self::Swap(3),
            _ => Self::None,
        }
    }

    /// Converts a frame. The result is a copy, unless nothing has to be changed.
    #[must_use]
    pub fn apply(self, frame: Bytes) -> Bytes {
        let mut bytes = match self {
            Self::None => return frame,
            _ => BytesMut::from(&*frame),
        };
        match self {
            Self::None => {}
            Self::Swap(width) => bytes.chunks_exact_mut(usize::from(width).max(1)).for_each(<[u8]>::reverse),
            Self::Offset => bytes.iter_mut().for_each(|byte| *byte ^= 0x80),
        }
        bytes.freeze()
    }
}

/// Makes one packet per frame, because a second one would need a timestamp of its own.
pub(super) fn cut(frame: &[u8], pcm: Pcm, most: usize, pieces: &mut Vec<Piece>) -> Result<(), PayloadError> {
    let found = || format!("{} bytes", frame.len());
    if frame.len() > most {
        return Err(PayloadError::new(0, found(), "no more than fit into a packet"));
    }
    if !pcm.is_whole(frame.len()) {
        return Err(PayloadError::new(0, found(), "whole frames of one value per channel"));
    }
    if !frame.is_empty() {
        pieces.push(Piece::new(&[], 0..frame.len()));
    }
    Ok(())
}

#[derive(Debug)]
pub(super) struct PcmJoin(pub(super) Pcm);

impl Join for PcmJoin {
    fn start(&self, _payload: &[u8]) -> Result<Start, PayloadError> {
        Ok(Start::Yes)
    }

    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        if payload.is_empty() || !self.0.is_whole(payload.len()) {
            let found = format!("{} bytes", payload.len());
            return Err(PayloadError::packet(0, found, "whole frames of one value per channel"));
        }
        unit.extend(payload)?;
        unit.close(0);
        Ok(Progress::Closed)
    }

    /// The marker begins a talkspurt (RFC 3551 4.1).
    fn marks_ends(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(coding: PcmCoding) -> Codec {
        Codec::Pcm(PcmConfig { fourcc: *b"test", coding, channels: 1, sample_rate: 8000 })
    }

    #[test]
    fn files_become_what_packets_have() {
        let converted = |coding, bytes: &[u8]| Conversion::of(&config(coding)).apply(Bytes::copy_from_slice(bytes));
        let bytes = [1, 2, 3, 4, 5, 6];
        assert_eq!(converted(PcmCoding::Signed16(ByteOrder::Little), &bytes)[..], [2, 1, 4, 3, 6, 5]);
        assert_eq!(converted(PcmCoding::Signed24(ByteOrder::Little), &bytes)[..], [3, 2, 1, 6, 5, 4]);
        assert_eq!(converted(PcmCoding::Signed8, &[0x80, 0, 0x7f])[..], [0, 0x80, 0xff]);
        for coding in [
            PcmCoding::Signed16(ByteOrder::Big),
            PcmCoding::Signed24(ByteOrder::Big),
            PcmCoding::Unsigned8,
            PcmCoding::MuLaw,
            PcmCoding::ALaw,
        ] {
            assert_eq!(Conversion::of(&config(coding)), Conversion::None);
        }
        let frame = Bytes::from_static(&[1, 2]);
        assert_eq!(Conversion::None.apply(frame.clone()).as_ptr(), frame.as_ptr(), "not copied");
    }

    #[test]
    fn only_whole_frames_that_fit_are_sent() {
        let pcm = Pcm { values: Values::L24, channels: 2 };
        let sent = |bytes: usize| {
            let mut pieces = Vec::new();
            cut(&vec![0; bytes], pcm, 100, &mut pieces).map(|()| pieces.len()).map_err(|error| error.to_string())
        };
        assert_eq!((sent(96), sent(0)), (Ok(1), Ok(0)));
        assert!(sent(97).unwrap_err().contains("found 97 bytes, expected whole frames of one value per channel"));
        assert!(sent(102).unwrap_err().contains("found 102 bytes, expected no more than fit into a packet"));
        let mut building = Building::new(100);
        assert_eq!(PcmJoin(pcm).join(&[0; 12], &mut building), Ok(Progress::Closed));
        assert!(PcmJoin(pcm).join(&[0; 10], &mut building).is_err() && PcmJoin(pcm).join(&[], &mut building).is_err());
    }

    #[test]
    fn names_and_fixed_types() {
        assert_eq!(Pcm::named("l16", 2), Some(Pcm { values: Values::L16, channels: 2 }));
        assert_eq!(Pcm::named("pcma", 0), Some(Pcm { values: Values::Pcma, channels: 1 }));
        assert_eq!(Pcm::named("l20", 1), None);
        let fixed = |values, channels, rate| Pcm { values, channels }.payload_type(rate);
        assert_eq!((fixed(Values::Pcmu, 1, 8000), fixed(Values::Pcma, 1, 8000)), (Some(0), Some(8)));
        assert_eq!((fixed(Values::Pcmu, 2, 8000), fixed(Values::Pcma, 1, 16_000)), (None, None));
        assert_eq!(fixed(Values::L16, 2, 44_100), None);
    }
}
