//! Metrics of TLS.

use prometheus_client::{metrics::gauge::Gauge, registry::Registry};

/// The metrics of TLS.
#[derive(Debug)]
pub struct TlsMetrics {
    certificate_expiry: Gauge,
}

impl TlsMetrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self { certificate_expiry: Gauge::default() };
        registry.register(
            "tls_certificate_expiry_timestamp_seconds",
            "Unix time at which the certificate expires; 0 without TLS",
            metrics.certificate_expiry.clone(),
        );
        metrics
    }

    /// Sets when the certificate ends to be valid, in Unix seconds.
    pub fn certificate_expiry(&self, unix_seconds: i64) {
        self.certificate_expiry.set(unix_seconds);
    }
}
