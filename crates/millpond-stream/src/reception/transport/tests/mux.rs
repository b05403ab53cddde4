//! A writer of transport streams.

use millpond_media::ts::checksum;
use std::collections::BTreeMap;

pub(super) const ASSOCIATION: u16 = 0;
pub(super) const MAP: u16 = 0x1000;
pub(super) const PICTURES: u16 = 0x100;
pub(super) const SOUND: u16 = 0x101;
pub(super) const TEXT: u16 = 0x102;
pub(super) const CUES: u16 = 0x1f0;
/// Type of streams of private data.
pub(super) const PRIVATE: u8 = 6;

/// Parameter sets of x264.
const SPS: &[u8] = &[
    0x67, 0x64, 0x00, 0x0c, 0xac, 0xd9, 0x41, 0x41, 0x9f, 0x9f, 0x01, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00,
    0x03, 0x03, 0x20, 0xf1, 0x42, 0x99, 0x60,
];
const PPS: &[u8] = &[0x68, 0xef, 0x8f, 0xcb];

pub(super) struct Mux {
    programme: u16,
    version: u8,
    bytes: Vec<u8>,
    counters: BTreeMap<u16, u8>,
}

impl Mux {
    pub(super) fn new(programme: u16) -> Self {
        Self { programme, version: 0, bytes: Vec::new(), counters: BTreeMap::new() }
    }

    /// The bytes since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        // Packets are found by the sync byte of the next one.
        self.bytes.extend([0x47, 0x1f, 0xff, 0x10]);
        self.bytes.extend([0xff; 184]);
        std::mem::take(&mut self.bytes)
    }

    fn put(&mut self, pid: u16, payload: &[u8]) {
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

    fn section(&mut self, pid: u16, table: u8, extension: u16, body: &[u8]) {
        let length = body.len() + 9;
        let [e0, e1] = extension.to_be_bytes();
        let version = 0xc1 | (self.version & 0x1f) << 1;
        let mut section = vec![table, 0xb0 | (length >> 8) as u8, length as u8, e0, e1, version, 0, 0];
        section.extend_from_slice(body);
        section.extend(checksum(&section).to_be_bytes());
        self.put(pid, &[&[0], &section[..]].concat());
    }

    pub(super) fn association(&mut self, programmes: &[(u16, u16)]) {
        self.version += 1;
        let entries = programmes.iter().flat_map(|(number, pid)| [number.to_be_bytes(), (pid | 0xe000).to_be_bytes()]);
        self.section(ASSOCIATION, 0, 1, &entries.flatten().collect::<Vec<_>>());
    }

    /// Writes the tables of the programme, with streams in German. Private data are teletext.
    pub(super) fn tables(&mut self, streams: &[(u8, u16)]) {
        self.association(&[(self.programme, MAP)]);
        let mut body = vec![0xe1, 0x00, 0xf0, 0];
        for (stream_type, pid) in streams {
            let [p0, p1] = (pid | 0xe000).to_be_bytes();
            let teletext: &[u8] = if *stream_type == PRIVATE { b"\x56\x05deu\x10\x88" } else { b"" };
            body.extend([*stream_type, p0, p1, 0xf0, 6 + teletext.len() as u8, 10, 4]);
            body.extend([b"deu\0", teletext].concat());
        }
        self.section(MAP, 2, self.programme, &body);
    }

    /// Writes a PES packet; one of pictures states no length.
    fn unit(&mut self, pid: u16, (pts, dts): (u64, u64), data: &[u8]) {
        let time = |mark: u8, time: u64| {
            let (low, middle) = ((time & 0x7fff) << 1 | 1, (time >> 15 & 0x7fff) << 1 | 1);
            let top = mark << 4 | (time >> 29 & 0x0e) as u8 | 1;
            [top, (middle >> 8) as u8, middle as u8, (low >> 8) as u8, low as u8]
        };
        let times = [time(3, pts), time(1, dts)].concat();
        let length = if pid == PICTURES { 0 } else { times.len() + 3 + data.len() };
        let id = match pid {
            PICTURES => 0xe0,
            TEXT => 0xbd,
            _ => 0xc0,
        };
        let head = [0, 0, 1, id, (length >> 8) as u8, length as u8, 0x80, 0xc0, times.len() as u8];
        self.put(pid, &[&head, &times[..], data].concat());
    }

    /// Writes a picture; a key frame has parameter sets.
    pub(super) fn picture(&mut self, is_key: bool, pts: u64, dts: u64) {
        let delimiter: &[u8] = &[9, 0xf0];
        let slice: &[u8] = if is_key { &[0x65, 0x88, 0x84, 0x21] } else { &[0x41, 0x9a, 0x24, 0x21] };
        let units = if is_key { vec![delimiter, SPS, PPS, slice] } else { vec![delimiter, slice] };
        let data: Vec<u8> = units.iter().flat_map(|unit| [&[0, 0, 0, 1], *unit].concat()).collect();
        self.unit(PICTURES, (pts, dts), &data);
    }

    /// Writes a frame of AAC-LC with 48 kHz.
    pub(super) fn sound(&mut self, pts: u64) {
        self.sound_at(SOUND, pts);
    }

    pub(super) fn sound_at(&mut self, pid: u16, pts: u64) {
        let payload = [0x21, 0x10, 0x04, 0x60, 0x8c, 0x1c];
        let length = payload.len() as u16 + 7;
        let head =
            [0xff, 0xf1, 0x4c, 0x80 | (length >> 11) as u8, (length >> 3) as u8, (length << 5) as u8 | 0x1f, 0xfc];
        self.unit(pid, (pts, pts), &[&head[..], &payload].concat());
    }

    /// Writes teletext without text.
    pub(super) fn text(&mut self, pts: u64) {
        self.unit(TEXT, (pts, pts), &[&[0x10, 0xff, 44][..], &[0xff; 44]].concat());
    }

    /// Writes a `splice_insert` out of the programme; at once without a time.
    pub(super) fn cue(&mut self, pid: u16, event: u8, time: Option<u64>) {
        let time = time.map(|time| {
            let [high, low @ ..] = (time as u32).to_be_bytes();
            [&[0xfe | (time >> 32) as u8, high][..], &low].concat()
        });
        let flags = if time.is_some() { 0xcf } else { 0xdf };
        let insert = [&[0, 0, 0, event, 0x7f, flags], &time.unwrap_or_default()[..], &[0; 4]].concat();
        let head = [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xf0, insert.len() as u8, 5];
        let body = [&head[..], &insert, &[0, 0]].concat();
        let mut section = [&[0xfc, 0x30, body.len() as u8 + 4], &body[..]].concat();
        section.extend(checksum(&section).to_be_bytes());
        self.put(pid, &[&[0], &section[..]].concat());
    }
}
