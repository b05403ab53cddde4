//! Clips of a stream's past, each as one fragmented MP4.

use super::{
    super::{Context, Reply, ReplyInfo, target::LiveTarget},
    long::headers,
    past::Past,
};
use crate::http::{
    AnswerError,
    render::{ClipResponse, Sent},
};
use http::{Method, StatusCode};
use millpond_http::body::Body;
use millpond_package::hls::Container;
use millpond_stream::live::{NoClip, is_ahead};
use std::time::Instant;

/// Answers a request for the clip of a stream, from `start` to `end`. The source is not opened.
///
/// # Errors
/// The clip is not over, nothing of it is kept, or it can't be one file.
pub(super) async fn answer(
    context: &Context<'_>,
    live: &LiveTarget,
    past: Past,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    let Context { front, request, .. } = *context;
    let refused = |why: String| AnswerError::Past { path: live.stream.to_string(), why };
    let (start, end) =
        past.clip().ok_or_else(|| refused("expected an end too, such as &end=2026-11-22T10:05:00Z".to_owned()))?;
    if is_ahead(end) {
        return Err(refused("the clip is not over: its end lies ahead".to_owned()));
    }
    let source = front.sources.live(&live.stream)?.filter(|source| source.shift.is_some());
    let source = source.ok_or_else(|| live.without("no past is kept of it (time-shift)"))?;
    if request.method == Method::HEAD {
        let headers = headers(Container::Fmp4, []);
        return Ok(Reply::new(StatusCode::OK, headers, Body::unmade()));
    }
    let began = Instant::now();
    let found = front.sources.manager().clip(&source, start, end).await;
    info.waited += began.elapsed();
    let clip = found.map_err(|error| match error {
        NoClip::NotKept | NoClip::Evicted { .. } => live.without(error.to_string()),
        NoClip::Changed { .. } | NoClip::Unfit => refused(error.to_string()),
        NoClip::Disk(_) | NoClip::Unreadable(_) => {
            AnswerError::Unreadable { asset: live.stream.to_string(), why: error.to_string() }
        }
    })?;
    let headers = headers(Container::Fmp4, clip.formats().map(|format| &*format.track));
    let sent = Sent::new(front.metrics.clone(), info.place.clone());
    info.counts_itself = true;
    Ok(Reply::new(StatusCode::OK, headers, Body::stream(Box::new(ClipResponse::new(clip, sent)))))
}
