//! Bodies of requests: offers, and candidates.

use super::{Context, error::SignallingError};
use bytes::BytesMut;
use http::header;
use millpond_http::wire::Upload;
use std::time::Duration;

/// Media types of offers and answers (RFC 8866), and of candidates (RFC 8840 9).
pub(super) const SDP: &str = "application/sdp";
pub(super) const FRAGMENT: &str = "application/trickle-ice-sdpfrag";
/// Most bytes of a body: offers of browsers have less than 10 KiB.
const BODY: usize = 64 << 10;
/// Time for a body.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads the body of a request, which must have a media type.
///
/// # Errors
/// It has another type, is too long, or does not arrive in time.
pub(super) async fn read(
    context: &Context<'_>,
    upload: &mut impl Upload,
    media_type: &'static str,
) -> Result<BytesMut, SignallingError> {
    let found = context.request.header(header::CONTENT_TYPE).unwrap_or_default();
    let essence = found.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case(media_type) {
        return Err(SignallingError::MediaType { found: essence.to_owned(), expected: media_type });
    }
    let read = async {
        let mut body = BytesMut::new();
        while let Some(bytes) = upload.next().await? {
            if body.len() + bytes.len() > BODY {
                return Err(SignallingError::Length(BODY));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    };
    tokio::time::timeout(PATIENCE, read).await.map_err(|_| SignallingError::Slow(PATIENCE))?
}
