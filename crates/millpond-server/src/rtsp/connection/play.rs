//! PLAY: the range of an asset that is sent, and its speed (RFC 2326 10.5).

use super::{Connection, refused};
use crate::{
    cluster::limit_of,
    rtsp::{
        reply::Reply,
        session::Shared,
        shift::CannotPlay,
        signalling::{Asked, Outcome, clock},
    },
};
use millpond_rtp::message::{StatusCode, headers::RANGE};
use millpond_stream::{CannotOpen, Full};

impl Connection<'_> {
    pub(super) async fn play(&mut self, session: &Shared, asked: Asked) {
        let mut session = session.session.lock().await;
        if !session.is_set_up() {
            return self
                .finish(refused(StatusCode::MethodNotValidInThisState, "no track is set up: SETUP comes before PLAY"));
        }
        if let Some(cluster) = &self.rtsp.cluster {
            cluster.caught_up().await;
            let place = self.rtsp.sources.place(&session.path);
            if let Err(shortage) = session.book(cluster, place).await {
                self.rtsp.manager.counters().refuse(Full::Bandwidth);
                let why = format!("{} is reached: {shortage}", limit_of(&shortage));
                return self.finish(refused(StatusCode::NotEnoughBandwidth, why));
            }
        }
        match session.open(&self.rtsp.manager, asked).await {
            Ok(opened) => {
                // The reply is sent before the first packet.
                self.finish(Outcome::Plays(opened.played(), session.range(&opened)));
                session.start(opened);
            }
            Err(error) => {
                session.refuse_booking();
                let outcome = self.cannot(error);
                self.finish(outcome);
            }
        }
    }

    fn cannot(&self, error: CannotPlay) -> Outcome<'static> {
        match error {
            CannotPlay::Open(error @ CannotOpen::OutOfRange) => refused(StatusCode::InvalidRange, error),
            CannotPlay::Open(CannotOpen::Full(full)) => self.full(full),
            CannotPlay::Open(error @ (CannotOpen::Ended | CannotOpen::Streams | CannotOpen::NoTracks)) => {
                refused(StatusCode::ServiceUnavailable, error)
            }
            CannotPlay::Units => refused(StatusCode::NotImplemented, error),
            CannotPlay::NotKept { from, to } => {
                let kept = clock(from, Some(to));
                Outcome::Refused(Reply::refusal(StatusCode::InvalidRange, error).with(RANGE, kept))
            }
        }
    }
}
