//! TLS of the listeners: the certificate, its source, and its replacement; and TLS between the nodes of a cluster.

mod certificates;
mod faults;
mod load;
mod metrics;
mod nodes;
mod settings;
#[cfg(test)]
mod tests;
mod validity;

use std::path::{Path, PathBuf};

pub use certificates::{Certificates, watch};
pub use faults::{HandshakeFault, alert_fault, certificate_fault, handshake_fault};
pub use load::provider;
pub use metrics::TlsMetrics;
pub use nodes::{NodeHosts, NodeTls, NodeTlsFiles, watch_nodes};
pub use settings::{TlsSettings, TlsSource};
pub use validity::Validity;

/// Why the server has no certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file can't be read.
    #[error("{path}: cannot read the {what}: {reason}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Certificate or private key.
        what: &'static str,
        /// Error of the system.
        reason: String,
    },
    /// A file is not PEM.
    #[error("{path}: not valid PEM: {reason}", path = path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Error of the parser.
        reason: String,
    },
    /// The certificate file contains no certificate.
    #[error("{path}: expected a certificate (BEGIN CERTIFICATE), found {found}", path = path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
        /// Content found instead.
        found: &'static str,
    },
    /// The key file contains no key.
    #[error("{path}: expected a private key (BEGIN PRIVATE KEY), found {found}", path = path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
        /// Content found instead.
        found: &'static str,
    },
    /// The key is of a kind that cannot sign.
    #[error("{path}: private key can't be used: {reason}", path = path.display())]
    BadKey {
        /// The file.
        path: PathBuf,
        /// Error of the library.
        reason: String,
    },
    /// The certificate cannot be parsed.
    #[error("{path}: certificate can't be used: {reason}", path = path.display())]
    BadCertificate {
        /// The file.
        path: PathBuf,
        /// Error of the library.
        reason: String,
    },
    /// Certificate and key do not belong together.
    #[error(
        "{key}: this private key does not belong to the first certificate in {cert}",
        key = key.display(), cert = cert.display()
    )]
    Mismatch {
        /// The certificate file.
        cert: PathBuf,
        /// The key file.
        key: PathBuf,
    },
    /// A self-signed certificate could not be made.
    #[error("cannot make a self-signed certificate: {reason}")]
    SelfSigned {
        /// Error of the library.
        reason: String,
    },
    /// The TLS library refuses the configuration.
    #[error("cannot set up TLS: {reason}")]
    Setup {
        /// Error of the library.
        reason: String,
    },
}

impl TlsError {
    /// Returns the file that can't be used; `None` where it is none.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unreadable { path, .. }
            | Self::Pem { path, .. }
            | Self::NoCertificate { path, .. }
            | Self::NoKey { path, .. }
            | Self::BadKey { path, .. }
            | Self::BadCertificate { path, .. }
            | Self::Mismatch { key: path, .. } => Some(path),
            Self::SelfSigned { .. } | Self::Setup { .. } => None,
        }
    }
}
