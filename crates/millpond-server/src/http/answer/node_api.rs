//! The API of this node, as other nodes of the cluster ask it for an operator.

use super::{
    Context, Reply, ReplyInfo, Target, client,
    reply::{add_common_fields, failure, problem},
};
use crate::{
    cluster::{ApiAnswer, ApiCall, Cluster, NODE_API, NODE_HEADER},
    http::Kind,
    library::LibraryError,
    problem::Problem,
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_http::{body::Body, request::Request, wire::Upload};
use std::time::Duration;

/// Most bytes of a body, as at the admin address.
const MOST: usize = 64 << 10;
/// Time for a body.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tells whether the body of a request must be read for the API.
pub(super) fn takes_body(request: &Request, target: &Target) -> bool {
    target.is_node_api() && matches!(request.method, Method::POST | Method::PUT | Method::PATCH)
}

/// Answers a request without a body.
pub(super) async fn without_body(context: &Context<'_>) -> (Reply, ReplyInfo) {
    replied(context, Ok(Bytes::new())).await
}

/// Answers a request with a body.
pub(super) async fn answer(context: &Context<'_>, upload: &mut impl Upload) -> (Reply, ReplyInfo) {
    // A stranger's body is not waited for.
    let body = match context.request.headers.contains_key(NODE_HEADER) {
        true => read(upload).await,
        false => Ok(Bytes::new()),
    };
    replied(context, body).await
}

async fn replied(context: &Context<'_>, body: Result<Bytes, Problem>) -> (Reply, ReplyInfo) {
    let info = context.front.info(Kind::Admin);
    let mut reply = match body {
        Ok(body) => of_call(context, body, &info).await,
        Err(refused) => problem(info.id, refused),
    };
    reply.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    add_common_fields(&mut reply.headers, info.id);
    (reply, info)
}

async fn of_call(context: &Context<'_>, body: Bytes, info: &ReplyInfo) -> Reply {
    let Context { front, request, viewers, .. } = *context;
    // HEAD is GET, whose body is not sent.
    let method = if request.method == Method::HEAD { Method::GET } else { request.method.clone() };
    let target = request.target.split('#').next().unwrap_or_default();
    let target = target.strip_prefix(NODE_API).unwrap_or_default().to_owned();
    let call = ApiCall { method, target, body };
    let caller = |cluster: &Cluster| cluster.caller(viewers.is_of_node(), &request.headers, &call);
    let Some((cluster, by)) = front.cluster().and_then(|cluster| Some((cluster, caller(cluster)?))) else {
        return match front.gates().count_request(context.client(), front.now()) {
            Err(limited) => client::limited(info.id, limited),
            // For strangers there is nothing, as at every unknown path of the page.
            Ok(()) => {
                let path = context.target.path();
                failure(info.id, path.trim_start_matches('/'), &LibraryError::NoAsset(path.to_owned()).into())
            }
        };
    };
    let mut reply = match cluster.answer_api(by, call).await {
        Some(ApiAnswer { status, content_type, body }) => {
            let fields = content_type.into_iter().map(|value| (header::CONTENT_TYPE, value));
            Reply::new(status, fields.collect::<HeaderMap>(), Body::bytes(body))
        }
        None => {
            let words = "this node begins or ends, or has too many requests of other nodes";
            problem(info.id, Problem::new(StatusCode::SERVICE_UNAVAILABLE).detail(words))
        }
    };
    if let Ok(name) = HeaderValue::from_str(cluster.name().as_str()) {
        reply.headers.insert(NODE_HEADER, name);
    }
    reply
}

/// Reads a body.
///
/// # Errors
/// It is too long, broken off, or does not arrive in time.
async fn read(upload: &mut impl Upload) -> Result<Bytes, Problem> {
    let read = async {
        let mut body = BytesMut::new();
        while let Some(bytes) = upload.next().await.map_err(|error| {
            let words = format!("the body can't be read: {error}");
            Problem::new(StatusCode::BAD_REQUEST).detail(words)
        })? {
            if body.len() + bytes.len() > MOST {
                return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE).detail("bodies have at most 64 KiB"));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body.freeze())
    };
    let late = || Problem::new(StatusCode::REQUEST_TIMEOUT).detail("the body did not arrive in time");
    tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| Err(late()))
}
