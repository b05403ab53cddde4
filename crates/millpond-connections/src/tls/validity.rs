//! The period of validity of a certificate, found with a minimal DER parser.

use millpond_utc::Date;

/// An element of DER: its tag, its content, and the bytes behind it (X.690 8.1).
fn element(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0usize, |len, byte| (len << 8) | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// Context tag 0, constructed: the version of a certificate.
const VERSION: u8 = 0xa0;

/// Version of a certificate in DER (RFC 5280 4.1.2.1): 1 where it states none.
pub(super) fn version(certificate: &[u8]) -> Option<u8> {
    let (SEQUENCE, certificate, _) = element(certificate)? else { return None };
    let (SEQUENCE, body, _) = element(certificate)? else { return None };
    let (VERSION, version, _) = element(body)? else { return Some(1) };
    let (_, number, _) = element(version)?;
    number.first()?.checked_add(1)
}

/// The first and last second in which a certificate is valid, as Unix time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub from: i64,
    /// The last second.
    pub to: i64,
}

/// Returns the validity of a certificate in DER (RFC 5280 4.1.2.5).
pub(super) fn validity(certificate: &[u8]) -> Option<Validity> {
    let (SEQUENCE, certificate, _) = element(certificate)? else { return None };
    let (SEQUENCE, body, _) = element(certificate)? else { return None };
    let mut rest = body;
    if let (VERSION, _, after) = element(body)? {
        rest = after;
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (SEQUENCE, validity, _) = element(rest)? else { return None };
    let (tag, not_before, rest) = element(validity)?;
    let not_before = time(tag, not_before)?;
    let (tag, not_after, _) = element(rest)?;
    Some(Validity { from: not_before, to: time(tag, not_after)? })
}

fn time(tag: u8, text: &[u8]) -> Option<i64> {
    let text = text.strip_suffix(b"Z")?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = number(text, 2)?;
            // RFC 5280 4.1.2.5.1: 50 to 99 are of the 20th century.
            (if year >= 50 { 1900 + year } else { 2000 + year }, rest)
        }
        GENERALIZED_TIME => number(text, 4)?,
        _ => return None,
    };
    let (month, rest) = number(rest, 2)?;
    let (day, rest) = number(rest, 2)?;
    let (hour, rest) = number(rest, 2)?;
    let (minute, rest) = number(rest, 2)?;
    let (second, rest) = number(rest, 2)?;
    let date = Date { year, month: month.try_into().ok()?, day: day.try_into().ok()? };
    let days = date.days().filter(|_| rest.is_empty())?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let (digits, rest) = text.split_at_checked(digits)?;
    let mut value = 0;
    for digit in digits {
        value = value * 10 + i64::from(char::from(*digit).to_digit(10)?);
    }
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (tag, text, unix) in [
            (UTC_TIME, "700101000000Z", 0),
            (UTC_TIME, "491231235959Z", 2_524_607_999),
            (UTC_TIME, "500101000000Z", -631_152_000),
            (GENERALIZED_TIME, "20000229120000Z", 951_825_600),
            (GENERALIZED_TIME, "20240301000000Z", 1_709_251_200),
        ] {
            assert_eq!(time(tag, text.as_bytes()), Some(unix), "{text}");
        }
        for (tag, text) in [
            (UTC_TIME, "7001010000Z"),
            (UTC_TIME, "700101000000"),
            (UTC_TIME, "701301000000Z"),
            (GENERALIZED_TIME, "2000x229120000Z"),
            (0x02, "700101000000Z"),
        ] {
            assert_eq!(time(tag, text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn reads_a_certificate_and_survives_every_cut_of_it() {
        let mut params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 2, 29);
        params.not_after = rcgen::date_time_ymd(2051, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let der = certificate.der();
        assert_eq!(validity(der), Some(Validity { from: 1_582_934_400, to: 2_556_144_000 }));
        assert_eq!(version(der), Some(3));
        // A certificate of version 1 has no element of the version before its serial number.
        assert_eq!(version(&[SEQUENCE, 5, SEQUENCE, 3, 0x02, 1, 7]), Some(1));
        for len in 0..der.len() {
            assert_eq!(validity(&der[..len]), None);
        }
    }
}
