//! The feed of events, as server-sent events.

use super::{
    super::{AdminState, Body, CACHE_CONTROL, CONTENT_TYPE},
    Outcome,
    request::ApiRequest,
};
use crate::{
    events::{Events, Next},
    problem::Problem,
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde::Deserialize;
use std::{convert::Infallible, fmt::Write as _, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, watch};
use utoipa::IntoParams;

/// Interval between comments of a feed without events. A client that is gone is noticed by them.
const QUIET: Duration = Duration::from_secs(15);

/// Where a feed of events begins.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct AfterQuery {
    /// Id of an event: the kept events after it come first. `0` stands for all kept events. The header `Last-Event-ID` does the same.
    after: Option<String>,
}

/// State of a feed.
struct Feed {
    events: Arc<Events>,
    /// Number of the last event that was sent.
    position: u64,
    newest: watch::Receiver<u64>,
    shutdown: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

/// Follows events of streams, viewers, recordings and disks, as CloudEvents.
#[utoipa::path(get, path = "/api/v1/cloudevents", tag = "overview", params(AfterQuery),
    responses((status = 200, content_type = "text/event-stream", body = String)))]
pub(super) fn cloud_events(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    let AfterQuery { after } = request.query()?;
    let Ok(permit) = state.desk.feeds.clone().try_acquire_owned() else {
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS).detail("too many event feeds are open"));
    };
    let events = state.events.clone();
    // A browser that connects again tells the last event of its own, and repeats the query.
    let after = request.last_event.as_ref().or(after.as_ref());
    let position = after.map_or_else(|| events.newest(), |id| events.position(id));
    let (newest, shutdown) = (events.follow(), state.desk.shutdown.clone());
    let feed = Feed { events, position, newest, shutdown, _permit: permit };
    let body: Body = StreamBody::new(stream::unfold(feed, next)).boxed_unsync();
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

async fn next(mut feed: Feed) -> Option<(Result<Frame<Bytes>, Infallible>, Feed)> {
    let text = loop {
        let _ = *feed.newest.borrow_and_update();
        if let Some(next) = feed.events.after(feed.position) {
            feed.position = next.event.number();
            break written(&next);
        }
        tokio::select! {
            changed = feed.newest.changed() => changed.ok()?,
            () = tokio::time::sleep(QUIET) => break ":\n\n".to_owned(),
            _ = feed.shutdown.wait_for(|down| *down) => return None,
        }
    };
    Some((Ok(Frame::data(Bytes::from(text))), feed))
}

/// An event as a feed has it, behind a comment where events before it are lost.
fn written(Next { event, skipped }: &Next) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    if *skipped > 0 {
        let _ = write!(text, ": {skipped} events are lost\n\n");
    }
    let (id, name) = (event.id(), event.kind().name());
    let _ = write!(text, "id: {id}\nevent: {name}\ndata: {}\n\n", String::from_utf8_lossy(event.json()));
    text
}
