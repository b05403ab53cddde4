//! Snapshots of running streams. Asking for one starts no stream, and keeps none running.

use super::super::{
    Context, Reply, ReplyInfo,
    reply::{Negotiation, SelectedRepresentation, etag},
    target::LiveTarget,
};
use crate::{
    http::{AnswerError, Kind},
    library::fingerprint,
};
use http::{HeaderValue, header};
use millpond_http::body::Body;
use std::time::UNIX_EPOCH;

/// Value of `Cache-Control`. The server keeps a snapshot for the same time.
const SOON_OLD: &str = "max-age=3";

/// Answers a request for the snapshot of a stream.
///
/// # Errors
/// The stream does not run, has no key frame yet, or its pictures can't be decoded.
pub(super) async fn answer(
    context: &Context<'_>,
    live: &LiveTarget,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    let front = context.front;
    // In metrics, a request for a snapshot is not one of a viewer.
    info.kind = Kind::Other;
    let newest = front.sources.manager().newest_key_frame(&live.stream);
    let newest = newest.ok_or_else(|| live.without("no snapshot: the stream does not run, or has no key frame yet"))?;
    let image = front.lasting.renderer.snapshot(&live.stream, newest).await?;
    let selected = SelectedRepresentation {
        content_type: HeaderValue::from_static("image/jpeg"),
        cache_control: HeaderValue::from_static(SOON_OLD),
        etag: etag(fingerprint(&image.jpeg)),
        // `Date` less this time is the age of the picture.
        modified: UNIX_EPOCH.checked_add(image.wall),
        more: vec![(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))],
        negotiation: Negotiation::Fixed,
        body: Body::bytes(image.jpeg),
    };
    Ok(selected.reply(context.request))
}
