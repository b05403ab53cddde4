//! The examination of a machine and of origins, before a server is started: defects, slow parts, and remedies.
//!
//! It changes nothing: files that it writes are removed again. Each origin sends a few MiB at most.

mod clock;
mod disk;
mod etcd;
mod finding;
mod limits;
mod links;
mod lock;
mod nodes;
mod origins;
mod ports;

pub use finding::{Finding, Severity};

use crate::config::Config;
use millpond_connections::tls::Certificates;
use std::time::{Duration, SystemTime};

/// Time limit of each question to another machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// How origins are examined.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Path of the object that is read, as in its URL; `None` takes the first media file of each place's listing.
    pub object: Option<String>,
    /// Bytes that are read of each origin, at most.
    pub bytes: u64,
}

/// Examines the machine, and everything that a configuration names. The findings are in the order of their areas.
pub async fn examine(config: &Config, probe: &Probe) -> Vec<Finding> {
    let mut findings = limits::findings(config);
    findings.extend(ports::findings(config));
    findings.extend(certificate(config));
    findings.extend(disk::findings(config).await);
    let (clock, origins, etcd, nodes) = tokio::join!(
        clock::findings(config),
        origins::findings(config, probe),
        etcd::findings(&config.cluster),
        nodes::findings(&config.cluster)
    );
    findings.extend(clock.into_iter().chain(origins).chain(etcd).chain(nodes));
    findings
}

/// The server's own certificate.
fn certificate(config: &Config) -> Option<Finding> {
    const AREA: &str = "tls";
    let source = config.tls.source()?;
    let advice = "renew it, and check tls-cert and tls-key; changed files are read again without a restart";
    Some(match Certificates::open(&source) {
        Err(error) => Finding::error(AREA, error.to_string(), advice),
        Ok(certificates) => match certificates.date_warning(SystemTime::now()) {
            Some(warning) if !certificates.is_valid(SystemTime::now()) => Finding::error(AREA, warning, advice),
            Some(warning) => Finding::warning(AREA, warning, advice),
            None => Finding::fine(AREA, "the certificate is valid, and its key fits".to_owned()),
        },
    })
}
