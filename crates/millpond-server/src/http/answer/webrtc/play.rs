//! The offer of a viewer (WHEP), and the answer with the address of its session.

use super::{super::live, Context, Reply, ReplyInfo, TargetKind, WebRtcUse, body, created, error::SignallingError};
use crate::http::Kind;
use millpond_http::wire::Upload;
use millpond_webrtc::sdp::PeerOffer;

/// Begins a session.
///
/// # Errors
/// The reason of the refusal.
pub(super) async fn answer(
    context: &Context<'_>,
    upload: &mut impl Upload,
    info: &mut ReplyInfo,
) -> Result<Reply, SignallingError> {
    let Context { front, target, .. } = *context;
    let TargetKind::Live(live) = target.kind() else { return Err(SignallingError::Method) };
    front.attribute(live.place, Kind::Stream, info);
    let webrtc = front.webrtc().ok_or(SignallingError::Off)?;
    let pass = super::client::admit(context).await?;
    let hold = super::client::count(context, &pass)?;
    let offer = PeerOffer::read(&body::read(context, upload, body::SDP).await?)?;
    let program = Box::pin(live::viewed(front, live)).await?;
    let viewed = Box::pin(webrtc.viewed(program, &offer)).await;
    let begun = webrtc.play((created::client(context), pass, hold), viewed, &offer)?;
    Ok(created::reply(WebRtcUse::Play, begun))
}
