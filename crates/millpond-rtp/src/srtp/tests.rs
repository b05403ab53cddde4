//! Tests with packets of another implementation, and possible errors between a sender and a receiver.

use super::*;
use crate::{
    packet::{self, Header},
    rtcp,
};
use proptest::prelude::*;

/// Bytes from hexadecimal digits.
pub(super) fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    assert_eq!(hex.len(), 2 * N);
    std::array::from_fn(|at| digit(2 * at))
}

fn key() -> MasterKey {
    MasterKey::new(&std::array::from_fn(|at| at as u8 + 1))
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
    let mut protector = Protector::new(&key());
    for (sequence, expected) in [
        (65_534, "c4707ffce501aaf1dcbb5997898d66af45c9aafd89f1769e98b847"),
        (65_535, "8e807b1be0a16541491586a0415f2a96e334bf93fb589f13f7af75"),
        (0, "bab4ee057326ff2ebcf6419aef0dc95d1a3c5f8977a103398bec18"),
        (1, "c8c0eb4881fcf66335dbf8767929cdcb1e69f8a324c34e66689456"),
    ] {
        let protected = protected(&mut protector, sequence);
        assert_eq!(protected[..12], packet(sequence, b"")[..], "the header stays");
        assert_eq!(protected[12..], bytes::<27>(expected), "{sequence}");
    }
    assert_eq!(protector.rollovers(), 1);
    // A contributing source and an extension stay unencrypted.
    let mut extended = packet(2, &bytes::<12>("01020304bede000110070000"));
    extended[0] = 0x91;
    extended.extend_from_slice(b"a stream of media");
    protector.rtp(&mut extended, 0).unwrap();
    assert_eq!(extended[12..24], bytes::<12>("01020304bede000110070000"));
    assert_eq!(extended[24..], bytes::<27>("a13628ccae4bdce849e9e79a5cf55afbd31117a0810fb82567f079"));
}

/// Compares with the output of libsrtp 2.5 for an empty receiver report, sent twice.
#[test]
fn reports_are_those_of_libsrtp() {
    let mut protector = Protector::new(&key());
    let report = rtcp::receiver_report(SSRC, &[], "a");
    // The first index of libsrtp is 1.
    protector.rtcp(&mut report.clone(), 0).unwrap();
    for expected in
        ["2991095aff830743309872068000000113d8e9006f34c123fd39", "359dba0b70968d052f5f73658000000251200915c29047709076"]
    {
        let mut buffer = b"before".to_vec();
        buffer.extend_from_slice(&report);
        protector.rtcp(&mut buffer, 6).unwrap();
        assert_eq!(buffer.len(), 6 + report.len() + RTCP_OVERHEAD);
        assert_eq!((&buffer[..6], &buffer[6..14]), (&b"before"[..], &report[..8]));
        assert_eq!(buffer[14..], bytes::<26>(expected));
    }
}

#[test]
fn what_is_protected_reads_back_over_wraps_and_losses() {
    let (mut protector, mut unprotector) = (Protector::new(&key()), Unprotector::new(&key(), 0));
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

#[test]
fn who_comes_later_needs_the_count_of_wraps() {
    let mut protector = Protector::new(&key());
    for sequence in [0, 0x7000, 0xe000, 0x2000] {
        protected(&mut protector, sequence);
    }
    let late = protected(&mut protector, 0x2001);
    assert_eq!(Unprotector::new(&key(), 0).rtp(&mut late.clone()), Err(SrtpError::Tag));
    assert!(Unprotector::new(&key(), protector.rollovers()).rtp(&mut late.clone()).is_ok());
}

#[test]
fn packets_that_come_late_or_twice() {
    let (mut protector, mut unprotector) = (Protector::new(&key()), Unprotector::new(&key(), 0));
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
    let (mut protector, mut unprotector) = (Protector::new(&key()), Unprotector::new(&key(), 0));
    unprotector.rtp(&mut protected(&mut protector, 3)).unwrap();
    let before = unprotector.rtp(&mut packet(65_535, &[0; TAG])).map(|packet| packet.len());
    assert_eq!(before, Err(SrtpError::Replayed { index: 65_535 }));
}

#[test]
fn whatever_is_changed_is_noticed() {
    let mut protector = Protector::new(&key());
    let packet = protected(&mut protector, 7);
    let mut report = rtcp::receiver_report(SSRC, &[], "a");
    protector.rtcp(&mut report, 0).unwrap();
    let mut unprotector = Unprotector::new(&key(), 0);
    for bit in 0..8 * packet.len() {
        let mut changed = packet.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let kept = changed.clone();
        assert!(unprotector.rtp(&mut changed).is_err(), "{bit}");
        assert_eq!(changed, kept);
    }
    for bit in 0..8 * report.len() {
        let mut changed = report.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(unprotector.rtcp(&mut changed), Err(SrtpError::Tag), "{bit}");
    }
    for length in 0..packet.len() {
        assert!(unprotector.rtp(&mut packet[..length].to_vec()).is_err(), "{length}");
    }
    for length in 0..report.len() {
        assert!(unprotector.rtcp(&mut report[..length].to_vec()).is_err(), "{length}");
    }
    let mut other = Unprotector::new(&MasterKey::new(&[0; 30]), 0);
    assert_eq!(other.rtp(&mut packet.clone()), Err(SrtpError::Tag));
    // None of them changed the state.
    assert!(unprotector.rtp(&mut packet.clone()).is_ok() && unprotector.rtcp(&mut report).is_ok());
}

#[test]
fn reports_come_once_and_from_one_source() {
    let (mut protector, mut unprotector) = (Protector::new(&key()), Unprotector::new(&key(), 0));
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

/// Tests the E flag (RFC 3711 3.4): a report that is only signed is refused.
#[test]
fn reports_that_are_not_encrypted_are_not_read() {
    let mut report = rtcp::receiver_report(SSRC, &[], "a");
    let keys = session_keys::SessionKeys::rtcp(&key());
    let tag = keys.tag(&report, &[0, 0, 0, 9]);
    report.extend_from_slice(&[0, 0, 0, 9]);
    report.extend_from_slice(&tag);
    assert_eq!(Unprotector::new(&key(), 0).rtcp(&mut report), Err(SrtpError::Plain));
}

#[test]
fn numbers_of_packets_to_send_must_rise() {
    let mut protector = Protector::new(&key());
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

#[test]
fn nobody_prints_a_key() {
    let text = format!("{:?} {:?} {:?}", key(), Protector::new(&key()), Unprotector::new(&key(), 0));
    assert!(text.starts_with("MasterKey { .. } Protector { last: None, next: 0, .. } Unprotector {"), "{text}");
    assert!(!text.contains("[1,"), "{text}");
    assert_eq!(MasterKey::new(&key().to_bytes()), key());
}

proptest! {
    #[test]
    fn all_packets_read_back(
        secret in prop::array::uniform30(any::<u8>()),
        sequence: u16,
        payload in prop::collection::vec(any::<u8>(), 0..2000),
        reports in 0..31_usize,
    ) {
        let key = MasterKey::new(&secret);
        let (mut protector, mut unprotector) = (Protector::new(&key), Unprotector::new(&key, 0));
        let mut buffer = packet(sequence, &payload);
        protector.rtp(&mut buffer, 0).unwrap();
        prop_assert_eq!(buffer.len(), packet::HEADER + payload.len() + TAG);
        prop_assert_eq!(unprotector.rtp(&mut buffer).unwrap(), packet(sequence, &payload));
        let report = rtcp::receiver_report(SSRC, &[rtcp::ReportBlock {
            ssrc: 1, fraction_lost: 0, lost: 0, highest: 0, jitter: 0, last_report: 0, delay: 0,
        }; 31][..reports], "name");
        let mut buffer = report.clone();
        protector.rtcp(&mut buffer, 0).unwrap();
        prop_assert_eq!(unprotector.rtcp(&mut buffer).unwrap(), report);
    }
}
