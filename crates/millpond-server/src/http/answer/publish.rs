//! PUT and POST: streams that publishers push by HTTP, as MPEG-TS or fragmented MP4.

use super::{
    Context, Front, Reply, ReplyInfo, Target, Upload, UploadError, admission,
    failure::problem,
    plain,
    reply::add_common_fields,
    split::{Joined, SplitName},
    upload::{self, UploadFormat},
};
use crate::{
    access::{Asker, AuthAction, HttpClient, HttpRefusal, Publishers, Refusal, TooManyGuesses},
    http::{Kind, request::Request},
    library::LibraryError,
    logging::RequestId,
    problem::{self, Problem},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_stream::{
    Conflict, LiveRequest, Publication, PublicationEnd, PublishRefused, PublishRequest, PublishedMedia, Source,
    reception::SourceErrorKind,
};
use std::time::{Duration, Instant};

/// Why a publication is refused, or ended.
#[derive(Debug, thiserror::Error)]
enum PublishError {
    #[error("{0}")]
    Name(LibraryError),
    #[error("streams of this place are not pushed")]
    NotPublished,
    #[error("a user and a password are needed to publish")]
    Challenge(Vec<String>),
    #[error("without publish-users only clients of this machine may publish")]
    Forbidden,
    #[error("Origin: web pages may not publish")]
    Page,
    #[error("auth-url does not admit this publisher")]
    Denied,
    #[error("auth-url does not answer")]
    NoAnswer,
    #[error("Authorization: {0}")]
    Credentials(String),
    #[error("{0}")]
    Guesses(TooManyGuesses),
    #[error("Content-Encoding: the body must not be compressed")]
    Coding,
    #[error("{0}")]
    Refused(#[from] PublishRefused),
    #[error("the track {0:?} of the stream has another publisher")]
    TrackTaken(String),
    #[error("more than {0} tracks")]
    TooManyTracks(usize),
    #[error(
        "expected MPEG-TS (two bytes 0x47 that are 188 bytes apart) or fragmented MP4 (ftyp, styp, moov); found {0}"
    )]
    Format(String),
    #[error("tracks on their own are fragmented MP4; found MPEG-TS")]
    SplitTransport,
    #[error("{0}")]
    Ended(#[from] PublicationEnd),
    #[error("nothing arrived for {} s", .0.as_secs_f64())]
    Stalled(Duration),
    #[error("{0}")]
    Upload(#[from] UploadError),
    #[error("the server stops")]
    Stopped,
}

impl From<HttpRefusal> for PublishError {
    fn from(refusal: HttpRefusal) -> Self {
        match refusal {
            HttpRefusal::Forbidden => Self::Forbidden,
            HttpRefusal::Malformed(why) => Self::Credentials(why),
            HttpRefusal::Challenge(challenges) => Self::Challenge(challenges),
            HttpRefusal::Guesses(many) => Self::Guesses(many),
        }
    }
}

impl From<Refusal> for PublishError {
    /// The refusal of `auth-url`.
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Credentials(challenges) => Self::Challenge(challenges),
            Refusal::NoAnswer => Self::NoAnswer,
            _ => Self::Denied,
        }
    }
}

impl PublishError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Name(error) => problem::status(error),
            Self::NotPublished | Self::Refused(PublishRefused::NotPublished) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Challenge(_) => StatusCode::UNAUTHORIZED,
            Self::Guesses(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Forbidden | Self::Page | Self::Denied => StatusCode::FORBIDDEN,
            Self::Credentials(_) | Self::Upload(_) => StatusCode::BAD_REQUEST,
            Self::Refused(PublishRefused::Taken) | Self::TrackTaken(_) | Self::Ended(PublicationEnd::Replaced) => {
                StatusCode::CONFLICT
            }
            Self::Coding | Self::Format(_) | Self::SplitTransport | Self::TooManyTracks(_) => {
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            Self::Ended(PublicationEnd::Failed(error)) => match error.kind {
                SourceErrorKind::NoMedia => StatusCode::UNSUPPORTED_MEDIA_TYPE,
                _ => StatusCode::BAD_REQUEST,
            },
            Self::Stalled(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Refused(PublishRefused::Streams(_) | PublishRefused::Source(_) | PublishRefused::HandedOver)
            | Self::Ended(PublicationEnd::Closed | PublicationEnd::HandedOver)
            | Self::NoAnswer
            | Self::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

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
        Err(limited) => admission::limited(info.id, limited),
        Ok(()) => match receive(context, upload, &mut info).await {
            Ok(()) => Reply::without_body(StatusCode::NO_CONTENT, HeaderMap::new()),
            Err(error) => refusal(info.id, target.path(), &error),
        },
    };
    info.waited = began.elapsed();
    plain::put(request, &mut reply);
    admission::add_cors(context, &mut reply.headers);
    add_common_fields(&mut reply.headers, info.id);
    (reply, info)
}

fn refusal(id: RequestId, path: &str, error: &PublishError) -> Reply {
    let status = error.status();
    tracing::info!(%id, path, status = status.as_u16(), %error, "publication ends");
    let document = Problem::new(status).detail(error.to_string()).asset(path.trim_start_matches('/'));
    let mut reply = problem(id, document);
    if let PublishError::Challenge(challenges) = error {
        for challenge in challenges.iter().filter_map(|text| HeaderValue::from_str(text).ok()) {
            reply.headers.append(header::WWW_AUTHENTICATE, challenge);
        }
    }
    if let PublishError::Guesses(many) = error {
        reply.headers.insert(header::RETRY_AFTER, many.retry_after().into());
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        reply.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    reply.is_last = matches!(
        error,
        PublishError::Refused(PublishRefused::HandedOver) | PublishError::Ended(PublicationEnd::HandedOver)
    );
    if status == StatusCode::METHOD_NOT_ALLOWED {
        reply.headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    }
    reply
}

async fn receive(context: &Context<'_>, upload: &mut impl Upload, info: &mut ReplyInfo) -> Result<(), PublishError> {
    let Context { front, request, target, .. } = *context;
    let publishers = front.publishers().ok_or(PublishError::NotPublished)?;
    // Browsers send requests of any page, also from this machine, and with passwords that they know.
    if request.headers.contains_key(header::ORIGIN) {
        return Err(PublishError::Page);
    }
    let name = SplitName::parse(target.path());
    let of_stream = name.map_or(target.path(), |name| name.stream);
    admit(context, publishers, of_stream).await?;
    let coding = request.headers.get(header::CONTENT_ENCODING);
    if coding.is_some_and(|coding| coding.as_bytes() != b"identity") {
        return Err(PublishError::Coding);
    }
    if let Some(place) = front.place_of(target) {
        front.attribute(place.index, Kind::Stream, info);
    }
    let stream = front.sources.live(of_stream).map_err(PublishError::Name)?;
    let stream = stream.filter(|stream| stream.source == Source::Published).ok_or(PublishError::NotPublished)?;
    if name.is_none() && front.sources.manager().is_taken(&stream.path, publishers.conflict()) {
        return Err(PublishRefused::Taken.into());
    }
    let mut body = Body { upload, patience: front.sources.patience(of_stream), front, conflict: publishers.conflict() };
    match name {
        Some(name) => receive_track(front, stream, name.track, &mut body).await,
        None => receive_file(front, stream, &mut body).await,
    }
}

/// Takes a stream with all of its tracks.
async fn receive_file(
    front: &Front,
    stream: LiveRequest,
    body: &mut Body<'_, impl Upload>,
) -> Result<(), PublishError> {
    let (format, first) = body.begin().await?;
    let media = match format {
        UploadFormat::Transport => PublishedMedia::Transport,
        UploadFormat::Fragments => PublishedMedia::Fragments { is_split: false },
    };
    let request = PublishRequest { stream, media, conflict: body.conflict };
    let publication = front.sources.manager().publish(request)?;
    body.pass(&publication, 0, first).await
}

/// Takes a track, or some segments of one. Tracks of one name join one stream.
async fn receive_track(
    front: &Front,
    stream: LiveRequest,
    track: &str,
    body: &mut Body<'_, impl Upload>,
) -> Result<(), PublishError> {
    let (format, first) = body.begin().await?;
    if format == UploadFormat::Transport {
        return Err(PublishError::SplitTransport);
    }
    let conflict = body.conflict;
    let publish = |stream: LiveRequest| {
        let media = PublishedMedia::Fragments { is_split: true };
        let request = PublishRequest { stream, media, conflict };
        front.sources.manager().publish(request)
    };
    let slot = match front.splits.join(stream, track, publish)? {
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

/// Checks the right of a client to publish a stream.
async fn admit(context: &Context<'_>, publishers: &Publishers, stream: &str) -> Result<(), PublishError> {
    let Context { front, request, .. } = *context;
    let written = request.written_target();
    let client = HttpClient {
        address: context.client(),
        is_secure: context.is_secure(),
        method: request.method.as_str(),
        target: &written,
        is_forwarded: request.forwarded.is_some(),
        authorization: request.header(header::AUTHORIZATION),
    };
    let asker = Asker {
        address: client.address,
        action: AuthAction::Publish,
        protocol: if client.is_secure { "https" } else { "http" },
        token: request.token.as_deref(),
        query: context.query(),
        authorization: client.authorization,
        agent: request.header(header::USER_AGENT),
    };
    match front.gates().ask_to_publish(stream, &asker) {
        Some(question) => drop(Box::pin(question.answer()).await?),
        None => publishers.admit_http(&client, front.now())?,
    }
    Ok(())
}

/// A body, and how long it is waited for.
struct Body<'a, U> {
    upload: &'a mut U,
    patience: Duration,
    front: &'a Front,
    conflict: Conflict,
}

impl<U: Upload> Body<'_, U> {
    async fn next(&mut self) -> Result<Option<Bytes>, PublishError> {
        let mut stop = self.front.stop.subscribe();
        tokio::select! {
            next = tokio::time::timeout(self.patience, self.upload.next()) => match next {
                Ok(next) => Ok(next?),
                Err(_) => Err(PublishError::Stalled(self.patience)),
            },
            _ = stop.wait_for(|stop| *stop) => Err(PublishError::Stopped),
        }
    }

    /// Reads until the format is known.
    async fn begin(&mut self) -> Result<(UploadFormat, Bytes), PublishError> {
        let mut first = BytesMut::new();
        loop {
            let next = self.next().await?;
            first.extend_from_slice(next.as_deref().unwrap_or_default());
            if let Some(format) = upload::format(&first, next.is_none()).map_err(PublishError::Format)? {
                return Ok((format, first.freeze()));
            }
        }
    }

    /// Gives all bytes to a publication.
    async fn pass(&mut self, publication: &Publication, channel: u8, first: Bytes) -> Result<(), PublishError> {
        let mut piece = Some(first);
        while let Some(bytes) = piece {
            publication.push(channel, bytes).await?;
            piece = self.next().await?;
        }
        Ok(publication.taken().await?)
    }
}
