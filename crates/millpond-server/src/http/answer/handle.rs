//! The way of a request through its handlers: limits, rules of access, the handler of its target, and the fields of every reply.

use super::{
    Context, Reply, ReplyInfo, asset, client, file, health, live, method, node_api, page, registry,
    reply::{add_common_fields, failure, problem, put_page},
    steering,
    target::TargetKind,
    webrtc,
};
use crate::{
    cluster::marked,
    http::{Kind, render::AnswerError},
    library::LibraryError,
    problem::Problem,
    work::Asker,
};
use http::{HeaderName, Method, StatusCode, header};
use millpond_access::ClientHold;
use millpond_http::body::BodyError;
use millpond_store::HOME_HEADER;
use std::time::Instant;

/// Answers a request, body excluded: that is read while it is sent, after [`begin`].
pub(crate) async fn handle(context: &Context<'_>) -> (Reply, ReplyInfo) {
    let Context { front, request, .. } = *context;
    let mut info = front.info(Kind::Other);
    if let Some(mut reply) = health::reply(context) {
        add_common_fields(&mut reply.headers, info.id);
        return (reply, info);
    }
    if context.target.is_node_api() {
        return node_api::without_body(context).await;
    }
    if context.target.is_registry() {
        // Nodes wait here for changes all the time. They are no sessions.
        info.in_flight = None;
    }
    if let Some(mut reply) = registry::reply(context).await {
        add_common_fields(&mut reply.headers, info.id);
        return (reply, info);
    }
    if context.viewers.is_of_node() && !is_of_nodes(context) {
        return not_for_nodes(context);
    }
    let address = context.client();
    let counted = if client::is_of_node(context) { Ok(()) } else { front.gates().count_request(address, front.now()) };
    let mut reply = match counted {
        Err(limited) => client::limited(info.id, limited),
        Ok(()) => match request.method {
            Method::OPTIONS => method::options(context, info.id),
            _ if webrtc::methods(context.target).is_some() => webrtc::without_body(context, &info),
            // Clients take turns on the pool of heavy work.
            Method::GET | Method::HEAD => Asker::from(address).asks(get(context, &mut info)).await,
            _ => method::unsupported(context, info.id),
        },
    };
    put_page(request, &mut reply);
    client::keep_private(context, &mut reply.headers);
    client::add_cors(context, &mut reply.headers);
    add_common_fields(&mut reply.headers, info.id);
    (reply, info)
}

/// Tells whether a request is one that nodes send: for a home, or passed on for a viewer.
fn is_of_nodes(context: &Context<'_>) -> bool {
    let request = context.request;
    matches!(request.method, Method::GET | Method::HEAD)
        && (request.headers.contains_key(HOME_HEADER) || marked(context.query()))
}

/// Answers a request on the listener of nodes that no node sends.
pub(crate) fn not_for_nodes(context: &Context<'_>) -> (Reply, ReplyInfo) {
    let info = context.front.info(Kind::Other);
    let words = "this address is for nodes of the cluster: viewers use those of http and https";
    let mut reply = problem(info.id, Problem::new(StatusCode::FORBIDDEN).detail(words));
    add_common_fields(&mut reply.headers, info.id);
    (reply, info)
}

/// Begins the body of an answer, so that the status reports a failure to read its first bytes. A reply from an
/// object that has changed meanwhile is made again, once.
pub(crate) async fn begin(
    context: &Context<'_>,
    started: Instant,
    mut answer: (Reply, ReplyInfo),
) -> (Reply, ReplyInfo) {
    let Context { request, target, .. } = *context;
    if request.method == Method::GET
        && let Err(mut error) = answer.0.body.begin().await
    {
        if matches!(&error, BodyError::Origin(error) if error.is_changed()) {
            // The second answer counts among those of its client, in place of the first.
            answer.1.hold = ClientHold::default();
            answer = handle(context).await;
            match answer.0.body.begin().await {
                Ok(()) => {
                    first_byte(context, &mut answer.1, started);
                    return answer;
                }
                Err(again) => error = again,
            }
        }
        let asset = target.path().trim_start_matches('/');
        let (reply, info) = &mut answer;
        *reply = failure(info.id, asset, &AnswerError::of_body(asset, error));
        put_page(request, reply);
        client::add_cors(context, &mut reply.headers);
        add_common_fields(&mut reply.headers, info.id);
    }
    first_byte(context, &mut answer.1, started);
    answer
}

/// Counts the time to the first byte, without that for which a live stream held the reply.
fn first_byte(context: &Context<'_>, info: &mut ReplyInfo, started: Instant) {
    info.first_byte = Some(started.elapsed());
    context.front.metrics.first_byte(info.kind, started.elapsed().saturating_sub(info.waited));
}

/// Answers GET and HEAD.
async fn get(context: &Context<'_>, info: &mut ReplyInfo) -> Reply {
    let target = context.target;
    if matches!(target.kind(), TargetKind::NoText) {
        return problem(info.id, Problem::new(StatusCode::BAD_REQUEST).detail("the path is not UTF-8 text"));
    }
    if let Some(refused) = client::kicked(context, info.id) {
        return refused;
    }
    // A node reads objects: the rules of the page's data hold for it too.
    info.is_of_node = !target.is_page() && client::is_of_node(context);
    if !info.is_of_node {
        match client::admit(context).await {
            Ok(pass) => info.pass = pass,
            Err(refused) => return client::turned_away(context, info.id, &refused),
        }
        match client::count(context, &info.pass) {
            Ok(hold) => info.hold = hold,
            Err(limited) => return client::limited(info.id, limited),
        }
    }
    if let Some(reply) = client::with_token_in_path(context) {
        return reply;
    }
    match admitted(context, info).await {
        Ok(reply) => reply,
        Err(error) => page_or_failure(context, info, &error).await,
    }
}

/// Answers an admitted request with the handler of its target.
async fn admitted(context: &Context<'_>, info: &mut ReplyInfo) -> Result<Reply, AnswerError> {
    let Context { request, target, .. } = *context;
    match target.kind() {
        TargetKind::Page(part) => {
            info.kind = Kind::Page;
            Ok(page::select(context, part).await?.reply(request))
        }
        TargetKind::Steering(asset) => {
            let absent = || LibraryError::NoAsset(target.path().to_owned());
            Ok(steering::manifest(context, asset.as_deref()).await.ok_or_else(absent)?.reply(request))
        }
        _ => media(context, info).await,
    }
}

/// Answers a request for media: here, or at another node.
async fn media(context: &Context<'_>, info: &mut ReplyInfo) -> Result<Reply, AnswerError> {
    let Context { request, target, .. } = *context;
    if let Some(cluster) = context.front.cluster() {
        cluster.caught_up().await;
    }
    if request.contains(HeaderName::from_static("cdn-loop"), millpond_store::loop_id()) {
        return Err(AnswerError::Loop(target.path().to_owned()));
    }
    if request.contains(header::CACHE_CONTROL, "only-if-cached") {
        return Ok(file::cached(context, info)?.reply(request));
    }
    if request.headers.contains_key(HOME_HEADER) {
        return Ok(file::of_home(context, info).await?.reply(request));
    }
    if let Some(passed) = steering::pass(context, info).await {
        return Ok(passed);
    }
    if let Some(redirect) = steering::redirect(context).await {
        return Ok(redirect);
    }
    if let Some(stream) = target.live() {
        return live::answer(context, stream, info).await;
    }
    let selected = match asset::select(context, info).await {
        Err(error) if error.is_changed() => asset::select(context, info).await,
        selected => selected,
    };
    Ok(selected?.reply(request))
}

/// Answers a request that failed: with the page, where a browser opens a folder or a stream.
async fn page_or_failure(context: &Context<'_>, info: &mut ReplyInfo, error: &AnswerError) -> Reply {
    match page::instead(context, error).await {
        Some(page) => {
            info.kind = Kind::Page;
            page
        }
        None => failure(info.id, context.target.subject().unwrap_or(context.target.path()), error),
    }
}
