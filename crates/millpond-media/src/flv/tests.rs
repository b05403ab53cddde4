use super::*;
use crate::{NalSyntax, codec::make};

fn tag(kind: u8, timestamp: u32, body: &[u8]) -> Bytes {
    let [upper, time @ ..] = timestamp.to_be_bytes();
    let head = [&[kind][..], &(body.len() as u32).to_be_bytes()[1..], &time, &[upper, 0, 0, 0], body];
    head.concat().into()
}

fn content(kind: u8, body: &[u8]) -> Option<(FlvCodec, FlvContent)> {
    FlvTag::read(&tag(kind, 1, body)).unwrap().map(|tag| (tag.codec, tag.content))
}

fn frame(codec: FlvCodec, composition: i32, is_key: bool, data: &'static [u8]) -> Option<(FlvCodec, FlvContent)> {
    Some((codec, FlvContent::Frame { composition, is_key, data: Bytes::from_static(data) }))
}

fn configuration(codec: FlvCodec, data: &'static [u8]) -> Option<(FlvCodec, FlvContent)> {
    Some((codec, FlvContent::Configuration(Bytes::from_static(data))))
}

#[test]
fn pictures_of_all_forms_are_read() {
    assert_eq!(content(VIDEO, b"\x17\x00\0\0\0record"), configuration(FlvCodec::Avc, b"record"));
    assert_eq!(content(VIDEO, b"\x17\x01\0\0\x28key"), frame(FlvCodec::Avc, 40, true, b"key"));
    assert_eq!(content(VIDEO, b"\x27\x01\xff\xff\xd8other"), frame(FlvCodec::Avc, -40, false, b"other"));
    assert_eq!(content(VIDEO, b"\x17\x02\0\0\0"), None, "the end of a sequence");
    assert_eq!(content(VIDEO, b"\x57\x00"), None, "a command");
    assert_eq!(content(VIDEO, b"\x1c\x01\0\0\0key"), frame(FlvCodec::Hevc, 0, true, b"key"));
    assert_eq!(content(VIDEO, b"\x90hvc1record"), configuration(FlvCodec::Hevc, b"record"));
    assert_eq!(content(VIDEO, b"\x91hvc1\0\0\x28key"), frame(FlvCodec::Hevc, 40, true, b"key"));
    assert_eq!(content(VIDEO, b"\xa3hvc1other"), frame(FlvCodec::Hevc, 0, false, b"other"));
    assert_eq!(content(VIDEO, b"\x90av01record"), configuration(FlvCodec::Av1, b"record"));
    assert_eq!(content(VIDEO, b"\x91av01\x12\0key"), frame(FlvCodec::Av1, 0, true, b"key"));
    assert_eq!(content(VIDEO, b"\x94hvc1metadata"), None);
    assert_eq!(content(18, b"metadata"), None);
    assert_eq!(content(VIDEO, b""), None);
    let read = FlvTag::read(&tag(VIDEO, 0xfe00_0102, b"\x17\x00\0\0\0")).unwrap().unwrap();
    assert_eq!(read.timestamp, 0xfe00_0102);
}

#[test]
fn sound_of_all_forms_is_read() {
    assert_eq!(content(AUDIO, b"\xaf\x00\x11\x90"), configuration(FlvCodec::Aac, b"\x11\x90"));
    assert_eq!(content(AUDIO, b"\xaf\x01raw"), frame(FlvCodec::Aac, 0, true, b"raw"));
    assert_eq!(content(AUDIO, b"\x2fframe"), frame(FlvCodec::Mp3, 0, true, b"frame"));
    assert_eq!(content(AUDIO, b"\x90mp4a\x11\x90"), configuration(FlvCodec::Aac, b"\x11\x90"));
    assert_eq!(content(AUDIO, b"\x91.mp3frame"), frame(FlvCodec::Mp3, 0, true, b"frame"));
    assert_eq!(content(AUDIO, b"\x94mp4achannels"), None);
}

#[test]
fn others_are_refused_by_name() {
    let words = |kind: u8, body: &[u8]| FlvTag::read(&tag(kind, 0, body)).unwrap_err().to_string();
    for (kind, body, word) in [
        (VIDEO, &b"\x12\x00"[..], "Sorenson H.263"),
        (VIDEO, b"\x90vp09", "vp09"),
        (VIDEO, b"\x96hvc1", "several tracks"),
        (AUDIO, b"\xbf", "Speex"),
        (AUDIO, b"\x90Opus", "Opus"),
    ] {
        assert!(words(kind, body).contains(word), "{}", words(kind, body));
    }
    let tags = [(AUDIO, true), (VIDEO, false)].map(|(kind, is_sound)| (tag(kind, 0, b"\xbf"), is_sound));
    assert!(tags.iter().all(|(tag, is_sound)| FlvTag::is_sound(tag) == *is_sound));
    for cut in [&b"\x17"[..], b"\x17\x01\0\0", b"\x17\x00\0\0", b"\x90hvc", b"\x91hvc1\0\0"] {
        assert!(words(VIDEO, cut).contains("found"), "{}", words(VIDEO, cut));
    }
    assert!(FlvTag::read(&Bytes::from_static(&[9; 10])).is_err());
}

#[test]
fn records_have_parameter_sets() {
    // A length size of 4; a set of each kind.
    let avc = [1, 66, 0, 30, 0xff, 0xe1, 0, 2, 0x67, 1, 1, 0, 2, 0x68, 2];
    assert_eq!(make::parameter_sets(NalSyntax::Avc, &avc).unwrap(), (4, vec![vec![0x67, 1], vec![0x68, 2]]));
    let mut hevc = vec![1; 21];
    hevc.extend([3, 2, 0x20, 0, 1, 0, 2, 0x40, 1, 0x21, 0, 1, 0, 1, 0x42]);
    assert_eq!(make::parameter_sets(NalSyntax::Hevc, &hevc).unwrap(), (4, vec![vec![0x40, 1], vec![0x42]]));
    for (syntax, record) in [(NalSyntax::Avc, &avc[..]), (NalSyntax::Hevc, &hevc)] {
        assert!((0..record.len()).all(|length| make::parameter_sets(syntax, &record[..length]).is_err()));
    }
}
