//! Tags of Enhanced RTMP that another program has written.

use bytes::Bytes;
use millpond_media::{
    codec::Codec,
    flv::{FlvCodec, FlvContent, FlvTag, FlvWriter},
};

/// AV1 and Opus, by the authors of Enhanced RTMP (tests/flv/README.md).
const FILE: &[u8] = include_bytes!("flv/av1_opus.flv");

/// The tags of the file.
fn tags() -> Vec<Bytes> {
    let mut rest = Bytes::from_static(FILE).slice(9 + 4..);
    let mut tags = Vec::new();
    while let Some([_, a, b, c]) = rest.first_chunk::<4>() {
        let whole = 11 + u32::from_be_bytes([0, *a, *b, *c]) as usize;
        tags.push(rest.split_to(whole));
        rest = rest.slice(4.min(rest.len())..);
    }
    tags
}

#[test]
fn tags_of_another_writer_are_read() {
    let read: Vec<FlvTag> = tags().iter().flat_map(FlvTag::read_all).map(|tag| tag.unwrap()).collect();
    let configured = |codec: FlvCodec| {
        let records = read.iter().filter(|tag| tag.codec == codec).filter_map(|tag| match &tag.content {
            FlvContent::Configuration(record) => codec.configured(record),
            FlvContent::Frame { .. } => None,
        });
        records.last().unwrap().unwrap()
    };
    let (pictures, sound) = (configured(FlvCodec::Av1), configured(FlvCodec::Opus));
    assert!(matches!(&sound.codec, Codec::Opus(config) if config.channels == 1), "{:?}", sound.codec);
    assert!(matches!(pictures.codec, Codec::Av1(_)));
    let frames = |codec: FlvCodec| {
        read.iter().filter(move |tag| tag.codec == codec).filter_map(|tag| match &tag.content {
            FlvContent::Frame { data, is_key, .. } => Some((data.clone(), *is_key)),
            FlvContent::Configuration(_) => None,
        })
    };
    let (key, is_key) = frames(FlvCodec::Av1).next().unwrap();
    assert!(is_key && FlvCodec::Av1.described(&key, true).is_some(), "a key frame tells the same");
    assert!(frames(FlvCodec::Opus).all(|(packet, _)| FlvCodec::Opus.samples(&packet) == Some(960)));

    // Written again, the tags of sound are the same.
    let writer = FlvWriter::of(&sound.codec, &sound.sample_entry, 0).unwrap();
    for tag in tags().iter().filter(|tag| tag[11..16] == *b"\x91Opus") {
        let Some(Ok(FlvTag { timestamp, content: FlvContent::Frame { data, .. }, .. })) = FlvTag::read_all(tag).pop()
        else {
            panic!("a frame of Opus")
        };
        let written = writer.frame(timestamp, 0, true, data);
        assert_eq!([&written.head[..], &written.data].concat(), &tag[11..]);
    }
    let written = writer.configuration(0).unwrap();
    let header = tags().into_iter().find(|tag| tag[11..16] == *b"\x90Opus").unwrap();
    assert_eq!([&written.head[..], &written.data].concat(), &header[11..]);
}
