//! TLS to servers.

use std::sync::{Arc, OnceLock};

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Creates the TLS configuration of a client: `authorities` in PEM, or those of the machine, and an optional `identity`:
/// a certificate with its key, in PEM.
///
/// # Errors
/// The PEM can't be read, in words.
pub(crate) fn config(authorities: Option<&[u8]>, identity: Option<&[u8]>) -> Result<ClientConfig, String> {
    let roots = match authorities {
        Some(pem) => Arc::new(parsed(pem)?),
        None => machine(),
    };
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?.with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let chain = certificates(pem)?;
            let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| format!("the private key: {error}"))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| error.to_string())?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err("found no certificate in PEM".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("a certificate: {error}")),
    }
}

fn parsed(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(|error| format!("a certificate: {error}"))?;
    }
    Ok(roots)
}

/// Returns the authorities of the machine, read once. Without any, HTTPS fails, and plain HTTP still works.
fn machine() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    };
    ROOTS.get_or_init(read).clone()
}
