//! Formats of descriptions: those that the server writes, and those of devices and other servers.

mod devices;

use super::*;
use bytes::Bytes;
use millpond_media::{PictureSequence, codec::Codec};
use millpond_rtp::{
    packet::Header,
    payload::Packetizer,
    sdp_reader::SessionDescription,
    sdp_writer::{Described, SessionTimes, describe},
};

const NOW: Duration = Duration::from_secs(1);
const SPS: &str = "6764000cacd941419f9f011000000300100000030320f14299";
const PPS: &str = "68ebe3cb22c0";

fn hex(digits: &str) -> Vec<u8> {
    let digit = |d: u8| (d as char).to_digit(16).unwrap() as u8;
    digits.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn hevc() -> Made {
    let vps = hex("40010c01ffff01600000030090000003000003003c959809");
    let sps = hex("42010101600000030090000003000003003ca00a080b9f796566924caf016808000003000800000300c840");
    make::hevc(&[vps], &[sps], &[hex("4401c172b46240")]).unwrap()
}

/// NAL units, each after its length.
fn sample(units: &[&[u8]]) -> Vec<u8> {
    units.iter().flat_map(|unit| [&(unit.len() as u32).to_be_bytes(), *unit].concat()).collect()
}

fn streams(description: &str) -> Vec<MediaDescription> {
    let text = description.trim_start().replace('\n', "\r\n");
    SessionDescription::read(text.as_bytes(), "rtsp://camera/live").unwrap().streams
}

/// A frame cut into packets and joined again.
fn unit(stream: &MediaDescription, packetizer: Packetizer, frame: &[u8]) -> Unit {
    let (mut pieces, mut units) = (Vec::new(), Vec::new());
    packetizer.cut(frame, 1200, &mut pieces).unwrap();
    let mut depacketizer = Depacketizer::of(stream).unwrap();
    for (sequence, piece) in (0..).zip(&pieces) {
        let payload = [piece.head(), &frame[piece.body.clone()]].concat();
        let header = Header { marker: piece.marker, payload_type: 96, sequence, timestamp: 0, ssrc: 7 };
        depacketizer.push(&header, &payload, &mut units).unwrap();
    }
    units.remove(0)
}

/// Every payload format: what it carries, and the first frame where that shows what the description does not.
fn rows() -> Vec<(Made, u32, Option<Vec<u8>>)> {
    let frame = |digits: &str, len| {
        let mut frame = hex(digits);
        frame.resize(len, 0x55);
        Some(frame)
    };
    let from = |maker: Maker, frame: Option<Vec<u8>>, rate| (maker(frame.as_ref().unwrap()).unwrap(), rate, frame);
    let pcm =
        |coding, channels, rate| (make::pcm(coding, channels, Timescale::new(rate).unwrap()).unwrap(), rate, None);
    vec![
        (make::avc(&[hex(SPS)], &[hex(PPS), hex("685be3cb22c0")]).unwrap(), 90_000, None),
        (hevc(), 90_000, None),
        (make::aac(&[0x11, 0x90]).unwrap(), 48_000, None),
        (make::aac(&hex("2b920800")).unwrap(), 44_100, None),
        (make::opus(2).unwrap(), 48_000, None),
        (make::opus(1).unwrap(), 48_000, None),
        from(make::av1, frame("0a0b000000043d06d4fbf900403203555555", 18), 90_000),
        from(make::vp8, frame("3059009d012a4201b600000708858588858488", 3000), 90_000),
        from(make::vp9, frame("824983420014100b560838241c184a0006", 3000), 90_000),
        from(make::mpeg_audio, frame("fffb90c4", 417), 90_000),
        from(make::mpeg_audio, frame("fffda4c4", 576), 90_000),
        from(make::mpeg_audio, frame("ffffc404", 384), 90_000),
        from(make::ac3, frame("0b77b50b1e40ebf8403eff99ff0841fc", 1792), 48_000),
        from(make::eac3, frame("0b77017f3487c0002084210838008c06", 768), 48_000),
        pcm(PcmCoding::Unsigned8, 1, 22_050),
        pcm(PcmCoding::Signed16(ByteOrder::Big), 2, 48_000),
        pcm(PcmCoding::Signed24(ByteOrder::Big), 6, 96_000),
        pcm(PcmCoding::MuLaw, 1, 8000),
        pcm(PcmCoding::ALaw, 2, 16_000),
    ]
}

#[test]
fn what_the_server_describes_is_read_back() {
    for (made, rate, frame) in rows() {
        let track = Track::live(1, made, Timescale::new(rate).unwrap(), "und");
        let packetizer = Packetizer::of(&track).unwrap();
        let described = Described {
            name: "x1",
            track: &track,
            packetizer,
            bandwidth: 640_000,
            payload_type: 96,
            keys: None,
            repeats: None,
        };
        let text = describe("film", 7, &SessionTimes::default(), &[described]);
        let stream = SessionDescription::read(text.as_bytes(), "rtsp://h/film/").unwrap().streams.remove(0);
        let mut read = StreamFormat::new(&stream, 1, 1).unwrap();
        if let Some(frame) = frame {
            assert_eq!(read.format(), None, "{text}");
            let mut unit = unit(&stream, packetizer, &frame);
            assert!(read.unit(&mut unit, NOW), "{text}");
            assert_eq!(unit.bytes, frame);
            assert!(!read.unit(&mut unit, NOW), "known");
        }
        let format = read.format().unwrap();
        assert_eq!(format.track, track, "{text}");
        assert_eq!((format.bandwidth, format.is_default, format.is_encrypted), (640_000, true, false));
        assert_eq!(format.name, if format.is_video() { "v1" } else { "a1" });
        assert_eq!(Packetizer::of(&format.track), Some(packetizer), "it can be sent on");
    }
}

/// Codec parameter, name and clock of a stream's format, or the beginning of its error.
fn summary(stream: &MediaDescription, number: u16) -> String {
    match StreamFormat::new(stream, 1, number) {
        Err(error) => error.to_string(),
        Ok(read) => match read.format() {
            None => "in band".to_owned(),
            Some(Format { name, track, .. }) => {
                let size = PictureSequence::of(&track.codec).and_then(|sequence| sequence.size);
                let size = size.map(|(width, height)| format!(" {width}x{height}")).unwrap_or_default();
                format!("{name} {} {}{size}", track.codec.parameter(), track.timescale.get())
            }
        },
    }
}

#[test]
fn descriptions_of_devices_are_read() {
    for (name, text, expected) in devices::ROWS {
        let found: Vec<String> = streams(text).iter().map(|stream| summary(stream, 1)).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn sets_in_band_complete_and_replace_those_described() {
    let text = "v=0\nm=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=lang:fr\nb=TIAS:123456\nb=AS:999\n";
    let stream = streams(text).remove(0);
    let mut read = StreamFormat::new(&stream, 5, 2).unwrap();
    let (sps, pps, idr) = (hex(SPS), hex(PPS), hex("6588840021"));
    let of = |frame: &[u8]| unit(&stream, Packetizer::Avc(4), frame);
    let mut first = of(&sample(&[&hex("419a0102")]));
    assert!(!read.unit(&mut first, NOW) && read.format().is_none());
    let mut key = of(&sample(&[&[0x09, 0xf0], &sps, &pps, &idr]));
    assert!(read.unit(&mut key, NOW));
    assert_eq!(key.bytes, sample(&[&idr]));
    let format = read.format().unwrap();
    assert_eq!((&*format.name, format.track.id, format.is_default), ("v2", 5, false));
    assert_eq!((format.language.as_deref(), &*format.track.language, format.bandwidth), (Some("fr"), "fr", 123_456));
    assert!(!read.unit(&mut of(&sample(&[&sps, &pps, &idr])), NOW));
    let other = hex("6764000dacd941519e226c0440000003004000000c83c50a65");
    let mut changed = of(&sample(&[&other, &pps, &idr]));
    assert!(read.unit(&mut changed, NOW));
    assert!(matches!(&read.format().unwrap().track.codec, Codec::Avc(config) if config.sps == [other.clone()]));
    // A camera that sends its sets as a unit of their own.
    let mut sets = of(&sample(&[&other, &pps]));
    assert!(!read.unit(&mut sets, NOW) && sets.bytes.is_empty());
}

#[test]
fn another_size_in_a_key_frame_is_another_format() {
    let stream = streams("v=0\nm=video 0 RTP/AVP 96\na=rtpmap:96 VP8/90000\n").remove(0);
    let mut read = StreamFormat::new(&stream, 1, 1).unwrap();
    let key = |width: u8| Unit {
        timestamp: 0,
        lost_before: false,
        is_key: true,
        importance: None,
        parameter_sets: Vec::new(),
        bytes: Bytes::from(vec![0x30, 0x59, 0, 0x9d, 1, 0x2a, width, 1, 0xb6, 0, 0, 7]),
    };
    assert!(read.unit(&mut key(0x42), NOW) && !read.unit(&mut key(0x42), NOW) && read.unit(&mut key(0x40), NOW));
    let mut predicted = Unit { is_key: false, ..key(0x10) };
    assert!(!read.unit(&mut predicted, NOW));
}
