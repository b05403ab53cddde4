//! The HTTP front end: one request in, one reply out.

use super::{ConnectionViewers, ReplyInfo, Served, Target, lasting::Lasting, reply::CacheControl};
use crate::{
    audience::Audience,
    cluster::Cluster,
    http::{
        HttpMetrics, Kind, Lifetimes,
        render::{CodedTexts, Renderer},
    },
    library::{Catalogue, Library, LibraryError, PlacePath, Places},
    live::Sources,
    schedule::Schedules,
    storage::PlaceBytes,
    webrtc::WebRtc,
};
use millpond_access::{ClientHold, CorsOrigins, Gates, Pass, Publishers};
use millpond_connections::proxies::{ConnectionClient, Forwarded};
use millpond_http::request::Request;
use millpond_logging::RequestId;
use millpond_package::{FilterSource, TrackFilter};
use millpond_store::Store;
use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

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
    /// Filters of manifests with their owners, per place.
    pub(crate) filters: Vec<(FilterSource, TrackFilter)>,
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
    /// WebRTC; `None` where it is off.
    pub(crate) webrtc: Option<Arc<WebRtc>>,
    /// Streams that play at given times.
    pub(crate) schedules: Arc<Schedules>,
}

/// The HTTP front end.
pub(crate) struct Front {
    pub(super) store: Store,
    pub(super) library: Arc<Library>,
    /// Names that searches look through.
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) places: Places,
    pub(super) sources: Arc<Sources>,
    /// Facts about replies, per place.
    replies: Vec<PlaceReplies>,
    pub(super) metrics: Arc<HttpMetrics>,
    options: FrontOptions,
    /// State that the front end of the next configuration shares.
    pub(super) lasting: Arc<Lasting>,
}

/// Facts about the replies of a place.
struct PlaceReplies {
    /// Counter of sent bytes.
    sent: PlaceBytes,
    /// Values of `Cache-Control`.
    cache_control: CacheControl,
    /// Filter of manifests, with its owner.
    filter: (FilterSource, TrackFilter),
}

impl Front {
    /// Creates the front end of a configuration. It shares its [`Lasting`] state with the one `before` it.
    pub(crate) fn new(
        store: Store,
        library: Arc<Library>,
        places: Places,
        sources: Arc<Sources>,
        metrics: Arc<HttpMetrics>,
        options: FrontOptions,
        before: Option<&Self>,
    ) -> Self {
        let of_place =
            |((place, lifetimes), filter): ((&Arc<str>, &Lifetimes), &(FilterSource, TrackFilter))| PlaceReplies {
                sent: metrics.place(place),
                cache_control: CacheControl::new(*lifetimes),
                filter: filter.clone(),
            };
        let replies = places.iter().zip(&options.lifetimes).zip(&options.filters).map(of_place).collect();
        let (catalogue, lasting) = match before {
            Some(before) => (before.catalogue.again(options.search_folders), before.lasting.clone()),
            None => {
                let renderer =
                    Renderer::new(store.clone(), library.clone(), options.folder.clone(), options.has_thumbnails);
                let coded_texts = CodedTexts::new(store.memory(), library.pool().clone());
                let lasting = Arc::new(Lasting::new(renderer, coded_texts));
                (Catalogue::new(library.clone(), options.search_folders), lasting)
            }
        };
        Self { store, library, catalogue, places, sources, replies, metrics, options, lasting }
    }

    /// Returns the store that all media is read through.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the error of a path outside of all places, which names them.
    pub(crate) fn without_place(&self, path: &str) -> LibraryError {
        let names: Vec<&str> = self.places.iter().map(|place| &**place).collect();
        LibraryError::NoAsset(format!("{path}: no such place: there are {}", names.join(", ")))
    }

    /// Returns the counters of sent bytes of its places.
    pub(crate) fn sent_bytes(&self) -> impl Iterator<Item = PlaceBytes> {
        self.replies.iter().map(|place| place.sent.clone())
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

    /// Returns the streams that play at given times.
    pub(super) fn schedules(&self) -> &Schedules {
        &self.options.schedules
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

    /// Returns WebRTC; `None` where it is off.
    pub(crate) fn webrtc(&self) -> Option<&Arc<WebRtc>> {
        self.options.webrtc.as_ref()
    }

    /// Returns the rules of access.
    pub(crate) fn gates(&self) -> &Gates {
        &self.options.gates
    }

    /// Returns the web origins whose pages may read a reply that is about no path.
    pub(super) fn cors_of_nobody(&self) -> &CorsOrigins {
        self.gates().cors(self.gates().place(""))
    }

    /// Tells whether each request is logged.
    pub(crate) fn logs_requests(&self) -> bool {
        self.options.access_log
    }

    /// Returns the values of `Cache-Control` of a place.
    pub(super) fn cache_control(&self, place: usize) -> &CacheControl {
        &self.replies[place].cache_control
    }

    /// Returns the filter of the manifests of a place.
    pub(super) fn filter(&self, place: usize) -> &TrackFilter {
        &self.replies[place].filter.1
    }

    /// Returns the owner of a place's [filter](Self::filter).
    pub(super) fn filter_source(&self, place: usize) -> FilterSource {
        self.replies[place].filter.0
    }

    /// Splits a path into its place and the path inside it.
    pub(crate) fn place<'a>(&'a self, path: &'a str) -> Option<PlacePath<'a>> {
        self.places.find(path)
    }

    /// Returns the place of a target, and the path inside it.
    pub(super) fn place_of<'a>(&'a self, target: &'a Target) -> Option<PlacePath<'a>> {
        target.place(&self.places)
    }

    /// The time of the server's clock.
    pub(super) fn now(&self) -> Duration {
        self.sources.manager().clock().elapsed()
    }

    /// Ends streams that have no end of their own, because the server stops.
    pub(crate) fn end_streams(&self) {
        self.lasting.stop.send_replace(true);
    }

    /// Tells whether the server stops.
    pub(super) fn is_stopping(&self) -> bool {
        *self.lasting.stop.borrow()
    }

    /// Notes that the server ends responses in progress.
    pub(crate) fn cut(&self) {
        self.lasting.is_cut.store(true, Ordering::Relaxed);
    }

    /// Tells whether the server ends responses in progress.
    pub(crate) fn is_cut(&self) -> bool {
        self.lasting.is_cut.load(Ordering::Relaxed)
    }

    /// Notes who a request is from, where a trusted proxy tells it, or another node.
    pub(crate) fn note_client(&self, request: &mut Request, peer: SocketAddr, is_of_node: bool) {
        request.forwarded = match is_of_node {
            true => Forwarded::by_node(&request.headers),
            false => self.gates().proxies().forwarded(peer.ip(), &request.headers),
        };
    }

    /// Registers a new connection.
    pub(crate) fn connected(&self, client: ConnectionClient) -> ConnectionViewers {
        self.lasting.viewers.connected(client.address.ip(), client.kind)
    }

    /// Attributes a reply to a place and a kind, in metrics.
    pub(super) fn attribute(&self, place: usize, kind: Kind, info: &mut ReplyInfo) {
        info.place = self.replies.get(place).map(|place| place.sent.clone());
        info.kind = kind;
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
            in_flight: Some(self.metrics.response_in_flight()),
            receipt: None,
            is_of_node: false,
            pass: Pass::default(),
            hold: ClientHold::default(),
        }
    }
}
