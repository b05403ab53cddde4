//! The HTTP front end: one request in, one reply out.

use super::{
    Reply, ReplyInfo,
    admission::is_page,
    caching::CacheControl,
    dates,
    ladder::Openings,
    page_network::Served,
    pathways::STEERING,
    plain,
    split::Splits,
    viewers::{ConnectionViewers, Viewers},
};
use crate::{
    access::{Gates, Hold, Pass, Publishers},
    audience::Audience,
    cluster::Cluster,
    http::{
        HttpMetrics, Kind, Lifetimes,
        body::BodyError,
        render::{AnswerError, CodedTexts, Renderer},
        request::Request,
    },
    library::{Catalogue, Library, LibraryError, Places},
    live::Sources,
    logging::RequestId,
    problem::Problem,
    storage::PlaceBytes,
    uri,
    work::Asker,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use millpond_store::{HOME_HEADER, Store};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::watch;

/// Settings of the front end.
pub(crate) struct FrontOptions {
    /// Whether each request is logged.
    pub(crate) access_log: bool,
    /// Cache folder.
    pub(crate) folder: std::path::PathBuf,
    /// Addresses that players are served at.
    pub(crate) served: Served,
    /// Lifetimes of replies, per place.
    pub(crate) lifetimes: Vec<Lifetimes>,
    /// Admission of publishers; `None` where no stream is pushed.
    pub(crate) publishers: Option<Arc<Publishers>>,
    /// Rules of access, per place.
    pub(crate) gates: Arc<Gates>,
    /// The cluster, where this server is a node of one.
    pub(crate) cluster: Option<Arc<Cluster>>,
    /// Whether thumbnails are made.
    pub(crate) has_thumbnails: bool,
    /// Folders that a search reads for each place, at most.
    pub(crate) search_folders: usize,
    /// Origins of the servers that keys of encrypted files come from.
    pub(crate) key_origins: Vec<String>,
    /// Viewers, and those that are refused.
    pub(crate) audience: Arc<Audience>,
}

/// The HTTP front end.
pub(crate) struct Front {
    pub(super) store: Store,
    pub(super) library: Arc<Library>,
    /// Names that searches look through.
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) places: Places,
    pub(super) sources: Arc<Sources>,
    /// Counters of sent bytes, per place.
    pub(super) out: Vec<Option<PlaceBytes>>,
    /// Values of `Cache-Control`, per place.
    cache_control: Vec<CacheControl>,
    pub(super) metrics: Arc<HttpMetrics>,
    options: FrontOptions,
    pub(super) renderer: Arc<Renderer>,
    pub(super) coded_texts: Arc<CodedTexts>,
    viewers: Arc<Viewers>,
    /// Streams of ladders that are being opened.
    pub(super) openings: Arc<Openings>,
    /// Streams whose tracks are pushed each on its own.
    pub(super) splits: Arc<Splits>,
    /// Whether the server ends responses in progress.
    is_cut: Arc<AtomicBool>,
    /// Turns true when the server stops. Streams without an end of their own end then.
    pub(super) stop: watch::Sender<bool>,
}

impl Front {
    /// Creates the front end of a configuration. It shares viewers, streams that are being opened, made texts and the state of
    /// shutdown with the one `before` it.
    pub(crate) fn new(
        store: Store,
        library: Arc<Library>,
        places: Places,
        sources: Arc<Sources>,
        metrics: Arc<HttpMetrics>,
        options: FrontOptions,
        before: Option<&Self>,
    ) -> Self {
        let out = places.iter().map(|place| Some(metrics.place(place))).collect();
        let cache_control = options.lifetimes.iter().map(|lifetimes| CacheControl::new(*lifetimes)).collect();
        if let Some(before) = before {
            return Self {
                store,
                library,
                catalogue: before.catalogue.again(options.search_folders),
                places,
                sources,
                out,
                cache_control,
                metrics,
                options,
                renderer: before.renderer.clone(),
                coded_texts: before.coded_texts.clone(),
                viewers: before.viewers.clone(),
                openings: before.openings.clone(),
                splits: before.splits.clone(),
                is_cut: before.is_cut.clone(),
                stop: before.stop.clone(),
            };
        }
        let catalogue = Catalogue::new(library.clone(), options.search_folders);
        let renderer = Renderer::new(store.clone(), library.clone(), options.folder.clone(), options.has_thumbnails);
        let coded_texts = Arc::new(CodedTexts::new(store.memory(), library.pool().clone()));
        Self {
            store,
            library,
            catalogue,
            places,
            sources,
            out,
            cache_control,
            metrics,
            options,
            renderer,
            coded_texts,
            viewers: Viewers::new(),
            openings: Arc::default(),
            splits: Arc::default(),
            is_cut: Arc::default(),
            stop: watch::Sender::new(false),
        }
    }

    /// Returns the store that all media is read through.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the counters of sent bytes of its places.
    pub(crate) fn sent_bytes(&self) -> impl Iterator<Item = PlaceBytes> {
        self.out.iter().flatten().cloned()
    }

    /// Returns the counters of this server.
    pub(crate) fn metrics(&self) -> &HttpMetrics {
        &self.metrics
    }

    /// Returns the ports of RTSP and of RTSP over TLS.
    pub(super) fn rtsp_ports(&self) -> (u16, Option<u16>) {
        let Served { rtsp, rtsps, .. } = self.options.served;
        (rtsp.port(), rtsps.map(|address| address.port()))
    }

    /// Returns the addresses that players are served at.
    pub(super) fn served(&self) -> Served {
        self.options.served
    }

    /// Returns the admission of publishers; `None` where no stream is pushed.
    pub(super) fn publishers(&self) -> Option<&Publishers> {
        self.options.publishers.as_deref()
    }

    /// Returns the cluster; `None` where this server is no node of one.
    pub(super) fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.options.cluster.as_ref()
    }

    /// Tells whether thumbnails are made.
    pub(super) fn has_thumbnails(&self) -> bool {
        self.options.has_thumbnails
    }

    /// Returns the origins of the servers that keys of encrypted files come from.
    pub(super) fn key_origins(&self) -> &[String] {
        &self.options.key_origins
    }

    /// Returns the viewers, and those that are refused.
    pub(crate) fn audience(&self) -> &Arc<Audience> {
        &self.options.audience
    }

    /// Returns the rules of access.
    pub(crate) fn gates(&self) -> &Gates {
        &self.options.gates
    }

    /// Tells whether each request is logged.
    pub(crate) fn logs_requests(&self) -> bool {
        self.options.access_log
    }

    /// Returns the values of `Cache-Control` of a place.
    pub(super) fn cache_control(&self, place: usize) -> &CacheControl {
        &self.cache_control[place]
    }

    /// Splits a path into its place and the path inside it. The number is that of the place.
    pub(crate) fn place<'a>(&self, path: &'a str) -> Option<(usize, &Arc<str>, &'a str)> {
        self.places.find(path)
    }

    /// The time of the server's clock.
    pub(super) fn now(&self) -> Duration {
        self.sources.manager().clock().elapsed()
    }

    /// Ends streams that have no end of their own, because the server stops.
    pub(crate) fn end_streams(&self) {
        self.stop.send_replace(true);
    }

    /// Notes that the server ends responses in progress.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Tells whether the server ends responses in progress.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Notes who a request is from, where a trusted proxy tells it.
    pub(crate) fn note_client(&self, request: &mut Request, peer: SocketAddr) {
        request.forwarded = self.gates().proxies().forwarded(peer.ip(), &request.headers);
    }

    /// Registers a new connection. `is_secure` is whether it has TLS.
    pub(crate) fn connected(&self, peer: SocketAddr, is_secure: bool) -> ConnectionViewers {
        self.viewers.connected(peer.ip(), is_secure)
    }

    /// Returns the facts about a reply that is in progress from now on.
    pub(super) fn info(&self, kind: Kind) -> ReplyInfo {
        ReplyInfo {
            id: RequestId::next(),
            kind,
            place: None,
            first_byte: None,
            waited: Duration::ZERO,
            counts_itself: false,
            _in_flight: self.metrics.response_in_flight(),
            receipt: None,
            pass: Pass::default(),
            hold: Hold::default(),
        }
    }

    /// Answers a request, body excluded: that is read while it is sent, after [`begin`](Self::begin).
    pub(crate) async fn handle(&self, request: &Request, viewers: &ConnectionViewers) -> (Reply, ReplyInfo) {
        let mut info = self.info(Kind::Other);
        let client = request.client(viewers.address());
        let counted = if self.is_of_node(request) { Ok(()) } else { self.gates().count_request(client, self.now()) };
        let mut reply = match counted {
            Err(limited) => self.limited(info.id, limited),
            Ok(()) => match request.method {
                // Clients take turns on the pool of heavy work.
                Method::GET | Method::HEAD => Asker::from(client).asks(self.get(request, viewers, &mut info)).await,
                Method::OPTIONS => self.options(info.id, request),
                _ => self.unsupported_method(info.id, &request.method),
            },
        };
        plain::put(request, &mut reply);
        self.keep_private(request, &mut reply.headers);
        self.add_cors(request, &mut reply.headers);
        self.add_common_headers(&mut reply.headers, info.id);
        (reply, info)
    }

    /// Begins the body of an answer, so that the status reports a failure to read its first bytes. A reply from an
    /// object that has changed meanwhile is made again, once.
    pub(crate) async fn begin(
        &self,
        request: &Request,
        viewers: &ConnectionViewers,
        started: Instant,
        mut answer: (Reply, ReplyInfo),
    ) -> (Reply, ReplyInfo) {
        if request.method == Method::GET
            && let Err(mut error) = answer.0.body.begin().await
        {
            if matches!(&error, BodyError::Origin(error) if error.is_changed()) {
                // The second answer counts among those of its client, in place of the first.
                answer.1.hold = Hold::default();
                answer = self.handle(request, viewers).await;
                match answer.0.body.begin().await {
                    Ok(()) => {
                        self.first_byte(&mut answer.1, started);
                        return answer;
                    }
                    Err(again) => error = again,
                }
            }
            let path = uri::decode_path(request.split().0).unwrap_or_default();
            let asset = path.trim_start_matches('/');
            let (reply, info) = &mut answer;
            *reply = self.failure(info.id, asset, &AnswerError::of_body(asset, error));
            plain::put(request, reply);
            self.add_cors(request, &mut reply.headers);
            self.add_common_headers(&mut reply.headers, info.id);
        }
        self.first_byte(&mut answer.1, started);
        answer
    }

    /// Counts the time to the first byte, without that for which a live stream held the reply.
    fn first_byte(&self, info: &mut ReplyInfo, started: Instant) {
        info.first_byte = Some(started.elapsed());
        self.metrics.first_byte(info.kind, started.elapsed().saturating_sub(info.waited));
    }

    /// Answers GET and HEAD.
    async fn get(&self, request: &Request, viewers: &ConnectionViewers, info: &mut ReplyInfo) -> Reply {
        let (raw, query) = request.split();
        let Some(path) = uri::decode_path(raw) else {
            return self.problem(info.id, Problem::new(StatusCode::BAD_REQUEST).detail("the path is not UTF-8 text"));
        };
        if let Some(refused) = self.kicked(info.id, &path, request, request.client(viewers.address())) {
            return refused;
        }
        // A node reads objects: the rules of the page's data hold for it too.
        let is_of_node = !is_page(&path) && self.is_of_node(request);
        if !is_of_node {
            match self.admit((&path, query), request, viewers).await {
                Ok(pass) => info.pass = pass,
                Err(refused) => return self.turned_away(info.id, &path, &refused),
            }
            match self.count(&info.pass, request.client(viewers.address())) {
                Ok(hold) => info.hold = hold,
                Err(limited) => return self.limited(info.id, limited),
            }
        }
        if let Some(reply) = self.with_token_in_path(&path, query, request) {
            return reply;
        }
        let selected = if path == STEERING {
            let absent = || LibraryError::NoAsset(path.to_string()).into();
            self.steering(query, request.is_secure(viewers.is_secure())).await.ok_or_else(absent)
        } else if path == "/" || path.starts_with("/.millpond/") {
            info.kind = Kind::Page;
            self.page(&path, request, viewers).await
        } else if request.contains(HeaderName::from_static("cdn-loop"), millpond_store::loop_id()) {
            Err(AnswerError::Loop(path.to_string()))
        } else if request.contains(header::CACHE_CONTROL, "only-if-cached") {
            self.cached_file(&path, request, info)
        } else if request.headers.contains_key(HOME_HEADER) {
            self.of_home(&path, request, info).await
        } else if let Some(passed) = self.pass(&path, (request, viewers), info).await {
            return passed;
        } else if let Some(redirect) = self.redirect(&path, request, request.is_secure(viewers.is_secure())).await {
            return redirect;
        } else if let Some(live) = self.live_path(&path) {
            return match self.live(&live, request, info).await {
                Ok(reply) => reply,
                Err(error) => self.page_or_failure(info, &path, request, &error).await,
            };
        } else {
            match self.select(&path, request, viewers, info).await {
                Err(error) if error.is_changed() => self.select(&path, request, viewers, info).await,
                selected => selected,
            }
        };
        match selected {
            Ok(selected) => selected.reply(request),
            Err(error) => self.page_or_failure(info, &path, request, &error).await,
        }
    }

    /// Answers a request that failed: with the page, where a browser opens a folder or a stream.
    async fn page_or_failure(&self, info: &mut ReplyInfo, path: &str, request: &Request, error: &AnswerError) -> Reply {
        match self.page_instead(path, request, error).await {
            Some(page) => {
                info.kind = Kind::Page;
                page
            }
            None => self.failure(info.id, path, error),
        }
    }

    /// Adds the fields that every reply has.
    pub(super) fn add_common_headers(&self, headers: &mut HeaderMap, id: RequestId) {
        headers.insert(RequestId::HEADER, id.header_value());
        if let Some(now) = dates::field(SystemTime::now()) {
            headers.insert(header::DATE, now);
        }
        headers.insert(header::SERVER, HeaderValue::from_static("millpond"));
    }
}
