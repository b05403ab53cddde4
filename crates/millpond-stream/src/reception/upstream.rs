//! The ways to sources that this machine connects to.

use crate::reception::{Connector, Relay, Web};
use std::sync::Arc;

/// The ways to sources that this machine connects to.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Opens connections to RTSP servers.
    pub connector: Arc<dyn Connector>,
    /// Sends requests to web servers.
    pub web: Arc<dyn Web>,
    /// Finds other servers that receive a stream already.
    pub relay: Option<Arc<dyn Relay>>,
}
