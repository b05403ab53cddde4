//! Replies to GETs of intercepted connections: the stream of an RTSP server, or its failure.

use super::{
    super::{
        Front, Reply, ReplyInfo,
        reply::{add_common_fields, failure},
    },
    long::{of_program, unfit},
    title,
};
use crate::http::{AnswerError, Kind, render::Muxer};
use http::Method;
use millpond_package::hls::Container;
use millpond_stream::{Program, remote::RemoteTitle};
use std::sync::Arc;

/// The media in the answer to a GET of an intercepted connection.
pub(crate) enum TranslatedMedia {
    /// A stream, which its viewers share.
    Stream(Program),
    /// A stored title, from its beginning.
    Title(Arc<RemoteTitle>),
}

/// Answers with the media of an RTSP server. A stream is in `container` or in the other one where that can't carry it. `asset` is the path
/// that was asked for.
pub(crate) async fn answer_translated(
    front: &Front,
    media: Result<TranslatedMedia, AnswerError>,
    container: Container,
    asset: &str,
) -> (Reply, ReplyInfo) {
    let mut info = front.info(Kind::Stream);
    let reply = match media {
        Ok(TranslatedMedia::Title(title)) => Ok(title::long(front, &Method::GET, &title, &title.listing())),
        Ok(TranslatedMedia::Stream(program)) => stream_of(front, &program, container, &mut info).await,
        Err(error) => Err(error),
    };
    let mut reply = reply.unwrap_or_else(|error| failure(info.id, asset, &error));
    front.cors_of_nobody().add(None, &mut reply.headers);
    add_common_fields(&mut reply.headers, info.id);
    (reply, info)
}

async fn stream_of(
    front: &Front,
    program: &Program,
    container: Container,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    let other = match container {
        Container::Fmp4 => Container::Ts,
        Container::Ts => Container::Fmp4,
    };
    let muxer = [container, other].into_iter().find_map(|of| Some((of, Muxer::of(program, of)?)));
    of_program(front, program, muxer.ok_or_else(|| unfit(program, container))?, info).await
}
