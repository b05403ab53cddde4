//! Live streams from the node of the cluster that receives them: their source has one session for all nodes.

use super::Sources;
use crate::{
    cluster::{LaterCluster, MARK, Start},
    encode,
};
use futures_util::future::BoxFuture;
use millpond_stream::reception::{Relay, RtspSource, SourceTransport};
use std::sync::{Arc, OnceLock, Weak};

/// The sources of a server that is being put together.
pub(crate) type LaterSources = Arc<OnceLock<Weak<Sources>>>;

/// Takes the streams of RTSP sources from the node that owns them.
#[derive(Debug)]
pub(crate) struct OwnerRelay {
    cluster: LaterCluster,
    sources: LaterSources,
}

impl OwnerRelay {
    /// Creates a relay of a cluster.
    pub(crate) fn new(cluster: LaterCluster, sources: LaterSources) -> Self {
        Self { cluster, sources }
    }

    async fn owned(&self, stream: &str) -> Option<RtspSource> {
        let cluster = self.cluster.get()?;
        let (key, start) = self.sources.get()?.upgrade()?.object_key(stream)?;
        let base = cluster.owner(&key).await.filter(|_| start == Start::Live)?;
        // The mark makes the node serve the stream itself.
        let url = format!("{base}/{}?{MARK}={}", encode(stream), cluster.name());
        let mut source = RtspSource::new(&url).ok()?;
        source.transport = SourceTransport::Tcp;
        Some(source)
    }
}

impl Relay for OwnerRelay {
    fn source<'a>(&'a self, stream: &'a str) -> BoxFuture<'a, Option<RtspSource>> {
        Box::pin(self.owned(stream))
    }
}
