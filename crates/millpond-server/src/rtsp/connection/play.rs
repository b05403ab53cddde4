//! PLAY: the range of an asset that is sent, and its speed (RFC 2326 10.5).

use super::{Connection, refused};
use crate::rtsp::{
    session::Shared,
    signalling::{Asked, Outcome},
};
use millpond_rtp::message::StatusCode;
use millpond_stream::CannotOpen;

impl Connection<'_> {
    pub(super) async fn play(&mut self, session: &Shared, asked: Asked) {
        let mut session = session.session.lock().await;
        if !session.is_set_up() {
            return self.finish(refused(StatusCode::MethodNotValidInThisState));
        }
        match session.open(&self.rtsp.manager, asked).await {
            Ok(opened) => {
                // The reply is sent before the first packet.
                self.finish(Outcome::Plays(opened.played()));
                session.start(opened);
            }
            Err(CannotOpen::OutOfRange) => self.finish(refused(StatusCode::InvalidRange)),
            Err(CannotOpen::Full(full)) => self.finish(self.full(full)),
            Err(CannotOpen::Ended | CannotOpen::Streams | CannotOpen::NoTracks) => {
                self.finish(refused(StatusCode::ServiceUnavailable))
            }
        }
    }
}
