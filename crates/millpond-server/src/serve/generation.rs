//! Everything that is made from one configuration, and replaced by the next.

use super::{Parts, ServeError, live_places};
use crate::{
    admin::{AdminGate, AllowedHosts},
    config::{Config, PlaceConfig},
    http::{Front, FrontOptions, Served, Thumbnails},
    library::Places,
    live::{Sources, window_options},
    rtmp::Rtmp,
    rtsp::{Rtsp, RtspOptions},
    srt::Srt,
};
use millpond_access::Gates;
use millpond_connections::BindError;
use millpond_package::{FilterSource, TrackFilter};
use std::sync::Arc;

/// Name of the place of the bundled sample, which is served where no place is configured.
pub(super) const SAMPLE: &str = "sample";

/// Everything that is made from one configuration. Requests and sessions end with the generation that they began with.
pub(crate) struct Generation {
    pub(crate) config: Config,
    pub(crate) places: Places,
    pub(crate) gates: Arc<Gates>,
    pub(crate) sources: Arc<Sources>,
    pub(crate) front: Arc<Front>,
    pub(crate) rtsp: Arc<Rtsp>,
    pub(crate) rtmp: Arc<Rtmp>,
    pub(crate) srt: Arc<Srt>,
    /// Rules of the admin address.
    pub(crate) gate: AdminGate,
}

/// Whether nodes take live streams from each other. A node that asks for passwords admits others by their pass or certificate only.
pub(super) fn feeds_nodes(config: &Config) -> bool {
    let cluster = &config.cluster;
    let admits_nodes = cluster.secret.is_some() || cluster.node_listen.is_some();
    cluster.is_on() && (config.rtsp.users.is_none() || admits_nodes)
}

/// Returns the names of all places, in the order of the configuration.
pub(super) fn place_names(config: &Config) -> Vec<Arc<str>> {
    match config.places.as_slice() {
        [] => vec![Arc::from(SAMPLE)],
        places => places.iter().map(|place| Arc::from(place.spec.name.as_str())).collect(),
    }
}

impl Generation {
    /// Makes the generation of a configuration that follows the one `before`. `served` are the addresses of players.
    /// Nothing of it is in force yet.
    ///
    /// # Errors
    /// A file, URL or value that can't be used.
    pub(super) fn new(
        parts: &Parts,
        config: &Config,
        served: Served,
        before: Option<&Self>,
    ) -> Result<Self, ServeError> {
        let places = Places::new(place_names(config));
        let own: Vec<_> = config.places.iter().map(|place| &place.access).collect();
        // The built-in sample has the rules of the server.
        let own = if own.is_empty() { vec![&config.access; places.iter().count()] } else { own };
        let nodes = parts.cluster.as_ref().map(|cluster| cluster.addresses().clone()).unwrap_or_default();
        let gates = Gates::open(
            places.clone(),
            (&own, &config.access),
            (&config.client_limits, &nodes, &config.proxies),
            &parts.metrics.access,
            before.map(|before| &*before.gates),
        );
        let gates = Arc::new(gates.map_err(|error| ServeError::Access(error.to_string()))?);
        let window = |place: &PlaceConfig| window_options(&place.live, &place.manifests.captions);
        let windows = config.places.iter().map(window).collect();
        let (assets, live) = ((parts.library.clone(), places.clone()), live_places(config)?);
        let sources = Sources::new(assets, live, windows, &config.rtsp.channels, parts.manager.clone());
        let sources = Arc::new(
            sources.with_cluster(parts.cluster.clone(), feeds_nodes(config)).with_copies(parts.copies.clone()),
        );
        let http_port = served.http.or(served.https).map(|address| address.port());
        let rtsp = Self::rtsp(parts, config, (&sources, &gates, http_port), before)?;
        let rtmp_before = before.map(|before| &*before.rtmp);
        let (limits, metrics) = (&config.limits, &parts.metrics.rtmp);
        let means = (sources.clone(), rtsp.publishers(), gates.clone());
        let rtmp = Rtmp::new(means, limits, config.log.access.is_on(), metrics, rtmp_before);
        let means = (sources.clone(), rtsp.publishers(), gates.clone());
        let srt = Srt::new(means, &config.srt, config.log.access.is_on());
        let options = FrontOptions {
            access_log: config.log.access.is_on(),
            folder: config.storage.folder.clone(),
            lifetimes: lifetimes(config, &places),
            filters: filters(config, &places),
            publishers: rtsp.publishers(),
            gates: gates.clone(),
            cluster: parts.cluster.clone(),
            served,
            has_thumbnails: config.http.thumbnails != Thumbnails::Off,
            search_folders: config.http.search_folders,
            key_origins: key_origins(&config.places),
            audience: parts.audience.clone(),
            webrtc: parts.webrtc.clone(),
            schedules: parts.schedules.clone(),
        };
        let (store, library) = (parts.store.clone(), parts.library.clone());
        let http = parts.metrics.http.clone();
        let front_before = before.map(|before| &*before.front);
        let front = Front::new(store, library, places.clone(), sources.clone(), http, options, front_before);
        let hosts = config.admin.address.tcp().map(|address| AllowedHosts::new(address, &config.admin.hosts));
        let gate = AdminGate { hosts, token: config.admin.token.clone() };
        if gate.hosts.is_some() && gate.token.is_none() && rustix::process::geteuid().is_root() {
            let why = "every user of this machine can change the configuration of a server that runs as root: set admin-token-file, \
                       or admin = \"unix:/run/millpond/admin.sock\", or run it as another user";
            tracing::warn!(address = %config.admin.address, why, "the admin address needs no token");
        }
        let (config, front) = (config.clone(), Arc::new(front));
        Ok(Self { config, places, gates, sources, front, rtsp, rtmp, srt, gate })
    }

    fn rtsp(
        parts: &Parts,
        config: &Config,
        (sources, gates, http_port): (&Arc<Sources>, &Arc<Gates>, Option<u16>),
        before: Option<&Self>,
    ) -> Result<Arc<Rtsp>, ServeError> {
        let options = RtspOptions {
            gates: gates.clone(),
            settings: config.rtsp.clone(),
            publish: config.publish.clone(),
            limits: config.limits,
            access_log: config.log.access.is_on(),
            http_port,
        };
        let means = (sources.clone(), parts.cluster.clone());
        let rtsp = Rtsp::new(means, options, &parts.metrics.rtsp, before.map(|before| &*before.rtsp));
        rtsp.map_err(|error| BindError { flag: "rtsp", addr: config.rtsp.address, error, hint: "" }.into())
    }

    /// Names of the places whose media is stored.
    pub(super) fn stored(&self) -> impl Iterator<Item = &Arc<str>> {
        self.places.iter().filter(|place| !self.sources.is_live(place))
    }

    /// The settings of a place; `None` for the sample.
    pub(super) fn place(&self, name: &str) -> Option<&PlaceConfig> {
        crate::reload::place(&self.config, name)
    }
}

fn lifetimes(config: &Config, places: &Places) -> Vec<crate::http::Lifetimes> {
    match config.places.as_slice() {
        [] => vec![config.lifetimes; places.iter().count()],
        places => places.iter().map(|place| place.lifetimes).collect(),
    }
}

/// Filters of the manifests of each place, with their owners.
fn filters(config: &Config, places: &Places) -> Vec<(FilterSource, TrackFilter)> {
    match config.places.as_slice() {
        [] => vec![(FilterSource::Server, config.manifests.filter.clone()); places.iter().count()],
        places => {
            let of = |place: &PlaceConfig| {
                let source = if place.has_own_filter { FilterSource::Place } else { FilterSource::Server };
                (source, place.manifests.filter.clone())
            };
            places.iter().map(of).collect()
        }
    }
}

/// Origins of the servers that keys come from, each once.
fn key_origins(places: &[PlaceConfig]) -> Vec<String> {
    let addresses = places.iter().filter_map(|place| place.key_address.as_ref()?.origin());
    let mut origins: Vec<String> = addresses.map(str::to_owned).collect();
    origins.sort_unstable();
    origins.dedup();
    origins
}
