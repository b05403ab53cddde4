//! The front end: one request in, one reply out.

use super::{
    Note, Reply, Request, api,
    caching::CacheControl,
    coding::Coding,
    dates,
    encodings::{Encodings, Text},
    found::{Coded, Found, etag},
    range::{self, Asked},
    render,
    renderer::{Renderer, broken},
    viewers::{Receipt, Viewers, Visit},
};
use crate::{
    config::Lifetimes,
    delivery::{Body, BodyError},
    library::{
        Asset, Library, LibraryError, Places, Resource, Route, content_type as content_type_of, fingerprint,
        is_manifest, is_media,
    },
    logging::RequestId,
    metrics::{Kind, Metrics, PlaceBytes},
    problem::{self, Problem},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use millpond_store::{ErrorKind, Object, ObjectPath, Store, Whence};
use std::{
    borrow::Cow,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

/// Settings of the front end.
pub(crate) struct FrontOptions {
    /// Value of `Access-Control-Allow-Origin`.
    pub(crate) cors_origin: Option<HeaderValue>,
    /// Whether each request is logged.
    pub(crate) access_log: bool,
    /// The cache folder.
    pub(crate) folder: std::path::PathBuf,
    /// Port of RTSP, and that of RTSP over TLS.
    pub(crate) rtsp_ports: (u16, Option<u16>),
    /// Lifetimes of replies, place by place.
    pub(crate) lifetimes: Vec<Lifetimes>,
}

/// Answers requests.
pub(crate) struct Front {
    pub(super) store: Store,
    pub(super) library: Arc<Library>,
    pub(super) places: Places,
    /// Counters of bytes out, place by place.
    out: Vec<Option<PlaceBytes>>,
    /// What `Cache-Control` says, place by place.
    cache_control: Vec<CacheControl>,
    metrics: Arc<Metrics>,
    options: FrontOptions,
    pub(super) renderer: Arc<Renderer>,
    encodings: Encodings,
    viewers: Arc<Viewers>,
    /// Whether responses under way are cut off.
    pub(super) is_cut: AtomicBool,
}

impl Front {
    pub(crate) fn new(
        store: Store,
        library: Arc<Library>,
        places: Places,
        metrics: Arc<Metrics>,
        options: FrontOptions,
    ) -> Self {
        let renderer = Renderer::new(store.clone(), library.clone(), options.folder.clone());
        let out = places.iter().map(|place| metrics.place(place)).collect();
        let cache_control = options.lifetimes.iter().map(|lifetimes| CacheControl::new(*lifetimes)).collect();
        let encodings = Encodings::new(store.memory(), library.pool().clone());
        Self {
            store,
            library,
            places,
            out,
            cache_control,
            metrics,
            options,
            renderer,
            encodings,
            viewers: Viewers::new(),
            is_cut: AtomicBool::new(false),
        }
    }

    /// The store that everything is read through.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The counters of this server.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// A reply to bytes that are no request.
    pub(crate) fn refusal(&self, status: StatusCode, why: &str, peer: SocketAddr) -> Reply {
        let id = RequestId::next();
        self.metrics.request(Kind::Other, status, Duration::ZERO);
        if self.options.access_log {
            tracing::info!(%id, %peer, status = status.as_u16(), why, "not a request");
        }
        let mut reply = self.problem(id, Problem::new(status).detail(why));
        self.common_headers(&mut reply.headers, id);
        reply
    }

    /// Somebody connects.
    pub(crate) fn visit(&self, peer: SocketAddr) -> Visit {
        self.viewers.visit(peer.ip())
    }

    /// Answers a request, as far as its head. Its body is made while it is sent, once it has [begun](Self::begin); an
    /// `Exchange` notes the end.
    pub(crate) async fn handle(&self, request: &Request, visit: &Visit) -> (Reply, Note) {
        let in_flight = self.metrics.response_in_flight();
        let mut note =
            Note { id: RequestId::next(), kind: Kind::Other, place: None, _in_flight: in_flight, receipt: None };
        let mut reply = match request.method {
            Method::GET | Method::HEAD => self.get(request, visit, &mut note).await,
            Method::OPTIONS => self.options(note.id),
            _ => {
                let why = format!("{} is not supported: GET, HEAD and OPTIONS are", request.method);
                let status = refused_method(&request.method);
                let mut reply = self.problem(note.id, Problem::new(status).detail(why));
                reply.headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
                reply
            }
        };
        self.common_headers(&mut reply.headers, note.id);
        (reply, note)
    }

    /// Port of RTSP, and that of RTSP over TLS.
    pub(super) fn rtsp_ports(&self) -> (u16, Option<u16>) {
        self.options.rtsp_ports
    }

    /// Whether each request is logged.
    pub(super) fn logs_requests(&self) -> bool {
        self.options.access_log
    }

    /// What is still sent ends now, by the server's will.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Begins the body of an answer to a request, so that a reply whose first byte can't be had says so by its status. A
    /// reply of an object that turns out to be another version by now is made anew, once.
    pub(crate) async fn begin(
        &self,
        request: &Request,
        visit: &Visit,
        started: Instant,
        mut answer: (Reply, Note),
    ) -> (Reply, Note) {
        if request.method == Method::GET
            && let Err(mut error) = answer.0.body.begin().await
        {
            if matches!(&error, BodyError::Origin(error) if error.is_changed()) {
                answer = self.handle(request, visit).await;
                match answer.0.body.begin().await {
                    Ok(()) => {
                        self.metrics.first_byte(answer.1.kind, started.elapsed());
                        return answer;
                    }
                    Err(again) => error = again,
                }
            }
            let path = percent_encoding::percent_decode_str(request.split().0).decode_utf8_lossy();
            let asset = path.trim_start_matches('/');
            let (reply, note) = &mut answer;
            *reply = self.failure(note.id, asset, &broken(asset, error));
            self.common_headers(&mut reply.headers, note.id);
        }
        self.metrics.first_byte(answer.1.kind, started.elapsed());
        answer
    }

    async fn get(&self, request: &Request, visit: &Visit, note: &mut Note) -> Reply {
        let (raw, query) = request.split();
        let path = match percent_encoding::percent_decode_str(raw).decode_utf8() {
            Ok(path) if !path.contains('\0') => path,
            _ => {
                return self
                    .problem(note.id, Problem::new(StatusCode::BAD_REQUEST).detail("the path is not UTF-8 text"));
            }
        };
        if path == "/" || path.starts_with("/.millpond/") {
            note.kind = Kind::Page;
            return match self.page(&path, query, request).await {
                Ok(found) => found.reply(request),
                Err(error) => self.failure(note.id, &path, &error),
            };
        }
        if request.contains(HeaderName::from_static("cdn-loop"), millpond_store::loop_id()) {
            return self.failure(note.id, &path, &LibraryError::Loop(path.to_string()));
        }
        if request.contains(header::CACHE_CONTROL, "only-if-cached") {
            return match self.cached(&path, request, note) {
                Ok(found) => found.reply(request),
                Err(error) => self.failure(note.id, &path, &error),
            };
        }
        let found = match self.find(&path, request, visit, note).await {
            Err(error) if error.is_changed() => self.find(&path, request, visit, note).await,
            found => found,
        };
        match found {
            Ok(found) => found.reply(request),
            Err(error) => self.failure(note.id, &path, &error),
        }
    }

    async fn page(&self, path: &str, query: &str, request: &Request) -> Result<Found, LibraryError> {
        let (content_type, cache_control, bytes) = api::answer(self, path, query).await?;
        let hash = fingerprint(&bytes);
        let mut found = Found {
            content_type: HeaderValue::from_static(content_type),
            cache_control: HeaderValue::from_static(cache_control),
            etag: etag(hash),
            modified: None,
            more: Vec::new(),
            coded: Coded::No,
            body: Body::bytes(bytes.clone()),
        };
        if let Some(coding) = Coding::preferred(request)
            && let Some(coded) = self.encodings.get(Text::Page(hash), coding, &bytes).await
        {
            (found.coded, found.body) = (Coded::As(coding), Body::bytes(coded));
        }
        Ok(found)
    }

    /// The place that a path begins with, its number, and the path inside it.
    pub(crate) fn place<'a>(&self, path: &'a str) -> Option<(usize, &Arc<str>, &'a str)> {
        self.places.find(path)
    }

    async fn find(&self, path: &str, request: &Request, visit: &Visit, note: &mut Note) -> Result<Found, LibraryError> {
        let Some((index, place, inside)) = self.place(path) else {
            let names: Vec<&str> = self.places.iter().map(|p| &**p).collect();
            return Err(LibraryError::NoAsset(format!("{path}: no such place: there are {}", names.join(", "))));
        };
        note.place = self.out.get(index).cloned().flatten();
        note.kind = Kind::File;
        let Some(route) = Route::parse(inside) else { return self.file(index, inside, request, visit).await };
        let name = route.asset.rsplit('/').next().unwrap_or("");
        let certain = is_media(name) || is_manifest(name) || name.ends_with(".urlset");
        match self.library.open_version(place, &route.asset, route.version).await {
            Ok(asset) => {
                let form = render::form(&route.resource);
                note.kind = form.kind;
                self.renderer.prepare(&asset, &route.resource).await?;
                if request.method == Method::GET {
                    note.receipt = self.watched(&asset, &route.resource, request, visit).await?;
                }
                // A client may insist on a reply made for it (RFC 9111 5.2.1.4): made media is then neither taken from
                // memory nor put there.
                let fresh = request.contains(header::CACHE_CONTROL, "no-cache");
                let permission = asset.permission(&self.store);
                let coding = Coding::preferred(request).filter(|_| form.keep && !permission.no_transform);
                let (body, coded) = self.body(&asset, route.resource, coding, fresh).await?;
                Ok(Found {
                    content_type: HeaderValue::from_static(form.content_type),
                    cache_control: self.caching(index).made(route.version.is_some(), &permission),
                    etag: etag(asset.id),
                    modified: asset.modified,
                    more: Vec::new(),
                    coded: if form.keep { coded.map_or(Coded::No, Coded::As) } else { Coded::Never },
                    body,
                })
            }
            // A folder with ready-made playlists in it is passed through.
            Err(LibraryError::NoAsset(_)) if !certain => self.file(index, inside, request, visit).await,
            Err(
                error @ (LibraryError::TooMany { .. }
                | LibraryError::NotOneTitle { .. }
                | LibraryError::OnlyForeign { .. }),
            ) if !certain => self.file(index, inside, request, visit).await.map_err(|_| error),
            Err(error) => Err(error),
        }
    }

    /// Tells the cache where a viewer is.
    async fn watched(
        &self,
        asset: &Asset,
        resource: &Resource,
        request: &Request,
        visit: &Visit,
    ) -> Result<Option<Receipt>, LibraryError> {
        for object in &asset.objects {
            self.store.prepare(object).await?;
        }
        let (program, stays) = who(request);
        Ok(visit.asks(&self.store, asset, resource, program, stays))
    }

    /// The body of a resource, and its coding where it has one: a text that is longer in the wanted one has none.
    async fn body(
        &self,
        asset: &Arc<Asset>,
        resource: Resource,
        coding: Option<Coding>,
        fresh: bool,
    ) -> Result<(Body, Option<Coding>), LibraryError> {
        let Some(coding) = coding else { return Ok((self.renderer.body(asset, resource, fresh).await?, None)) };
        let text = Text::Made(asset.id, resource.clone());
        if !fresh && let Some(Some(coded)) = self.encodings.known(&text, coding) {
            return Ok((Body::bytes(coded), Some(coding)));
        }
        let body = self.renderer.body(asset, resource, fresh).await?;
        let Some(bytes) = body.as_bytes() else { return Ok((body, None)) };
        match self.encodings.get(text, coding, &bytes).await {
            Some(coded) => Ok((Body::bytes(coded), Some(coding))),
            None => Ok((body, None)),
        }
    }

    /// What `Cache-Control` says of a place's replies.
    fn caching(&self, place: usize) -> &CacheControl {
        &self.cache_control[place]
    }

    /// A file as it is, where the range that is asked for is cached: nobody is asked for it. Sibling caches ask so.
    fn cached(&self, path: &str, request: &Request, note: &mut Note) -> Result<Found, LibraryError> {
        let absent = || LibraryError::NotCached(path.to_owned());
        let (index, place, inside) = self.place(path).ok_or_else(absent)?;
        note.place = self.out.get(index).cloned().flatten();
        note.kind = Kind::File;
        let object =
            ObjectPath::parse(inside).ok().and_then(|path| self.store.peek(place, &path)).ok_or_else(absent)?;
        let range = match range::parse(request.single(header::RANGE).value(), object.meta().len) {
            Asked::Part(part) => part,
            _ => 0..object.meta().len,
        };
        let here = self.store.whence(&object, range).iter().all(|(_, whence)| *whence != Whence::Origin);
        if here { Ok(self.as_it_is(index, &object, inside)) } else { Err(absent()) }
    }

    /// A file as it is.
    async fn file(&self, index: usize, inside: &str, request: &Request, visit: &Visit) -> Result<Found, LibraryError> {
        let place: &str = self.places.iter().nth(index).map_or("", |place| place);
        let inside = inside.trim_end_matches('/');
        if inside.is_empty() {
            return Err(LibraryError::NoAsset(place.to_owned()));
        }
        let path = ObjectPath::parse(inside)
            .map_err(|e| LibraryError::BadPath { path: inside.to_owned(), why: e.to_string() })?;
        // A HEAD needs no more than the metadata; where the last bytes are isn't known yet.
        let wanted = match range::parse(request.single(header::RANGE).value(), u64::MAX) {
            Asked::Whole if request.method == Method::GET => 0..u64::MAX,
            Asked::Part(part) if request.method == Method::GET && part.start < u64::MAX / 2 => part,
            _ => 0..1,
        };
        let object = self.store.open_for(place, &path, wanted.clone()).await?;
        if wanted.end > 1 && wanted.end < u64::MAX {
            let (program, stays) = who(request);
            visit.reads(&self.store, &object, wanted, program, stays);
        }
        self.store.prepare(&object).await?;
        Ok(self.as_it_is(index, &object, path.file_name()))
    }

    fn as_it_is(&self, index: usize, object: &Arc<Object>, name: &str) -> Found {
        let meta = object.meta();
        let told = meta.content_type.as_deref().filter(|told| !is_unspecific(told, name));
        let content_type = told.and_then(|told| HeaderValue::from_str(told).ok());
        let said = meta.etag.as_deref().filter(|etag| is_etag(etag)).and_then(|etag| HeaderValue::from_str(etag).ok());
        let etag = said.unwrap_or_else(|| etag(fingerprint(meta.version.as_str().as_bytes())));
        let more = [
            (header::CONTENT_DISPOSITION, &meta.content_disposition),
            (header::CONTENT_LANGUAGE, &meta.content_language),
            (header::CONTENT_ENCODING, &meta.content_encoding),
        ];
        let more =
            more.into_iter().filter_map(|(name, said)| Some((name, HeaderValue::from_str(said.as_ref()?).ok()?)));
        Found {
            content_type: content_type.unwrap_or(HeaderValue::from_static(content_type_of(name))),
            cache_control: self.caching(index).passed(&self.store.permission(object)),
            etag,
            modified: meta.modified,
            more: more.collect(),
            coded: Coded::Never,
            body: Body::object(&self.store, object, 0..meta.len),
        }
    }

    fn options(&self, id: RequestId) -> Reply {
        let mut headers = HeaderMap::new();
        headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, OPTIONS"));
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("*, Range, If-Range, If-None-Match"),
        );
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        headers.insert(RequestId::HEADER, id.header_value());
        Reply { status: StatusCode::NO_CONTENT, headers, body: Body::empty() }
    }

    fn failure(&self, id: RequestId, path: &str, error: &LibraryError) -> Reply {
        let status = error.status();
        if status.is_server_error() || status == StatusCode::UNPROCESSABLE_ENTITY {
            tracing::error!(%id, path, %error, "request failed");
        } else {
            tracing::debug!(%id, path, %error, "request refused");
        }
        let problem = Problem::new(status).detail(client_share(error).into_owned()).asset(path.trim_start_matches('/'));
        let mut reply = self.problem(id, problem);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            reply.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        reply
    }

    fn problem(&self, id: RequestId, problem: Problem) -> Reply {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(problem::CONTENT_TYPE));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let status = problem.status;
        Reply { status, headers, body: Body::bytes(problem.request_id(id).to_json()) }
    }

    fn common_headers(&self, headers: &mut HeaderMap, id: RequestId) {
        headers.insert(RequestId::HEADER, id.header_value());
        if let Some(now) = dates::field(SystemTime::now()) {
            headers.insert(header::DATE, now);
        }
        headers.insert(header::SERVER, HeaderValue::from_static("millpond"));
        if let Some(origin) = &self.options.cors_origin {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(
                header::ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::from_static("*, Content-Length, Content-Range, Date, ETag, X-Request-Id"),
            );
        }
    }
}

/// The status of a method that no resource has: known ones are not allowed here, others not implemented (RFC 9110 9.1).
fn refused_method(method: &Method) -> StatusCode {
    let known = [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::TRACE, Method::CONNECT];
    if known.contains(method) { StatusCode::METHOD_NOT_ALLOWED } else { StatusCode::NOT_IMPLEMENTED }
}

/// Whether a media type is what servers and buckets say where they know nothing better, and the name of the file says that
/// it is played: players want to know.
fn is_unspecific(told: &str, name: &str) -> bool {
    let bare = told.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let guessed = content_type_of(name);
    let is_played = guessed.starts_with("video/")
        || guessed.starts_with("audio/")
        || guessed.starts_with("text/vtt")
        || matches!(guessed, "application/vnd.apple.mpegurl" | "application/dash+xml");
    let is_default = matches!(bare.as_str(), "application/octet-stream" | "binary/octet-stream" | "text/plain");
    bare.is_empty() || (is_played && is_default)
}

/// Whether a text is an entity tag (RFC 9110 8.8.3), strong or weak.
fn is_etag(text: &str) -> bool {
    let opaque = text.strip_prefix("W/").unwrap_or(text);
    let inner = opaque.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.is_some_and(|inner| inner.bytes().all(|byte| byte > b' ' && byte != b'"' && byte != 0x7f))
}

/// The client's program, and whether its connection stays.
fn who(request: &Request) -> (&str, bool) {
    let stays = !request.contains(header::CONNECTION, "close");
    (request.header(header::USER_AGENT).unwrap_or_default(), stays)
}

/// What a client may read of an error: everything but where the storage is.
fn client_share(error: &LibraryError) -> Cow<'static, str> {
    use crate::library::IndexError;
    match error {
        LibraryError::Index(IndexError::Origin(error)) if error.kind() == ErrorKind::NotFound => "no such file".into(),
        LibraryError::Index(IndexError::Origin(error)) => format!("the storage failed: {}", error.kind()).into(),
        error => error.to_string().into(),
    }
}
