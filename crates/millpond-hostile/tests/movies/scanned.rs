//! Hostile files that are indexed by a scan: transport streams, FLV and sound files.

use crate::measure::{alone, measured};
use millpond_hostile::SparseObject;

/// Bytes of a transport packet.
const PACKET: usize = 188;
/// PIDs of the programme map, and of the first stream.
const MAP: u16 = 0x100;
const STREAM: u16 = 0x101;
/// Packets of a file of 16 MiB.
const MANY: usize = (16 << 20) / PACKET;

fn whole(head: Vec<u8>) -> SparseObject {
    SparseObject { len: head.len() as u64, head: head.into() }
}

/// A transport packet with a payload, which bytes of an adaptation field fill up.
fn packet(pid: u16, starts: bool, counter: usize, payload: &[u8]) -> Vec<u8> {
    let payload = &payload[..payload.len().min(PACKET - 4)];
    let free = PACKET - 4 - payload.len();
    let [high, low] = (pid | if starts { 0x4000 } else { 0 }).to_be_bytes();
    let field = if free > 0 { 0x30 } else { 0x10 };
    let mut bytes = vec![0x47, high, low, field | (counter & 15) as u8];
    if free > 0 {
        bytes.push((free - 1) as u8);
        bytes.extend((1..free).map(|place| if place == 1 { 0 } else { 0xff }));
    }
    bytes.extend(payload);
    bytes
}

/// A section behind its pointer, with a right checksum.
fn section(table: u8, body: &[u8]) -> Vec<u8> {
    let length = body.len() + 9;
    let mut bytes = vec![table, 0xb0 | (length >> 8) as u8, length as u8, 0, 1, 0xc1, 0, 0];
    bytes.extend(body);
    let checksum = millpond_media::ts::checksum(&bytes);
    [vec![0], bytes, checksum.to_be_bytes().to_vec()].concat()
}

/// The tables of a programme with streams of these types.
fn tables(types: &[u8]) -> Vec<u8> {
    let programmes = section(0, &[&[0, 1][..], &(0xe000 | MAP).to_be_bytes()].concat());
    let mut streams = [(0xe000 | STREAM).to_be_bytes(), [0xf0, 0]].concat();
    for (pid, of) in (STREAM..).zip(types) {
        streams.extend([&[*of][..], &(0xe000 | pid).to_be_bytes(), &[0xf0, 0]].concat());
    }
    [packet(0, true, 0, &programmes), packet(MAP, true, 0, &section(2, &streams))].concat()
}

/// A PES packet of a time in 90 kHz, of at most 170 bytes.
fn pes(id: u8, time: u64, data: &[u8]) -> Vec<u8> {
    let stamp = [
        0x21 | (time >> 29 & 0x0e) as u8,
        (time >> 22) as u8,
        (time >> 14) as u8 | 1,
        (time >> 7) as u8,
        (time << 1) as u8 | 1,
    ];
    let length = (data.len() + 8) as u16;
    [&[0, 0, 1, id][..], &length.to_be_bytes(), &[0x80, 0x80, 5], &stamp, data].concat()
}

/// Packets that each hold the PES packet of its number.
fn stream(count: usize, unit: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    (0..count).flat_map(|number| packet(STREAM, true, number, &unit(number))).collect()
}

#[test]
fn packets_without_streams() {
    let _alone = alone();
    measured("null packets", &whole(packet(0x1fff, false, 0, &[0xff; 184]).repeat(MANY)));
    measured("tables alone", &whole(tables(&[0x1b]).repeat(MANY / 2)));
    measured("starts of sections", &whole(packet(0, true, 0, &[0; 184]).repeat(MANY)));
    let maps: Vec<u8> = (0..=255_u8).flat_map(|of| tables(&[0x1b, of])).collect();
    measured("maps that change", &whole(maps.repeat(MANY / 512)));
}

#[test]
fn pes_packets_of_few_bytes() {
    let _alone = alone();
    for (name, of) in
        [("H.264", 0x1b), ("HEVC", 0x24), ("AAC", 0x0f), ("LATM", 0x11), ("MPEG audio", 3), ("AC-3", 0x81)]
    {
        for data in
            [&[][..], &[0], &[0, 0, 1], &[0, 0, 1, 0x65, 0x88, 0x84], &[0xff, 0xf1, 0x50, 0x80, 1, 0x1f, 0xfc, 0x21]]
        {
            let frames = stream(MANY / 2, |number| pes(0xe0, number as u64, data));
            measured(name, &whole([tables(&[of]), frames].concat()));
        }
    }
}

#[test]
fn times_that_jump_in_each_packet() {
    let _alone = alone();
    let aac = [0xff, 0xf1, 0x50, 0x80, 0x01, 0x1f, 0xfc, 0x21];
    for step in [1 << 32, 900_001, 90_000 * 11] {
        let time = |number: usize| (number as u64 * step) % (1 << 33);
        measured("jumps", &whole([tables(&[0x0f]), stream(MANY / 2, |number| pes(0xc0, time(number), &aac))].concat()));
    }
}

#[test]
fn parameter_sets_that_change_in_each_picture() {
    let _alone = alone();
    let picture = |number: usize| {
        let sps =
            [0, 0, 1, 0x67, 0x64, 0, 0x0c, 0xac, 0xd9, 0x41, 0x41, 0x9f, (number >> 8) as u8 | 1, number as u8 | 1];
        let rest = [0, 0, 1, 0x68, 0xeb, 0xe3, 0xcb, number as u8 | 1, 0, 0, 1, 0x65, 0x88, 0x84];
        pes(0xe0, number as u64 * 3600, &[&sps[..], &rest].concat())
    };
    measured("parameter sets", &whole([tables(&[0x1b]), stream(MANY / 2, picture)].concat()));
}

#[test]
fn frames_of_sound_by_the_million() {
    let _alone = alone();
    measured("ADTS of 8 bytes", &whole([0xff, 0xf1, 0x50, 0x80, 0x01, 0x1f, 0xfc, 0x21].repeat(2 << 20)));
    measured("set bits", &whole(vec![0xff; 16 << 20]));
    measured("sync words of FLAC", &whole([b"fLaC\x80\0\0\x22".to_vec(), [0xff, 0xf8].repeat(8 << 20)].concat()));
    measured("pages of Ogg", &whole(b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0".repeat(600_000)));
    measured("tags of ID3", &whole(b"ID3\x04\0\0\0\0\0\0".repeat(1 << 20)));
    measured("tags of FLV", &whole([b"FLV\x01\x05\0\0\0\x09".to_vec(), vec![0; 16 << 20]].concat()));
    measured(
        "chunks of WAVE",
        &whole([b"RIFF\xff\xff\xff\xffWAVE".to_vec(), b"junk\0\0\0\0".repeat(2 << 20)].concat()),
    );
}
