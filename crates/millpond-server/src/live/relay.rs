//! Live streams from the node of the cluster that receives them: their source has one session for all nodes.

use super::{Sources, StreamPath};
use crate::cluster::{Cluster, LaterCluster, MARK, Start};
use futures_util::future::BoxFuture;
use millpond_library::uri::encode;
use millpond_stream::{
    LiveRequest, Source,
    reception::{AfterEnd, Relay, RtspSource, SourceTransport},
};
use std::sync::{Arc, PoisonError, RwLock, Weak};

/// The sources of the configuration in force; empty while the server is being put together.
pub(crate) type LaterSources = Arc<RwLock<Weak<Sources>>>;

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
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner).upgrade()?;
        let (key, start) = sources.object_key(&sources.find(stream))?;
        let base = cluster.owner(&key, start).await.filter(|_| start == Start::Live)?;
        at_node(&base, stream, cluster)
    }
}

/// Parameter of the query of nodes that take a stream for their own viewers. A node that takes the stream from another one refuses it: so two nodes
/// never take it from each other.
const RELAY_MARK: &str = "_millpond_relay";

/// Whether a query is that of a node which takes the stream for its viewers.
pub(crate) fn is_for_relay(query: &str) -> bool {
    query.split('&').any(|pair| pair.split('=').next() == Some(RELAY_MARK))
}

/// A stream at another node of a cluster. The mark makes that node serve it itself; the pass stands in the query, which is not shown.
fn at_node(base: &str, stream: &str, cluster: &Cluster) -> Option<RtspSource> {
    let pass = cluster.relay_pass().map(|pass| format!("&token={pass}")).unwrap_or_default();
    let mut source =
        RtspSource::new(&format!("{base}/{}?{MARK}={}&{RELAY_MARK}=1{pass}", encode(stream), cluster.name())).ok()?;
    source.transport = SourceTransport::Tcp;
    Some(source)
}

impl Sources {
    /// Returns the stream of a request for viewers of this node. A stream that is pushed to another node is taken from there, and no past of it is
    /// kept here.
    pub(super) async fn fed(&self, request: LiveRequest, path: &StreamPath) -> LiveRequest {
        if self.manager().is_running(&request.path) {
            return request;
        }
        match self.fed_source(path).await {
            Some(source) => {
                let (source, relayed) = (Source::Rtsp(source.into()), Some(request.source));
                LiveRequest { source, relayed, shift: None, ..request }
            }
            None => request,
        }
    }

    async fn fed_source(&self, path: &StreamPath) -> Option<RtspSource> {
        let cluster = self.cluster.as_ref().filter(|_| self.is_fed)?;
        let (key, start) = self.object_key(path).filter(|(_, start)| *start == Start::Pushed)?;
        let base = cluster.owner(&key, start).await?;
        let mut source = at_node(&base, path, cluster)?;
        // The publisher may go to another node.
        source.policies.after_end = AfterEnd::Close;
        Some(source)
    }
}

impl Relay for OwnerRelay {
    fn source<'a>(&'a self, stream: &'a str) -> BoxFuture<'a, Option<RtspSource>> {
        Box::pin(self.owned(stream))
    }
}
