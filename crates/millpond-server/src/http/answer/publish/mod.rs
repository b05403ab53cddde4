//! PUT and POST: streams that publishers push by HTTP, as MPEG-TS or fragmented MP4.

mod admission;
mod body;
mod error;
mod split;
mod upload;

pub(super) use admission::{Admission, admit_page};
pub(super) use error::PublishError;
pub(super) use split::Splits;

use super::{
    Context, Front, Reply, ReplyInfo, Target, client,
    reply::{add_common_fields, put_page},
};
use crate::http::Kind;
use body::PublishedBody;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use millpond_http::{request::Request, wire::Upload};
use millpond_stream::{LiveRequest, PublishRequest, PublishedMedia};
use split::{Joined, SplitName};
use std::time::Instant;
use upload::UploadFormat;

/// Tells whether a request pushes a stream, so that its body must be read.
pub(crate) fn takes_body(front: &Front, request: &Request, target: &Target) -> bool {
    matches!(request.method, Method::PUT | Method::POST)
        && front.place_of(target).is_some_and(|place| front.sources.is_published(place.name))
}

/// Takes the stream that a request pushes, up to its end.
pub(crate) async fn publish(context: &Context<'_>, upload: &mut impl Upload) -> (Reply, ReplyInfo) {
    let Context { front, request, target, .. } = *context;
    let mut info = front.info(Kind::Stream);
    let began = Instant::now();
    let counted = front.gates().count_request(context.client(), front.now());
    let mut reply = match counted {
        Err(limited) => client::limited(info.id, limited),
        Ok(()) => match receive(context, upload, &mut info).await {
            Ok(()) => Reply::without_body(StatusCode::NO_CONTENT, HeaderMap::new()),
            Err(error) => error.reply(info.id, target.path()),
        },
    };
    info.waited = began.elapsed();
    put_page(request, &mut reply);
    client::add_cors(context, &mut reply.headers);
    add_common_fields(&mut reply.headers, info.id);
    (reply, info)
}

async fn receive(context: &Context<'_>, upload: &mut impl Upload, info: &mut ReplyInfo) -> Result<(), PublishError> {
    let Context { front, request, target, .. } = *context;
    // Browsers send requests of any page, also from this machine, and with passwords that they know.
    if request.headers.contains_key(header::ORIGIN) {
        return Err(PublishError::Page);
    }
    let name = SplitName::parse(target.path());
    let of_stream = name.map_or(target.path(), |name| name.stream);
    let admitted = admission::admit(context, of_stream, info).await?;
    let coding = request.headers.get(header::CONTENT_ENCODING);
    if coding.is_some_and(|coding| coding.as_bytes() != b"identity") {
        return Err(PublishError::Coding);
    }
    if name.is_none() {
        admitted.check_taken(front)?;
    }
    let Admission { stream, conflict, patience } = admitted;
    let mut body = PublishedBody { upload, patience, front, conflict };
    match name {
        Some(name) => receive_track(stream, name.track, &mut body).await,
        None => receive_file(stream, &mut body).await,
    }
}

/// Takes a stream with all of its tracks.
async fn receive_file(stream: LiveRequest, body: &mut PublishedBody<'_, impl Upload>) -> Result<(), PublishError> {
    let (format, first) = body.begin().await?;
    let media = match format {
        UploadFormat::Transport => PublishedMedia::Transport,
        UploadFormat::Fragments => PublishedMedia::Fragments { is_split: false },
    };
    let request = PublishRequest { stream, media, conflict: body.conflict };
    let publication = body.front.sources.manager().publish(request)?;
    body.pass(&publication, 0, first).await
}

/// Takes a track, or some segments of one. Tracks of one name join one stream.
async fn receive_track(
    stream: LiveRequest,
    track: &str,
    body: &mut PublishedBody<'_, impl Upload>,
) -> Result<(), PublishError> {
    let (format, first) = body.begin().await?;
    if format == UploadFormat::Transport {
        return Err(PublishError::SplitTransport);
    }
    let (front, conflict) = (body.front, body.conflict);
    let publish = |stream: LiveRequest| {
        let media = PublishedMedia::Fragments { is_split: true };
        let request = PublishRequest { stream, media, conflict };
        front.sources.manager().publish(request)
    };
    let slot = match front.lasting.splits.join(stream, track, publish)? {
        Joined::Slot(slot) => slot,
        Joined::Taken => return Err(PublishError::TrackTaken(track.to_owned())),
        Joined::TooMany(most) => return Err(PublishError::TooManyTracks(most)),
    };
    slot.publication().push(slot.channel(), Bytes::new()).await?;
    let result = body.pass(slot.publication(), slot.channel(), first).await;
    // The next segment of the track follows in another request.
    slot.leave(body.patience);
    result
}
