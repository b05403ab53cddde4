//! Rewrites H.264 so that pictures reset the picture order counts: no usual encoder does it.

/// Bits of `frame_num` and of `pic_order_cnt_lsb` that libx264 writes with key frames every 25 pictures and 3 B-frames.
const FRAME: usize = 4;
const COUNT: usize = 6;
/// Twice the number of pictures between two key frames: counts rise by 2.
const COUNTS: u64 = 50;

/// Returns the NAL units of a byte stream.
fn units(bytes: &[u8]) -> Vec<Vec<u8>> {
    let codes: Vec<_> = (0..bytes.len() - 2).filter(|at| bytes[*at..*at + 3] == [0, 0, 1]).collect();
    let ends = codes[1..].iter().copied().chain([bytes.len()]);
    let unit = |(code, end): (&usize, usize)| {
        let mut unit = bytes[code + 3..end].to_vec();
        unit.truncate(unit.iter().rposition(|byte| *byte != 0).unwrap() + 1);
        unit
    };
    codes.iter().zip(ends).map(unit).collect()
}

/// Removes the bytes that prevent start codes (7.4.1).
fn unescaped(unit: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut zeros = 0;
    for byte in unit {
        if zeros >= 2 && *byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if *byte == 0 { zeros + 1 } else { 0 };
        bytes.push(*byte);
    }
    bytes
}

fn escaped(unit: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for byte in unit {
        if bytes.ends_with(&[0, 0]) && *byte <= 3 {
            bytes.push(3);
        }
        bytes.push(*byte);
    }
    bytes
}

/// Reads bits of a slice, and copies them.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    copied: Vec<bool>,
}

impl Bits<'_> {
    fn read(&mut self, width: usize) -> u64 {
        let bits = self.at..self.at + width;
        self.at = bits.end;
        bits.fold(0, |value, bit| value << 1 | u64::from(self.bytes[bit / 8] >> (7 - bit % 8) & 1))
    }

    fn write(&mut self, value: u64, width: usize) {
        self.copied.extend((0..width).rev().map(|bit| value >> bit & 1 == 1));
    }

    /// Copies numbers in Exp-Golomb code. Returns the last one.
    fn copy_numbers(&mut self, count: usize) -> u64 {
        let mut last = 0;
        for _ in 0..count {
            let mut zeros = 0;
            while self.read(1) == 0 {
                zeros += 1;
            }
            last = (1 << zeros | self.read(zeros)) - 1;
            self.write(last + 1, 2 * zeros + 1);
        }
        last
    }
}

/// Returns the NAL units of each picture of a byte stream of libx264 with delimiters. All IDR pictures but the first are I-pictures
/// that reset counts (`memory_management_control_operation` 5).
pub(crate) fn with_resets(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut pictures, mut frame): (Vec<Vec<u8>>, u64) = (Vec::new(), 0);
    for mut unit in units(stream) {
        let kind = unit[0] & 0x1f;
        if kind == 9 {
            pictures.push(Vec::new());
        }
        let count = pictures.len();
        if kind == 5 && count > 1 {
            unit = escaped(&reset(&unescaped(&unit), (frame + 1) % (1 << FRAME)));
            frame = 0;
        } else if matches!(kind, 1 | 5) && unit[0] & 0x60 != 0 {
            let bytes = unescaped(&unit);
            let mut bits = Bits { bytes: &bytes, at: 8, copied: Vec::new() };
            bits.copy_numbers(3);
            frame = bits.read(FRAME);
        }
        pictures.last_mut().unwrap().extend([&[0, 0, 0, 1][..], &unit].concat());
    }
    pictures
}

/// Returns an IDR slice as a slice of an I-picture with this `frame_num` that resets counts.
fn reset(idr: &[u8], frame: u64) -> Vec<u8> {
    let mut bits = Bits { bytes: idr, at: 8, copied: Vec::new() };
    bits.write(u64::from(idr[0] & 0xe0 | 1), 8);
    bits.copy_numbers(3);
    bits.read(FRAME);
    bits.write(frame, FRAME);
    // idr_pic_id is left out.
    let (copied, _) = (bits.copied.clone(), bits.copy_numbers(1));
    bits.copied = copied;
    bits.read(COUNT);
    bits.write(COUNTS % (1 << COUNT), COUNT);
    // The marking of an IDR picture has two bits. The other one: adaptive, operations 5 and 0.
    bits.read(2);
    bits.write(0b100_1101, 7);
    // slice_qp_delta, disable_deblocking_filter_idc, offsets.
    bits.copy_numbers(1);
    if bits.copy_numbers(1) != 1 {
        bits.copy_numbers(2);
    }
    let ones = bits.copied.len().next_multiple_of(8) - bits.copied.len();
    bits.write(u64::MAX, ones);
    let head = bits.copied.chunks(8).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
    head.chain(idr[bits.at.div_ceil(8)..].iter().copied()).collect()
}
