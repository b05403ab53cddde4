//! Faults of handshakes with nodes, in words. No text has the present time, so that a fault that lasts keeps its words.

use std::io;
use std::time::Duration;

use rustls_pki_types::{ServerName, UnixTime};
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error, OtherError};

/// Most names of a certificate that a text has.
const MOST_NAMES: usize = 8;

/// Why a handshake with a node failed, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeFault {
    /// One end refuses the certificate of the other, or its absence.
    Certificate(String),
    /// The peer speaks no TLS, or other TLS.
    Protocol(String),
    /// The connection ended before the handshake did.
    Ended(String),
}

/// Returns why a handshake with a node failed.
#[must_use]
pub fn handshake_fault(error: &io::Error) -> HandshakeFault {
    let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        return HandshakeFault::Ended(error.to_string());
    };
    match error {
        Error::NoCertificatesPresented | Error::InvalidCertificate(_) => HandshakeFault::Certificate(reason(error)),
        Error::AlertReceived(alert) => match alert_fault(*alert) {
            Some(fault) => {
                HandshakeFault::Certificate(format!("the other side refuses the certificate of this one: {fault}"))
            }
            None => HandshakeFault::Ended(error.to_string()),
        },
        Error::InvalidMessage(_) => {
            HandshakeFault::Protocol("it speaks no TLS: plain HTTP, or another protocol".to_owned())
        }
        Error::NoApplicationProtocol => HandshakeFault::Protocol("it speaks no protocol of nodes".to_owned()),
        Error::PeerIncompatible(_) => {
            HandshakeFault::Protocol("it has no version or cipher of TLS in common with this node".to_owned())
        }
        other => HandshakeFault::Protocol(other.to_string()),
    }
}

/// Describes why a certificate can't be used.
pub(super) fn reason(error: &Error) -> String {
    match error {
        Error::NoCertificatesPresented => "it shows no certificate".to_owned(),
        Error::InvalidCertificate(fault) => certificate_fault(fault),
        other => other.to_string(),
    }
}

/// Returns why a certificate is refused here.
#[must_use]
pub fn certificate_fault(fault: &CertificateError) -> String {
    match fault {
        // An authority that was made anew may have the name of the one before.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the certificate is of an authority that is not trusted".to_owned()
        }
        CertificateError::ExpiredContext { not_after, .. } => format!("the certificate expired at {}", utc(*not_after)),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("the certificate is not valid before {}: check the clocks of both machines", utc(*not_before))
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = subject_name(expected);
            match names(presented) {
                Some(names) => {
                    format!("the certificate is for {names}, and its subjectAltName must have {expected}")
                }
                None => format!("the certificate names no host, and its subjectAltName must have {expected}"),
            }
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the certificate is not for both ends: its extendedKeyUsage must have serverAuth and clientAuth".to_owned()
        }
        CertificateError::BadEncoding => "the certificate is damaged".to_owned(),
        CertificateError::UnhandledCriticalExtension => {
            "the certificate has a critical extension that is not supported".to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "the certificate is signed by an algorithm that is not supported".to_owned()
        }
        // The library for certificates has no other sign of it.
        CertificateError::Other(OtherError(other)) if other.to_string() == "CaUsedAsEndEntity" => {
            "the certificate is that of an authority, which can't be that of a node".to_owned()
        }
        CertificateError::Other(OtherError(other)) => other.to_string(),
        other => format!("the certificate can't be used: {other}"),
    }
}

/// Returns why a peer refuses the own certificate, as far as its alert tells (RFC 8446 6.2); `None` for alerts about other things.
#[must_use]
pub fn alert_fault(alert: AlertDescription) -> Option<&'static str> {
    Some(match alert {
        AlertDescription::UnknownCA | AlertDescription::DecryptError => "its authority is not trusted there",
        AlertDescription::CertificateExpired => "it has expired, or is not valid yet",
        AlertDescription::CertificateRequired => "none is shown",
        AlertDescription::CertificateUnknown => "it is for the host of no node that is known there",
        AlertDescription::BadCertificate => "it does not name the host of this node, or is damaged",
        AlertDescription::UnsupportedCertificate => "its extendedKeyUsage must have serverAuth and clientAuth",
        AlertDescription::CertificateRevoked => "it is revoked",
        AlertDescription::AccessDenied => "it is not admitted there",
        _ => return None,
    })
}

/// Returns the names in a certificate as openssl writes them, from those that the library tells; `None` where there are none.
pub(super) fn names(presented: &[String]) -> Option<String> {
    let shown: Vec<_> = presented.iter().take(MOST_NAMES).map(|name| presented_name(name)).collect();
    match presented.len().saturating_sub(MOST_NAMES) {
        _ if shown.is_empty() => None,
        0 => Some(shown.join(", ")),
        more => Some(format!("{} and {more} more names", shown.join(", "))),
    }
}

/// Returns a name such as `DNS:a.example` from `DnsName("a.example")`.
fn presented_name(name: &str) -> String {
    let inside = |kind: &str| Some(name.strip_prefix(kind)?.strip_suffix(')')?.trim_matches('"'));
    let kinds = [("DnsName(", "DNS"), ("IpAddress(", "IP"), ("UniformResourceIdentifier(", "URI")];
    let found = kinds.iter().find_map(|(kind, short)| Some(format!("{short}:{}", inside(kind)?)));
    found.unwrap_or_else(|| "a name that is no host".to_owned())
}

fn subject_name(host: &ServerName<'_>) -> String {
    let kind = if matches!(host, ServerName::IpAddress(_)) { "IP" } else { "DNS" };
    format!("{kind}:{}", host.to_str())
}

/// Writes a time such as `2026-11-22T10:00:00Z`.
fn utc(time: UnixTime) -> String {
    let mut text = String::new();
    millpond_utc::push(&mut text, Duration::from_secs(time.as_secs()));
    text.replace(".000Z", "Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_rustls::rustls::InvalidMessage;

    fn told(error: Error) -> HandshakeFault {
        handshake_fault(&io::Error::new(io::ErrorKind::InvalidData, error))
    }

    #[test]
    fn an_expired_certificate_has_the_same_words_at_all_times() {
        let at = |now: u64| {
            let time = UnixTime::since_unix_epoch(Duration::from_secs(now));
            let not_after = UnixTime::since_unix_epoch(Duration::from_secs(1_795_341_600));
            told(Error::InvalidCertificate(CertificateError::ExpiredContext { time, not_after }))
        };
        let words = "the certificate expired at 2026-11-22T10:00:00Z".to_owned();
        assert_eq!(at(1_800_000_000), HandshakeFault::Certificate(words));
        assert_eq!(at(1_800_000_000), at(1_800_000_001));
    }

    #[test]
    fn names_are_written_as_openssl_takes_them() {
        let fault = |presented: &[&str]| {
            certificate_fault(&CertificateError::NotValidForNameContext {
                expected: ServerName::try_from("10.0.0.1").unwrap(),
                presented: presented.iter().map(|name| (*name).to_owned()).collect(),
            })
        };
        assert_eq!(
            fault(&["DnsName(\"a.example\")", "IpAddress(10.0.0.7)"]),
            "the certificate is for DNS:a.example, IP:10.0.0.7, and its subjectAltName must have IP:10.0.0.1"
        );
        assert_eq!(fault(&[]), "the certificate names no host, and its subjectAltName must have IP:10.0.0.1");
        assert!(fault(&["DirectoryName"]).contains("a name that is no host"));
        assert!(fault(&["DnsName(\"a\")"; MOST_NAMES + 2]).contains("DNS:a and 2 more names"));
    }

    #[test]
    fn faults_that_are_none_of_certificates_are_told_apart() {
        let plain = told(Error::InvalidMessage(InvalidMessage::InvalidContentType));
        assert!(matches!(&plain, HandshakeFault::Protocol(words) if words.contains("plain HTTP")), "{plain:?}");
        let left = handshake_fault(&io::Error::new(io::ErrorKind::UnexpectedEof, "tls handshake eof"));
        assert_eq!(left, HandshakeFault::Ended("tls handshake eof".to_owned()));
        assert!(matches!(told(Error::AlertReceived(AlertDescription::UserCanceled)), HandshakeFault::Ended(_)));
        let refused = told(Error::AlertReceived(AlertDescription::UnknownCA));
        let words = "the other side refuses the certificate of this one: its authority is not trusted there";
        assert_eq!(refused, HandshakeFault::Certificate(words.to_owned()));
    }
}
