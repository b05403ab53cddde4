//! Frames of an HTTP/2 server. The counter gives one verdict for all divisions of both directions into reads, and that of a plain
//! reading of the frames. The first byte is the size of the pieces; then come parts: a byte of direction (1) and repetitions, one of length, bytes.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_outbound::Excess;
use millpond_outbound::fuzzing::{Part, bounds, frames};

const MOST: usize = 1 << 17;
const PREFACE: usize = 24;

/// The frames of one direction, as they are complete up to their head: kind and length.
#[derive(Default)]
struct Direction {
    bytes: Vec<u8>,
    at: usize,
}

impl Iterator for Direction {
    type Item = (u8, usize);

    fn next(&mut self) -> Option<(u8, usize)> {
        let [a, b, c, kind, ..] = *self.bytes.get(self.at..self.at + 9)? else { return None };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        self.at += 9 + length;
        Some((kind, length))
    }
}

fn expected(parts: &[(bool, Vec<u8>)]) -> Result<(), Excess> {
    let (mut sent, mut received) = (Direction { at: PREFACE, ..Direction::default() }, Direction::default());
    let (mut requests, mut heads, mut idle) = (0, 0, 0_u64);
    for (is_sent, bytes) in parts {
        if *is_sent {
            sent.bytes.extend_from_slice(bytes);
            requests += sent.by_ref().filter(|(kind, _)| *kind == 1).count() as u64;
            continue;
        }
        received.bytes.extend_from_slice(bytes);
        let (most_heads, most_idle) = bounds(requests);
        for (kind, length) in received.by_ref() {
            match (kind, length) {
                (1, _) => heads += 1,
                (0, 1..) => idle = idle.saturating_sub(1),
                _ => idle += 1,
            }
            if heads > most_heads {
                return Err(Excess::Heads);
            }
            if idle > most_idle {
                return Err(Excess::Frames);
            }
        }
    }
    Ok(())
}

fuzz_target!(|input: &[u8]| {
    let [size, rest @ ..] = input else { return };
    let (mut parts, mut rest, mut total) = (Vec::new(), rest, 0);
    while let [kind, length, after @ ..] = rest
        && total < MOST
    {
        let (part, after) = after.split_at(usize::from(*length).min(after.len()));
        // Up to a thousand times: the bounds are far.
        let bytes = part.repeat(usize::from(kind >> 1).pow(2) / 16 + 1);
        total += bytes.len();
        parts.push((kind & 1 != 0, bytes));
        rest = after;
    }
    let cut = |size: usize| {
        parts.iter().flat_map(move |(is_sent, bytes)| {
            bytes.chunks(size).map(|piece| if *is_sent { Part::Sent(piece) } else { Part::Received(piece) })
        })
    };
    let found = frames(cut(usize::MAX));
    assert_eq!(found, frames(cut(usize::from(*size) + 1)), "the verdict depends on the pieces");
    assert_eq!(found, expected(&parts));
});
