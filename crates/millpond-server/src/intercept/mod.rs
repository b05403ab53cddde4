//! Interception: connections to other servers that arrive here by rules of the firewall (Linux TPROXY).
//!
//! The feature `intercept` builds the interceptor; without it, `intercept` is refused.

mod groups;
#[cfg(not(feature = "intercept"))]
#[path = "absent.rs"]
mod interceptor;
#[cfg(feature = "intercept")]
mod interceptor;
mod metrics;
mod settings;

pub(crate) use interceptor::{Intercept, accept};
pub(crate) use metrics::InterceptMetrics;
pub use settings::InterceptSettings;

use crate::live::LiveSettings;

/// Settings of interception, and settings of the whole server that interception follows.
#[cfg_attr(not(feature = "intercept"), expect(dead_code, reason = "nothing is intercepted"))]
pub(crate) struct InterceptOptions<'a> {
    pub(crate) settings: InterceptSettings,
    pub(crate) live: &'a LiveSettings,
    /// Most connections at once.
    pub(crate) max_connections: usize,
    /// Whether each connection is logged.
    pub(crate) access_log: bool,
}
