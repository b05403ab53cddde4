//! The API of one node, as another one asks it for an operator.
//!
//! The node that an operator asks has checked the token. The other one goes by the pass of the cluster's secret, or by the certificate of
//! the node that asks. A pass holds for one request, so that whoever reads it on its way can do nothing else with it.

use super::Cluster;
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use millpond_cluster::NodeName;
use millpond_outbound::chain;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tokio::{sync::Semaphore, time::timeout};
use url::{Position, Url};

/// Beginning of the paths at which a node answers the API for other nodes.
pub(crate) const NODE_API: &str = "/.millpond/node";
/// Paths of the API behind that.
const API: &str = "/api/v1/";
/// The name of the node that asks, and in a reply that of the node that answers.
pub(crate) const NODE_HEADER: HeaderName = HeaderName::from_static("millpond-node");
/// Requests to other nodes, and requests of other nodes, that are under way at once.
const AT_ONCE: usize = 32;
/// Most bytes of a reply.
const LONGEST: usize = 16 << 20;

/// A request for the API of a node.
#[derive(Clone, Debug)]
pub(crate) struct ApiCall {
    pub(crate) method: Method,
    /// Path from `/api/v1/` on, and the query.
    pub(crate) target: String,
    /// JSON; empty where there is none.
    pub(crate) body: Bytes,
}

/// The reply to such a request.
#[derive(Clone, Debug)]
pub(crate) struct ApiAnswer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: Option<HeaderValue>,
    pub(crate) body: Bytes,
}

/// The API of this node.
pub(crate) trait NodeApi: Send + Sync {
    /// Answers a request that came by way of the node `by`.
    fn answer(self: Arc<Self>, by: NodeName, call: ApiCall) -> BoxFuture<'static, ApiAnswer>;
}

/// Why a node did not answer for its API.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiFailure {
    /// The cluster has no such node.
    #[error("the cluster has no node {0}")]
    NoNode(NodeName),
    /// This node can't prove that it is one.
    #[error(
        "node {own} can't ask node {node}, for it has neither cluster-secret nor cluster-node-listen: nodes ask each other only with a \
         proof. Set cluster-secret on all nodes to a file with the same secret, or cluster-node-listen with the certificates of nodes"
    )]
    Unproven {
        /// This node.
        own: NodeName,
        /// The other one.
        node: NodeName,
    },
    /// The target leads out of the API.
    #[error("expected a path of the API, without . and .. in it")]
    Path,
    /// The node has registered no address for nodes.
    #[error("node {0} has no address for other nodes: see cluster-http and cluster-node-listen there")]
    NoAddress(NodeName),
    /// There was no reply in time.
    #[error("node {node} has not answered within {} s", .limit.as_secs_f64())]
    Late {
        /// The node.
        node: NodeName,
        /// The time.
        limit: Duration,
    },
    /// The connection failed.
    #[error("node {node} does not answer: {why}")]
    Away {
        /// The node.
        node: NodeName,
        /// The error.
        why: String,
    },
    /// The node took the request for that of a stranger.
    #[error(
        "node {0} takes this node for a stranger: is the file of cluster-secret the same on both, do both have cluster-node-listen, \
         and is its version not older?"
    )]
    Refused(NodeName),
    /// The reply is not that of a node's API.
    #[error("node {node} does not answer for its API (status {status}): its version may be older")]
    Other {
        /// The node.
        node: NodeName,
        /// Status of the reply.
        status: StatusCode,
    },
    /// The reply is too long.
    #[error("the reply of node {0} has more than {LONGEST} bytes: ask for less, such as a smaller limit")]
    Long(NodeName),
}

/// Requests of the API between nodes.
pub(super) struct NodeCalls {
    /// The API of this node, while it is served. A lock, held for a look-up.
    own: Mutex<Option<Weak<dyn NodeApi>>>,
    sent: Semaphore,
    received: Semaphore,
}

impl Default for NodeCalls {
    fn default() -> Self {
        Self { own: Mutex::new(None), sent: Semaphore::new(AT_ONCE), received: Semaphore::new(AT_ONCE) }
    }
}

impl fmt::Debug for NodeCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeCalls").finish_non_exhaustive()
    }
}

impl ApiCall {
    /// The path, without the query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The head of the request as a pass names it. No part has an end of a line.
    fn head(&self, by: &NodeName, node: &NodeName) -> String {
        format!("{by}\n{node}\n{}\n{}", self.method, self.target)
    }
}

impl Cluster {
    /// Takes over the API of this node, which other nodes may ask from now on.
    pub(crate) fn serve_api(&self, api: Weak<dyn NodeApi>) {
        *self.calls.own.lock().unwrap_or_else(PoisonError::into_inner) = Some(api);
    }

    /// Asks another node for its API.
    ///
    /// # Errors
    /// The node was not asked, or did not answer within the limit.
    pub(crate) async fn ask_api(
        &self,
        node: &NodeName,
        call: &ApiCall,
        limit: Duration,
    ) -> Result<ApiAnswer, ApiFailure> {
        let view = self.view();
        let known = view.node(node.as_str()).ok_or_else(|| ApiFailure::NoNode(node.clone()))?;
        if self.settings.node_listen.is_none() && self.secret.is_none() {
            return Err(self.unproven(node));
        }
        let base = self.base_of(known).ok_or_else(|| ApiFailure::NoAddress(node.clone()))?;
        let asked = async {
            // It is never closed.
            let _permit = self.calls.sent.acquire().await;
            self.exchange(&base, node, call).await
        };
        timeout(limit, asked).await.unwrap_or_else(|_| Err(ApiFailure::Late { node: node.clone(), limit }))
    }

    fn unproven(&self, node: &NodeName) -> ApiFailure {
        ApiFailure::Unproven { own: self.name().clone(), node: node.clone() }
    }

    async fn exchange(&self, base: &str, node: &NodeName, call: &ApiCall) -> Result<ApiAnswer, ApiFailure> {
        let url = Url::parse(&format!("{base}{NODE_API}{}", call.target)).map_err(|_| ApiFailure::Path)?;
        // Dots are gone from it: the pass must name the target that the other node gets.
        let target = url[Position::BeforePath..Position::AfterQuery].strip_prefix(NODE_API);
        let target = target.filter(|target| target.starts_with(API)).ok_or(ApiFailure::Path)?.to_owned();
        let call = ApiCall { target, ..call.clone() };
        let away = |why: String| ApiFailure::Away { node: node.clone(), why };
        let mut request = self.nodes.request(call.method.clone(), url).header(NODE_HEADER, self.name().as_str());
        if let Some(secret) = self.secret.as_ref().filter(|_| self.settings.node_listen.is_none()) {
            let pass =
                secret.pass_of_call(&call.head(self.name(), node), &call.body).ok_or_else(|| self.unproven(node))?;
            request = request.header(header::AUTHORIZATION, format!("Bearer {pass}"));
        }
        if !call.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json").body(call.body);
        }
        let mut reply = request.send().await.map_err(|error| away(chain(&error)))?;
        let status = reply.status();
        if reply.headers().get(NODE_HEADER).is_none_or(|name| name.as_bytes() != node.as_str().as_bytes()) {
            return Err(match status {
                // Builds of before the first release answer strangers 403.
                StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => ApiFailure::Refused(node.clone()),
                status => ApiFailure::Other { node: node.clone(), status },
            });
        }
        let content_type = reply.headers().get(header::CONTENT_TYPE).cloned();
        let mut body = BytesMut::new();
        while let Some(bytes) = reply.chunk().await.map_err(|error| away(error.without_url().to_string()))? {
            if body.len() + bytes.len() > LONGEST {
                return Err(ApiFailure::Long(node.clone()));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(ApiAnswer { status, content_type, body: body.freeze() })
    }

    /// The node that sends a request for the API of this one; `None` for strangers. `is_of_node` tells whether the connection has
    /// the certificate of a node.
    pub(crate) fn caller(&self, is_of_node: bool, headers: &HeaderMap, call: &ApiCall) -> Option<NodeName> {
        let by: NodeName = headers.get(NODE_HEADER)?.to_str().ok()?.parse().ok()?;
        // A node with a listener for nodes takes no proof elsewhere.
        if self.settings.node_listen.is_some() {
            return Some(by).filter(|_| is_of_node);
        }
        let pass = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
        let is_signed = self.secret.as_ref()?.admits_call(pass, &call.head(&by, self.name()), &call.body);
        is_signed.then_some(by)
    }

    /// Answers a request of another node for the API of this one; `None` where that is not served, or is busy.
    pub(crate) async fn answer_api(&self, by: NodeName, call: ApiCall) -> Option<ApiAnswer> {
        let own = self.calls.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let api = own?.upgrade()?;
        let _permit = self.calls.received.try_acquire().ok()?;
        Some(api.answer(by, call).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_names_both_nodes_and_the_request() {
        let name = |text: &str| text.parse::<NodeName>().unwrap();
        let call = |method: Method, target: &str| ApiCall { method, target: target.to_owned(), body: Bytes::new() };
        let (a, b) = (name("a"), name("b"));
        let get = call(Method::GET, "/api/v1/sessions?limit=3");
        assert_eq!(
            (get.path(), get.head(&a, &b).as_str()),
            ("/api/v1/sessions", "a\nb\nGET\n/api/v1/sessions?limit=3")
        );
        assert_ne!(get.head(&a, &b), get.head(&b, &a));
        assert_ne!(get.head(&a, &b), call(Method::DELETE, "/api/v1/sessions?limit=3").head(&a, &b));
    }

    #[test]
    fn failures_name_the_node_and_the_cure() {
        let node: NodeName = "b".parse().unwrap();
        let unproven = ApiFailure::Unproven { own: "a".parse().unwrap(), node: node.clone() }.to_string();
        assert!(unproven.starts_with("node a can't ask node b, for it has neither cluster-secret"), "{unproven}");
        assert!(unproven.contains("Set cluster-secret on all nodes"), "{unproven}");
        let late = ApiFailure::Late { node: node.clone(), limit: Duration::from_millis(1500) };
        assert_eq!(late.to_string(), "node b has not answered within 1.5 s");
        assert!(ApiFailure::Refused(node).to_string().contains("cluster-secret"));
    }
}
