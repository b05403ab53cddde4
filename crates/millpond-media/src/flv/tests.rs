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
    assert_eq!(content(VIDEO, b"\x91vp09key"), frame(FlvCodec::Vp9, 0, true, b"key"));
    assert_eq!(content(VIDEO, b"\xa3vp08other"), frame(FlvCodec::Vp8, 0, false, b"other"));
    assert_eq!(content(VIDEO, b"\x91avc1\0\0\x28key"), frame(FlvCodec::Avc, 40, true, b"key"));
    assert_eq!(content(VIDEO, b"\xd1avc1\0\0\x28key"), None, "a command");
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
    for (code, codec) in
        [(b"Opus", FlvCodec::Opus), (b"fLaC", FlvCodec::Flac), (b"ac-3", FlvCodec::Ac3), (b"ec-3", FlvCodec::Eac3)]
    {
        assert_eq!(content(AUDIO, &[b"\x90", &code[..], b"head"].concat()), configuration(codec, b"head"));
        assert_eq!(content(AUDIO, &[b"\x91", &code[..], b"raw"].concat()), frame(codec, 0, true, b"raw"));
    }
}

#[test]
fn modified_packets_are_read_as_they_are() {
    // Nanoseconds of a time; a modifier of 300 bytes before another one.
    let nanoseconds = b"\x97\x02\0\0\x07\x01hvc1\0\0\x28key";
    assert_eq!(content(VIDEO, nanoseconds), frame(FlvCodec::Hevc, 40, true, b"key"));
    let long = [&b"\x97\xff\x01\x2b"[..], &[0; 300], b"\x07\0\x05\x01Opusraw"].concat();
    assert_eq!(content(AUDIO, &long), frame(FlvCodec::Opus, 0, true, b"raw"));
    for cut in [&b"\x97"[..], b"\x97\xff\x01", b"\x97\x02\0\0\0", b"\x97\xff\xff\xff\0"] {
        assert!(FlvTag::read(&tag(AUDIO, 0, cut)).is_err());
    }
}

#[test]
fn several_tracks_are_read_from_one_tag() {
    let read = |kind: u8, body: &[u8]| -> Vec<_> {
        let tags = FlvTag::read_all(&tag(kind, 5, body)).into_iter();
        tags.map(|tag| tag.map(|tag| (tag.track, tag.codec, tag.content)).map_err(|error| error.to_string())).collect()
    };
    let sound = |track: u8, codec: FlvCodec, data: &'static [u8]| {
        Ok((track, codec, FlvContent::Frame { composition: 0, is_key: true, data: Bytes::from_static(data) }))
    };
    let one = read(AUDIO, b"\x95\x01Opus\x03raw");
    assert_eq!(one, [sound(3, FlvCodec::Opus, b"raw")]);
    assert_eq!(FlvTag::read(&tag(AUDIO, 5, b"\x95\x01Opus\x03raw")).unwrap().unwrap().track, 3);
    let many = read(AUDIO, b"\x95\x11mp4a\0\0\0\x02ab\x01\0\0\x01c");
    assert_eq!(many, [sound(0, FlvCodec::Aac, b"ab"), sound(1, FlvCodec::Aac, b"c")]);
    let codecs = read(AUDIO, b"\x95\x21mp4a\0\0\0\x02abxxxx\x01\0\0\x01cOpus\x02\0\0\0");
    assert_eq!(codecs.len(), 3);
    assert!(codecs[1].as_ref().is_err_and(|words| words.contains("xxxx")), "{codecs:?}");
    assert_eq!(codecs[2], sound(2, FlvCodec::Opus, b""));
    let pictures = read(VIDEO, b"\x96\x10hvc1\0\0\0\x01a\x01\0\0\x01b");
    assert!(matches!(&pictures[..], [Ok((0, ..)), Ok((1, FlvCodec::Hevc, FlvContent::Configuration(_)))]));
    assert!(read(AUDIO, b"\x95\x11mp4a\0\0\0\x03ab")[0].is_err(), "a size beyond the end");
    assert!(read(AUDIO, &[&b"\x95\x11mp4a"[..], &[0; 4 * 33]].concat())[0].is_err(), "too many tracks");
    assert_eq!(read(18, b"x"), []);
}

#[test]
fn others_are_refused_by_name() {
    let words = |kind: u8, body: &[u8]| FlvTag::read(&tag(kind, 0, body)).unwrap_err().to_string();
    for (kind, body, word) in [
        (VIDEO, &b"\x12\x00"[..], "Sorenson H.263"),
        (VIDEO, b"\x90vvc1", "vvc1"),
        (VIDEO, b"\x96\x10hvc1\0", "several tracks"),
        (VIDEO, b"\x96\x30hvc1", "the form 3"),
        (AUDIO, b"\x95\x05mp4a\0", "the form 0"),
        (AUDIO, b"\xbf", "Speex"),
        (AUDIO, b"\x90xxxx", "xxxx"),
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

#[test]
fn metadata_announce_the_kinds_of_tracks() {
    let announced = |body: &[u8]| FlvAnnouncement::read(&tag(18, 0, body)).map(|found| (found.pictures, found.sound));
    let mut metadata = FlvMetadata::default();
    metadata.set("videocodecid", FlvValue::Number(7.0));
    assert_eq!(announced(&metadata.message(0).head), Some((true, false)));
    metadata.set("audiocodecid", FlvValue::Text("mp4a"));
    assert_eq!(announced(&metadata.message(0).head), Some((true, true)));
    // nginx's module names both, and gives 0 to the one that is missing.
    let mut half = FlvMetadata::default();
    half.set("videocodecid", FlvValue::Number(0.0));
    half.set("audiocodecid", FlvValue::Number(10.0));
    assert_eq!(announced(&half.message(0).head), Some((false, true)));
    assert_eq!(announced(b"\x02\0\x0aonMetaData\x08\0\0\0\0\0\0\x09"), Some((false, false)));
    assert_eq!((announced(b"\x02\0\x0aonCuePoint"), announced(b"")), (None, None));
    assert_eq!(FlvAnnouncement::read(&tag(VIDEO, 0, &metadata.message(0).head)), None);
}
