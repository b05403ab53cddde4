//! Tests with packets of another implementation, and possible errors between a sender and a receiver.

mod rfc7714;

use super::*;
use crate::{
    packet::{self, Header},
    rtcp,
};
use proptest::prelude::*;

pub(super) const SUITES: [Suite; 3] = [Suite::AesCm128HmacSha1_80, Suite::AeadAes128Gcm, Suite::AeadAes256Gcm];

/// Bytes from hexadecimal digits.
pub(super) fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    unhex(hex).try_into().unwrap()
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A key of the bytes 1, 2, 3 and so on.
fn key(suite: Suite) -> MasterKey {
    let bytes: Vec<u8> = (1..).take(suite.key_length() + suite.salt_length()).collect();
    let (key, salt) = bytes.split_at(suite.key_length());
    MasterKey::of(suite, key, salt).unwrap()
}

fn pair(suite: Suite) -> (Protector, Unprotector) {
    (Protector::new(&key(suite)), Unprotector::new(&key(suite), 0))
}

const SSRC: u32 = 0xcafe_babe;

fn packet(sequence: u16, payload: &[u8]) -> Vec<u8> {
    let header = Header { marker: true, payload_type: 96, sequence, timestamp: 0x0001_0203, ssrc: SSRC };
    [&header.to_bytes()[..], payload].concat()
}

fn protected(protector: &mut Protector, sequence: u16) -> Vec<u8> {
    let mut packet = packet(sequence, b"a stream of media");
    protector.rtp(&mut packet, 0).unwrap();
    packet
}

/// Compares with the output of libsrtp 2.5 for the same packets and key.
#[test]
fn packets_are_those_of_libsrtp() {
    for (suite, expected, extended) in [
        (
            Suite::AesCm128HmacSha1_80,
            [
                "c4707ffce501aaf1dcbb5997898d66af45c9aafd89f1769e98b847",
                "8e807b1be0a16541491586a0415f2a96e334bf93fb589f13f7af75",
                "bab4ee057326ff2ebcf6419aef0dc95d1a3c5f8977a103398bec18",
                "c8c0eb4881fcf66335dbf8767929cdcb1e69f8a324c34e66689456",
            ],
            "a13628ccae4bdce849e9e79a5cf55afbd31117a0810fb82567f079",
        ),
        (
            Suite::AeadAes128Gcm,
            [
                "5bf1606972f5d9d46cb749e70e3ae2c52bac0aef5b340ebb414a77c17f39d9da32",
                "727cb0e2232cc9e3477bc1e64bc01cdbed63b0e4c1276fc52e51258d498705f6be",
                "87d8e7f59de3e903b3fc49044316a2ad7ee8bd783166068bd66df93b660f4cf7dc",
                "2e21745ad681816eb7cbd562ba0695aaf3528178a9887039053f22f27a2d6c3e76",
            ],
            "b71598a86799c115ed41c668eaa0f77c17c0282130be2da7d58e5042793d077d45",
        ),
        (
            Suite::AeadAes256Gcm,
            [
                "edfdad7e5f01acf701ba2969e207776271a6ce09289970a9923bbf8bbeb52e8d65",
                "16e70618c3a514e466a0be649c16047678f38e3f687233defa733b6ff828893390",
                "e0ef703ccf9512afe3c2186c0ba28aad1041ed6cf435e126c8f0900214a2c94986",
                "05cb22f5ab801b661fe275eea19a6f27d0f8a9403df5de6b38418d5c7e4d76b939",
            ],
            "f4e050665dacf3096e50cd6f7d2425ff3499a235e21693c1ef4f8361531782ad1a",
        ),
    ] {
        let mut protector = Protector::new(&key(suite));
        for (sequence, expected) in [65_534, 65_535, 0, 1].into_iter().zip(expected) {
            let protected = protected(&mut protector, sequence);
            assert_eq!(protected[..12], packet(sequence, b"")[..], "the header stays");
            assert_eq!(hex(&protected[12..]), expected, "{suite:?} {sequence}");
        }
        assert_eq!(protector.rollovers(), 1);
        // A contributing source and an extension stay unencrypted.
        let mut packet = packet(2, &bytes::<12>("01020304bede000110070000"));
        packet[0] = 0x91;
        packet.extend_from_slice(b"a stream of media");
        protector.rtp(&mut packet, 0).unwrap();
        assert_eq!(packet[12..24], bytes::<12>("01020304bede000110070000"));
        assert_eq!(hex(&packet[24..]), extended, "{suite:?}");
    }
}

/// Compares with the output of libsrtp 2.5 for an empty receiver report, sent twice.
#[test]
fn reports_are_those_of_libsrtp() {
    for (suite, all) in [
        (
            Suite::AesCm128HmacSha1_80,
            [
                "2991095aff830743309872068000000113d8e9006f34c123fd39",
                "359dba0b70968d052f5f73658000000251200915c29047709076",
            ],
        ),
        (
            Suite::AeadAes128Gcm,
            [
                "f11dc81d126e354ab119c56cda005655a617e948b40f2132a792b98980000001",
                "acec170da0258db6373cc34889221790370975cd98054c1b476c835280000002",
            ],
        ),
        (
            Suite::AeadAes256Gcm,
            [
                "af994aa2d34eeb2fb2968b5a3e6b84f5ee2f685f5f2eb140b07c013d80000001",
                "803a3f868e8cc349b7be6785c024ce1c8448ad389561a5ab88665cd380000002",
            ],
        ),
    ] {
        let mut protector = Protector::new(&key(suite));
        let report = rtcp::receiver_report(SSRC, &[], "a");
        // The first index of libsrtp is 1.
        protector.rtcp(&mut report.clone(), 0).unwrap();
        for expected in all {
            let mut buffer = b"before".to_vec();
            buffer.extend_from_slice(&report);
            protector.rtcp(&mut buffer, 6).unwrap();
            assert_eq!(buffer.len(), 6 + report.len() + suite.rtcp_overhead());
            assert_eq!((&buffer[..6], &buffer[6..14]), (&b"before"[..], &report[..8]));
            assert_eq!(hex(&buffer[14..]), expected, "{suite:?}");
        }
    }
}

#[test]
fn what_is_protected_reads_back_over_wraps_and_losses() {
    for suite in SUITES {
        let (mut protector, mut unprotector) = pair(suite);
        let mut index = 30_000_u64;
        // Two wraps, with losses up to the greatest that can be detected.
        for lost in [0, 1, 0x7ffe, 3, 0x7ffe, 0x7ffe, 0, 0x7ffe, 0x7ffe] {
            index += 1 + lost;
            let mut protected = protected(&mut protector, index as u16);
            let read = unprotector.rtp(&mut protected).unwrap();
            assert_eq!(read, packet(index as u16, b"a stream of media"), "{index}");
            assert_eq!(protector.rollovers(), (index >> 16) as u32);
        }
        assert_eq!(protector.rollovers(), 2);
    }
}

#[test]
fn who_comes_later_needs_the_count_of_wraps() {
    for suite in SUITES {
        let mut protector = Protector::new(&key(suite));
        for sequence in [0, 0x7000, 0xe000, 0x2000] {
            protected(&mut protector, sequence);
        }
        let late = protected(&mut protector, 0x2001);
        assert_eq!(Unprotector::new(&key(suite), 0).rtp(&mut late.clone()), Err(SrtpError::Tag));
        assert!(Unprotector::new(&key(suite), protector.rollovers()).rtp(&mut late.clone()).is_ok());
    }
}

#[test]
fn packets_that_come_late_or_twice() {
    for suite in SUITES {
        let (mut protector, mut unprotector) = pair(suite);
        // Indexes 65530 to 65630, across a wrap.
        let all: Vec<Vec<u8>> = (0..=100).map(|at| protected(&mut protector, 65_530_u16.wrapping_add(at))).collect();
        let mut read = |at: usize| unprotector.rtp(&mut all[at].clone()).map(|packet| packet.len());
        assert_eq!(read(5), Ok(29));
        assert_eq!(read(50), Ok(29), "lost many");
        assert_eq!(read(3), Ok(29), "late, from before the wrap and before the first one");
        assert_eq!(read(49), Ok(29), "late");
        for at in [5, 50, 3, 49] {
            assert_eq!(read(at), Err(SrtpError::Replayed { index: 65_530 + at as u64 }));
        }
        assert_eq!(read(100), Ok(29));
        assert_eq!(read(37), Ok(29), "the last one in the window");
        assert_eq!(read(36), Err(SrtpError::Replayed { index: 65_566 }), "too late");
        // No packet precedes the very first one.
        let (mut protector, mut unprotector) = pair(suite);
        unprotector.rtp(&mut protected(&mut protector, 3)).unwrap();
        let before = unprotector.rtp(&mut packet(65_535, &[0; 16])).map(|packet| packet.len());
        assert_eq!(before, Err(SrtpError::Replayed { index: 65_535 }));
    }
}

#[test]
fn whatever_is_changed_is_noticed() {
    for suite in SUITES {
        let mut protector = Protector::new(&key(suite));
        let packet = protected(&mut protector, 7);
        let mut report = rtcp::receiver_report(SSRC, &[], "a");
        protector.rtcp(&mut report, 0).unwrap();
        let mut unprotector = Unprotector::new(&key(suite), 0);
        for bit in 0..8 * packet.len() {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let mut kept = changed.clone();
            let error = unprotector.rtp(&mut changed).unwrap_err();
            if error == SrtpError::Tag && suite != Suite::AesCm128HmacSha1_80 {
                // AEAD has cleared the body.
                let body = packet::body(&kept).unwrap();
                let tag = kept.len() - suite.tag_length();
                kept[body..tag].fill(0);
            }
            assert_eq!(changed, kept, "{suite:?} {bit}");
        }
        for bit in 0..8 * report.len() {
            let mut changed = report.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // The bit that says that a report is encrypted.
            let index = report.len() - if suite == Suite::AesCm128HmacSha1_80 { suite.rtcp_overhead() } else { 4 };
            let wrong = if bit == 8 * index + 7 { SrtpError::Plain } else { SrtpError::Tag };
            assert_eq!(unprotector.rtcp(&mut changed), Err(wrong), "{suite:?} {bit}");
        }
        for length in 0..packet.len() {
            assert!(unprotector.rtp(&mut packet[..length].to_vec()).is_err(), "{length}");
        }
        for length in 0..report.len() {
            assert!(unprotector.rtcp(&mut report[..length].to_vec()).is_err(), "{length}");
        }
        let zeros = [0; 32];
        let other = MasterKey::of(suite, &zeros[..suite.key_length()], &zeros[..suite.salt_length()]).unwrap();
        assert_eq!(Unprotector::new(&other, 0).rtp(&mut packet.clone()), Err(SrtpError::Tag));
        // None of them changed the state.
        assert!(unprotector.rtp(&mut packet.clone()).is_ok() && unprotector.rtcp(&mut report).is_ok());
    }
}

#[test]
fn reports_come_once_and_from_one_source() {
    for suite in SUITES {
        let (mut protector, mut unprotector) = pair(suite);
        let report = |protector: &mut Protector, ssrc| {
            let mut report = rtcp::receiver_report(ssrc, &[], "a");
            protector.rtcp(&mut report, 0).unwrap();
            report
        };
        let (first, second) = (report(&mut protector, SSRC), report(&mut protector, SSRC));
        for (mut came, index) in [(second.clone(), 1), (first.clone(), 0)] {
            let again = came.clone();
            assert_eq!(unprotector.rtcp(&mut came).unwrap(), rtcp::receiver_report(SSRC, &[], "a"));
            assert_eq!(unprotector.rtcp(&mut again.clone()), Err(SrtpError::Replayed { index }));
        }
        let mut other = report(&mut protector, 5);
        assert_eq!(unprotector.rtcp(&mut other), Err(SrtpError::Source { expected: SSRC, found: 5 }));
        // RTP of the same source has its own indexes.
        assert!(unprotector.rtp(&mut protected(&mut protector, 0)).is_ok());
    }
}

/// Tests the E flag (RFC 3711 3.4): a report that is only signed is refused.
#[test]
fn reports_that_are_not_encrypted_are_not_read() {
    let mut report = rtcp::receiver_report(SSRC, &[], "a");
    let suite = Suite::AesCm128HmacSha1_80;
    let (header, body) = report.split_at_mut(8);
    // The tag is right.
    let tag = session_keys::SessionKeys::rtcp(&key(suite)).seal_rtcp(header, body, 9);
    report.extend_from_slice(&[0, 0, 0, 9]);
    report.extend_from_slice(&tag[..suite.tag_length()]);
    assert_eq!(Unprotector::new(&key(suite), 0).rtcp(&mut report), Err(SrtpError::Plain));
}

#[test]
fn numbers_of_packets_to_send_must_rise() {
    for suite in SUITES {
        let mut protector = Protector::new(&key(suite));
        protected(&mut protector, 5);
        for found in [5, 4, 0x8005, 65_535] {
            let mut buffer = packet(found, b"abc");
            assert_eq!(protector.rtp(&mut buffer, 0), Err(SrtpError::Order { last: 5, found }));
            assert_eq!(buffer, packet(found, b"abc"), "nothing was done");
        }
        protected(&mut protector, 0x8004);
        let short = PacketError::Truncated { found: 11, expected: 12 };
        assert_eq!(protector.rtp(&mut packet(6, b""), 1), Err(SrtpError::Packet(short)));
        assert!(protector.rtp(&mut vec![], 9).is_err());
        assert_eq!(protector.rtcp(&mut vec![0; 9], 2), Err(SrtpError::Truncated { found: 7, expected: 8 }));
    }
}

#[test]
fn nobody_prints_a_key() {
    for suite in SUITES {
        let (protector, unprotector) = pair(suite);
        let text = format!("{:?} {protector:?} {unprotector:?}", key(suite));
        let expected = format!(
            "MasterKey {{ suite: {suite:?}, .. }} Protector {{ suite: {suite:?}, last: None, next: 0, .. }} Unprotector {{"
        );
        assert!(text.starts_with(&expected), "{text}");
        assert!(!text.contains("[1,"), "{text}");
    }
}

proptest! {
    #[test]
    fn all_packets_read_back(
        secret: [u8; 32],
        salt: [u8; 14],
        suite in prop::sample::select(&SUITES),
        sequence: u16,
        // Contributing sources, and words of an extension.
        sources in prop::collection::vec(any::<[u8; 4]>(), 0..16),
        extension in prop::option::of(prop::collection::vec(any::<[u8; 4]>(), 0..20)),
        payload in prop::collection::vec(any::<u8>(), 0..2000),
        reports in 0..31_usize,
        bit: prop::sample::Index,
    ) {
        let key = MasterKey::of(suite, &secret[..suite.key_length()], &salt[..suite.salt_length()]).unwrap();
        let (mut protector, mut unprotector) = (Protector::new(&key), Unprotector::new(&key, 0));
        let mut plain = packet(sequence, &sources.concat());
        plain[0] |= sources.len() as u8;
        if let Some(words) = extension {
            plain[0] |= 0x10;
            plain.extend_from_slice(&[0xbe, 0xde, 0, words.len() as u8]);
            plain.extend_from_slice(&words.concat());
        }
        let header = plain.len();
        plain.extend_from_slice(&payload);
        let mut buffer = plain.clone();
        protector.rtp(&mut buffer, 0).unwrap();
        prop_assert_eq!(buffer.len(), plain.len() + suite.tag_length());
        prop_assert_eq!(&buffer[..header], &plain[..header]);
        let mut changed = buffer.clone();
        let changed_bit = bit.index(8 * changed.len());
        changed[changed_bit / 8] ^= 1 << (changed_bit % 8);
        prop_assert!(unprotector.rtp(&mut changed).is_err());
        prop_assert_eq!(unprotector.rtp(&mut buffer).unwrap(), plain);
        let report = rtcp::receiver_report(SSRC, &[rtcp::ReportBlock {
            ssrc: 1, fraction_lost: 0, lost: 0, highest: 0, jitter: 0, last_report: 0, delay: 0,
        }; 31][..reports], "name");
        let mut buffer = report.clone();
        protector.rtcp(&mut buffer, 0).unwrap();
        prop_assert_eq!(buffer.len(), report.len() + suite.rtcp_overhead());
        let mut changed = buffer.clone();
        let changed_bit = bit.index(8 * changed.len());
        changed[changed_bit / 8] ^= 1 << (changed_bit % 8);
        prop_assert!(unprotector.rtcp(&mut changed).is_err());
        prop_assert_eq!(unprotector.rtcp(&mut buffer).unwrap(), report);
    }
}
