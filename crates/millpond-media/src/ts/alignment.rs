//! Finds the packets in a stream of bytes.

use super::packet::{SIZE, SYNC};

/// Splits bytes into packets.
///
/// Packets are found where two sync bytes stand 188 bytes apart. From there on each packet must begin with a sync byte; otherwise
/// the search restarts.
#[derive(Debug, Default)]
pub(super) struct Alignment {
    /// Bytes not yet returned, after those already used.
    buffer: Vec<u8>,
    used: usize,
    /// Offset in the stream of the first byte of `buffer`.
    offset: u64,
    is_aligned: bool,
}

/// Next find in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A packet and its offset.
    Packet([u8; SIZE], u64),
    /// No sync byte at this offset, where a packet should begin.
    Lost(u64),
}

impl Alignment {
    /// Appends bytes of the stream. The ones that [`next`](Self::next) has used are dropped.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.used);
        self.offset += self.used as u64;
        self.used = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Offset in the stream of the next packet.
    pub(super) fn at(&self) -> u64 {
        self.offset + self.used as u64
    }

    /// Returns the next packet; `None` where more bytes are needed.
    pub(super) fn next(&mut self) -> Option<Found> {
        loop {
            let rest = self.buffer.get(self.used..)?;
            if !self.is_aligned {
                let Some(skip) = rest.iter().position(|byte| *byte == SYNC) else {
                    self.used = self.buffer.len();
                    return None;
                };
                self.used += skip;
                if *rest.get(skip + SIZE)? != SYNC {
                    self.used += 1;
                    continue;
                }
                self.is_aligned = true;
                continue;
            }
            let at = self.at();
            let packet = rest.first_chunk::<SIZE>()?;
            if packet[0] != SYNC {
                self.is_aligned = false;
                return Some(Found::Lost(at));
            }
            let packet = *packet;
            self.used += SIZE;
            return Some(Found::Packet(packet, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes: &[u8], step: usize) -> Vec<(bool, u64)> {
        let (mut alignment, mut found) = (Alignment::default(), Vec::new());
        for chunk in bytes.chunks(step) {
            alignment.append(chunk);
            while let Some(next) = alignment.next() {
                found.push(match next {
                    Found::Packet(_, at) => (true, at),
                    Found::Lost(at) => (false, at),
                });
            }
        }
        found
    }

    fn packet(fill: u8) -> Vec<u8> {
        let mut packet = vec![fill; SIZE];
        packet[0] = SYNC;
        packet
    }

    #[test]
    fn packets_are_found_behind_garbage_and_after_damage() {
        // Two sync bytes in the garbage, too close.
        let mut bytes = vec![1, 0x47, 2, 0x47, 3];
        bytes.extend([packet(0), packet(1), vec![9; 30], packet(2), packet(3), packet(0x47), packet(0)].concat());
        let expected = [(true, 5), (true, 193), (false, 381), (true, 411), (true, 599), (true, 787), (true, 975)];
        for step in [1, 2, 187, 188, 189, 10_000] {
            assert_eq!(found(&bytes, step), expected, "steps of {step}");
        }
    }

    #[test]
    fn a_single_packet_is_not_believed() {
        assert_eq!(found(&packet(0), 1), []);
        assert_eq!(found(&[0; 1000], 7), []);
    }
}
