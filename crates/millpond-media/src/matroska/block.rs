//! Blocks (RFC 9559 10): their track, time and frames.

use super::ebml::{Number, number};

/// Most frames of a block with lacing, whose count has a byte.
const MOST_FRAMES: usize = 256;

/// Head of a `SimpleBlock` or `Block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) track: u64,
    /// Time after that of the cluster, in ticks of the segment.
    pub(super) time: i16,
    /// Whether a `SimpleBlock` is marked as a key frame.
    pub(super) is_key: bool,
}

/// Result of reading a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Head(Head),
    /// This many bytes from its beginning on are needed.
    Needs(usize),
    /// The sizes of frames exceed the block, or the track has no number.
    Garbage,
}

/// Reads a block of `size` bytes that begins with `bytes`. Appends place and size of each frame, from the beginning of the block
/// on, to `frames`.
pub(super) fn read(bytes: &[u8], size: u64, frames: &mut Vec<(u64, u64)>) -> Read {
    frames.clear();
    let more = |wanted: usize| match u64::try_from(wanted) {
        Ok(needed) if needed <= size && wanted > bytes.len() => Read::Needs(wanted),
        _ => Read::Garbage,
    };
    let (track, length) = match number(bytes) {
        Number::Value { value, length } => (value, length),
        Number::Short => return more(bytes.len() + 1),
        Number::Garbage => return Read::Garbage,
    };
    let Some([high, low, flags]) = bytes.get(length..).and_then(|rest| rest.first_chunk()) else {
        return more(length + 3);
    };
    let head = Head { track, time: i16::from_be_bytes([*high, *low]), is_key: flags & 0x80 != 0 };
    let at = length + 3;
    let lacing = flags >> 1 & 3;
    if lacing == 0 {
        return match size.checked_sub(at as u64) {
            Some(rest) => {
                frames.push((at as u64, rest));
                Read::Head(head)
            }
            None => Read::Garbage,
        };
    }
    let Some(&less) = bytes.get(at) else { return more(at + 1) };
    let count = usize::from(less) + 1;
    let mut sizes = Sizes { bytes, at: at + 1, sizes: Vec::with_capacity(count.min(MOST_FRAMES)) };
    let read = match lacing {
        1 => sizes.xiph(count),
        3 => sizes.ebml(count),
        _ => Ok(()),
    };
    match read {
        Err(Stop::Short(wanted)) => return more(wanted),
        Err(Stop::Garbage) => return Read::Garbage,
        Ok(()) => {}
    }
    let Some(rest) = size.checked_sub(sizes.at as u64) else { return Read::Garbage };
    let mut sizes_of_frames = sizes.sizes;
    if lacing == 2 {
        if rest % count as u64 != 0 || rest == 0 {
            return Read::Garbage;
        }
        sizes_of_frames = vec![rest / count as u64; count];
    } else {
        let known = sizes_of_frames.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
        let Some(last) = known.and_then(|known| rest.checked_sub(known)) else { return Read::Garbage };
        sizes_of_frames.push(last);
    }
    let mut place = sizes.at as u64;
    for size in sizes_of_frames {
        frames.push((place, size));
        place += size;
    }
    Read::Head(head)
}

/// Sizes of laced frames.
struct Sizes<'a> {
    bytes: &'a [u8],
    at: usize,
    sizes: Vec<u64>,
}

enum Stop {
    /// Bytes of the block that are needed.
    Short(usize),
    Garbage,
}

impl Sizes<'_> {
    /// Reads sizes in Xiph lacing (10.3.2): bytes are added up to the first one below 255.
    fn xiph(&mut self, count: usize) -> Result<(), Stop> {
        for _ in 1..count {
            let mut size = 0;
            loop {
                let byte = *self.bytes.get(self.at).ok_or(Stop::Short(self.at + count))?;
                self.at += 1;
                size += u64::from(byte);
                if byte < 255 {
                    break;
                }
            }
            self.sizes.push(size);
        }
        Ok(())
    }

    /// Reads sizes in EBML lacing (10.3.3): the first one, and then signed differences.
    fn ebml(&mut self, count: usize) -> Result<(), Stop> {
        let mut last = 0_i64;
        for place in 1..count {
            let (value, length) = match number(self.bytes.get(self.at..).unwrap_or_default()) {
                Number::Value { value, length } => (value as i64, length),
                Number::Short => return Err(Stop::Short(self.at + count)),
                Number::Garbage => return Err(Stop::Garbage),
            };
            self.at += length;
            let bias = (1_i64 << (7 * length - 1)) - 1;
            last = if place == 1 { value } else { last.saturating_add(value - bias) };
            self.sizes.push(u64::try_from(last).map_err(|_| Stop::Garbage)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bytes: &[u8]) -> (Read, Vec<(u64, u64)>) {
        let mut frames = Vec::new();
        let read = read(bytes, bytes.len() as u64, &mut frames);
        (read, frames)
    }

    #[test]
    fn one_frame_fills_a_block_without_lacing() {
        let (read, found) = frames(&[0x81, 0xff, 0xfe, 0x80, 1, 2, 3]);
        assert_eq!(read, Read::Head(Head { track: 1, time: -2, is_key: true }));
        assert_eq!(found, [(4, 3)]);
        assert_eq!(frames(&[0x40, 0x7f, 0, 1, 0]).1, [(5, 0)], "a track number of two bytes");
    }

    #[test]
    fn laced_frames_have_the_sizes_that_the_block_states() {
        let mut xiph = vec![0x81, 0, 0, 0x02, 2, 255, 1, 3];
        xiph.extend([0; 256 + 3 + 5]);
        assert_eq!(frames(&xiph).1, [(8, 256), (264, 3), (267, 5)]);
        let ebml = [&[0x81, 0, 0, 0x06, 2, 0x84, 0xbe][..], &[0; 4 + 3 + 2]].concat();
        assert_eq!(frames(&ebml).1, [(7, 4), (11, 3), (14, 2)], "the second is one byte shorter");
        let fixed = [&[0x81, 0, 0, 0x04, 2][..], &[0; 9]].concat();
        assert_eq!(frames(&fixed).1, [(5, 3), (8, 3), (11, 3)]);
    }

    #[test]
    fn sizes_beyond_the_block_are_garbage_and_a_part_needs_more() {
        assert_eq!(frames(&[0x81, 0, 0, 0x02, 1, 9, 1, 1]).0, Read::Garbage);
        assert_eq!(frames(&[0x81, 0, 0, 0x04, 1, 9]).0, Read::Garbage, "an odd byte for two frames");
        assert_eq!(frames(&[0x81, 0]).0, Read::Garbage, "the block ends within its head");
        assert_eq!(read(&[0x81, 0], 100, &mut Vec::new()), Read::Needs(4));
        assert_eq!(read(&[0x81, 0, 0, 2, 3, 4], 100, &mut Vec::new()), Read::Needs(10));
    }
}
