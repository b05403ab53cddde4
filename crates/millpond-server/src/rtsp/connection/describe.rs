//! DESCRIBE: the tracks of an asset, and how they can be received (RFC 2326 10.2).

use super::{Connection, failed, refused};
use crate::library::Asset;
use crate::rtsp::{reply::Reply, signalling::Outcome, srtp::Promises};
use millpond_rtp::{
    description,
    message::{
        StatusCode,
        headers::{CONTENT_TYPE, LOCATION},
    },
};
use millpond_stream::ntp;
use std::{io, time::SystemTime};

/// The reply for an asset of which no track can be sent, with the reason of each.
fn unsupported(asset: &Asset) -> Outcome<'static> {
    let tracks = asset.presentation.tracks().iter();
    let found: Vec<String> =
        tracks.map(|track| format!("{} ({})", track.name(), track.codec_and_encryption())).collect();
    let mut reply = Reply::new(StatusCode::UnsupportedMediaType).with(CONTENT_TYPE, "text/plain");
    reply.body = format!("{}: no track can be sent by RTP: {}\r\n", asset.path, found.join(", ")).into_bytes();
    Outcome::Refused(reply)
}

impl Connection<'_> {
    /// Describes the asset of a path, for a client that can receive `most` bits a second. One without room here is sent
    /// `elsewhere`.
    pub(super) async fn describe(
        &mut self,
        path: &str,
        most: Option<u64>,
        elsewhere: Option<String>,
    ) -> Outcome<'static> {
        let (asset, rendition) = match self.rtsp.open(path).await {
            Ok(found) => found,
            Err(error) => return failed(&error),
        };
        let media = self.rtsp.media(&asset);
        let program = self.rtsp.manager.program(&media, rendition.as_deref());
        let chosen = media.chosen(rendition.as_deref(), most.filter(|_| program.is_none()));
        let (numbers, mut all): (Vec<usize>, Vec<_>) =
            chosen.iter().filter_map(|(number, format)| Some((*number, format.described(*number)?))).unzip();
        if all.is_empty() {
            return unsupported(&asset);
        }
        if let Some(elsewhere) = elsewhere
            && !self.rtsp.manager.has_room(self.peer.ip(), &media, &numbers, program.is_some())
        {
            return Outcome::Refused(Reply::new(StatusCode::Found).with(LOCATION, elsewhere));
        }
        let keys = match self.promise(path, &numbers) {
            Ok(keys) => keys,
            Err(error) => {
                tracing::error!(%error, "no keys for SRTP");
                return refused(StatusCode::InternalServerError);
            }
        };
        all.iter_mut().zip(&keys).for_each(|(described, key)| described.keys = Some(key));
        let duration = program.is_none().then(|| asset.presentation.duration());
        Outcome::Described(description::describe(&asset.path, asset.id, duration, &all))
    }

    /// Makes keys for tracks, where the connection can carry them in secret.
    fn promise(&mut self, path: &str, tracks: &[usize]) -> io::Result<Vec<String>> {
        if !self.inlet.is_secure() {
            return Ok(Vec::new());
        }
        self.promises = Promises::of(path);
        tracks.iter().map(|track| self.promises.make(*track, ntp(SystemTime::now()))).collect()
    }
}
