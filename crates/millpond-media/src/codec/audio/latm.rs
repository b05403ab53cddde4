//! AAC in LATM (ISO/IEC 14496-3 1.7): the multiplex of MPEG-4 audio in transport streams and in RTP (RFC 6416).

use crate::{bits::BitReader, codec::SAMPLE_RATES};

/// Object types (table 1.17).
const SBR: u32 = 5;
const PS: u32 = 29;
/// syncExtensionType (1.6.2.1).
const SYNC_EXTENSION: u32 = 0x2b7;
/// Samples per channel of a frame of either length.
const SAMPLES: u32 = 1024;
const SHORT: u32 = 960;

/// The reason why bytes can't be read as LATM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LatmError {
    /// They violate the syntax, or end too early.
    #[error("bytes that are no LATM")]
    Malformed,
    /// No configuration has arrived yet, so frames can't be told apart.
    #[error("LATM before its configuration")]
    Unconfigured,
    /// A property that is not supported.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
}

/// `StreamMuxConfig` (1.7.3) of a single layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamMux {
    /// `AudioSpecificConfig` (1.6.2.1), filled with zeros up to a whole byte.
    pub audio_specific_config: Vec<u8>,
    /// Samples per second of the core coder.
    pub sample_rate: u32,
    /// Samples per channel of a frame.
    pub samples: u32,
    /// Frames of an element.
    sub_frames: u32,
    /// audioMuxVersion.
    version: bool,
}

impl StreamMux {
    /// Reads a configuration that is stated outside of the stream (RFC 6416 7.3).
    ///
    /// # Errors
    /// The bytes are no configuration, or one of something else than AAC in one layer.
    pub fn new(bytes: &[u8]) -> Result<Self, LatmError> {
        let mut bits = BitReader::new(bytes);
        let mux = Self::head(&mut bits)?;
        // rtpmp4apay of GStreamer states nothing behind the AudioSpecificConfig, which may have the extension that LATM leaves out. Frames
        // then have their own lengths.
        if !skip_extension(&mut bits) && !is_padding(&bits) {
            mux.tail(&mut bits)?;
        }
        Ok(mux)
    }

    fn read(bits: &mut BitReader<'_>) -> Result<Self, LatmError> {
        let mux = Self::head(bits)?;
        mux.tail(bits)?;
        Ok(mux)
    }

    /// Reads up to the `AudioSpecificConfig`.
    fn head(bits: &mut BitReader<'_>) -> Result<Self, LatmError> {
        let version = flag(bits)?;
        if version && flag(bits)? {
            return Err(LatmError::Unsupported("LATM of a later version"));
        }
        if version {
            value(bits)?; // taraBufferFullness
        }
        let has_one_framing = flag(bits)?;
        let (sub_frames, programmes, layers) = (field(bits, 6)?, field(bits, 4)?, field(bits, 3)?);
        if !has_one_framing || programmes != 0 || layers != 0 {
            return Err(LatmError::Unsupported("LATM of several programmes or layers"));
        }
        let stated = if version { Some(value(bits)? as usize) } else { None };
        let before = bits.clone();
        let (sample_rate, samples) = audio_specific_config(bits)?;
        let read = bits.position() - before.position();
        let length = stated.unwrap_or(read);
        let rest = length.checked_sub(read).ok_or(LatmError::Malformed)?;
        bits.skip(rest).ok_or(LatmError::Malformed)?;
        let audio_specific_config = aligned(before, length).ok_or(LatmError::Malformed)?;
        Ok(Self { audio_specific_config, sample_rate, samples, sub_frames: sub_frames + 1, version })
    }

    /// Reads what follows the `AudioSpecificConfig`.
    fn tail(&self, bits: &mut BitReader<'_>) -> Result<(), LatmError> {
        if field(bits, 3)? != 0 {
            return Err(LatmError::Unsupported("LATM with frames of a fixed length"));
        }
        field(bits, 8)?; // latmBufferFullness
        if flag(bits)? {
            other_data_length(bits, self.version)?;
        }
        if flag(bits)? {
            field(bits, 8)?; // crcCheckSum
        }
        Ok(())
    }
}

/// Skips the extension of an `AudioSpecificConfig` that tells of SBR (1.6.2.1). Returns whether there is one: as the length of a frame
/// its first bits would be reserved.
fn skip_extension(bits: &mut BitReader<'_>) -> bool {
    let mut ahead = bits.clone();
    if ahead.bits(11) != Some(SYNC_EXTENSION) || ahead.bits(5) != Some(SBR) {
        return false;
    }
    *bits = ahead;
    true
}

/// Tells whether nothing is left but zeros up to a whole byte.
fn is_padding(bits: &BitReader<'_>) -> bool {
    let left = bits.left();
    left < 8 && bits.clone().bits(left) == Some(0)
}

/// Reads the elements of one stream.
#[derive(Clone, Debug, Default)]
pub struct LatmReader {
    mux: Option<StreamMux>,
    has_own: bool,
}

impl LatmReader {
    /// Makes a reader of elements with configurations in them (`muxConfigPresent`, `cpresent=1`).
    #[must_use]
    pub fn in_band() -> Self {
        Self { mux: None, has_own: true }
    }

    /// Makes a reader of elements without configurations (`cpresent=0`).
    #[must_use]
    pub fn configured(mux: StreamMux) -> Self {
        Self { mux: Some(mux), has_own: false }
    }

    /// The configuration of the last element.
    #[must_use]
    pub fn mux(&self) -> Option<&StreamMux> {
        self.mux.as_ref()
    }

    /// Reads an `AudioMuxElement` (1.7.3). Returns its frames, as MP4 files hold them. Data behind the frames is
    /// ignored.
    ///
    /// # Errors
    /// The bytes are no element, their configuration is not supported, or there is none for them.
    pub fn element(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, LatmError> {
        let mut bits = BitReader::new(bytes);
        // useSameStreamMux
        if self.has_own && !flag(&mut bits)? {
            let mux = StreamMux::read(&mut bits)?;
            if self.mux.as_ref() != Some(&mux) {
                self.mux = Some(mux);
            }
        }
        let mux = self.mux.as_ref().ok_or(LatmError::Unconfigured)?;
        (0..mux.sub_frames).map(|_| payload(&mut bits).ok_or(LatmError::Malformed)).collect()
    }
}

/// Returns the frame of an `AudioMuxElement` with a single frame. The length of the frame stands before it, so an element without
/// configuration can be read too.
pub(crate) fn only_frame(element: &[u8]) -> Option<Vec<u8>> {
    let mut bits = BitReader::new(element);
    // useSameStreamMux
    if !bits.flag()? && StreamMux::read(&mut bits).ok()?.sub_frames != 1 {
        return None;
    }
    payload(&mut bits)
}

/// Reads `PayloadLengthInfo` and `PayloadMux` of one frame whose length varies.
fn payload(bits: &mut BitReader<'_>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let part = bits.bits(8)? as usize;
        length += part;
        if part != 255 {
            return bits.bytes(length).filter(|data| !data.is_empty());
        }
    }
}

/// Skips the length of other data, which follow the payloads.
fn other_data_length(bits: &mut BitReader<'_>, version: bool) -> Result<(), LatmError> {
    if version {
        return value(bits).map(|_| ());
    }
    while flag(bits)? {
        field(bits, 8)?;
    }
    field(bits, 8).map(|_| ())
}

/// Returns the next `length` bits, and zeros up to a whole byte.
fn aligned(mut bits: BitReader<'_>, length: usize) -> Option<Vec<u8>> {
    let mut bytes = bits.bytes(length / 8)?;
    let rest = length % 8;
    if rest > 0 {
        bytes.push((bits.bits(rest)? << (8 - rest)) as u8);
    }
    Some(bytes)
}

/// Reads an `AudioSpecificConfig` (1.6.2.1) of AAC. The extension is left out, because only a stated length has space for it.
/// Returns the rate of the core coder and the samples of a frame.
fn audio_specific_config(bits: &mut BitReader<'_>) -> Result<(u32, u32), LatmError> {
    let mut object_type = object_type(bits)?;
    let rate = sampling_frequency(bits)?;
    let channels = field(bits, 4)?;
    if matches!(object_type, SBR | PS) {
        sampling_frequency(bits)?;
        object_type = self::object_type(bits)?;
    }
    if !(1..=4).contains(&object_type) || channels == 0 {
        return Err(LatmError::Unsupported("this kind of AAC in LATM"));
    }
    let is_short = flag(bits)?;
    if flag(bits)? {
        field(bits, 14)?; // coreCoderDelay
    }
    if flag(bits)? {
        return Err(LatmError::Unsupported("this kind of AAC in LATM"));
    }
    Ok((rate, if is_short { SHORT } else { SAMPLES }))
}

fn object_type(bits: &mut BitReader<'_>) -> Result<u32, LatmError> {
    match field(bits, 5)? {
        31 => Ok(32 + field(bits, 6)?),
        object_type => Ok(object_type),
    }
}

fn sampling_frequency(bits: &mut BitReader<'_>) -> Result<u32, LatmError> {
    let rate = match field(bits, 4)? {
        15 => field(bits, 24)?,
        index => SAMPLE_RATES.get(index as usize).copied().unwrap_or(0),
    };
    if rate == 0 { Err(LatmError::Malformed) } else { Ok(rate) }
}

/// Reads `LatmGetValue`: one to four bytes.
fn value(bits: &mut BitReader<'_>) -> Result<u32, LatmError> {
    let bytes = field(bits, 2)? + 1;
    field(bits, bytes as usize * 8)
}

fn field(bits: &mut BitReader<'_>, width: usize) -> Result<u32, LatmError> {
    bits.bits(width).ok_or(LatmError::Malformed)
}

fn flag(bits: &mut BitReader<'_>) -> Result<bool, LatmError> {
    bits.flag().ok_or(LatmError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `StreamMuxConfig` of AAC-LC at 48 kHz with two channels, as ffmpeg writes it.
    const CONFIG: [u8; 6] = [0x40, 0x00, 0x23, 0x20, 0x3f, 0xc0];

    #[test]
    fn a_configuration_outside_of_the_stream() {
        let mux = StreamMux::new(&CONFIG).unwrap();
        assert_eq!((mux.sample_rate, mux.samples, mux.sub_frames), (48_000, 1024, 1));
        assert_eq!(mux.audio_specific_config, [0x11, 0x90]);
        let mut reader = LatmReader::configured(mux);
        assert_eq!(reader.element(&[3, 7, 8, 9, 0]), Ok(vec![vec![7, 8, 9]]));
        assert_eq!(reader.element(&[3, 7, 8]), Err(LatmError::Malformed));
        assert_eq!(reader.element(&[0]), Err(LatmError::Malformed), "a frame without bytes");
        let long: Vec<u8> = [255, 1].into_iter().chain([5; 256]).collect();
        assert_eq!(reader.element(&long), Ok(vec![vec![5; 256]]));
        // The first four bytes end with the AudioSpecificConfig.
        for len in [0, 1, 2, 3, 5] {
            assert_eq!(StreamMux::new(&CONFIG[..len]), Err(LatmError::Malformed));
        }
    }

    #[test]
    fn a_configuration_of_gstreamer() {
        let mux = StreamMux::new(&[0x40, 0x00, 0x23, 0x20, 0xad, 0xca, 0x00]).unwrap();
        assert_eq!((mux.sample_rate, mux.samples, mux.sub_frames), (48_000, 1024, 1));
        assert_eq!(mux.audio_specific_config, [0x11, 0x90]);
        let short = StreamMux::new(&[0x40, 0x00, 0x23, 0x20]).unwrap();
        assert_eq!(short, mux, "without the extension");
        assert_eq!(LatmReader::configured(short).element(&[2, 7, 8]), Ok(vec![vec![7, 8]]));
        assert_eq!(StreamMux::new(&[0x40, 0x00, 0x23, 0x21]), Err(LatmError::Malformed), "no zeros");
        assert_eq!(
            StreamMux::new(&[0x40, 0x00, 0x23, 0x20, 0xad]),
            Err(LatmError::Unsupported("LATM with frames of a fixed length"))
        );
    }

    #[test]
    fn a_configuration_in_elements() {
        let mut reader = LatmReader::in_band();
        assert_eq!(reader.element(&[0x81, 0x83, 0x80]), Err(LatmError::Unconfigured));
        // The configuration of 44 bits behind a flag, then a frame of two bytes.
        let mut bits: Vec<bool> = vec![false];
        let push = |value: u8, bits: &mut Vec<bool>| bits.extend((0..8).rev().map(|bit| value >> bit & 1 == 1));
        CONFIG.iter().for_each(|byte| push(*byte, &mut bits));
        bits.truncate(1 + 44);
        [2, 7, 8].into_iter().for_each(|byte| push(byte, &mut bits));
        let bytes: Vec<u8> = bits
            .chunks(8)
            .map(|byte| byte.iter().enumerate().fold(0, |all, (place, bit)| all | u8::from(*bit) << (7 - place)))
            .collect();
        assert_eq!(reader.element(&bytes), Ok(vec![vec![7, 8]]));
        assert_eq!(reader.mux(), Some(&StreamMux::new(&CONFIG).unwrap()));
        // The same configuration again: one frame of a byte.
        assert_eq!(reader.element(&[0x80, 0x84, 0x80]), Ok(vec![vec![9]]));
    }
}
