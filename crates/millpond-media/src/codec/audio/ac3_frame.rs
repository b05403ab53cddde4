//! Synchronization frames of AC-3 and E-AC-3 (ETSI TS 102 366 4.3.1, E.1.2).

/// Sample rates by `fscod` (4.4.1.3).
const SAMPLE_RATES: [u32; 3] = [48_000, 44_100, 32_000];
/// Bit rates by `frmsizecod` in kbit/s (4.4.1.4).
const KILOBITS: [usize; 19] = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];
/// Greatest `bsid` with the header of AC-3 (4.4.2.1), and those of E-AC-3 (E.1.3.1.6).
const MOST_BASIC: u8 = 10;
const LEAST_ENHANCED: u8 = MOST_BASIC + 1;
const MOST_ENHANCED: u8 = 16;

/// Header of a synchronization frame. The frame itself tells which of both codecs it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ac3Frame {
    /// Bytes of the frame, at least 2.
    pub length: usize,
    /// Blocks of audio.
    pub blocks: u32,
    /// Whether it is E-AC-3.
    pub is_enhanced: bool,
    /// Whether it belongs to a dependent substream, which extends the independent one before it.
    pub is_dependent: bool,
    /// Whether it belongs to the first independent substream.
    pub leads: bool,
    /// `fscod`; 3 stands for the reduced rates of E-AC-3.
    pub rate_code: u8,
    /// Samples per second; `None` where the code is reserved.
    pub sample_rate: Option<u32>,
}

impl Ac3Frame {
    /// Bytes that tell all of it.
    pub const HEADER: usize = 6;
    /// Blocks of a frame in MP4 files: E-AC-3 may divide them among several synchronization frames (F.2).
    pub const BLOCKS: u32 = 6;
    /// Samples per channel of a block.
    pub const SAMPLES: u32 = 256;

    /// Reads a header; `None` where the bytes are too few, or where fields of it are reserved.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [0x0b, 0x77, second, third, fourth, fifth, ..] = *bytes else { return None };
        let rate_code = fourth >> 6;
        let sample_rate = SAMPLE_RATES.get(usize::from(rate_code)).copied();
        match fifth >> 3 {
            ..=MOST_BASIC => {
                let kilobits = *KILOBITS.get(usize::from(fourth >> 1 & 0x1f))?;
                let length = match rate_code {
                    0 => kilobits * 4,
                    // At 44.1 kHz every other frame has two bytes more.
                    1 => 2 * (kilobits * 320 / 147 + usize::from(fourth & 1)),
                    2 => kilobits * 6,
                    _ => return None,
                };
                let (is_enhanced, is_dependent, leads) = (false, false, true);
                Some(Self { length, blocks: Self::BLOCKS, is_enhanced, is_dependent, leads, rate_code, sample_rate })
            }
            LEAST_ENHANCED..=MOST_ENHANCED => {
                let (kind, substream) = (second >> 6, second >> 3 & 7);
                let size = usize::from(second & 7) << 8 | usize::from(third);
                let code = usize::from(fourth >> 4 & 3);
                // The field has the number of blocks, or half of which rate it is.
                let (blocks, sample_rate) = match rate_code {
                    3 => (Self::BLOCKS, SAMPLE_RATES.get(code).map(|rate| rate / 2)),
                    _ => ([1, 2, 3, Self::BLOCKS][code], sample_rate),
                };
                let (is_dependent, length) = (kind == 1, 2 * (size + 1));
                let leads = !is_dependent && substream == 0;
                let frame = Self { length, blocks, is_enhanced: true, is_dependent, leads, rate_code, sample_rate };
                (kind != 3).then_some(frame)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_state_length_blocks_and_rate() {
        let of = |bytes: [u8; 6]| {
            Ac3Frame::read(&bytes).map(|f| (f.length, f.blocks, f.is_enhanced, f.leads, f.sample_rate))
        };
        assert_eq!(of([0x0b, 0x77, 0xb5, 0x0b, 0x1e, 0x40]), Some((1792, 6, false, true, Some(48_000))));
        assert_eq!(of([0x0b, 0x77, 0, 0, 0x55, 0x40]), Some((836, 6, false, true, Some(44_100))));
        assert_eq!(of([0x0b, 0x77, 0x03, 0x7f, 0x3f, 0x87]), Some((1792, 6, true, true, Some(48_000))));
        assert_eq!(of([0x0b, 0x77, 0x00, 0x7f, 0x04, 0x87]), Some((256, 1, true, true, Some(48_000))));
        assert_eq!(of([0x0b, 0x77, 0x40, 0x0f, 0x34, 0x87]), Some((32, 6, true, false, Some(48_000))), "dependent");
        assert_eq!(of([0x0b, 0x77, 0x08, 0x0f, 0x34, 0x87]), Some((32, 6, true, false, Some(48_000))), "another one");
        assert_eq!(of([0x0b, 0x77, 0x00, 0x7f, 0xd4, 0x87]), Some((256, 6, true, true, Some(22_050))));
        assert_eq!(of([0x0b, 0x77, 0, 0, 0xc0, 0x40]), None, "a reserved rate");
        assert_eq!(of([0x0b, 0x77, 0, 0, 0x27, 0x80]), Some((2, 3, true, true, Some(48_000))));
        assert_eq!(of([0x0b, 0x77, 0, 0, 0, 0x90]), None, "a later version");
    }
}
