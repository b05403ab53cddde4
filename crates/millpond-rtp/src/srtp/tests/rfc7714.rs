//! Tests RFC 7714 16 and 17, whose packets are made with session keys.

use super::{hex, unhex};
use crate::srtp::{Protector, SrtpError, Suite, Unprotector, gcm::Gcm, session_keys::SessionKeys};
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM};
use std::sync::Arc;

const PACKET: &str = "8040f17b8041f8d35501a0b2\
    47616c6c696120657374206f6d6e69732064697669736120696e207061727465732074726573";

const REPORT: &str = "81c8000d4d617273\
    4e5450314e545032525450200000042a0000e9304c756e61deadbeefdeadbeefdeadbeefdeadbeefdeadbeef";

/// Index of the report.
const INDEX: u32 = 0x5d4;

fn keys(suite: Suite) -> SessionKeys {
    let key: Vec<u8> = (0..).take(suite.key_length()).collect();
    let algorithm = if suite == Suite::AeadAes256Gcm { &AES_256_GCM } else { &AES_128_GCM };
    SessionKeys::Gcm(Arc::new(Gcm::new(algorithm, &key, *b"Quid pro quo")))
}

fn pair(suite: Suite) -> (Protector, Unprotector) {
    (Protector::of(suite, keys(suite), keys(suite)), Unprotector::of(suite, keys(suite), keys(suite), 0))
}

/// Tests RFC 7714 16.1 and 16.2.
#[test]
fn packets() {
    for (suite, expected) in [
        (
            Suite::AeadAes128Gcm,
            "8040f17b8041f8d35501a0b2\
             f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833\
             899d7f27beb16a9152cf765ee4390cce",
        ),
        (
            Suite::AeadAes256Gcm,
            "8040f17b8041f8d35501a0b2\
             32b1de78a822fe12ef9f78fa332e33aab18012389a58e2f3b50b2a0276ffae0f1ba63799b87b\
             7aa3db36dfffd6b0f9bb7878d7a76c13",
        ),
    ] {
        let (mut protector, mut unprotector) = pair(suite);
        let mut packet = unhex(PACKET);
        protector.rtp(&mut packet, 0).unwrap();
        assert_eq!(hex(&packet), expected, "{suite:?}");
        assert_eq!(hex(unprotector.rtp(&mut packet).unwrap()), PACKET, "{suite:?}");
    }
}

/// Tests RFC 7714 17.1 and 17.2.
#[test]
fn reports() {
    for (suite, expected) in [
        (
            Suite::AeadAes128Gcm,
            "81c8000d4d617273\
             63e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b4686303ded0bb9275b\
             c84aa45896cf4d2fc5abf87245d9eade800005d4",
        ),
        (
            Suite::AeadAes256Gcm,
            "81c8000d4d617273\
             d50ae4d1f5ce5d304ba297e47d470c282c3ece5dbffe0a50a2eaa5c1110555be8415f658c61de0476f1b6fad\
             1d1eb30c4446839f57ff6f6cb26ac3be800005d4",
        ),
    ] {
        let (mut protector, mut unprotector) = pair(suite);
        for _ in 0..INDEX {
            protector.rtcp(&mut unhex(REPORT), 0).unwrap();
        }
        let mut report = unhex(REPORT);
        protector.rtcp(&mut report, 0).unwrap();
        assert_eq!(hex(&report), expected, "{suite:?}");
        assert_eq!(hex(unprotector.rtcp(&mut report).unwrap()), REPORT, "{suite:?}");
    }
}

/// Tests RFC 7714 17.3: a report that is only signed is refused.
#[test]
fn a_report_that_is_not_encrypted() {
    let mut report = unhex(&[REPORT, "841dd9683dd78ec92ae58790125f62b3000005d4"].concat());
    let (_, mut unprotector) = pair(Suite::AeadAes128Gcm);
    assert_eq!(unprotector.rtcp(&mut report), Err(SrtpError::Plain));
}
