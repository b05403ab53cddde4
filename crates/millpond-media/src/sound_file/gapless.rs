//! First frames of MP3 files that have no sound: `Xing`, `Info` and `VBRI`, and the delays of encoders in the extension of LAME
//! ("Mp3 Info Tag rev 1").

use crate::{bits::BitReader, codec::MpegAudioHeader};

/// Samples by which decoders of layer III delay, and the one by which LAME counts less.
const DECODER_DELAY: i64 = 528 + 1;
/// Bytes of the header of a frame.
const HEADER: usize = 4;
/// Place of `VBRI`, for all frames.
const VBRI: usize = 36;
/// Bytes of the extension before its delays.
const BEFORE_DELAYS: usize = 21;
/// Lowest sampling rate of MPEG-1.
const MPEG1_RATE: u32 = 32_000;

/// Encoder's delay and padding, in samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gapless {
    /// Number of frames behind this one, where stated.
    frames: Option<u32>,
    /// Delay and padding, where stated.
    delays: Option<(u16, u16)>,
}

impl Gapless {
    /// Reads a first frame; `None` where it has sound.
    pub(super) fn read(frame: &[u8]) -> Option<Self> {
        let header = MpegAudioHeader::read(frame).filter(|header| header.layer == 3)?;
        if frame.get(VBRI..).is_some_and(|rest| rest.starts_with(b"VBRI")) {
            return Some(Self::default());
        }
        // The tag stands where the side information ends (ISO/IEC 11172-3 2.4.1.7).
        let side = match (header.sample_rate >= MPEG1_RATE, header.channels) {
            (true, 2) => 32,
            (true, _) | (false, 2) => 17,
            (false, _) => 9,
        };
        let tag = frame.get(HEADER + side..).filter(|tag| tag.starts_with(b"Xing") || tag.starts_with(b"Info"))?;
        Some(Self::of_tag(tag).unwrap_or_default())
    }

    fn of_tag(tag: &[u8]) -> Option<Self> {
        let mut fields = BitReader::new(tag.get(4..)?);
        let flags = fields.bits(32)?;
        let has = |bit: u32| flags >> bit & 1 != 0;
        let frames = if has(0) { fields.bits(32) } else { None };
        // Bytes of the file, a table of places, quality.
        for (bit, bytes) in [(1, 4), (2, 100), (3, 4)] {
            fields.skip(if has(bit) { 8 * bytes } else { 0 })?;
        }
        let extension = fields.rest();
        let mut delays = BitReader::new(extension.get(BEFORE_DELAYS..).unwrap_or_default());
        let delays = delays.bits(12).zip(delays.bits(12)).map(|(delay, padding)| (delay as u16, padding as u16));
        // The extension begins with the encoder's name.
        let delays = delays.filter(|_| extension.first().is_some_and(u8::is_ascii_alphanumeric));
        Some(Self { frames, delays })
    }

    /// Returns the first sample that is heard, and the end, of `frames` frames that have `length` samples each. `None` where all
    /// are heard.
    pub(super) fn shown(&self, frames: u32, length: u32) -> Option<(i64, i64)> {
        let (delay, padding) = self.delays?;
        let whole = i64::from(frames) * i64::from(length);
        let start = i64::from(delay) + DECODER_DELAY;
        // Padding is at the end that the encoder wrote.
        let padding = if self.frames == Some(frames) { i64::from(padding) } else { 0 };
        let end = whole.min(whole - padding + DECODER_DELAY);
        (start < end).then_some((start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(header: [u8; 4], side: usize, tag: &[u8]) -> Vec<u8> {
        let mut frame = [&header[..], &vec![0; side], tag].concat();
        frame.resize(417, 0);
        frame
    }

    fn tag(name: &[u8], encoder: &[u8; 9], delays: [u8; 3]) -> Vec<u8> {
        [name, &[0, 0, 0, 15, 0, 0, 0, 10], &[1; 4], &[2; 100], &[0; 4], encoder, &[0; 12], &delays].concat()
    }

    #[test]
    fn delays_become_the_part_that_is_heard() {
        let info = tag(b"Info", b"LAME3.100", [0x24, 0x03, 0xe8]);
        let gapless = Gapless::read(&frame([0xff, 0xfb, 0x90, 0x04], 32, &info)).unwrap();
        assert_eq!(gapless, Gapless { frames: Some(10), delays: Some((576, 1000)) });
        assert_eq!(gapless.shown(10, 1152), Some((1105, 11_520 - 1000 + 529)));
        assert_eq!(gapless.shown(9, 1152), Some((1105, 9 * 1152)), "cut short");
        assert_eq!(gapless.shown(0, 1152), None);
        let mono = Gapless::read(&frame([0xff, 0xf3, 0x90, 0xc4], 9, &info));
        assert_eq!(mono, Some(gapless));
    }

    #[test]
    fn frames_without_delays_and_frames_with_sound() {
        let plain = tag(b"Xing", &[0; 9], [0x24, 0x03, 0xe8]);
        let gapless = Gapless::read(&frame([0xff, 0xfb, 0x90, 0x04], 32, &plain)).unwrap();
        assert_eq!((gapless.delays, gapless.shown(10, 1152)), (None, None));
        let vbri = [&[0; 15][..], b"VBRI"].concat();
        assert_eq!(Gapless::read(&frame([0xff, 0xfb, 0x90, 0xc4], 17, &vbri)), Some(Gapless::default()));
        let cut = &frame([0xff, 0xfb, 0x90, 0x04], 32, b"Info")[..42];
        assert_eq!(Gapless::read(cut), Some(Gapless::default()));
        assert_eq!(Gapless::read(&frame([0xff, 0xfb, 0x90, 0x04], 32, &[1; 200])), None);
        assert_eq!(Gapless::read(&frame([0xff, 0xfd, 0x90, 0x04], 32, &plain)), None, "layer II");
    }
}
