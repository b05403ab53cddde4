//! AC-3 and E-AC-3 (ETSI TS 102 366). The sync frames themselves tell which of both they are.

use super::{
    FrameFault, TsConfiguration,
    bits::BitReader,
    sound::{Look, SoundCode, SoundFrame},
};
use bytes::Bytes;

/// Bytes that tell length and kind of a sync frame.
const HEADER: usize = 6;
/// Blocks of audio in a frame for MP4: E-AC-3 may divide them among several sync frames (F.2).
const BLOCKS: u32 = 6;
/// Samples per channel of a block.
const SAMPLES: u32 = 256;
/// Most sync frames of a frame for MP4: six of one block, each with dependent substreams.
const MOST_FRAMES: usize = 48;
/// Bit rates by `frmsizecod` in kbit/s (4.4.1.4).
const KILOBITS: [usize; 19] = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];

#[derive(Debug, Default)]
pub(super) struct Ac3 {
    /// Fields that the configuration was made of: all but the data rate.
    fields: Option<Vec<u8>>,
    configuration: Option<TsConfiguration>,
}

/// Header of a sync frame (4.3.1, E.1.2).
#[derive(Clone, Copy, Debug)]
struct SyncFrame {
    length: usize,
    blocks: u32,
    is_enhanced: bool,
    /// Whether the frame belongs to the first independent substream.
    leads: bool,
    /// `fscod`.
    rate: u8,
}

impl SyncFrame {
    fn read(bytes: &[u8]) -> Option<Self> {
        let [0x0b, 0x77, second, third, fourth, fifth, ..] = *bytes else { return None };
        let rate = fourth >> 6;
        if fifth >> 3 <= 10 {
            let kilobits = *KILOBITS.get(usize::from(fourth >> 1 & 0x1f))?;
            let length = match rate {
                0 => kilobits * 4,
                // At 44.1 kHz every other frame has two bytes more.
                1 => 2 * (kilobits * 320 / 147 + usize::from(fourth & 1)),
                2 => kilobits * 6,
                _ => return None,
            };
            return Some(Self { length, blocks: BLOCKS, is_enhanced: false, leads: true, rate });
        }
        let (kind, substream) = (second >> 6, second >> 3 & 7);
        let size = usize::from(second & 7) << 8 | usize::from(third);
        let blocks = if rate == 3 { BLOCKS } else { [1, 2, 3, BLOCKS][usize::from(fourth >> 4 & 3)] };
        let leads = kind != 1 && substream == 0;
        (kind != 3 && fifth >> 3 <= 16).then_some(Self {
            length: 2 * (size + 1),
            blocks,
            is_enhanced: true,
            leads,
            rate,
        })
    }

    /// Samples per second: by `fscod`, and by `fscod2` for the reduced rates of E-AC-3.
    fn sample_rate(self, bytes: &[u8]) -> Option<u32> {
        let rates = [48_000, 44_100, 32_000];
        match self.rate {
            3 => Some(rates.get(usize::from(bytes.get(4)? >> 4 & 3))? / 2),
            rate => rates.get(usize::from(rate)).copied(),
        }
    }
}

impl SoundCode for Ac3 {
    fn look(&self, bytes: &[u8], is_end: bool) -> Look {
        let begins_well = |bytes: &[u8]| bytes.iter().zip([0x0b, 0x77]).all(|(found, expected)| *found == expected);
        if bytes.len() < HEADER {
            return if begins_well(bytes) { Look::Short } else { Look::Garbage };
        }
        let Some(first) = SyncFrame::read(bytes).filter(|first| first.leads) else { return Look::Garbage };
        let fixed = u32::from(first.is_enhanced) << 8 | u32::from(first.rate);
        let (mut length, mut blocks) = (first.length, first.blocks);
        if !first.is_enhanced {
            return Look::Frame { length, fixed };
        }
        for _ in 1..MOST_FRAMES {
            let rest = bytes.get(length..).unwrap_or_default();
            if rest.is_empty() && is_end && bytes.len() == length && blocks >= BLOCKS {
                return Look::Frame { length, fixed };
            }
            if rest.len() < HEADER {
                return if begins_well(rest) { Look::Short } else { Look::Garbage };
            }
            let Some(next) = SyncFrame::read(rest).filter(|next| next.is_enhanced) else { return Look::Garbage };
            if next.leads && blocks >= BLOCKS {
                return Look::Frame { length, fixed };
            }
            blocks += if next.leads { next.blocks } else { 0 };
            length += next.length;
        }
        Look::Garbage
    }

    fn open(&mut self, frame: &[u8], out: &mut Vec<SoundFrame>) -> Result<(), FrameFault> {
        let first = SyncFrame::read(frame).ok_or(FrameFault::Garbage)?;
        let rate = first.sample_rate(frame).ok_or(FrameFault::Garbage)?;
        let samples = BLOCKS * SAMPLES;
        let made = if first.is_enhanced { enhanced(frame, rate) } else { basic(frame, rate) };
        let (fields, configuration) = made.ok_or(FrameFault::Garbage)?;
        if self.fields.as_ref() != Some(&fields) {
            self.fields = Some(fields);
            self.configuration = Some(configuration);
        }
        out.push(SoundFrame { data: Bytes::copy_from_slice(frame), samples, rate });
        Ok(())
    }

    fn configuration(&self) -> Option<&TsConfiguration> {
        self.configuration.as_ref()
    }
}

/// Returns the channels of `acmod` and `lfeon` (4.4.2.3, 4.4.2.7).
fn channels(mode: u32, lfe: u32) -> u16 {
    [2, 1, 2, 3, 3, 4, 4, 5][(mode & 7) as usize] + lfe as u16
}

/// Returns the configuration of an AC-3 frame (4.3.1, F.4).
fn basic(frame: &[u8], sample_rate: u32) -> Option<(Vec<u8>, TsConfiguration)> {
    let mut bits = BitReader::new(frame.get(4..)?);
    let (rate, size) = (bits.bits(2)?, bits.bits(6)?);
    let (identification, service, mode) = (bits.bits(5)?, bits.bits(3)?, bits.bits(3)?);
    // Centre mix level, surround mix level, Dolby Surround mode.
    if mode & 1 != 0 && mode != 1 {
        bits.skip(2)?;
    }
    if mode & 4 != 0 {
        bits.skip(2)?;
    }
    if mode == 2 {
        bits.skip(2)?;
    }
    let lfe = bits.bits(1)?;
    let word = rate << 22 | identification << 17 | service << 14 | mode << 11 | lfe << 10 | (size >> 1) << 5;
    let [_, dac3 @ ..] = word.to_be_bytes();
    Some((dac3.to_vec(), TsConfiguration::Ac3 { dac3, channels: channels(mode, lfe), sample_rate }))
}

/// Fields of an E-AC-3 frame's `bsi` (E.1.2).
struct Substream {
    rate: u32,
    identification: u32,
    mode: u32,
    lfe: u32,
    /// `chanmap` of a dependent substream.
    map: u32,
    is_dependent: bool,
}

impl Substream {
    fn read(frame: &[u8]) -> Option<Self> {
        let mut bits = BitReader::new(frame.get(2..)?);
        let is_dependent = bits.bits(2)? == 1;
        bits.skip(3 + 11)?;
        let rate = bits.bits(2)?;
        bits.skip(2)?;
        let (mode, lfe, identification) = (bits.bits(3)?, bits.bits(1)?, bits.bits(5)?);
        // Dialogue normalization and compression, twice for two mono channels.
        for _ in 0..if mode == 0 { 2 } else { 1 } {
            bits.skip(5)?;
            if bits.flag()? {
                bits.skip(8)?;
            }
        }
        let map = if is_dependent && bits.flag()? { bits.bits(16)? } else { 0 };
        Some(Self { rate, identification, mode, lfe, map, is_dependent })
    }
}

/// Returns the configuration of an E-AC-3 frame (F.6): its first independent substream, and the dependent ones of that.
fn enhanced(frame: &[u8], sample_rate: u32) -> Option<(Vec<u8>, TsConfiguration)> {
    let lead = Substream::read(frame)?;
    let (mut dependents, mut locations) = (0_u64, 0_u32);
    let mut rest = frame.get(SyncFrame::read(frame)?.length..)?;
    while let Some(next) = SyncFrame::read(rest).filter(|next| !next.leads) {
        // Other independent substreams are other programmes.
        if let Some(substream) = Substream::read(rest).filter(|substream| substream.is_dependent) {
            dependents += 1;
            locations |= location(substream.map);
        }
        rest = rest.get(next.length..).unwrap_or_default();
    }
    let samples = u64::from(BLOCKS * SAMPLES);
    let data_rate = (frame.len() as u64 * 8 * u64::from(sample_rate) / samples / 1000).min(0x1fff);
    let mut word = u64::from(lead.rate);
    // fscod, bsid, reserved, asvc, bsmod 0, acmod, lfeon, reserved, num_dep_sub, chan_loc or reserved.
    for (value, width) in [
        (lead.identification, 5),
        (0, 1),
        (0, 1),
        (0, 3),
        (lead.mode, 3),
        (lead.lfe, 1),
        (0, 3),
        (dependents.min(15) as u32, 4),
    ] {
        word = word << width | u64::from(value);
    }
    let (word, width) = if dependents > 0 { (word << 9 | u64::from(locations), 32) } else { (word << 1, 24) };
    let whole = (data_rate << 3) << width | word;
    let dec3 = whole.to_be_bytes().get(8 - (16 + width) / 8..)?.to_vec();
    let fields = dec3.get(2..)?.to_vec();
    Some((fields, TsConfiguration::Eac3 { dec3, channels: channels(lead.mode, lead.lfe), sample_rate }))
}

/// Returns `chan_loc` (table F.6.1) of a `chanmap` (table E.1.4).
fn location(map: u32) -> u32 {
    // Bits 5 to 12 of the map, from its most significant bit, are bits 0 to 7; LFE2 (bit 14) is bit 8.
    let pairs = (0..8).filter(|bit| map >> (10 - bit) & 1 != 0).map(|bit| 1 << bit).sum::<u32>();
    pairs | (map >> 1 & 1) << 8
}
