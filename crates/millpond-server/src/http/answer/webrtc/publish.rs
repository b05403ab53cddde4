//! The offer of a publisher (WHIP), and the answer with the address of its session.

use super::{super::publish, Context, Reply, ReplyInfo, TargetKind, WebRtcUse, body, created, error::SignallingError};
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
    let webrtc = front.webrtc().ok_or(SignallingError::Off)?;
    let admission = publish::admit_page(context, &live.stream, info).await?;
    let offer = PeerOffer::read(&body::read(context, upload, body::SDP).await?)?;
    admission.check_taken(front)?;
    let publish::Admission { stream, conflict, patience } = admission;
    let begun = webrtc.publish(created::client(context), (stream, conflict, patience), &offer)?;
    Ok(created::reply(WebRtcUse::Publish, begun))
}
