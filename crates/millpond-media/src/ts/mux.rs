//! Writes transport streams, for tests.

use super::section::checksum;
use std::collections::BTreeMap;

/// A writer of transport packets.
#[derive(Clone, Default)]
pub(crate) struct Mux {
    pub(crate) bytes: Vec<u8>,
    counters: BTreeMap<u16, u8>,
}

impl Mux {
    /// Appends a PES packet or, with a pointer field before it, a section.
    pub(crate) fn put(&mut self, pid: u16, payload: &[u8]) {
        for (number, part) in payload.chunks(176).enumerate() {
            let counter = self.counters.entry(pid).or_default();
            let stuffing = 184 - part.len();
            let start = if number == 0 { 0x40 } else { 0 };
            self.bytes.extend([0x47, start | (pid >> 8) as u8, pid as u8, 0x30 | *counter, (stuffing - 1) as u8, 0]);
            self.bytes.extend(std::iter::repeat_n(0xff, stuffing - 2));
            self.bytes.extend_from_slice(part);
            *counter = (*counter + 1) & 0x0f;
        }
    }

    pub(crate) fn section(&mut self, pid: u16, table: u8, extension: u16, version: u8, body: &[u8]) {
        let length = body.len() + 9;
        let [e0, e1] = extension.to_be_bytes();
        let mut section = vec![table, 0xb0 | (length >> 8) as u8, length as u8, e0, e1, 0xc1 | version << 1, 0, 0];
        section.extend_from_slice(body);
        section.extend(checksum(&section).to_be_bytes());
        self.put(pid, &[&[0], &section[..]].concat());
    }

    pub(crate) fn association(&mut self, version: u8, programmes: &[(u16, u16)]) {
        let entries = programmes.iter().flat_map(|(number, pid)| [number.to_be_bytes(), (pid | 0xe000).to_be_bytes()]);
        self.section(0, 0, 1, version, &entries.flatten().collect::<Vec<_>>());
    }

    pub(crate) fn map(&mut self, pid: u16, number: u16, version: u8, streams: &[(u8, u16, &[u8])]) {
        let mut body = vec![0xe1, 0x00, 0xf0, 0];
        for (stream_type, pid, descriptors) in streams {
            let [p0, p1] = (pid | 0xe000).to_be_bytes();
            body.extend([*stream_type, p0, p1, 0xf0, descriptors.len() as u8]);
            body.extend_from_slice(descriptors);
        }
        self.section(pid, 2, number, version, &body);
    }

    /// Appends the service description table with the names of programmes.
    pub(crate) fn services(&mut self, names: &[(u16, &[u8])]) {
        let mut body = vec![0, 1, 0xff];
        for (number, name) in names {
            let provider = b"ARD";
            let length = (3 + provider.len() + name.len()) as u8;
            body.extend(number.to_be_bytes());
            body.extend([0xfc, 0x80, length + 2, 0x48, length, 1, provider.len() as u8]);
            body.extend_from_slice(provider);
            body.push(name.len() as u8);
            body.extend_from_slice(name);
        }
        self.section(0x11, 0x42, 1, 0, &body);
    }

    pub(crate) fn unit(&mut self, pid: u16, pts: Option<u64>, data: &[u8]) {
        let fields = pts.map_or(vec![0x80, 0, 0], |pts| [&[0x80, 0x80, 5][..], &stamp(2, pts)].concat());
        self.put(pid, &[&[0, 0, 1, 0xe0, 0, 0], &fields[..], data].concat());
    }

    /// Appends a PES packet of private data, which states its length.
    pub(crate) fn private(&mut self, pid: u16, pts: Option<u64>, data: &[u8]) {
        let fields = pts.map_or(vec![0x80, 0, 0], |pts| [&[0x80, 0x80, 5][..], &stamp(2, pts)].concat());
        let length = (fields.len() + data.len()) as u16;
        self.put(pid, &[&[0, 0, 1, 0xbd][..], &length.to_be_bytes(), &fields, data].concat());
    }

    /// Appends a PES packet with both timestamps.
    pub(crate) fn timed(&mut self, pid: u16, pts: u64, dts: u64, data: &[u8]) {
        let fields = [&[0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 10][..], &stamp(3, pts), &stamp(1, dts)].concat();
        self.put(pid, &[&fields[..], data].concat());
    }

    /// Appends a packet with nothing but the clock, in ticks of 90 kHz.
    pub(crate) fn clock(&mut self, pid: u16, clock: u64, is_discontinuous: bool) {
        let counter = self.counters.get(&pid).map_or(15, |next| next.wrapping_sub(1) & 0x0f);
        let flags = if is_discontinuous { 0x90 } else { 0x10 };
        let base = (clock << 31).to_be_bytes();
        self.bytes.extend([0x47, (pid >> 8) as u8, pid as u8, 0x20 | counter, 183, flags]);
        self.bytes.extend_from_slice(&base[..6]);
        self.bytes.extend([0xff; 176]);
    }
}

/// A timestamp with the 4 bits before it.
fn stamp(prefix: u8, ticks: u64) -> [u8; 5] {
    let (low, middle) = ((ticks & 0x7fff) << 1 | 1, (ticks >> 15 & 0x7fff) << 1 | 1);
    let high = prefix << 4 | ((ticks >> 30 & 7) << 1) as u8 | 1;
    [high, (middle >> 8) as u8, middle as u8, (low >> 8) as u8, low as u8]
}
