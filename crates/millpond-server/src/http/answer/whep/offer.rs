//! The offer of a viewer, and the answer with the address of its session.

use super::{super::live, Context, Reply, ReplyInfo, TargetKind, error::WhepError};
use crate::{http::Kind, webrtc::Client};
use bytes::BytesMut;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use millpond_http::{body::Body, wire::Upload};
use millpond_webrtc::sdp::PeerOffer;
use std::{net::SocketAddr, time::Duration};

/// Media types of offers and answers (RFC 8866), and of candidates (RFC 8840 9).
pub(super) const SDP: &str = "application/sdp";
pub(super) const FRAGMENT: &str = "application/trickle-ice-sdpfrag";
/// Most bytes of a body: offers of browsers have less than 10 KiB.
const BODY: usize = 64 << 10;
/// Time for a body.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most characters of a user agent in the log.
const AGENT: usize = 200;

/// Begins a session.
///
/// # Errors
/// The reason of the refusal.
pub(super) async fn answer(
    context: &Context<'_>,
    upload: &mut impl Upload,
    info: &mut ReplyInfo,
) -> Result<Reply, WhepError> {
    let Context { front, request, target, .. } = *context;
    let TargetKind::Live(live) = target.kind() else { return Err(WhepError::Method) };
    front.attribute(live.place, Kind::Stream, info);
    let webrtc = front.webrtc().ok_or(WhepError::Off)?;
    let pass = super::client::admit(context).await?;
    let hold = super::client::count(context, &pass)?;
    let body = read_body(context, upload, SDP).await?;
    let offer = PeerOffer::read(&body)?;
    let program = Box::pin(live::viewed(front, live)).await?;
    let agent = request.header(header::USER_AGENT).map(|agent| agent.chars().take(AGENT).collect());
    let address = SocketAddr::new(context.client(), 0);
    let begun = webrtc.begin(Client { address, agent, pass, hold }, program, &offer)?;
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(SDP));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("accept-patch"), HeaderValue::from_static(FRAGMENT));
    // Relative to the request's address: a proxy may have taken a prefix off the path.
    let location = HeaderValue::from_str(&format!("whep/{}", begun.id));
    headers.insert(header::LOCATION, location.unwrap_or(HeaderValue::from_static("whep")));
    if let Ok(tag) = HeaderValue::from_str(&begun.tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(Reply::new(StatusCode::CREATED, headers, Body::bytes(begun.answer.into())))
}

/// Reads the body of a request, which must have a media type.
///
/// # Errors
/// It has another type, is too long, or does not arrive in time.
pub(super) async fn read_body(
    context: &Context<'_>,
    upload: &mut impl Upload,
    media_type: &'static str,
) -> Result<BytesMut, WhepError> {
    let found = context.request.header(header::CONTENT_TYPE).unwrap_or_default();
    let essence = found.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case(media_type) {
        return Err(WhepError::MediaType { found: essence.to_owned(), expected: media_type });
    }
    let read = async {
        let mut body = BytesMut::new();
        while let Some(bytes) = upload.next().await? {
            if body.len() + bytes.len() > BODY {
                return Err(WhepError::Length(BODY));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    };
    tokio::time::timeout(PATIENCE, read).await.map_err(|_| WhepError::Slow(PATIENCE))?
}
