//! Messages of other implementations, and unusable messages.

use super::*;
use proptest::prelude::*;

/// Parses hexadecimal digits; spaces are ignored.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Output of GStreamer 1.22 for this key and two streams.
pub(in crate::key_management) const GSTREAMER: &str = "AQAFADOmbFACAADK/rq+AAAAAAABAgMEAAAABwsA7qxU05CuMdcKEA8YqyUhgOppy572A9hO\
    4S4BAAAAFQABAQEBEAIBAQMBCgcBAQgBAQoBAQAAACIAIAAeAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eAA==";

/// The same message.
pub(in crate::key_management) fn message() -> MikeyMessage {
    MikeyMessage {
        bundle: 0x33a6_6c50,
        streams: vec![
            CryptoSession { ssrc: 0xcafe_babe, rollovers: 0 },
            CryptoSession { ssrc: 0x0102_0304, rollovers: 7 },
        ],
        time: 0xeeac_54d3_90ae_31d7,
        random: bytes("0f18ab252180ea69cb9ef603d84ee12e"),
        key: MasterKey::new(&std::array::from_fn(|at| at as u8 + 1)),
        name: Vec::new(),
    }
}

#[test]
fn messages_are_those_of_gstreamer() {
    use base64::Engine as _;
    let theirs = super::super::BASE64.decode(GSTREAMER).unwrap();
    assert_eq!(MikeyMessage::read(&theirs), Ok(message()));
    assert_eq!(message().to_bytes(), theirs);
}

/// Reads a camera's message: no random bytes, the key length of the RFC, a tag length, a key identifier, and an SSRC of
/// 0.
#[test]
fn messages_of_cameras_are_read() {
    let read = MikeyMessage::read(&bytes(
        "01 00 05 00 33a66c50 01 00  00 00000000 00000000
         0a 00 eeac54d390ae31d7
         01 00 00 0018  000101 010110 020101 030114 070101 080101 0a0101 0b010a
         00 00 0027  00 21 001e 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e 04 0000002f  00",
    ));
    let streams = vec![CryptoSession { ssrc: 0, rollovers: 0 }];
    let expected = MikeyMessage { streams, random: Vec::new(), name: vec![0, 0, 0, 0x2f], ..message() };
    assert_eq!(read, Ok(expected));
}

/// Reads the salt in a field of its own, an ID and an extension without effect, and no policy.
#[test]
fn other_ways_to_say_the_same_are_read() {
    let read = MikeyMessage::read(&bytes(
        "01 00 06 00 33a66c50 00 00
         15 00 0003 616263
         05 01 0002 0000
         01 02 00000009
         00 00 0024  00 30 0010 0102030405060708090a0b0c0d0e0f10 000e 1112131415161718191a1b1c1d1e  00",
    ));
    assert_eq!(read, Ok(MikeyMessage { streams: Vec::new(), time: 0, random: Vec::new(), ..message() }));
}

#[test]
fn what_is_written_reads_back() {
    let stream = |at| CryptoSession { ssrc: at, rollovers: u32::MAX - at };
    for count in [0, 1, 255] {
        for (random, name) in [(vec![], vec![]), (vec![1], vec![2; 4]), (vec![3; 255], vec![4; 255])] {
            let message = MikeyMessage { streams: (0..count).map(stream).collect(), random, name, ..message() };
            assert_eq!(MikeyMessage::read(&message.to_bytes()), Ok(message), "{count}");
        }
    }
    let many =
        MikeyMessage { streams: (0..300).map(stream).collect(), random: vec![0; 300], name: vec![0; 300], ..message() };
    let read = MikeyMessage::read(&many.to_bytes()).unwrap();
    assert_eq!((read.streams.len(), read.random.len(), read.name.len()), (255, 255, 255));
}

#[test]
fn what_cannot_be_used_is_named() {
    let good = message().to_bytes();
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        assert_ne!(bytes[at], value);
        bytes[at] = value;
        MikeyMessage::read(&bytes).unwrap_err().to_string()
    };
    // Streams end at 28, the time at 38, random bytes at 56, the policy at 82.
    for (at, value, words) in [
        (0, 2, "byte 0: version is 2, expected 1"),
        (1, 2, "byte 1: data type is 2"),
        (2, 4, "byte 28: payload is 4"),
        (9, 1, "byte 9: map type is 1"),
        (29, 3, "byte 29: time type is 3"),
        (58, 1, "byte 58: protocol is 1"),
        (63, 2, "byte 63: encryption is 2, expected 1"),
        (63, 0, "byte 63: encryption is 0, expected 1"),
        (66, 32, "byte 66: encryption key length is 32, expected 16"),
        (69, 0, "byte 69: authentication is 0"),
        (72, 4, "byte 72: authentication key length is 4"),
        (75, 0, "byte 75: encryption of RTP is 0"),
        (78, 0, "byte 78: encryption of RTCP is 0"),
        (81, 0, "byte 81: authentication of RTP is 0"),
        (83, 1, "byte 83: encryption of the key is 1"),
        (86, 20, "byte 86: keys is 2, expected one"),
        (86, 21, "byte 86: payload after the key is 21"),
        (87, 0, "byte 87: key type is 0"),
        (87, 0x22, "byte 87: validity is 2"),
        (89, 29, "byte 88: length of key and salt is 29"),
        (120, 1, "byte 120: MAC of the key is 1"),
        (82, 1, "byte 121: 0 bytes, expected 1"),
    ] {
        let error = changed(at, value);
        assert!(error.starts_with(words), "{at}: {error}");
    }
    assert_eq!(good.len(), 121);
    for length in 0..good.len() {
        assert!(matches!(MikeyMessage::read(&good[..length]), Err(MikeyError::Truncated { .. })), "{length}");
    }
    let longer = [&good[..], &[0]].concat();
    assert!(matches!(MikeyMessage::read(&longer), Err(MikeyError::Value { at: 121, found: 1, .. })));
    let no_key = bytes("0100000033a66c500000");
    assert_eq!(MikeyMessage::read(&no_key), Err(MikeyError::NoKey));
    assert_eq!(MikeyMessage::read(&[1; 4097]), Err(MikeyError::TooLong { found: 4097, most: 4096 }));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(at in 0..121_usize, noise in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut bytes = message().to_bytes();
        bytes.splice(at..(at + noise.len()).min(121), noise);
        if let Ok(read) = MikeyMessage::read(&bytes) {
            prop_assert_eq!(MikeyMessage::read(&read.to_bytes()), Ok(read));
        }
    }
}
