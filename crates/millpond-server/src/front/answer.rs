//! The front end: one request in, one reply out.

use super::{
    Note, Reply, Request, api, caching,
    conditional::{self, Validators, Verdict},
    range::{self, Asked},
    render,
    renderer::Renderer,
    viewers::{Receipt, Viewers, Visit},
};
use crate::{
    delivery::{Body, SendError},
    library::{
        Asset, Library, LibraryError, Places, Resource, Route, content_type as content_type_of, is_manifest, is_media,
    },
    logging::RequestId,
    metrics::{Kind, Metrics, PlaceBytes},
    problem::{self, Problem},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use millpond_store::{ErrorKind, Object, ObjectPath, Store, Whence, schedule::Mode};
use std::{
    borrow::Cow,
    net::SocketAddr,
    sync::Arc,
    time::{Instant, SystemTime},
};

/// Settings of the front end.
pub(crate) struct FrontOptions {
    /// Value of `Access-Control-Allow-Origin`.
    pub(crate) cors_origin: Option<HeaderValue>,
    /// Whether each request is logged.
    pub(crate) access_log: bool,
    /// The cache folder.
    pub(crate) folder: std::path::PathBuf,
}

/// Answers requests.
pub(crate) struct Front {
    pub(super) store: Store,
    pub(super) library: Arc<Library>,
    pub(super) places: Places,
    /// Counters of bytes out, place by place.
    out: Vec<Option<PlaceBytes>>,
    metrics: Arc<Metrics>,
    options: FrontOptions,
    pub(super) renderer: Arc<Renderer>,
    viewers: Arc<Viewers>,
}

/// Something that can be sent, before its body is made.
struct Found {
    content_type: HeaderValue,
    cache_control: HeaderValue,
    etag: String,
    modified: Option<SystemTime>,
    /// What else the origin says of a file: its disposition, language and coding.
    more: Vec<(HeaderName, HeaderValue)>,
    body: Body,
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
        Self { store, library, places, out, metrics, options, renderer, viewers: Viewers::new() }
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
    pub(crate) fn refusal(&self, status: StatusCode, why: &str) -> Reply {
        let id = RequestId::next();
        let mut reply = self.problem(id, Problem::new(status).detail(why));
        self.common_headers(&mut reply.headers, id);
        reply
    }

    /// Somebody connects.
    pub(crate) fn visit(&self, peer: SocketAddr) -> Visit {
        self.viewers.visit(peer.ip())
    }

    /// Answers a request. Its body is made while it is sent; [`done`](Self::done) is called after.
    pub(crate) async fn handle(&self, request: &Request, visit: &Visit, started: Instant) -> (Reply, Note) {
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
        self.metrics.first_byte(note.kind, started.elapsed());
        (reply, note)
    }

    /// Notes the end of a request in the log and the counters.
    pub(crate) fn done(
        &self,
        note: Note,
        request: &Request,
        peer: SocketAddr,
        status: StatusCode,
        started: Instant,
        sent: &Result<u64, SendError>,
    ) {
        let elapsed = started.elapsed();
        let bytes = *sent.as_ref().unwrap_or(&0);
        self.metrics.request(note.kind, status, elapsed);
        self.metrics.sent(note.kind, note.place.as_ref(), bytes);
        match sent {
            Err(SendError::Body(error)) => {
                self.metrics.response_broken();
                tracing::error!(id = %note.id, %peer, uri = %request.target, %error, "response broken off");
            }
            Err(SendError::Client(error)) => {
                tracing::debug!(id = %note.id, %peer, uri = %request.target, %error, "client left");
            }
            Ok(_) if self.options.access_log => {
                let us = elapsed.as_micros() as u64;
                tracing::info!(id = %note.id, %peer, method = %request.method, uri = %request.target, status = status.as_u16(), bytes, us, "request");
            }
            Ok(_) => {}
        }
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
            return match self.page(&path, query).await {
                Ok(found) => self.send(request, found),
                Err(error) => self.failure(note.id, &path, &error),
            };
        }
        if request.contains(HeaderName::from_static("cdn-loop"), millpond_store::loop_id()) {
            return self.failure(note.id, &path, &LibraryError::Loop(path.to_string()));
        }
        if request.contains(header::CACHE_CONTROL, "only-if-cached") {
            return match self.cached(&path, request, note) {
                Ok(found) => self.send(request, found),
                Err(error) => self.failure(note.id, &path, &error),
            };
        }
        match self.find(&path, request, visit, note).await {
            Ok(found) => self.send(request, found),
            Err(error) => self.failure(note.id, &path, &error),
        }
    }

    async fn page(&self, path: &str, query: &str) -> Result<Found, LibraryError> {
        let (content_type, cache_control, body) = api::answer(self, path, query).await?;
        let etag = format!("\"{:016x}\"", crate::library::fingerprint(&body));
        Ok(Found {
            content_type: HeaderValue::from_static(content_type),
            cache_control: HeaderValue::from_static(cache_control),
            etag,
            modified: None,
            more: Vec::new(),
            body: Body::bytes(body),
        })
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
        let Some(route) = Route::parse(inside) else { return self.file(place, inside, request, visit).await };
        let name = route.asset.rsplit('/').next().unwrap_or("");
        let certain = is_media(name) || is_manifest(name) || name.ends_with(".urlset");
        match self.library.open(place, &route.asset).await {
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
                self.resource(&asset, route.resource, form, fresh).await
            }
            // A folder with ready-made playlists in it is passed through.
            Err(LibraryError::NoAsset(_)) if !certain => self.file(place, inside, request, visit).await,
            Err(error @ LibraryError::TooMany { .. }) if !certain => {
                self.file(place, inside, request, visit).await.map_err(|_| error)
            }
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
        if self.store.prefetch_mode() == Mode::Full {
            for object in &asset.objects {
                self.store.fill(object).await?;
            }
            return Ok(None);
        }
        let (program, stays) = who(request);
        Ok(visit.asks(&self.store, asset, resource, program, stays))
    }

    async fn resource(
        &self,
        asset: &Arc<Asset>,
        resource: Resource,
        form: render::Form,
        fresh: bool,
    ) -> Result<Found, LibraryError> {
        let permission = asset.permission(&self.store);
        let found = |body| Found {
            content_type: HeaderValue::from_static(form.content_type),
            cache_control: caching::made(form.max_age, &permission),
            etag: format!("\"{:016x}\"", asset.id),
            modified: asset.modified,
            more: Vec::new(),
            body,
        };
        Ok(found(self.renderer.body(asset, resource, fresh).await?))
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
        if here { Ok(self.as_it_is(&object, inside)) } else { Err(absent()) }
    }

    /// A file as it is.
    async fn file(&self, place: &str, inside: &str, request: &Request, visit: &Visit) -> Result<Found, LibraryError> {
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
        if self.store.prefetch_mode() == Mode::Full {
            self.store.fill(&object).await?;
        }
        Ok(self.as_it_is(&object, path.file_name()))
    }

    fn as_it_is(&self, object: &Arc<Object>, name: &str) -> Found {
        let meta = object.meta();
        let told = meta.content_type.as_deref().filter(|told| !is_unspecific(told, name));
        let content_type = told.and_then(|told| HeaderValue::from_str(told).ok());
        let etag = match &meta.etag {
            Some(etag) if is_etag(etag) => etag.clone(),
            _ => format!("\"{:016x}\"", crate::library::fingerprint(meta.version.as_str().as_bytes())),
        };
        let more = [
            (header::CONTENT_DISPOSITION, &meta.content_disposition),
            (header::CONTENT_LANGUAGE, &meta.content_language),
            (header::CONTENT_ENCODING, &meta.content_encoding),
        ];
        let more =
            more.into_iter().filter_map(|(name, said)| Some((name, HeaderValue::from_str(said.as_ref()?).ok()?)));
        Found {
            content_type: content_type.unwrap_or(HeaderValue::from_static(content_type_of(name))),
            cache_control: caching::passed(&self.store.permission(object)),
            etag,
            modified: meta.modified,
            more: more.collect(),
            body: Body::object(&self.store, object, 0..meta.len),
        }
    }

    /// Applies preconditions and ranges, and writes the header fields.
    fn send(&self, request: &Request, found: Found) -> Reply {
        let mut headers = HeaderMap::with_capacity(16);
        let now = Validators { etag: &found.etag, modified: found.modified };
        let verdict = conditional::evaluate(request, &now);
        // Range is defined for GET alone (RFC 9110 14.2).
        let ranged = request.method == Method::GET && conditional::range_applies(request, &now);
        let range = request.single(header::RANGE).value().filter(|_| ranged);
        insert(&mut headers, header::ETAG, &found.etag);
        headers.insert(header::CACHE_CONTROL, found.cache_control);
        if let Some(modified) = found.modified {
            insert(&mut headers, header::LAST_MODIFIED, &httpdate::fmt_http_date(modified));
        }
        match verdict {
            Verdict::NotModified => return Reply { status: StatusCode::NOT_MODIFIED, headers, body: Body::empty() },
            Verdict::Failed => return Reply { status: StatusCode::PRECONDITION_FAILED, headers, body: Body::empty() },
            Verdict::Send => {}
        }
        headers.insert(header::CONTENT_TYPE, found.content_type);
        headers.extend(found.more);
        let Some(len) = found.body.len() else { return Reply { status: StatusCode::OK, headers, body: found.body } };
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        match range::parse(range, len) {
            Asked::Whole => Reply { status: StatusCode::OK, headers, body: found.body },
            Asked::Part(part) => {
                insert(&mut headers, header::CONTENT_RANGE, &format!("bytes {}-{}/{len}", part.start, part.end - 1));
                Reply { status: StatusCode::PARTIAL_CONTENT, headers, body: found.body.slice(part) }
            }
            Asked::Unsatisfiable => {
                insert(&mut headers, header::CONTENT_RANGE, &format!("bytes */{len}"));
                for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::CONTENT_DISPOSITION] {
                    headers.remove(name);
                }
                Reply { status: StatusCode::RANGE_NOT_SATISFIABLE, headers, body: Body::empty() }
            }
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
        insert(headers, header::DATE, &httpdate::fmt_http_date(SystemTime::now()));
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

fn insert(headers: &mut HeaderMap, name: http::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
