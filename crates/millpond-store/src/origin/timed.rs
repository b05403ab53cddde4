//! Time limits on the silence of an origin.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::timeout;

use super::Body;
use crate::error::{At, OriginError, Phase};

/// Returns a body that fails when it pauses for longer than `stall`. The clock runs only while a reader waits for
/// bytes.
pub(crate) fn stalling(body: Body, at: At, stall: Duration) -> Body {
    Box::pin(stream::try_unfold((body, at), move |(mut body, at)| async move {
        match timeout(stall, body.next()).await {
            Ok(Some(item)) => Ok(Some((item?, (body, at)))),
            Ok(None) => Ok(None),
            Err(_) => Err(OriginError::Timeout { at, phase: Phase::Stalled, after: stall }),
        }
    }))
}

/// Waits for the head of a reply. Connecting, where it is necessary, has a time limit of its own.
pub(crate) async fn first_byte<T>(
    reply: impl Future<Output = T>,
    at: &At,
    connect: Duration,
    first_byte: Duration,
) -> Result<T, OriginError> {
    let limit = connect.saturating_add(first_byte);
    timeout(limit, reply).await.map_err(|_| OriginError::Timeout {
        at: at.clone(),
        phase: Phase::FirstByte,
        after: limit,
    })
}
