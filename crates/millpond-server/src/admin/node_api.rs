//! The API as other nodes of the cluster ask it for an operator. The node that the operator asks has checked the token.

use super::{Desk, Reply, api};
use crate::cluster::{ApiAnswer, ApiCall, NodeApi};
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{Method, header::CONTENT_TYPE};
use http_body_util::BodyExt as _;
use millpond_cluster::NodeName;
use std::sync::Arc;

impl NodeApi for Desk {
    fn answer(self: Arc<Self>, by: NodeName, call: ApiCall) -> BoxFuture<'static, ApiAnswer> {
        async move {
            let (method, path) = (call.method.clone(), call.path().to_owned());
            let answer = whole(api::answer_call(by.clone(), call, self.state()).await).await;
            if method != Method::GET {
                let status = answer.status.as_u16();
                tracing::info!(%by, %method, path, status, "an operator of another node asked for a change");
            }
            answer
        }
        .boxed()
    }
}

/// Reads the whole body of a reply. Feeds, which have no end, are refused before.
pub(super) async fn whole(reply: Reply) -> ApiAnswer {
    let (parts, body) = reply.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    ApiAnswer { status: parts.status, content_type: parts.headers.get(CONTENT_TYPE).cloned(), body }
}
