//! PUT and POST: streams that publishers push by HTTP, as MPEG-TS or fragmented MP4.

use super::{
    Front, Reply, ReplyInfo, Upload, UploadError, plain,
    split::{Joined, SplitName},
    upload::{self, UploadFormat},
};
use crate::{
    access::{Asker, AuthAction, Hold, HttpClient, HttpRefusal, Pass, Publishers, Refusal, TooManyGuesses},
    http::{Kind, request::Request},
    library::LibraryError,
    logging::RequestId,
    problem::{self, Problem},
    uri,
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_stream::{
    LiveRequest, Publication, PublicationEnd, PublishRefused, PublishRequest, PublishedMedia, Source,
    reception::SourceErrorKind,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

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

impl Front {
    /// Tells whether a request pushes a stream, so that its body must be read.
    pub(crate) fn takes_body(&self, request: &Request) -> bool {
        matches!(request.method, Method::PUT | Method::POST)
            && uri::decode_path(request.split().0)
                .and_then(|path| Some(self.sources.is_published(self.place(&path)?.1)))
                .unwrap_or(false)
    }

    /// Takes the stream that a request pushes, up to its end. Its client is `peer`; `is_secure` tells whether it is connected
    /// over TLS.
    pub(crate) async fn publish(
        &self,
        request: &Request,
        (peer, is_secure): (SocketAddr, bool),
        upload: &mut impl Upload,
    ) -> (Reply, ReplyInfo) {
        let mut info = ReplyInfo {
            id: RequestId::next(),
            kind: Kind::Stream,
            place: None,
            first_byte: None,
            waited: Duration::ZERO,
            counts_itself: false,
            _in_flight: self.metrics.response_in_flight(),
            receipt: None,
            pass: Pass::default(),
            hold: Hold::default(),
        };
        let path = uri::decode_path(request.split().0).unwrap_or_default();
        let began = Instant::now();
        let counted = self.gates().count_request(request.client(peer.ip()), self.now());
        let mut reply = match counted {
            Err(limited) => self.limited(info.id, limited),
            Ok(()) => match self.receive(&path, request, (peer, is_secure), upload, &mut info).await {
                Ok(()) => Reply::without_body(StatusCode::NO_CONTENT, HeaderMap::new()),
                Err(error) => self.refuse(info.id, &path, &error),
            },
        };
        info.waited = began.elapsed();
        plain::put(request, &mut reply);
        self.add_cors(request, &mut reply.headers);
        self.add_common_headers(&mut reply.headers, info.id);
        (reply, info)
    }

    fn refuse(&self, id: RequestId, path: &str, error: &PublishError) -> Reply {
        let status = error.status();
        tracing::info!(%id, path, status = status.as_u16(), %error, "publication ends");
        let problem = Problem::new(status).detail(error.to_string()).asset(path.trim_start_matches('/'));
        let mut reply = self.problem(id, problem);
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

    async fn receive(
        &self,
        path: &str,
        request: &Request,
        (peer, is_secure): (SocketAddr, bool),
        upload: &mut impl Upload,
        info: &mut ReplyInfo,
    ) -> Result<(), PublishError> {
        let publishers = self.publishers().ok_or(PublishError::NotPublished)?;
        // Browsers send requests of any page, also from this machine, and with passwords that they know.
        if request.headers.contains_key(header::ORIGIN) {
            return Err(PublishError::Page);
        }
        let written = request.written_target();
        let asked = HttpClient {
            address: request.client(peer.ip()),
            is_secure: request.is_secure(is_secure),
            method: request.method.as_str(),
            target: &written,
            is_forwarded: request.forwarded.is_some(),
            authorization: request.header(header::AUTHORIZATION),
        };
        let asker = Asker {
            address: asked.address,
            action: AuthAction::Publish,
            protocol: if asked.is_secure { "https" } else { "http" },
            token: request.token.as_deref(),
            query: request.split().1,
            authorization: asked.authorization,
            agent: request.header(header::USER_AGENT),
        };
        let of_stream = SplitName::parse(path).map_or(path, |name| name.stream);
        match self.gates().ask_to_publish(of_stream, &asker) {
            Some(question) => drop(Box::pin(question.answer()).await?),
            None => publishers.admit_http(&asked, self.now())?,
        }
        let coding = request.headers.get(header::CONTENT_ENCODING);
        if coding.is_some_and(|coding| coding.as_bytes() != b"identity") {
            return Err(PublishError::Coding);
        }
        if let Some((place, ..)) = self.place(path) {
            self.attribute(place, Kind::Stream, info);
        }
        let name = SplitName::parse(path);
        let of_stream = name.map_or(path, |name| name.stream);
        let stream = self.sources.live(of_stream).map_err(PublishError::Name)?;
        let stream = stream.filter(|stream| stream.source == Source::Published).ok_or(PublishError::NotPublished)?;
        if name.is_none() && self.sources.manager().is_taken(&stream.path, publishers.conflict()) {
            return Err(PublishRefused::Taken.into());
        }
        let mut body = Body { upload, patience: self.sources.patience(of_stream), front: self };
        match name {
            Some(name) => self.receive_track(stream, name.track, publishers, &mut body).await,
            None => self.receive_file(stream, publishers, &mut body).await,
        }
    }

    /// Takes a stream with all of its tracks.
    async fn receive_file(
        &self,
        stream: LiveRequest,
        publishers: &Publishers,
        body: &mut Body<'_, impl Upload>,
    ) -> Result<(), PublishError> {
        let (format, first) = body.begin().await?;
        let media = match format {
            UploadFormat::Transport => PublishedMedia::Transport,
            UploadFormat::Fragments => PublishedMedia::Fragments { is_split: false },
        };
        let request = PublishRequest { stream, media, conflict: publishers.conflict() };
        let publication = self.sources.manager().publish(request)?;
        body.pass(&publication, 0, first).await
    }

    /// Takes a track, or some segments of one. Tracks of one name join one stream.
    async fn receive_track(
        &self,
        stream: LiveRequest,
        track: &str,
        publishers: &Publishers,
        body: &mut Body<'_, impl Upload>,
    ) -> Result<(), PublishError> {
        let (format, first) = body.begin().await?;
        if format == UploadFormat::Transport {
            return Err(PublishError::SplitTransport);
        }
        let publish = |stream: LiveRequest| {
            let media = PublishedMedia::Fragments { is_split: true };
            let request = PublishRequest { stream, media, conflict: publishers.conflict() };
            self.sources.manager().publish(request)
        };
        let slot = match self.splits.join(stream, track, publish)? {
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
}

/// A body, and how long it is waited for.
struct Body<'a, U> {
    upload: &'a mut U,
    patience: Duration,
    front: &'a Front,
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
