//! DESCRIBE: what an asset is, and how it can be received (RFC 2326 10.2).

use super::{Connection, failed, path};
use crate::library::Asset;
use crate::rtsp::{reply::Reply, srtp::Promises};
use millpond_rtp::{
    description,
    message::{
        Request, StatusCode,
        headers::{BANDWIDTH, CONTENT_BASE, CONTENT_TYPE, LOCATION},
    },
};
use millpond_stream::ntp;
use std::{io, time::SystemTime};

/// The reply for an asset of which no track can be sent, with the reason of each.
fn unsupported(asset: &Asset) -> Reply {
    let tracks = asset.presentation.tracks().iter();
    let found: Vec<String> =
        tracks.map(|track| format!("{} ({})", track.name(), track.codec_and_encryption())).collect();
    let mut reply = Reply::new(StatusCode::UnsupportedMediaType).with(CONTENT_TYPE, "text/plain");
    reply.body = format!("{}: no track can be sent by RTP: {}\r\n", asset.path, found.join(", ")).into_bytes();
    reply
}

impl Connection<'_> {
    pub(super) async fn describe(&mut self, request: &Request<Vec<u8>>) -> Reply {
        let Some(path) = path(request) else { return Reply::new(StatusCode::BadRequest) };
        let (asset, rendition) = match self.rtsp.open(&path).await {
            Ok(found) => found,
            Err(error) => return failed(&error),
        };
        // What the client can take (RFC 2326 12.6).
        let most = request.header(&BANDWIDTH).and_then(|value| value.as_str().trim().parse().ok());
        let media = self.rtsp.media(&asset);
        let program = self.rtsp.manager.program(&media, rendition.as_deref());
        let chosen = media.chosen(rendition.as_deref(), most.filter(|_| program.is_none()));
        let (numbers, mut all): (Vec<usize>, Vec<_>) =
            chosen.iter().filter_map(|(number, format)| Some((*number, format.described(*number)?))).unzip();
        if all.is_empty() {
            return unsupported(&asset);
        }
        if let Some(elsewhere) = self.elsewhere(request)
            && !self.rtsp.manager.has_room(self.peer.ip(), &media, &numbers, program.is_some())
        {
            return Reply::new(StatusCode::Found).with(LOCATION, elsewhere);
        }
        let keys = match self.promise(&path, &numbers) {
            Ok(keys) => keys,
            Err(error) => {
                tracing::error!(%error, "no keys for SRTP");
                return Reply::new(StatusCode::InternalServerError);
            }
        };
        all.iter_mut().zip(&keys).for_each(|(described, key)| described.keys = Some(key));
        let duration = program.is_none().then(|| asset.presentation.duration());
        let text = description::describe(&asset.path, asset.id, duration, &all);
        let base = request.request_uri().map(|url| format!("{}/", url.as_str().trim_end_matches('/')));
        let mut reply = Reply::ok().with(CONTENT_TYPE, "application/sdp");
        reply.headers.extend(base.map(|base| (CONTENT_BASE, base)));
        reply.body = text.into_bytes();
        reply
    }

    /// Makes keys for tracks, where they can be told here.
    fn promise(&mut self, path: &str, tracks: &[usize]) -> io::Result<Vec<String>> {
        if !self.inlet.is_secure() {
            return Ok(Vec::new());
        }
        self.promises = Promises::of(path);
        tracks.iter().map(|track| self.promises.make(*track, ntp(SystemTime::now()))).collect()
    }

    /// The URL that a client is sent to when there is no room for it here.
    fn elsewhere(&self, request: &Request<Vec<u8>>) -> Option<String> {
        // A client that came over TLS is not sent to a connection without it.
        let mut elsewhere =
            self.rtsp.overflow.clone().filter(|url| !self.inlet.is_secure() || url.scheme() == "rtsps")?;
        let url = request.request_uri()?;
        elsewhere.set_path(&format!("{}{}", elsewhere.path().trim_end_matches('/'), url.path()));
        elsewhere.set_query(url.query());
        Some(elsewhere.into())
    }
}
