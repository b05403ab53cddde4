//! Linear PCM of 8, 16 and 24 bits (RFC 3551 4.5.10 and 4.5.11, RFC 3190 4) and G.711 (RFC 3551 4.5.14): whole frames, a
//! value of each channel in turn, with nothing in front.

use super::{
    PayloadError, Piece,
    building::{Building, Join, Progress, Start},
};
use bytes::{Bytes, BytesMut};
use millpond_media::codec::{ByteOrder, Codec, PcmCoding, PcmConfig};

/// PCM as it is in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pcm {
    /// What a value is.
    pub values: Values,
    /// Channels; at least one.
    pub channels: u16,
}

/// What a value of PCM in packets is; the most significant byte comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// 8 bits, of which 128 is silence.
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
    /// `None` for values that no payload format has: those of more than 24 bits.
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

    /// By the name of an encoding in lower case, if it is PCM.
    pub(super) fn named(name: &str, channels: u16) -> Option<Self> {
        let values = [Values::L8, Values::L16, Values::L24, Values::Pcmu, Values::Pcma];
        let values = values.into_iter().find(|values| values.name().eq_ignore_ascii_case(name))?;
        Some(Self { values, channels: channels.max(1) })
    }

    /// Its payload type where that is fixed (RFC 3551 6); those of L16 are of 44.1 kHz, and seldom known.
    pub(super) fn payload_type(self, clock_rate: u32) -> Option<u8> {
        match (self.values, self.channels, clock_rate) {
            (Values::Pcmu, 1, 8000) => Some(0),
            (Values::Pcma, 1, 8000) => Some(8),
            _ => None,
        }
    }

    /// Bytes of a frame.
    fn frame(self) -> usize {
        usize::from(self.channels) * self.values.bytes()
    }

    /// That bytes are whole frames.
    fn is_whole(self, bytes: usize) -> bool {
        bytes.is_multiple_of(self.frame().max(1))
    }
}

impl Values {
    /// The name of its encoding.
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

/// What is done to the frames of a track, once for all who get them, before a [`Packetizer`](super::Packetizer) cuts
/// them: PCM in packets is in one form only, in files in many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Nothing.
    None,
    /// The bytes of each value are turned round.
    Swap(u8),
    /// The sign of values of one byte becomes an offset of 128.
    Offset,
}

impl Conversion {
    /// For the frames of a codec.
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

    /// The frame as it is cut: a copy, unless there is nothing to do.
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

/// One packet a frame, as a second one would need a time of its own.
pub(super) fn cut(frame: &[u8], pcm: Pcm, most: usize, pieces: &mut Vec<Piece>) -> Result<(), PayloadError> {
    let found = || format!("{} bytes", frame.len());
    if frame.len() > most {
        return Err(PayloadError::new(0, found(), "no more than fit into a packet"));
    }
    if !pcm.is_whole(frame.len()) {
        return Err(PayloadError::new(0, found(), "a value of each channel, any number of times"));
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
            return Err(PayloadError::packet(0, found, "a value of each channel, once or more"));
        }
        unit.extend(payload)?;
        unit.close(0);
        Ok(Progress::Closed)
    }

    /// It begins a talkspurt (RFC 3551 4.1).
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
        assert!(sent(97).unwrap_err().contains("found 97 bytes, expected a value of each channel"));
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
