//! Transport streams with subtitles: pages of teletext, and pictures of DVB. Written from the tables of the standards, without code of
//! Millpond, so that ffmpeg and Millpond read what neither of them wrote.

use super::clips;
use std::{path::Path, process::Command};

const PACKET: usize = 188;
/// Bits per second of the films.
const RATE: u64 = 2_000_000;
/// PIDs as ffmpeg gives them, and those of the subtitles.
const MAP: u16 = 0x1000;
const PICTURES: u16 = 0x100;
const NOTHING: u16 = 0x1fff;
const TELETEXT: u16 = 0x1f1;
const DVB: u16 = 0x1f2;
/// Bits of a time.
const CLOCK: u64 = (1 << 33) - 1;
/// Ticks of 90 kHz of a picture.
const PICTURE: u64 = 3600;
/// Pages of the teletext: French, and German for the hard of hearing.
pub const FRENCH: u16 = 0x888;
pub const GERMAN: u16 = 0x777;
/// Control bits of pages (EN 300 706 9.3.1.3): erase, subtitle, serial, and the sets of both languages.
const ERASE: u8 = 4;
const SUBTITLE: u8 = 6;
const SERIAL: u8 = 11;
const OPTION_FRENCH: u8 = 12;
const OPTION_GERMAN: u8 = 14;

/// Code words of Hamming 8/4, by value (EN 300 706 8.2).
const HAMMING_8_4: [u8; 16] =
    [0x15, 0x02, 0x49, 0x5e, 0x64, 0x73, 0x38, 0x2f, 0xd0, 0xc7, 0x8c, 0x9b, 0xa1, 0xb6, 0xfd, 0xea];

/// Odd parity in bit 8.
fn parity(byte: u8) -> u8 {
    byte | if byte.count_ones().is_multiple_of(2) { 0x80 } else { 0 }
}

/// A code word of Hamming 24/18 (8.3): data bits at the places that are no powers of two, parity over all at the end.
fn hamming_24_18(value: u32) -> [u8; 3] {
    let places = (1..24_u32).filter(|place| !place.is_power_of_two());
    let mut word = places.enumerate().fold(0_u32, |word, (bit, place)| word | (value >> bit & 1) << (place - 1));
    for check in [1, 2, 4, 8, 16] {
        let ones = (1..24).filter(|place| place & check != 0 && word >> (place - 1) & 1 == 1).count();
        word |= u32::from(ones % 2 == 0) << (check - 1);
    }
    word |= u32::from(word.count_ones() % 2 == 0) << 23;
    [word as u8, (word >> 8) as u8, (word >> 16) as u8]
}

/// A data unit with a packet of a page (EN 300 472 4.3): bits are sent last first.
fn unit(magazine: u16, number: u8, body: &[u8]) -> Vec<u8> {
    assert_eq!(body.len(), 40);
    let address =
        [HAMMING_8_4[(magazine & 7) as usize | usize::from(number & 1) << 3], HAMMING_8_4[usize::from(number >> 1)]];
    let bytes = address.iter().chain(body).map(|byte| byte.reverse_bits());
    [0x03, 44, 0xe7, 0xe4].into_iter().chain(bytes).collect()
}

fn header(page: u16, control: &[u8]) -> Vec<u8> {
    let bits = |first: u8, count: u8| {
        (0..count).fold(0, |all, bit| all | usize::from(control.contains(&(first + bit))) << bit)
    };
    let values = [
        usize::from(page & 15),
        usize::from(page >> 4 & 15),
        0,
        bits(4, 1) << 3,
        0,
        bits(5, 2) << 2,
        bits(7, 4),
        bits(11, 4),
    ];
    let mut body: Vec<u8> = values.map(|value| HAMMING_8_4[value]).to_vec();
    body.resize(40, parity(b' '));
    unit(page >> 8, 0, &body)
}

fn row(page: u16, number: u8, text: &[u8]) -> Vec<u8> {
    let mut body: Vec<u8> = text.iter().map(|byte| parity(*byte)).collect();
    body.resize(40, parity(b' '));
    unit(page >> 8, number, &body)
}

/// Packet X/26 (12.3): characters with diacritical marks, each a column, a mark and a letter, in one row.
fn accents(page: u16, row: u8, characters: &[(u8, u8, u8)]) -> Vec<u8> {
    let address = |row: u8| u32::from(40 + row % 24) | 4 << 6;
    let character = |(column, mark, letter): &(u8, u8, u8)| {
        u32::from(*column) | u32::from(0x10 | mark) << 6 | u32::from(*letter) << 11
    };
    let all = [address(row)].into_iter().chain(characters.iter().map(character)).chain(std::iter::repeat(0x3_ffff));
    let body = [HAMMING_8_4[0]].into_iter().chain(all.take(13).flat_map(hamming_24_18)).collect::<Vec<u8>>();
    unit(page >> 8, 26, &body)
}

/// Content of a page from a picture on.
struct Shown {
    picture: u64,
    page: u16,
    units: Vec<Vec<u8>>,
}

/// The subtitles of the film: text between boxes in the middle of rows 20 to 23, and what is beside the boxes.
fn script() -> Vec<Shown> {
    let boxed = |before: &[u8], text: &[u8]| {
        let left = (40 - text.len()) / 2 - before.len() - 2;
        [&b" ".repeat(left)[..], before, b"\x0b\x0b", text, b"\x0a\x0a"].concat()
    };
    let french = |number, text: &[u8]| row(FRENCH, number, &boxed(b"", text));
    let yellow = |number, text: &[u8]| row(FRENCH, number, &boxed(b"\x0d\x03", text));
    let german = |text: &[u8]| row(GERMAN, 22, &boxed(b"\x06", text));
    let dvorak = boxed(b"", b"Dvorak et Angel");
    let column = |letter| dvorak.iter().position(|byte| *byte == letter).unwrap() as u8;
    let shown = |picture, page, units| Shown { picture, page, units };
    let mut all = vec![
        shown(50, FRENCH, vec![french(22, b"D#but du film, @ 8 h")]),
        shown(60, GERMAN, vec![german(b"Gr}~e aus K|ln")]),
        shown(100, FRENCH, vec![]),
        shown(110, FRENCH, vec![yellow(20, b"O] vas-tu ?"), yellow(22, b"Nulle part.")]),
        shown(120, GERMAN, vec![]),
        shown(160, FRENCH, vec![]),
        shown(
            175,
            FRENCH,
            vec![
                row(FRENCH, 22, &dvorak),
                accents(FRENCH, 22, &[(column(b'r'), 0xf, b'r'), (column(b'k') - 1, 2, b'a'), (column(b'A'), 2, b'A')]),
            ],
        ),
        shown(240, FRENCH, vec![]),
        shown(260, FRENCH, vec![french(22, b"<Un> & deux")]),
        shown(300, FRENCH, vec![french(22, b"Trois")]),
        shown(310, GERMAN, vec![german(b"Bis morgen!")]),
        shown(350, FRENCH, vec![]),
        shown(400, FRENCH, vec![french(21, b"Fin")]),
        shown(420, GERMAN, vec![]),
        shown(450, FRENCH, vec![]),
    ];
    all.sort_by_key(|shown| shown.picture);
    all
}

/// A PES packet without stuffing of its length, in packets of a PID whose counters are set later.
fn packets(pid: u16, pes: &[u8]) -> Vec<Vec<u8>> {
    let packet = |(number, piece): (usize, &[u8])| {
        let begins = if number == 0 { 0x40 } else { 0 };
        let mut packet = vec![0x47, begins | (pid >> 8) as u8, pid as u8, 0x10];
        if piece.len() < 184 {
            let stuffing = 184 - piece.len() - 1;
            packet[3] = 0x30;
            packet.push(stuffing as u8);
            packet.extend((0..stuffing).map(|at| if at == 0 { 0 } else { 0xff }));
        }
        packet.extend(piece);
        packet
    };
    pes.chunks(184).enumerate().map(packet).collect()
}

/// A header of a PES packet of private data, of a length.
fn pes(time: u64, header: usize, data: &[u8]) -> Vec<u8> {
    let length = (header - 6 + data.len()) as u16;
    let [high, low] = length.to_be_bytes();
    let time = time & CLOCK;
    let pts = [
        0x21 | (time >> 29) as u8 & 0xe,
        (time >> 22) as u8,
        (time >> 14) as u8 | 1,
        (time >> 7) as u8,
        (time << 1) as u8 | 1,
    ];
    let mut pes = [&[0, 0, 1, 0xbd, high, low, 0x84, 0x80, header as u8 - 9][..], &pts].concat();
    pes.resize(header, 0xff);
    [&pes, data].concat()
}

/// A page of teletext with its beginning and its end (EN 300 472 4.2: whole packets, with data units that fill them).
fn of_teletext(shown: &Shown, time: u64) -> Vec<Vec<u8>> {
    let option = if shown.page == FRENCH { OPTION_FRENCH } else { OPTION_GERMAN };
    let mut units = vec![header(shown.page, &[ERASE, SUBTITLE, SERIAL, option])];
    units.extend(shown.units.iter().cloned());
    units.push(header(shown.page | 0xff, &[SERIAL]));
    while (units.len() + 1) % 4 != 0 {
        units.push([&[0xff, 44][..], &[0xff; 44]].concat());
    }
    packets(TELETEXT, &pes(time, 45, &[&[0x10], &units.concat()[..]].concat()))
}

/// A picture of eight by two white pixels (EN 300 743): a page, a region, its colours, an object, and the end.
fn of_dvb(time: u64) -> Vec<Vec<u8>> {
    let segment = |kind: u8, body: &[u8]| [&[0x0f, kind, 0, 1, 0, body.len() as u8][..], body].concat();
    let line = [0x10, 0x55, 0x55, 0, 0xf0];
    let object = [&[0, 0, 1, 0, 5, 0, 5][..], &line, &line].concat();
    let segments = [
        segment(0x10, &[10, 0x0b, 0, 0xff, 0, 100, 0, 100]),
        segment(0x11, &[0, 0x07, 0, 8, 0, 2, 0x27, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        segment(0x12, &[0, 0x0f, 1, 0x81, 235, 128, 128, 0]),
        segment(0x13, &object),
        segment(0x80, &[]),
    ];
    packets(DVB, &pes(time, 14, &[&[0x20, 0][..], &segments.concat(), &[0xff]].concat()))
}

fn pid(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1f, packet[2]])
}

/// Presentation time of a picture that begins in a packet.
fn time(packet: &[u8]) -> Option<u64> {
    if pid(packet) != PICTURES || packet[1] & 0x40 == 0 {
        return None;
    }
    let adaptation = if packet[3] & 0x20 == 0 { 0 } else { usize::from(packet[4]) + 1 };
    let pts = &packet[4 + adaptation + 9..];
    let [a, b, c, d, e] = [pts[0], pts[1], pts[2], pts[3], pts[4]].map(u64::from);
    Some((a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1)
}

/// Adds the streams of subtitles, with their descriptors, to a programme's map.
fn add_streams(packet: &mut [u8]) {
    let page = |language: &[u8; 3], kind: u8, page: u16| {
        [&language[..], &[kind << 3 | (page >> 8) as u8 & 7, page as u8]].concat()
    };
    let pages = [page(b"fra", 2, FRENCH), page(b"deu", 5, GERMAN)].concat();
    let teletext = [&[0x56, pages.len() as u8][..], &pages].concat();
    let dvb = [&[0x59, 8][..], b"nld\x10\0\x01\0\x01"].concat();
    let mut end = 8 + usize::from(packet[7]) - 4;
    for (pid, descriptor) in [(TELETEXT, teletext), (DVB, dvb)] {
        let [high, low] = (pid | 0xe000).to_be_bytes();
        let entry = [&[6, high, low, 0xf0, descriptor.len() as u8][..], &descriptor].concat();
        packet[end..end + entry.len()].copy_from_slice(&entry);
        end += entry.len();
        packet[7] += entry.len() as u8;
    }
    let sum = checksum(&packet[5..end]).to_be_bytes();
    packet[end..end + 4].copy_from_slice(&sum);
}

/// CRC of sections (ISO/IEC 13818-1 annex A).
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << 24, |sum, _| sum << 1 ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 })
    })
}

/// A film of 20 s with a key frame each second, from a time in seconds on. Packets without use are replaced by subtitles: the pages of
/// teletext, and a picture of DVB each second.
pub fn film(offset: u32) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("film.ts");
    let coding = format!(
        "-f lavfi -i testsrc2=size=320x180:rate=25:duration=20 -f lavfi -i sine=sample_rate=48000:duration=20 -c:v libx264 \
         -preset ultrafast -g 25 -pix_fmt yuv420p -crf 30 -c:a aac -muxrate {RATE} -output_ts_offset {offset}"
    );
    clips::make(&file, &coding);
    let mut stream = std::fs::read(file).unwrap();
    let first = stream.chunks(PACKET).find_map(time).unwrap();
    let at = |picture: u64| first.wrapping_add(picture * PICTURE);
    let mut waiting: Vec<(u64, Vec<u8>)> = Vec::new();
    for shown in script() {
        waiting.extend(of_teletext(&shown, at(shown.picture)).into_iter().map(|packet| (shown.picture, packet)));
    }
    for picture in (25..500).step_by(25) {
        waiting.extend(of_dvb(at(picture)).into_iter().map(|packet| (picture, packet)));
    }
    waiting.sort_by_key(|(picture, _)| *picture);
    let (mut waiting, mut passed, mut counters) = (waiting.into_iter().peekable(), 0, [0_u8; 2]);
    for packet in stream.chunks_mut(PACKET) {
        passed = time(packet).map_or(passed, |time| (time.wrapping_sub(first) & CLOCK) / PICTURE);
        if pid(packet) == MAP {
            add_streams(packet);
        } else if pid(packet) == NOTHING
            && let Some((_, subtitle)) = waiting.next_if(|(picture, _)| *picture <= passed)
        {
            packet.copy_from_slice(&subtitle);
            let counter = &mut counters[usize::from(pid(packet) == DVB)];
            packet[3] |= *counter;
            *counter = (*counter + 1) & 15;
        }
    }
    assert!(waiting.next().is_none(), "too few packets without use");
    stream
}

/// A cue: its times in milliseconds, and its text.
pub type Cue = (i64, i64, String);

/// Subtitles of a page as ffmpeg and libzvbi read them, with their text escaped for WebVTT. Their times begin at a time in seconds. ffmpeg
/// is to believe the timestamps, not to move them to the clock.
pub fn read_by_ffmpeg(file: &Path, page: u16, first: f64) -> Vec<Cue> {
    let page = format!("{page:x}");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-copyts", "-fix_sub_duration", "-fix_teletext_pts", "0"]);
    command.args(["-txt_format", "text", "-txt_page", &page, "-i"]);
    let output = command.arg(file).args(["-map", "0:s:0", "-f", "srt", "-"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let first = (first * 1000.0).round() as i64;
    let cue = |block: &str| {
        let (_, rest) = block.split_once('\n')?;
        let (times, text) = rest.split_once('\n')?;
        let (start, end) = times.split_once(" --> ")?;
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let text = lines.join("\n").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        Some((millis(start) - first, millis(end) - first, text)).filter(|cue| !cue.2.is_empty())
    };
    text.replace("\r\n", "\n").split("\n\n").filter_map(cue).collect()
}

fn millis(time: &str) -> i64 {
    let seconds =
        time.trim().replace(',', ".").split(':').fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().unwrap());
    (seconds * 1000.0).round() as i64
}

/// Text without tags.
fn plain(text: &str) -> String {
    let mut in_tag = false;
    let shown = |c: &char| {
        let is_shown = *c != '<' && !in_tag;
        in_tag = (in_tag || *c == '<') && *c != '>';
        is_shown
    };
    text.chars().filter(shown).collect()
}

/// The cues of a segment of WebVTT, at the times of its transport stream or of its MP4 (RFC 8216 3.5).
pub fn cues_of(vtt: &str) -> Vec<Cue> {
    let mapped = |map: &str| {
        let (ticks, local) = map.strip_prefix("MPEGTS:")?.split_once(",LOCAL:")?;
        Some(ticks.parse::<i64>().ok()? / 90 - millis(local))
    };
    let map = vtt.lines().find_map(|line| line.strip_prefix("X-TIMESTAMP-MAP="));
    let shift = map.map_or(0, |map| mapped(map).unwrap_or_else(|| panic!("{map}")));
    let cue = |block: &str| {
        let (times, text) = block.split_once('\n')?;
        let (start, end) = times.split_once(" --> ")?;
        let end = end.split(' ').next()?;
        Some((millis(start) + shift, millis(end) + shift, plain(text.trim_end())))
    };
    assert!(vtt.starts_with("WEBVTT"), "{vtt}");
    vtt.split("\n\n").filter_map(cue).collect()
}

/// Cues of which segments have parts, as whole ones.
pub fn joined(cues: impl IntoIterator<Item = Cue>) -> Vec<Cue> {
    let mut all: Vec<Cue> = Vec::new();
    for cue in cues {
        // Rounding may leave a millisecond between two parts.
        match all.iter_mut().find(|last| last.2 == cue.2 && cue.0 <= last.1 + 1) {
            Some(last) => last.1 = last.1.max(cue.1),
            None => all.push(cue),
        }
    }
    all
}

/// Checks that two lists have the same texts, at times that differ by a picture at most.
#[track_caller]
pub fn assert_same(ours: &[Cue], expected: &[Cue], what: &str) {
    let is_same = |(ours, expected): (&Cue, &Cue)| {
        ours.2 == expected.2 && (ours.0 - expected.0).abs() <= 40 && (ours.1 - expected.1).abs() <= 40
    };
    let is_equal = ours.len() == expected.len() && ours.iter().zip(expected).all(is_same);
    assert!(is_equal, "{what}:\n{ours:?}\ninstead of\n{expected:?}");
}
