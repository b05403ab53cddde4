use crate::{
    Refusal, RtmpError, RtmpEvent, RtmpMedia, Session, StreamTarget,
    amf0::{Property, Reader, Value, write_null, write_number, write_object, write_properties, write_string},
};
use bytes::BytesMut;
use proptest::prelude::*;

/// A handshake whose random bytes are zeros.
fn handshake() -> Vec<u8> {
    let mut bytes = vec![3];
    bytes.resize(1 + 2 * 1536, 0);
    bytes
}

/// A message with a full header, in chunks of a size.
fn message(chunk_stream: u8, timestamp: u32, kind: u8, body: &[u8], size: usize) -> Vec<u8> {
    let (short, extended) = if timestamp < 0xff_ffff { (timestamp, None) } else { (0xff_ffff, Some(timestamp)) };
    let extended: Vec<u8> = extended.map(u32::to_be_bytes).into_iter().flatten().collect();
    let mut bytes = vec![chunk_stream];
    bytes.extend(&short.to_be_bytes()[1..]);
    bytes.extend(&(body.len() as u32).to_be_bytes()[1..]);
    bytes.extend([kind, 1, 0, 0, 0]);
    bytes.extend(&extended);
    for (number, chunk) in body.chunks(size).enumerate() {
        if number > 0 {
            bytes.push(0xc0 | chunk_stream);
            bytes.extend(&extended);
        }
        bytes.extend(chunk);
    }
    bytes
}

fn command(name: &str, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = Vec::new();
    write_string(&mut body, name);
    write_number(&mut body, 4.0);
    write(&mut body);
    message(3, 0, 20, &body, 128)
}

fn connect(application: &str) -> Vec<u8> {
    command("connect", |body| write_object(body, &[("app", application), ("flashVer", &"x".repeat(200))]))
}

fn publish(stream: &str) -> Vec<u8> {
    command("publish", |body| {
        write_null(body);
        write_string(body, stream);
        write_string(body, "live");
    })
}

fn play(stream: &str) -> Vec<u8> {
    command("play", |body| {
        write_null(body);
        write_string(body, stream);
        write_number(body, -2000.0);
    })
}

fn target(path: &str, query: &str) -> StreamTarget {
    StreamTarget { path: path.to_owned(), query: query.to_owned() }
}

/// A session that publishes.
fn publishing() -> Session {
    let mut session = Session::default();
    let mut input = BytesMut::from(&[handshake(), connect("live"), publish("cam")].concat()[..]);
    assert!(matches!(session.receive(&mut input), Ok(Some(RtmpEvent::Publish(_)))));
    session.accept();
    session.take_output();
    session
}

/// All events of the bytes.
fn events(session: &mut Session, bytes: &[u8]) -> Result<Vec<RtmpEvent>, RtmpError> {
    let (mut input, mut events) = (BytesMut::from(bytes), Vec::new());
    while let Some(event) = session.receive(&mut input)? {
        events.push(event);
    }
    Ok(events)
}

fn tag(kind: u8, timestamp: u32, body: &[u8]) -> RtmpEvent {
    let [upper, time @ ..] = timestamp.to_be_bytes();
    let head = [&[kind][..], &(body.len() as u32).to_be_bytes()[1..], &time, &[upper, 0, 0, 0], body].concat();
    RtmpEvent::Media(head.into())
}

/// The names of the commands that the server sent, and their last values.
fn commands(output: &[u8]) -> Vec<(String, Option<String>)> {
    let mut reader = crate::chunk::ChunkReader::new(1 << 20);
    let (mut input, mut found) = (BytesMut::from(output), Vec::new());
    while let Some(message) = reader.read(&mut input).unwrap() {
        let mut values = Reader(message.body());
        let Some(name) = values.value().and_then(Value::text).filter(|_| message.kind == 20) else { continue };
        let last = std::iter::from_fn(|| values.value()).last();
        let code = last.and_then(|last| last.property("code")).and_then(Value::text).map(str::to_owned);
        found.push((name.to_owned(), code));
    }
    found
}

#[test]
fn a_client_connects_and_publishes() {
    let mut session = Session::default();
    let release = command("releaseStream", write_null);
    let create = command("createStream", write_null);
    let bytes = [handshake(), connect("live"), release, create, publish("cam?user=ann&pass=p")].concat();
    let target = StreamTarget { path: "live/cam".to_owned(), query: "user=ann&pass=p".to_owned() };
    // Byte by byte.
    let mut input = BytesMut::new();
    let mut found = Vec::new();
    for byte in bytes {
        input.extend_from_slice(&[byte]);
        found.extend(session.receive(&mut input).unwrap());
    }
    assert_eq!(found, [RtmpEvent::Publish(target)]);
    session.accept();
    let output = session.take_output();
    assert_eq!(&output[..9], [3, 0, 0, 0, 0, 0, 0, 0, 0]);
    let said = commands(&output[1 + 2 * 1536..]);
    let codes: Vec<_> = said.iter().map(|(name, code)| (name.as_str(), code.as_deref())).collect();
    let start = ("onStatus", Some("NetStream.Publish.Start"));
    let (success, result) = (("_result", Some("NetConnection.Connect.Success")), ("_result", None));
    assert_eq!(codes, [success, result, result, start]);
    let end = command("deleteStream", write_null);
    let metadata = b"\x02\0\x0aonMetaData";
    let (data, properties) = (message(4, 9, 18, b"data", 128), message(4, 10, 18, metadata, 128));
    let media = [message(4, 7, 9, b"picture", 128), message(6, 8, 8, b"", 128), data, properties, end].concat();
    let expected = vec![tag(9, 7, b"picture"), tag(8, 8, b""), tag(18, 10, metadata), RtmpEvent::End];
    assert_eq!(events(&mut session, &media), Ok(expected));
}

#[test]
fn targets_are_joined() {
    let of = |application: &str, stream: &str| {
        let mut session = Session::default();
        let found = events(&mut session, &[handshake(), connect(application), publish(stream)].concat());
        match found.unwrap().pop() {
            Some(RtmpEvent::Publish(StreamTarget { path, query })) => (path, query),
            other => panic!("{other:?}"),
        }
    };
    let target = |path: &str, query: &str| (path.to_owned(), query.to_owned());
    assert_eq!(of("live", "mp4:cam.mp4"), target("live/cam.mp4", ""));
    assert_eq!(of("live/", "/door/hi"), target("live/door/hi", ""));
    assert_eq!(of("live?user=ann", "cam?pass=a?b"), target("live/cam", "user=ann&pass=a?b"));
    assert_eq!(of("", "live/cam"), target("live/cam", ""));
    assert_eq!(of("live", "?user=ann"), target("live", "user=ann"));
}

#[test]
fn messages_of_several_chunk_streams_mix() {
    let mut session = publishing();
    let (picture, sound) = ([1; 300], [2; 10]);
    let picture_chunks = message(4, 40, 9, &picture, 128);
    let first = 12 + 128;
    let bytes = [&picture_chunks[..first], &message(6, 41, 8, &sound, 128), &picture_chunks[first..]].concat();
    assert_eq!(events(&mut session, &bytes), Ok(vec![tag(8, 41, &sound), tag(9, 40, &picture)]));
    // Deltas: of a full header, of the same size, of all fields, and again of one with a delta.
    let short = [
        vec![0xc6],
        sound.to_vec(),
        [&[0x86, 0, 0, 5][..], &sound].concat(),
        [&[0x46, 0, 0, 7, 0, 0, 2, 8][..], &[9, 9]].concat(),
        vec![0xc6, 9, 9],
    ];
    let expected = [tag(8, 41, &sound), tag(8, 46, &sound), tag(8, 53, &[9, 9]), tag(8, 60, &[9, 9])];
    assert_eq!(events(&mut session, &short.concat()), Ok(expected.to_vec()));
}

#[test]
fn a_chunk_stream_may_begin_with_a_short_header() {
    let first = [0x46, 0, 0, 40, 0, 0, 2, 8, 7, 7];
    let second = [0x86, 0, 0, 23, 8, 8];
    let bytes = [&first[..], &second].concat();
    assert_eq!(events(&mut publishing(), &bytes), Ok(vec![tag(8, 40, &[7, 7]), tag(8, 63, &[8, 8])]));
}

#[test]
fn timestamps_of_32_bits_are_repeated_or_not() {
    let mut session = publishing();
    let body = [5; 300];
    let repeated = message(4, 0xff_ffff, 9, &body, 128);
    assert_eq!(events(&mut session, &repeated), Ok(vec![tag(9, 0xff_ffff, &body)]));
    let repeated = message(4, u32::MAX, 9, &body, 128);
    assert_eq!(events(&mut session, &repeated), Ok(vec![tag(9, u32::MAX, &body)]));
    let once = [&repeated[..16], &body[..128], &[0xc4], &body[..128], &[0xc4], &body[..44]].concat();
    assert_eq!(events(&mut session, &once), Ok(vec![tag(9, u32::MAX, &body)]));
    // A delta of 32 bits, which wraps.
    let delta = [&[0x84, 0xff, 0xff, 0xff, 1, 0, 0, 0][..], &body[..128]].concat();
    assert_eq!(events(&mut session, &delta), Ok(vec![]));
    let rest = [&[0xc4, 1, 0, 0, 0][..], &body[..128], &[0xc4, 1, 0, 0, 0], &body[..44]].concat();
    assert_eq!(events(&mut session, &rest), Ok(vec![tag(9, 0x00ff_ffff, &body)]));
}

#[test]
fn sizes_are_set_and_bounded() {
    let mut session = publishing();
    let size = |size: u32| message(2, 0, 1, &size.to_be_bytes(), 128);
    let body = vec![1; 100_000];
    let bytes = [size(65_536), message(4, 0, 9, &body, 65_536)].concat();
    assert_eq!(events(&mut session, &bytes), Ok(vec![tag(9, 0, &body)]));
    let bytes = [size(1), message(4, 0, 9, &body[..50], 1)].concat();
    assert_eq!(events(&mut session, &bytes), Ok(vec![tag(9, 0, &body[..50])]));
    assert_eq!(events(&mut publishing(), &size(0)), Err(RtmpError::ChunkSize));

    // A message is refused by its header.
    let huge = &message(4, 0, 9, &[], 128)[..4];
    let huge = [huge, &[0xff, 0xff, 0xff, 9, 1, 0, 0, 0]].concat();
    let found = events(&mut publishing(), &huge);
    assert_eq!(found, Err(RtmpError::TooLarge { found: 0xff_ffff, most: 8 << 20 }));
    let mut session = Session::default();
    let large = [handshake(), message(3, 0, 20, &[0; 65_537], 128)].concat();
    assert_eq!(events(&mut session, &large), Err(RtmpError::TooLarge { found: 65_537, most: 65_536 }));

    // Many that are under way at once.
    let mut session = publishing();
    let mut bytes = size(1 << 20);
    let part = message(0, 0, 9, &vec![0; 3 << 20], 1 << 20);
    for stream in 4..9 {
        bytes.push(stream);
        bytes.extend(&part[1..12 + (1 << 20)]);
        bytes.push(0xc0 | stream);
        bytes.extend(&part[..1 << 20]);
    }
    assert_eq!(events(&mut session, &bytes), Err(RtmpError::TooMuch(8 << 20)));
    let mut session = publishing();
    let many: Vec<u8> =
        (0..40).flat_map(|id| [vec![0, id], message(0, 0, 9, &[], 128)[1..].to_vec()].concat()).collect();
    assert_eq!(events(&mut session, &many), Err(RtmpError::ChunkStreams(32)));
}

#[test]
fn violations_end_the_connection() {
    let after = |bytes: &[u8]| events(&mut publishing(), bytes).unwrap_err();
    assert_eq!(events(&mut Session::default(), b"GET / HTTP/1.1\r\n"), Err(RtmpError::Version(b'G')));
    assert_eq!(after(&[0xc9, 1]), RtmpError::NoHeader(9));
    let begun = &message(4, 0, 9, &[0; 200], 128)[..140];
    assert_eq!(after(&[begun, begun].concat()), RtmpError::Unfinished(4));
    assert_eq!(after(&message(2, 0, 1, &[1], 128)), RtmpError::Message { kind: 1, expected: "a number of 32 bits" });
    assert_eq!(
        after(&message(3, 0, 20, &[5], 128)),
        RtmpError::Message { kind: 20, expected: "the name of a command" }
    );
    let cut = [&[8, 0, 0, 2][..], &[0; 8]].concat();
    let expected = RtmpError::Message { kind: 22, expected: "whole FLV tags" };
    assert_eq!(after(&message(3, 0, 22, &cut, 128)), expected);
    assert_eq!(after(&publish("other")), RtmpError::Second);
    let nameless = command("publish", write_null);
    let mut session = Session::default();
    let found = events(&mut session, &[handshake(), nameless].concat());
    assert_eq!(found, Err(RtmpError::Message { kind: 20, expected: "the name of a stream" }));
    // An aborted message may begin again.
    let mut session = publishing();
    let abort = message(2, 0, 2, &4_u32.to_be_bytes(), 128);
    let bytes = [begun, &abort, &message(4, 0, 9, b"x", 128)].concat();
    assert_eq!(events(&mut session, &bytes), Ok(vec![tag(9, 0, b"x")]));
}

#[test]
fn refused_clients_are_told_why() {
    for (refusal, code) in
        [(Refusal::Name, "NetStream.Play.StreamNotFound"), (Refusal::Denied, "NetStream.Play.Failed")]
    {
        let mut session = Session::default();
        let found = events(&mut session, &[handshake(), connect("live"), play("cam")].concat()).unwrap();
        assert_eq!(found, [RtmpEvent::Play(target("live/cam", ""))]);
        session.refuse(refusal, "why");
        let said = commands(&session.take_output()[1 + 2 * 1536..]);
        assert_eq!(said[1].1.as_deref(), Some(code));
    }
    let mut session = Session::default();
    events(&mut session, &[handshake(), connect("live"), publish("cam")].concat()).unwrap();
    session.refuse(Refusal::Denied, "why");
    let said = commands(&session.take_output()[1 + 2 * 1536..]);
    assert_eq!(said[1].1.as_deref(), Some("NetStream.Publish.Denied"));
    session.accept();
    assert_eq!(events(&mut session, &message(4, 0, 9, b"x", 128)), Ok(vec![]), "nothing is taken afterwards");
}

#[test]
fn bytes_are_acknowledged_and_pings_answered() {
    let mut session = publishing();
    let window = message(2, 0, 5, &10_000_u32.to_be_bytes(), 128);
    events(&mut session, &[window, message(4, 0, 9, &[0; 6000], 128)].concat()).unwrap();
    let output = session.take_output();
    assert_eq!((output[0], output[7], output.len()), (2, 3, 16));
    events(&mut session, &message(2, 0, 4, &[0, 6, 1, 2, 3, 4], 128)).unwrap();
    assert!(session.take_output().ends_with(&[0, 7, 1, 2, 3, 4]));
}

#[test]
fn aggregate_messages_are_divided() {
    let mut session = publishing();
    let tag_of = |kind: u8, time: u32, body: &[u8]| {
        let [upper, time @ ..] = time.to_be_bytes();
        let size = &(body.len() as u32).to_be_bytes()[1..];
        let whole = 11 + body.len() as u32;
        [&[kind][..], size, &time, &[upper, 0, 0, 0], body, &whole.to_be_bytes()].concat()
    };
    let body = [tag_of(9, 5000, b"picture"), tag_of(18, 5001, b"data"), tag_of(8, 5020, b"sound")].concat();
    // The last tag has no size behind it.
    let bytes = [message(4, 100, 22, &body[..body.len() - 4], 128), message(4, 130, 9, b"next", 128)].concat();
    let expected = [tag(9, 100, b"picture"), tag(8, 120, b"sound"), tag(9, 130, b"next")];
    assert_eq!(events(&mut session, &bytes), Ok(expected.to_vec()));
}

#[test]
fn old_encoders_get_their_answers() {
    let mut session = Session::default();
    // The name of a command in a message of AMF 3, with the byte that tells AMF 0, and without it.
    let of_amf3 = |prefix: &[u8], name: &str| {
        let mut body = prefix.to_vec();
        write_string(&mut body, name);
        write_number(&mut body, 9.0);
        message(3, 0, 17, &body, 128)
    };
    let bytes = [
        handshake(),
        connect("live"),
        of_amf3(&[0], "_checkbw"),
        of_amf3(&[], "releaseStream"),
        command("FCPublish", write_null),
        command("FCSubscribe", write_null),
        command("getStreamLength", write_null),
    ];
    assert_eq!(events(&mut session, &bytes.concat()), Ok(vec![]));
    let said = commands(&session.take_output()[1 + 2 * 1536..]);
    let names: Vec<_> = said.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["_result", "_result", "_result", "_result", "onFCPublish", "onFCSubscribe", "_result"];
    assert_eq!(names, expected);
}

#[test]
fn clients_of_enhanced_rtmp_are_told_our_codecs() {
    let reply = |properties: &[(&str, Property<'_>)]| {
        let mut session = Session::default();
        let connect = command("connect", |body| write_properties(body, properties.iter().copied()));
        events(&mut session, &[handshake(), connect].concat()).unwrap();
        (String::from_utf8_lossy(&session.take_output()).into_owned(), session.reads_tracks())
    };
    let app = ("app", Property::Text("live"));
    let (plain, reads_tracks) = reply(&[app]);
    assert!(!plain.contains("capsEx") && !reads_tracks);
    let (known, reads_tracks) = reply(&[app, ("fourCcList", Property::Texts(&["hvc1"]))]);
    assert!(["capsEx", "fourCcList", "videoFourCcInfoMap", "vp08", "ec-3"].iter().all(|word| known.contains(word)));
    assert!(!reads_tracks);
    assert!(reply(&[app, ("capsEx", Property::Number(7.0))]).1);
}

#[test]
fn players_get_media_in_large_chunks() {
    let mut session = Session::default();
    events(&mut session, &[handshake(), connect("live"), play("cam")].concat()).unwrap();
    session.send(&RtmpMedia { kind: 9, timestamp: 0, head: &[], data: b"before" });
    session.accept();
    let data = vec![7; 10_000];
    session.send(&RtmpMedia { kind: 9, timestamp: 0x0100_0000, head: &[0x17, 1], data: &data });
    session.send(&RtmpMedia { kind: 8, timestamp: 3, head: &[0xaf], data: &[] });
    session.send(&RtmpMedia { kind: 9, timestamp: 0, head: &[], data: &vec![0; 1 << 24] });
    // Pauses mean nothing to a live stream.
    assert_eq!(events(&mut session, &command("pause", write_null)), Ok(vec![]));
    assert_eq!(events(&mut session, &command("deleteStream", write_null)), Ok(vec![RtmpEvent::End]));
    let output = session.take_output();
    let mut reader = crate::chunk::ChunkReader::new(1 << 20);
    let (mut input, mut media) = (BytesMut::from(&output[1 + 2 * 1536..]), Vec::new());
    while let Some(message) = reader.read(&mut input).unwrap() {
        if message.kind == 1 {
            reader.set_chunk_size(message.number().unwrap()).unwrap();
        }
        if matches!(message.kind, 8 | 9) {
            media.push((message.kind, message.timestamp, message.body().to_vec()));
        }
    }
    let picture = [&[0x17, 1][..], &data].concat();
    assert_eq!(media, [(9, 0x0100_0000, picture), (8, 3, vec![0xaf])]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_alike_in_any_pieces(
        bytes in prop::collection::vec(prop_oneof![Just(4_u8), Just(0xc4), Just(0x84), Just(0x44), Just(0), Just(1), any::<u8>()], 0..400),
        size in 1_usize..50,
    ) {
        let whole = events(&mut publishing(), &bytes);
        let mut session = publishing();
        let (mut input, mut found) = (BytesMut::new(), Ok(Vec::new()));
        'all: for piece in bytes.chunks(size) {
            input.extend_from_slice(piece);
            loop {
                match session.receive(&mut input) {
                    Ok(Some(event)) => found.as_mut().unwrap().push(event),
                    Ok(None) => break,
                    Err(error) => {
                        found = Err(error);
                        break 'all;
                    }
                }
            }
        }
        prop_assert_eq!(whole, found);
    }
}
