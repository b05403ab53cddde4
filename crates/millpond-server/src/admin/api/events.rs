//! The feed of overviews, as server-sent events.

use super::{
    super::{AdminState, Body, CACHE_CONTROL, CONTENT_TYPE, monitor::Look},
    Outcome,
};
use crate::problem::Problem;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use std::{convert::Infallible, sync::Arc};
use tokio::sync::{OwnedSemaphorePermit, watch};

/// State of a feed.
struct Feed {
    looks: watch::Receiver<Arc<Look>>,
    shutdown: watch::Receiver<bool>,
    is_first: bool,
    _permit: OwnedSemaphorePermit,
}

/// Follows the state of the whole server: an event `overview` at once, and then each second.
#[utoipa::path(get, path = "/api/v1/events", tag = "overview",
    responses((status = 200, content_type = "text/event-stream", body = String)))]
pub(super) fn events(state: &Arc<AdminState>) -> Outcome {
    let Ok(permit) = state.desk.feeds.clone().try_acquire_owned() else {
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS).detail("too many event feeds are open"));
    };
    // The first event needs no second to come.
    let _ = state.desk.monitor.overview(state);
    let feed = Feed {
        looks: state.desk.monitor.follow(),
        shutdown: state.desk.shutdown.clone(),
        is_first: true,
        _permit: permit,
    };
    let body: Body = StreamBody::new(stream::unfold(feed, next)).boxed_unsync();
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

async fn next(mut feed: Feed) -> Option<(Result<Frame<Bytes>, Infallible>, Feed)> {
    if !std::mem::take(&mut feed.is_first) {
        tokio::select! {
            changed = feed.looks.changed() => changed.ok()?,
            _ = feed.shutdown.wait_for(|down| *down) => return None,
        }
    }
    let look = feed.looks.borrow_and_update().clone();
    let json = serde_json::to_string(&look.overview).ok()?;
    let event = format!("id: {}\nevent: overview\ndata: {json}\n\n", look.number);
    Some((Ok(Frame::data(Bytes::from(event))), feed))
}
