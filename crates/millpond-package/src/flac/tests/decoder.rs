//! A decoder of FLAC frames for tests, which shares no code with the encoder.

use super::{FlacStream, Numbering};

/// A decoded frame.
pub(super) struct Frame {
    pub(super) number: u64,
    /// Codes of the header.
    pub(super) channels: u32,
    pub(super) rate: u32,
    /// Interleaved values.
    pub(super) values: Vec<i32>,
    /// Bytes of the frame.
    pub(super) used: usize,
}

/// Reads bits, and fails where there are no more.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> u32 {
        let bit = self.bytes[self.at / 8] >> (7 - self.at % 8) & 1;
        self.at += 1;
        bit.into()
    }

    fn take(&mut self, count: u32) -> u32 {
        (0..count).fold(0, |value, _| value << 1 | self.bit())
    }

    fn signed(&mut self, count: u32) -> i64 {
        let value = i64::from(self.take(count));
        if value >= 1 << (count - 1) { value - (1 << count) } else { value }
    }

    fn zeros(&mut self) -> u32 {
        let mut count = 0;
        while self.bit() == 0 {
            count += 1;
        }
        count
    }
}

/// Returns a checksum bit by bit.
fn checksum(bytes: &[u8], width: u32, polynomial: u32) -> u32 {
    let top = 1 << (width - 1);
    let mask = (top << 1) - 1;
    let step = |crc: u32| if crc & top != 0 { (crc << 1 ^ polynomial) & mask } else { crc << 1 };
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte) << (width - 8), |crc, _| step(crc)))
}

/// Decodes the frame at the beginning of `bytes`, and checks all that its stream states.
pub(super) fn decode(bytes: &[u8], stream: &FlacStream) -> Frame {
    let mut bits = Bits { bytes, at: 0 };
    assert_eq!(bits.take(16), if stream.numbering == Numbering::Samples { 0xfff9 } else { 0xfff8 });
    let (block, rate, channels, depth) = (bits.take(4), bits.take(4), bits.take(4), bits.take(3));
    assert_eq!(bits.bit(), 0);
    let number = number(&mut bits);
    let length = match block {
        6 => bits.take(8) + 1,
        7 => bits.take(16) + 1,
        8..=15 => 256 << (block - 8),
        _ => panic!("block {block}"),
    };
    assert!(length <= u32::from(stream.block));
    let told = match rate {
        0 => stream.sample_rate,
        12 => bits.take(8) * 1000,
        13 => bits.take(16),
        14 => bits.take(16) * 10,
        code => {
            [0, 88_200, 176_400, 192_000, 8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000][code as usize]
        }
    };
    assert_eq!(told, stream.sample_rate);
    let depth = [0, 8, 12, 0, 16, 20, 24, 32][depth as usize];
    assert_eq!(depth, u32::from(stream.bits));
    let header = bits.at / 8;
    assert_eq!(bits.take(8), checksum(&bytes[..header], 8, 0x07), "CRC-8");
    let count = if channels < 8 { channels + 1 } else { 2 };
    assert_eq!(count, u32::from(stream.channels));
    let is_side = |place: u32| matches!((channels, place), (8 | 10, 1) | (9, 0));
    let mut all: Vec<Vec<i64>> =
        (0..count).map(|place| subframe(&mut bits, length as usize, depth + u32::from(is_side(place)))).collect();
    if channels >= 8 {
        let (first, second) = (all[0].clone(), all[1].clone());
        let pairs = first.into_iter().zip(second);
        let both = pairs.map(|(a, b)| match channels {
            8 => (a, a - b),
            9 => (a + b, b),
            _ => {
                let middle = a << 1 | b & 1;
                ((middle + b) >> 1, (middle - b) >> 1)
            }
        });
        let (left, right) = both.unzip();
        all = vec![left, right];
    }
    while !bits.at.is_multiple_of(8) {
        assert_eq!(bits.bit(), 0, "padding");
    }
    let body = bits.at / 8;
    assert_eq!(bits.take(16), checksum(&bytes[..body], 16, 0x8005), "CRC-16");
    let values = (0..length as usize).flat_map(|at| all.iter().map(move |channel| channel[at] as i32)).collect();
    Frame { number, channels, rate, values, used: bits.at / 8 }
}

fn number(bits: &mut Bits<'_>) -> u64 {
    let first = bits.take(8) as u8;
    let length = first.leading_ones();
    if length == 0 {
        return first.into();
    }
    assert!((2..=7).contains(&length));
    let mut number = u64::from(first & (0x7f >> length));
    for _ in 1..length {
        assert_eq!(bits.take(2), 2);
        number = number << 6 | u64::from(bits.take(6));
    }
    assert!(number >= if length == 2 { 0x80 } else { 1 << (5 * length - 4) }, "the shortest code");
    number
}

fn subframe(bits: &mut Bits<'_>, length: usize, depth: u32) -> Vec<i64> {
    assert_eq!(bits.bit(), 0);
    let (kind, has_wasted) = (bits.take(6), bits.bit() == 1);
    let wasted = if has_wasted { bits.zeros() + 1 } else { 0 };
    let depth = depth - wasted;
    let values: Vec<i64> = match kind {
        0 => vec![bits.signed(depth); length],
        1 => (0..length).map(|_| bits.signed(depth)).collect(),
        8..=12 => fixed(bits, length, depth, kind as usize - 8),
        _ => panic!("subframe {kind}"),
    };
    values.into_iter().map(|value| value << wasted).collect()
}

fn fixed(bits: &mut Bits<'_>, length: usize, depth: u32, order: usize) -> Vec<i64> {
    let mut values: Vec<i64> = (0..order).map(|_| bits.signed(depth)).collect();
    let field = match bits.take(2) {
        0 => 4,
        1 => 5,
        method => panic!("method {method}"),
    };
    let partitions = 1_usize << bits.take(4);
    assert!(length.is_multiple_of(partitions) && length / partitions > order);
    for partition in 0..partitions {
        let parameter = bits.take(field);
        assert!(parameter < (1 << field) - 1, "no escape code");
        let count = length / partitions - if partition == 0 { order } else { 0 };
        for _ in 0..count {
            let folded = i64::from(bits.zeros()) << parameter | i64::from(bits.take(parameter));
            let residual = folded >> 1 ^ -(folded & 1);
            let [a, b, c, d] = [1, 2, 3, 4].map(|back| if back <= order { values[values.len() - back] } else { 0 });
            let predicted = match order {
                0 => 0,
                1 => a,
                2 => 2 * a - b,
                3 => 3 * a - 3 * b + c,
                _ => 4 * a - 6 * b + 4 * c - d,
            };
            values.push(predicted + residual);
        }
    }
    values
}
