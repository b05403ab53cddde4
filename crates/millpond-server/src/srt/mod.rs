//! SRT: publishers and viewers over networks that lose packets. The protocol is that of [`millpond_srt`]; this module has its socket.
//!
//! All sessions share one UDP port ([`port`]). It answers callers until one has returned its cookie; the request of that one is a task
//! ([`session`]) that looks at its stream id, at its [`rights`] and at its stream, and accepts or refuses it. A session is a
//! [`publisher`] or a [`viewer`].

mod link;
mod metrics;
mod port;
mod publisher;
mod record;
mod refusal;
mod report;
mod rights;
mod session;
mod sessions;
mod settings;
mod viewer;

pub(crate) use metrics::SrtMetrics;
pub(crate) use port::{SrtPort, open as open_port};
pub(crate) use report::SessionReport;
pub use settings::SrtSettings;

use crate::live::Sources;
use arc_swap::ArcSwap;
use millpond_access::{Gates, Publishers};
use millpond_srt::Passphrase;
use std::{sync::Arc, time::Duration};

/// The settings of SRT. Sessions go on with the one that they began with.
pub(crate) struct Srt {
    sources: Arc<Sources>,
    /// Admission of publishers; `None` where no stream is pushed.
    publishers: Option<Arc<Publishers>>,
    /// Rules of access.
    gates: Arc<Gates>,
    passphrase: Option<Passphrase>,
    latency: Duration,
    access_log: bool,
}

/// SRT as the configuration in force has it. A reload replaces it.
pub(crate) type CurrentSrt = Arc<ArcSwap<Srt>>;

impl Srt {
    /// Makes that of a configuration.
    pub(crate) fn new(
        (sources, publishers, gates): (Arc<Sources>, Option<Arc<Publishers>>, Arc<Gates>),
        settings: &SrtSettings,
        access_log: bool,
    ) -> Arc<Self> {
        let (passphrase, latency) = (settings.passphrase(), settings.latency);
        Arc::new(Self { sources, publishers, gates, passphrase, latency, access_log })
    }
}
