//! SRTP: nobody makes packets without the key, and with it packets read back once.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::{
    packet,
    srtp::{MasterKey, Protector, SrtpError, Suite, Unprotector},
};

const SSRC: [u8; 4] = [0, 0, 0, 2];

fuzz_target!(|bytes: &[u8]| {
    for suite in [Suite::AesCm128HmacSha1_80, Suite::AeadAes128Gcm, Suite::AeadAes256Gcm] {
        exchange(suite, bytes);
    }
});

fn exchange(suite: Suite, bytes: &[u8]) {
    let key = MasterKey::of(suite, &[7; 32][..suite.key_length()], &[7; 14][..suite.salt_length()]);
    let key = key.expect("the suite's lengths");
    let (mut protector, mut unprotector) = (Protector::new(&key), Unprotector::new(&key, 0));
    for read in [Unprotector::rtp, Unprotector::rtcp] {
        let mut forged = bytes.to_vec();
        let error = read(&mut unprotector, &mut forged).expect_err("nobody has the key");
        // AEAD clears what has a wrong tag.
        let is_cleared = error == SrtpError::Tag && suite != Suite::AesCm128HmacSha1_80;
        assert!(is_cleared || forged == bytes, "{error}");
    }
    // The first number, then packets: flags (1 RTCP, 2 changed on the way, 4 and up numbers passed over), length, bytes.
    let [high, low, rest @ ..] = bytes else { return };
    let (mut sequence, mut rest) = (u16::from_be_bytes([*high, *low]), rest);
    while let [flags, length, behind @ ..] = rest {
        let length = usize::from(*length).min(behind.len());
        let mut plain = behind[..length].to_vec();
        rest = &behind[length..];
        let mut next = sequence;
        let (is_rtcp, at) = (flags & 1 != 0, if flags & 1 != 0 { 4 } else { 8 });
        if let Some(ssrc) = plain.get_mut(at..at + 4) {
            ssrc.copy_from_slice(&SSRC);
        }
        if let (false, Some(number)) = (is_rtcp, plain.get_mut(2..4)) {
            next = sequence.wrapping_add(1 + u16::from(flags >> 2) * 512);
            number.copy_from_slice(&next.to_be_bytes());
        }
        let mut buffer = [b"before", &plain[..]].concat();
        let (done, longer) = match is_rtcp {
            true => (protector.rtcp(&mut buffer, 6), suite.rtcp_overhead()),
            false => (protector.rtp(&mut buffer, 6), suite.tag_length()),
        };
        if done.is_err() {
            assert!(buffer[6..] == plain && (packet::parse(&plain).is_err() || is_rtcp));
            continue;
        }
        sequence = next;
        assert_eq!((buffer.len(), &buffer[..6]), (6 + plain.len() + longer, &b"before"[..]));
        let mut read = |packet: &mut [u8]| match is_rtcp {
            true => unprotector.rtcp(packet).map(|packet| packet.to_vec()),
            false => unprotector.rtp(packet).map(|packet| packet.to_vec()),
        };
        if flags & 2 != 0 {
            let mut changed = buffer[6..].to_vec();
            let place = usize::from(sequence) % changed.len();
            changed[place] ^= 1;
            assert!(read(&mut changed).is_err(), "{place}");
        }
        assert_eq!(read(&mut buffer[6..].to_vec()), Ok(plain));
        assert!(matches!(read(&mut buffer[6..]), Err(SrtpError::Replayed { .. })));
    }
}
