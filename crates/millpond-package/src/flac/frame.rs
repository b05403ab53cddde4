//! Frames (RFC 9639 9): a header, a subframe for each channel, and a checksum.

use super::{
    bits::BitWriter,
    stream::{FlacStream, Numbering},
    subframe::{Scratch, Signal},
};
use millpond_media::flac_crc::{crc8, crc16};

/// Sync code of a frame (9.1). The last bit tells that frames vary in length.
const SYNC: [u8; 2] = [0xff, 0xf8];
/// Greatest number in a header.
const MOST_NUMBER: u64 = (1 << 36) - 1;

/// Writes the frames of a stream.
#[derive(Debug)]
pub(crate) struct FlacEncoder {
    stream: FlacStream,
    /// Values of each channel, then those of the middle and the difference of two channels.
    signals: Vec<Vec<i32>>,
    scratch: Scratch,
}

/// The form of two channels in a frame (9.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coupling {
    /// All channels as they are.
    None,
    LeftSide,
    SideRight,
    MidSide,
}

impl FlacEncoder {
    /// Returns the most bytes of a frame of `samples` per channel.
    pub(crate) fn most_bytes(&self, samples: u32) -> u64 {
        self.stream.most_bytes(samples.into())
    }

    pub(crate) fn new(stream: FlacStream) -> Self {
        let signals = match stream.channels {
            2 => 4,
            channels => usize::from(channels),
        };
        Self { stream, signals: vec![Vec::new(); signals], scratch: Scratch::default() }
    }

    /// Appends the frame of `number`, which counts frames or samples, with interleaved `values`: as many as a frame has, or fewer in the
    /// last frame. No values are no frame.
    pub(crate) fn encode(&mut self, number: u64, values: &[i32], out: &mut Vec<u8>) {
        let channels = usize::from(self.stream.channels);
        let length = values.len() / channels;
        if length == 0 {
            return;
        }
        for (place, signal) in self.signals.iter_mut().take(channels).enumerate() {
            signal.clear();
            signal.extend(values.chunks_exact(channels).map(|frame| frame[place]));
        }
        let coupling = self.couple();
        let start = out.len();
        self.write(number, length, coupling, out);
        // The difference of two channels has a bit more. Estimates hardly ever err by as much.
        if coupling != Coupling::None && (out.len() - start) as u64 > self.stream.most_bytes(length as u64) {
            out.truncate(start);
            self.write(number, length, Coupling::None, out);
        }
    }

    /// Appends a frame of `length` values in each channel.
    fn write(&mut self, number: u64, length: usize, coupling: Coupling, out: &mut Vec<u8>) {
        let start = out.len();
        self.header(number, length, coupling, out);
        let mut bits = BitWriter::new(out);
        let Self { stream, signals, scratch } = self;
        let depth = u32::from(stream.bits);
        let mut write = |place: usize, bits_of: u32| {
            if let Some(values) = signals.get(place) {
                Signal { values, bits: bits_of }.write(scratch, &mut bits);
            }
        };
        match coupling {
            Coupling::None => (0..usize::from(stream.channels)).for_each(|place| write(place, depth)),
            Coupling::LeftSide => {
                write(LEFT, depth);
                write(SIDE, depth + 1);
            }
            Coupling::SideRight => {
                write(SIDE, depth + 1);
                write(RIGHT, depth);
            }
            Coupling::MidSide => {
                write(MID, depth);
                write(SIDE, depth + 1);
            }
        }
        bits.finish();
        let sum = crc16(0, out.get(start..).unwrap_or_default());
        out.extend_from_slice(&sum.to_be_bytes());
    }

    /// Computes middle and difference of two channels, and returns the form that takes the fewest bits.
    fn couple(&mut self) -> Coupling {
        let [left, right, mid, side] = &mut self.signals[..] else { return Coupling::None };
        if self.stream.channels != 2 {
            return Coupling::None;
        }
        mid.clear();
        side.clear();
        mid.extend(left.iter().zip(&*right).map(|(left, right)| (left + right) >> 1));
        side.extend(left.iter().zip(&*right).map(|(left, right)| left - right));
        let (depth, scratch) = (u32::from(self.stream.bits), &mut self.scratch);
        let mut estimate = |values: &[i32], bits: u32| Signal { values, bits }.estimate(scratch);
        let (of_left, of_right) = (estimate(left, depth), estimate(right, depth));
        let (of_mid, of_side) = (estimate(mid, depth), estimate(side, depth + 1));
        let forms = [
            (of_left + of_right, Coupling::None),
            (of_left + of_side, Coupling::LeftSide),
            (of_side + of_right, Coupling::SideRight),
            (of_mid + of_side, Coupling::MidSide),
        ];
        // The first of several.
        forms.into_iter().min_by_key(|(bits, _)| *bits).map_or(Coupling::None, |(_, form)| form)
    }

    /// Writes the header with its checksum.
    fn header(&self, number: u64, length: usize, coupling: Coupling, out: &mut Vec<u8>) {
        let stream = &self.stream;
        let start = out.len();
        let last = (length - 1) as u32;
        let block = match length {
            256 | 512 | 1024 | 2048 | 4096 => length.trailing_zeros() as u8,
            ..256 => 6,
            _ => 7,
        };
        let rate = Rate::of(stream.sample_rate);
        let channels = match coupling {
            Coupling::None => stream.channels - 1,
            Coupling::LeftSide => 8,
            Coupling::SideRight => 9,
            Coupling::MidSide => 10,
        };
        let bits = match stream.bits {
            8 => 1,
            12 => 2,
            16 => 4,
            20 => 5,
            24 => 6,
            _ => 0,
        };
        let [first, second] = SYNC;
        out.extend_from_slice(&[first, second | u8::from(stream.numbering == Numbering::Samples)]);
        out.push(block << 4 | rate.code);
        out.push(channels << 4 | bits << 1);
        coded_number(number, out);
        match block {
            6 => out.push(last as u8),
            7 => out.extend_from_slice(&(last as u16).to_be_bytes()),
            _ => {}
        }
        match rate.field {
            Some(Field::Byte(value)) => out.push(value),
            Some(Field::Word(value)) => out.extend_from_slice(&value.to_be_bytes()),
            None => {}
        }
        out.push(crc8(out.get(start..).unwrap_or_default()));
    }
}

/// Places of signals of two channels.
const LEFT: usize = 0;
const RIGHT: usize = 1;
const MID: usize = 2;
const SIDE: usize = 3;

/// The sampling rate in a frame header (9.1.2).
struct Rate {
    code: u8,
    field: Option<Field>,
}

/// A number behind the header's fixed fields.
enum Field {
    Byte(u8),
    Word(u16),
}

impl Rate {
    /// Returns the code of a rate: its own, else that of a field behind the header, else that of the rate in STREAMINFO.
    fn of(rate: u32) -> Self {
        const CODES: [u32; 11] =
            [88_200, 176_400, 192_000, 8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000];
        if let Some((code, _)) = (1..).zip(CODES).find(|(_, known)| *known == rate) {
            return Self { code, field: None };
        }
        let thousands = u8::try_from(rate / 1000).ok().filter(|_| rate.is_multiple_of(1000));
        let tens = u16::try_from(rate / 10).ok().filter(|_| rate.is_multiple_of(10));
        match (thousands, u16::try_from(rate), tens) {
            (Some(value), ..) => Self { code: 12, field: Some(Field::Byte(value)) },
            (None, Ok(value), _) => Self { code: 13, field: Some(Field::Word(value)) },
            (None, Err(_), Some(value)) => Self { code: 14, field: Some(Field::Word(value)) },
            (None, Err(_), None) => Self { code: 0, field: None },
        }
    }
}

/// Appends a number in the code of UTF-8, which goes on to seven bytes here (9.1.5).
fn coded_number(number: u64, out: &mut Vec<u8>) {
    let number = number & MOST_NUMBER;
    if let Ok(byte @ ..0x80) = u8::try_from(number) {
        out.push(byte);
        return;
    }
    // A code of n bytes has 5n + 1 bits.
    let length = (u64::BITS - number.leading_zeros() - 1).div_ceil(5);
    out.push((0xff00_u32 >> length) as u8 | (number >> (6 * (length - 1))) as u8);
    out.extend((0..length - 1).rev().map(|place| 0x80 | (number >> (6 * place)) as u8 & 0x3f));
}
