//! The certificate in use, and its replacement when the files change.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::{TlsError, Validity, load, validity};
use crate::tls::TlsSource;
use millpond_settings::files::{FileStamp, Looks};

/// Rest of the lifetime below which a certificate's end is logged as a warning.
const SOON: i64 = 14 * 24 * 3600;

/// The certificate of new handshakes.
///
/// [`Certificates::reload`] swaps in a new one; handshakes under way and open connections keep theirs. A file that
/// can't be used changes nothing: the last good certificate stays.
pub struct Certificates {
    /// A lock: written when the configuration names another source.
    source: RwLock<TlsSource>,
    provider: Arc<CryptoProvider>,
    /// Read by every handshake, written when a file changed. Never held across a wait.
    current: RwLock<Arc<CertifiedKey>>,
    /// Stamps of the files when they were last read, with or without success.
    seen: Mutex<Option<[FileStamp; 2]>>,
}

/// Returns the present stamps of the two files; `None` for a certificate without files.
fn stamp(source: &TlsSource) -> Option<[FileStamp; 2]> {
    match source {
        TlsSource::Files { cert, key } => Some([FileStamp::of(cert), FileStamp::of(key)]),
        TlsSource::SelfSigned => None,
    }
}

impl Certificates {
    /// Loads or makes the certificate.
    pub fn open(source: &TlsSource) -> Result<Arc<Self>, TlsError> {
        let provider = load::provider();
        let seen = stamp(source);
        let certified = match source {
            TlsSource::Files { cert, key } => load::files(&provider, cert, key)?,
            TlsSource::SelfSigned => load::self_signed(&provider)?,
        };
        Ok(Arc::new(Self {
            source: RwLock::new(source.clone()),
            provider,
            current: RwLock::new(Arc::new(certified)),
            seen: Mutex::new(seen),
        }))
    }

    /// The TLS side of a listener: TLS 1.2 and 1.3, with protocols to choose from by ALPN (RFC 7301).
    pub fn server_config(self: &Arc<Self>, protocols: &[&[u8]]) -> Result<Arc<ServerConfig>, TlsError> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Setup { reason: error.to_string() })?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Arc::new(config))
    }

    /// Reads the files again if they changed since they were last read. Returns `true` where the certificate is a new
    /// one.
    ///
    /// Blocks on the disk.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let source = self.source();
        let TlsSource::Files { cert, key } = &source else { return Ok(false) };
        {
            let now = stamp(&source);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen == now {
                return Ok(false);
            }
            *seen = now;
        }
        let fresh = Arc::new(load::files(&self.provider, cert, key)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(true)
    }

    /// The source of the certificate.
    pub fn source(&self) -> TlsSource {
        self.source.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over the certificate of another source, for handshakes from now on.
    pub fn adopt(&self, other: &Self) {
        *self.source.write().unwrap_or_else(PoisonError::into_inner) = other.source();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) =
            other.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = other.current();
    }

    /// Returns the certificate of the next handshake.
    pub fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the validity of the certificate; `None` where it does not state it.
    pub fn validity(&self) -> Option<Validity> {
        self.current().cert.first().and_then(|certificate| validity::validity(certificate))
    }

    /// Returns whether a time is in the validity of the certificate, as far as it states one.
    pub fn is_valid(&self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).ok().and_then(|now| i64::try_from(now.as_secs()).ok());
        match (self.validity(), now) {
            (Some(Validity { from, to }), Some(now)) => (from..=to).contains(&now),
            _ => true,
        }
    }

    /// Returns a warning if the certificate is not valid at this time. Browsers refuse it, so an operator should know.
    /// It does not prevent a start, because plain HTTP and lenient players still work.
    pub fn date_warning(&self, now: SystemTime) -> Option<String> {
        let Validity { from, to } = self.validity()?;
        let now = i64::try_from(now.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()?;
        let days = |seconds: i64| match seconds / 86_400 {
            0 => "less than a day".to_owned(),
            1 => "1 day".to_owned(),
            days => format!("{days} days"),
        };
        if now < from {
            Some(format!(
                "the certificate is not valid before {} from now; check the machine's clock too",
                days(from - now + 86_400)
            ))
        } else if now > to {
            Some(format!("the certificate expired {} ago", days(now - to)))
        } else if to - now < SOON {
            Some(format!("the certificate expires in {}", days(to - now)))
        } else {
            None
        }
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("source", &self.source()).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Reloads the certificate when its files change. `changed` is called with the new validity. Ends on shutdown.
pub async fn watch(
    certificates: Arc<Certificates>,
    shutdown: watch::Receiver<bool>,
    changed: impl Fn(Option<Validity>) + Send,
) {
    let mut looks = Looks::until(shutdown);
    while looks.next().await {
        let files = Arc::clone(&certificates);
        match tokio::task::spawn_blocking(move || files.reload()).await {
            Ok(Ok(true)) => {
                tracing::info!("new certificate in force");
                if let Some(warning) = certificates.date_warning(SystemTime::now()) {
                    tracing::warn!("{warning}");
                }
                changed(certificates.validity());
            }
            Ok(Ok(false)) => {}
            Ok(Err(error)) => tracing::error!(%error, "the certificate on disk can't be used: the last good \
                                                       certificate stays in force"),
            Err(error) => tracing::error!(%error, "checking the certificate failed"),
        }
    }
}
