//! Settings of TLS.

use millpond_settings::{
    At, ConfigError, Host, Setting, Settings, Sources,
    value::{self, Form},
};
use std::path::PathBuf;

/// Settings of TLS.
#[derive(Debug, Clone, Default)]
pub struct TlsSettings {
    /// PEM file of the certificate and its chain.
    pub cert: Option<PathBuf>,
    /// PEM file of its private key.
    pub key: Option<PathBuf>,
    /// Whether a certificate is made at start.
    pub self_signed: bool,
}

/// Where the server's certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsSource {
    /// PEM files, read again when they change.
    Files {
        /// The certificate and its chain.
        cert: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// Made at start, in memory.
    SelfSigned,
}

impl TlsSettings {
    /// Where the certificate comes from; `None` where TLS is off.
    pub fn source(&self) -> Option<TlsSource> {
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(TlsSource::Files { cert: cert.clone(), key: key.clone() }),
            (None, None) => self.self_signed.then_some(TlsSource::SelfSigned),
            _ => None,
        }
    }
}

impl Settings for TlsSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self::default()
    }

    fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
        let (name, reason) = match (&self.cert, &self.key) {
            (Some(_), _) if self.self_signed => {
                ("tls-self-signed", "tls-self-signed and tls-cert exclude each other: drop one")
            }
            (Some(_), None) => ("tls-cert", "tls-cert needs tls-key, the file with its private key"),
            (None, Some(_)) => ("tls-key", "tls-key needs tls-cert, the file with its certificate"),
            _ => return Vec::new(),
        };
        vec![sources.conflict(name, reason)]
    }
}

const LIST: &[Setting<TlsSettings>] = &[
    Setting {
        name: "tls-cert",
        form: Form::Path,
        default: "none",
        help: "PEM file with the certificate and its chain; turns TLS on",
        applied: At::Reload,
        apply: |tls, text| value::path(text).map(|v| tls.cert = Some(v)),
        show: |tls| tls.cert.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "tls-key",
        form: Form::Path,
        default: "none",
        help: "PEM file with the certificate's private key",
        applied: At::Reload,
        apply: |tls, text| value::path(text).map(|v| tls.key = Some(v)),
        show: |tls| tls.key.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "tls-self-signed",
        form: Form::Switch,
        default: "false",
        help: "Turn TLS on with a certificate made at start, for tests",
        applied: At::Reload,
        apply: |tls, text| value::switch(text).map(|v| tls.self_signed = v),
        show: |tls| Some(tls.self_signed.to_string()),
    },
];
