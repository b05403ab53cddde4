//! A certificate with its key, read from PEM files or made at the start.

use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::sign::CertifiedKey;

use super::{TlsError, faults, validity};

/// Reads certificate chain and key, and checks that they belong together.
pub(super) fn files(provider: &CryptoProvider, cert: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let chain = chain(cert)?;
    let private = private_key(key)?;
    let signer = provider
        .key_provider
        .load_private_key(private)
        .map_err(|error| TlsError::BadKey { path: key.to_owned(), reason: error.to_string() })?;
    let certified = CertifiedKey::new(chain, signer);
    use tokio_rustls::rustls::{Error, InconsistentKeys};
    match certified.keys_match() {
        // Unknown: this kind of key does not reveal its public half. The first handshake will show a mismatch.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(TlsError::Mismatch { cert: cert.to_owned(), key: key.to_owned() })
        }
        Err(_) => Err(TlsError::BadCertificate { path: cert.to_owned(), reason: fault(&certified) }),
    }
}

/// Reads the certificates of authorities.
pub(super) fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(path)? {
        let bad = |error: tokio_rustls::rustls::Error| TlsError::BadCertificate {
            path: path.to_owned(),
            reason: faults::reason(&error),
        };
        roots.add(certificate).map_err(bad)?;
    }
    Ok(roots)
}

/// Describes why a certificate can't be used.
fn fault(certified: &CertifiedKey) -> String {
    let version = certified.cert.first().and_then(|certificate| validity::version(certificate));
    match version {
        Some(version) if version != 3 => format!(
            "found version {version}, expected version 3, which names its hosts: make it again, such as with openssl req -x509 \
             -addext subjectAltName=DNS:media.example"
        ),
        Some(_) => {
            "found an extension or a key that TLS does not have, expected an X.509 certificate of a server".to_owned()
        }
        None => "found no X.509 certificate in the first block, expected that of the server: the file may be damaged"
            .to_owned(),
    }
}

/// Describes a text that is no PEM.
fn pem_fault(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => "found no line -----END ...-----: the file is cut short".to_owned(),
        pem::Error::IllegalSectionStart { .. } => {
            "found a damaged line -----BEGIN ...-----, expected five hyphens at both ends".to_owned()
        }
        pem::Error::Base64Decode(_) => {
            "found damaged text between the lines BEGIN and END: copy the file again".to_owned()
        }
        error => error.to_string(),
    }
}

fn read(path: &Path, what: &'static str) -> Result<Vec<u8>, TlsError> {
    millpond_settings::files::read(path).map_err(|error| TlsError::Unreadable {
        path: path.to_owned(),
        what,
        reason: error.to_string(),
    })
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path, "certificate")?;
    let chain =
        CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>().map_err(|error| {
            match is_locked(&text) {
                true => TlsError::NoCertificate { path: path.to_owned(), found: instead(&text) },
                false => TlsError::Pem { path: path.to_owned(), reason: pem_fault(&error) },
            }
        })?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { path: path.to_owned(), found: instead(&text) });
    }
    Ok(chain)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(path, "private key")?;
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) => Err(TlsError::NoKey { path: path.to_owned(), found: instead(&text) }),
        Err(_) if is_locked(&text) => Err(TlsError::NoKey { path: path.to_owned(), found: instead(&text) }),
        Err(error) => Err(TlsError::Pem { path: path.to_owned(), reason: pem_fault(&error) }),
    }
}

/// Tells whether a key is locked by a passphrase: PKCS #8, or older files with a header (RFC 1421 4.6.1.1).
fn is_locked(text: &[u8]) -> bool {
    has(text, b"ENCRYPTED PRIVATE KEY-----") || has(text, b"Proc-Type: 4,ENCRYPTED")
}

fn has(text: &[u8], marker: &[u8]) -> bool {
    text.windows(marker.len()).any(|window| window == marker)
}

/// Describes the content of a file that should hold something else: the usual mistakes by name.
fn instead(text: &[u8]) -> &'static str {
    if text.is_empty() {
        "an empty file"
    } else if is_locked(text) {
        "a private key locked by a passphrase: unlock it with \"openssl pkey\""
    } else if has(text, b"PRIVATE KEY-----") {
        "a private key"
    } else if has(text, b"BEGIN CERTIFICATE-----") {
        "a certificate"
    } else if has(text, b"-----BEGIN") {
        "PEM of another kind"
    } else {
        "no PEM"
    }
}

/// Makes a certificate for this host, in memory, for tests and trials.
pub(super) fn self_signed(provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let failed = |error: rcgen::Error| TlsError::SelfSigned { reason: error.to_string() };
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend(hostname());
    let made = rcgen::generate_simple_self_signed(names).map_err(failed)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let signer = provider
        .key_provider
        .load_private_key(key)
        .map_err(|error| TlsError::SelfSigned { reason: error.to_string() })?;
    Ok(CertifiedKey::new(vec![made.cert.der().clone()], signer))
}

/// Returns the name of this host, if a certificate can contain it.
fn hostname() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    let fits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    (fits && name != "localhost").then(|| name.to_owned())
}

/// The cryptography library of all TLS here.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider())
}
