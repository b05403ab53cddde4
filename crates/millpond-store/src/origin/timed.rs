//! Time limits on the silence of an origin.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout};

use crate::error::{At, OriginError, Phase};
use crate::origin::OriginBody;

/// Bytes that a body brings within the time limit of a pause, at least, while it has that many.
const LEAST: usize = 1024;

/// Returns a body that fails when it pauses for longer than `stall`, or brings fewer than [`LEAST`] bytes in that time. The
/// clock runs only while a reader waits for bytes.
pub(crate) fn stalling(body: OriginBody, at: At, stall: Duration) -> OriginBody {
    // Time that was waited, and bytes that came, since the last piece that was long enough.
    let start = (body, at, Duration::ZERO, 0_usize);
    Box::pin(stream::try_unfold(start, move |(mut body, at, waited, bytes)| async move {
        let began = Instant::now();
        match timeout(stall.saturating_sub(waited), body.next()).await {
            Ok(Some(item)) => {
                let item = item?;
                let (waited, bytes) = match bytes + item.len() {
                    bytes if bytes < LEAST => (waited + began.elapsed(), bytes),
                    _ => (Duration::ZERO, 0),
                };
                Ok(Some((item, (body, at, waited, bytes))))
            }
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
