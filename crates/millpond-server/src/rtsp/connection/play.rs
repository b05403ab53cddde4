//! PLAY: the range of an asset that is sent, and its speed (RFC 2326 10.5).

use super::Connection;
use crate::rtsp::{
    reply::Reply,
    session::{self, Asked, Session},
};
use millpond_rtp::{
    message::{
        HeaderName, Request, StatusCode,
        headers::{RANGE, RTP_INFO, SCALE, SESSION, SPEED},
    },
    play::{self, NptRange},
};
use millpond_stream::CannotOpen;

/// Values of `Speed` that are supported.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.1..=4.0;

impl Connection<'_> {
    pub(super) async fn play(&self, request: &Request<Vec<u8>>, session: &mut Session, name: &str) -> Option<Reply> {
        let header = |name: &HeaderName| request.header(name).map(|value| value.as_str().to_owned());
        let part = match header(&RANGE).map_or(Ok(NptRange::default()), |text| play::npt_range(&text)) {
            Ok(part) => part,
            Err(play::PlayError::Units(_)) => return Some(Reply::new(StatusCode::NotImplemented)),
            Err(_) => return Some(Reply::new(StatusCode::InvalidRange)),
        };
        let speed = match header(&SPEED).map_or(Ok(1.0), |text| play::rate("Speed", &text)) {
            Ok(speed) => speed.clamp(*SPEEDS.start(), *SPEEDS.end()),
            Err(_) => return Some(Reply::new(StatusCode::BadRequest)),
        };
        if !session.is_set_up() {
            return Some(Reply::new(StatusCode::MethodNotValidInThisState));
        }
        let base = request.request_uri().map(|url| url.as_str().trim_end_matches('/').to_owned()).unwrap_or_default();
        let told_speed = header(&SPEED).is_some();
        let scale = match header(&SCALE).map(|text| play::rate("Scale", &text)).transpose() {
            Ok(scale) => scale,
            Err(_) => return Some(Reply::new(StatusCode::BadRequest)),
        };
        let asked = Asked { part, speed, scale: scale.unwrap_or(1.0) };
        let started = session.play(&self.rtsp.manager, asked, |played| {
            let each = played.tracks.iter();
            let info: Vec<String> = each
                .map(|(track, sequence, time)| format!("url={base}/{track};seq={sequence};rtptime={time}"))
                .collect();
            let mut reply = Reply::ok().with(SESSION, name).with(RANGE, session::range(played));
            if !info.is_empty() {
                reply = reply.with(RTP_INFO, info.join(","));
            }
            if scale.is_some() {
                reply = reply.with(SCALE, format!("{}", played.scale));
            }
            if told_speed {
                reply = reply.with(SPEED, format!("{}", played.speed));
            }
            self.send(request, &reply);
        });
        match started.await {
            Ok(()) => {
                session.count_played();
                None
            }
            Err(CannotOpen::OutOfRange) => Some(Reply::new(StatusCode::InvalidRange)),
            Err(CannotOpen::Full(full)) => Some(self.full(full)),
            Err(CannotOpen::Ended) => Some(Reply::new(StatusCode::ServiceUnavailable)),
        }
    }
}
