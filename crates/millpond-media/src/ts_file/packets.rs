//! Finds the packets in a file: of 188 bytes, with arrival times before them, or with parity behind them.

use crate::{
    movie::extraction::PacketForm,
    ts::{SIZE, SYNC},
};

/// Most bytes before the first packet.
const MOST_GARBAGE: usize = 16 << 10;
/// Packets in a row by which a form is recognised; behind garbage, there must be more.
const ROW: usize = 5;
const ROW_BEHIND_GARBAGE: usize = 12;
/// Packets by which a form is recognised in an object that ends with them.
const SHORTEST_ROW: usize = 2;
/// Forms, in the order in which they are tried.
const FORMS: [PacketForm; 3] = [PacketForm::Plain, PacketForm::Timed, PacketForm::Parity];

/// Bytes before the sync byte of a packet that belong to it.
fn prefix(form: PacketForm) -> usize {
    match form {
        PacketForm::Plain | PacketForm::Parity | PacketForm::Chunks => 0,
        PacketForm::Timed => 4,
    }
}

/// Recognises a transport stream by the first bytes of an object. Returns the form of its packets, and the offset of the first one.
pub(crate) fn find_packets(head: &[u8], object_len: u64) -> Option<(PacketForm, u64)> {
    let syncs = head.iter().take(MOST_GARBAGE).enumerate().filter(|(_, byte)| **byte == SYNC);
    let is_whole = head.len() as u64 >= object_len;
    for (at, _) in syncs {
        for form in FORMS {
            let Some(start) = at.checked_sub(prefix(form)) else { continue };
            let row = head.iter().skip(at).step_by(form.stride() as usize).take(ROW_BEHIND_GARBAGE);
            let (mut found, mut expected) = (0, 0);
            for byte in row {
                expected += 1;
                found += usize::from(*byte == SYNC && found + 1 == expected);
            }
            let least = match start {
                0 if is_whole => expected.clamp(SHORTEST_ROW, ROW),
                0 => ROW,
                _ => ROW_BEHIND_GARBAGE,
            };
            if found >= least {
                return Some((form, start as u64));
            }
        }
    }
    None
}

/// Splits the bytes of a file into packets.
///
/// The first packet is where the reader begins. From there on each packet must begin with a sync byte. Otherwise the search restarts:
/// a packet is where two sync bytes stand a stride apart.
#[derive(Debug)]
pub(super) struct Packets {
    form: PacketForm,
    /// Bytes not yet returned, after those already used.
    buffer: Vec<u8>,
    /// Used bytes. These are more than `buffer` has, if the rest of the last packet is still missing.
    used: usize,
    /// Offset in the file of the first byte of `buffer`.
    offset: u64,
    is_aligned: bool,
}

impl Packets {
    /// Creates a reader from a packet at `offset` on.
    pub(super) fn new(form: PacketForm, offset: u64) -> Self {
        Self { form, buffer: Vec::new(), used: 0, offset, is_aligned: true }
    }

    /// Appends bytes of the file. The ones that [`next`](Self::next) has used are dropped.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        let dropped = self.used.min(self.buffer.len());
        self.buffer.drain(..dropped);
        self.offset += dropped as u64;
        self.used -= dropped;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next packet and the offset at which it begins, with its arrival time; `None` where more bytes are needed.
    pub(super) fn next(&mut self) -> Option<([u8; SIZE], u64)> {
        let (prefix, stride) = (prefix(self.form), self.form.stride() as usize);
        loop {
            let rest = self.buffer.get(self.used..)?;
            let body = rest.get(prefix..)?;
            if !self.is_aligned {
                let Some(skip) = body.iter().position(|byte| *byte == SYNC) else {
                    self.used += body.len();
                    return None;
                };
                self.used += skip;
                if *body.get(skip + stride)? != SYNC {
                    self.used += 1;
                    continue;
                }
                self.is_aligned = true;
                continue;
            }
            let packet = *body.first_chunk::<SIZE>()?;
            if packet.first() != Some(&SYNC) {
                self.is_aligned = false;
                continue;
            }
            let at = self.offset + self.used as u64;
            self.used += stride;
            return Some((packet, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of a form, with the bytes around it.
    fn packet(form: PacketForm, fill: u8) -> Vec<u8> {
        let mut packet = vec![fill; form.stride() as usize];
        packet[prefix(form)] = SYNC;
        packet
    }

    fn found(form: PacketForm, bytes: &[u8], step: usize) -> Vec<(u8, u64)> {
        let (mut packets, mut found) = (Packets::new(form, 1000), Vec::new());
        for chunk in bytes.chunks(step) {
            packets.append(chunk);
            while let Some((packet, at)) = packets.next() {
                assert_eq!(packet[0], SYNC);
                found.push((packet[1], at));
            }
        }
        found
    }

    #[test]
    fn packets_of_each_form_are_found_after_damage() {
        for form in FORMS {
            let stride = form.stride();
            let packet = |fill| packet(form, fill);
            let bytes = [packet(1), packet(2), vec![9; 30], packet(3), packet(4), packet(5)].concat();
            let places = [0, stride, 2 * stride + 30, 3 * stride + 30, 4 * stride + 30];
            let expected: Vec<_> = (1..).zip(places.map(|place| 1000 + place)).collect();
            for step in [1, 2, 187, 188, 205, 10_000] {
                assert_eq!(found(form, &bytes, step), expected, "{form:?} in steps of {step}");
            }
        }
    }

    #[test]
    fn forms_are_recognised() {
        for form in FORMS {
            let row: Vec<u8> = (0..20).flat_map(|fill| packet(form, fill)).collect();
            let find = |bytes: &[u8]| find_packets(bytes, 1 << 30);
            assert_eq!(find(&row), Some((form, 0)));
            assert_eq!(find(&row[50..]), Some((form, form.stride() - 50)), "the file begins within a packet");
            assert_eq!(
                find(&[&vec![SYNC; 3000][..], &row].concat()).map(|(_, at)| at),
                Some(0),
                "nothing but sync bytes"
            );
            assert_eq!(find(&[&vec![1; 3000][..], &row].concat()), Some((form, 3000)));
            assert_eq!(find(&row[..400]), None);
            assert_eq!(find_packets(&row[..400], 400), Some((form, 0)), "all of a short file");
        }
        assert_eq!(find_packets(&[0; 20_000], 20_000), None);
        assert_eq!(find_packets(&[], 0), None);
        assert_eq!(find_packets(&[SYNC], 1), None);
    }
}
