//! The target of a request: the page, stream, asset or file that its path names. The path is parsed once, here.
//!
//! This file is the only one of `http` that decodes paths of requests and parses their routes; a test enforces that. All others get
//! the [`Target`].

use super::Front;
use crate::{
    cluster::NODE_API,
    library::{LiveResource, LiveRoute, PlacePath, Places, Route},
    live::{PlaceOffset, Sources, StreamPath},
};
use millpond_access::{Gates, RuledPlace};
use millpond_http::request::Request;
use millpond_library::uri;
use std::{borrow::Cow, ops::Range};

/// Path of steering manifests.
pub(super) const STEERING: &str = "/.millpond/steering";
/// Path of the server's time, with which players of live DASH compare their clocks.
pub(super) const TIME: &str = "/.millpond/time";
/// Path of the server's health, for balancers.
pub(super) const HEALTH: &str = "/.millpond/health";
/// Path by which the nodes of a cluster without etcd ask each other. For all others there is no file at it.
const REGISTRY: &str = crate::cluster::GOSSIP;
/// Folder of the page's files and data.
const PAGE: &str = "/.millpond/";
/// Folder of a channel's live playlists, below the path of its asset. The asset keeps its own.
const CHANNEL: &str = "/live";

/// The target of a request, found from its path.
#[derive(Debug)]
pub(crate) struct Target {
    /// Decoded path. Empty where it is no text.
    path: String,
    /// Place that the path begins with.
    place: Option<PlacePart>,
    /// Place whose rules of access hold.
    rules: RuledPlace,
    /// Page, stream, asset or file that the path names.
    kind: TargetKind,
}

/// Kinds of targets that a path can name.
#[derive(Debug)]
pub(super) enum TargetKind {
    /// Nothing: the path is no UTF-8 text, or has a NUL.
    NoText,
    /// The page, a file of it, or its data.
    Page(PageTarget),
    /// The server's health.
    Health,
    /// The API of this node, for other nodes.
    NodeApi,
    /// The steering manifest of the asset whose path the query has.
    Steering(Option<String>),
    /// A running stream.
    Live(LiveTarget),
    /// A resource of an asset, if there is such an asset; else a file.
    Asset(Route),
    /// A file, as it is.
    File,
}

/// A part of the page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PageTarget {
    /// The document.
    Document,
    /// The list of a folder.
    Folder(String),
    /// The description of an asset or stream.
    Asset(String),
    /// The row of an asset in a list.
    Brief(String),
    /// The picture of a folder in a list, as far as the viewer may see it.
    FolderBrief(String),
    /// A list of the titles in a folder, for players.
    Titles(String, ListFormat),
    /// A search.
    Search,
    /// Addresses of the server in its network.
    Network,
    /// The server's time.
    Time,
    /// A file, if there is one at the path.
    File,
}

/// Formats of lists of titles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListFormat {
    /// M3U in UTF-8.
    M3u,
    /// XML Shareable Playlist Format.
    Xspf,
}

impl ListFormat {
    /// Returns the media type.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::M3u => "audio/x-mpegurl",
            Self::Xspf => "application/xspf+xml",
        }
    }
}

/// A running stream, and something of it.
#[derive(Debug)]
pub(super) struct LiveTarget {
    /// Index of the place.
    pub(super) place: usize,
    /// Path of the stream or channel, with its place.
    pub(super) stream: StreamPath,
    /// Whether the path is that of a stream only, and not of an asset that plays as a channel too.
    pub(super) is_source: bool,
    /// Resource of the stream; `None` where there is none of that form.
    pub(super) resource: Option<LiveResource>,
}

/// The part of a path that names a place.
#[derive(Clone, Debug)]
struct PlacePart {
    index: usize,
    name: Range<usize>,
    /// Offset of the path inside the place.
    inside: usize,
}

impl Target {
    /// Finds what a request is about.
    pub(crate) fn of(front: &Front, request: &Request) -> Self {
        let (raw, query) = request.split();
        let Some(path) = decode(raw) else {
            let rules = front.gates().place("");
            return Self { path: String::new(), place: None, rules, kind: TargetKind::NoText };
        };
        let place = PlacePart::find(&front.places, &path);
        let kind = match PageTarget::parse(&path, query) {
            Some(page) => TargetKind::Page(page),
            None if path == HEALTH => TargetKind::Health,
            None if is_node_api(&path) => TargetKind::NodeApi,
            None if path == STEERING => TargetKind::Steering(asset_to_steer(query)),
            None => TargetKind::media(&path, place.as_ref(), Some(&front.sources)),
        };
        let rules = rules(front.gates(), &path, &kind);
        Self { path: path.into_owned(), place, rules, kind }
    }

    /// Finds what an operator asks about: a decoded path of media, with or without a slash before it.
    pub(crate) fn of_media(front: &Front, path: &str) -> Self {
        Self::of_decoded(front, path, Some(&front.sources))
    }

    /// Finds what an operator asks about: as [`of_media`](Self::of_media), but nothing of running streams.
    pub(crate) fn of_stored(front: &Front, path: &str) -> Self {
        Self::of_decoded(front, path, None)
    }

    fn of_decoded(front: &Front, path: &str, sources: Option<&Sources>) -> Self {
        let place = PlacePart::find(&front.places, path);
        let kind = TargetKind::media(path, place.as_ref(), sources);
        Self { path: path.to_owned(), place, rules: front.gates().place(path), kind }
    }

    /// Returns the decoded path. It is empty where it is no text.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns what the path names.
    pub(super) fn kind(&self) -> &TargetKind {
        &self.kind
    }

    /// Returns the place whose rules of access hold: for data of the page that of the path which it is about.
    pub(super) fn rules(&self) -> RuledPlace {
        self.rules
    }

    /// Returns the place that the path begins with, and the path inside it. `places` are those of the front end that found the target.
    pub(super) fn place<'a>(&'a self, places: &'a Places) -> Option<PlacePath<'a>> {
        let index = self.place.as_ref()?.index;
        let (_, inside) = self.place_text()?;
        Some(PlacePath { index, name: places.iter().nth(index)?, inside })
    }

    /// Returns the name of the place that the path begins with, and the path inside it.
    fn place_text(&self) -> Option<(&str, &str)> {
        let PlacePart { name, inside, .. } = self.place.as_ref()?;
        Some((self.path.get(name.clone())?, self.path.get(*inside..)?))
    }

    /// Returns the route of a resource of an asset.
    pub(super) fn route(&self) -> Option<&Route> {
        match &self.kind {
            TargetKind::Asset(route) => Some(route),
            _ => None,
        }
    }

    /// Returns the running stream.
    pub(super) fn live(&self) -> Option<&LiveTarget> {
        match &self.kind {
            TargetKind::Live(live) => Some(live),
            _ => None,
        }
    }

    /// Tells whether it is the page, a file of it, or its data.
    pub(super) fn is_page(&self) -> bool {
        matches!(self.kind, TargetKind::Page(_) | TargetKind::Steering(_) | TargetKind::Health | TargetKind::NodeApi)
    }

    /// Tells whether it is the API of this node, for other nodes.
    pub(super) fn is_node_api(&self) -> bool {
        matches!(self.kind, TargetKind::NodeApi)
    }

    /// Tells whether it is the server's health.
    pub(super) fn is_health(&self) -> bool {
        matches!(self.kind, TargetKind::Health)
    }

    /// Tells whether it is what nodes of a cluster ask each other.
    pub(super) fn is_registry(&self) -> bool {
        self.path == REGISTRY
    }

    /// Returns the path that data of the page is about.
    pub(super) fn subject(&self) -> Option<&str> {
        match &self.kind {
            TargetKind::Page(page) => page.subject(),
            _ => None,
        }
    }

    /// Returns the path of the asset, stream or file.
    pub(crate) fn asset(&self) -> Cow<'_, str> {
        if let Some(live) = self.live() {
            return (&*live.stream).into();
        }
        let Some((name, inside)) = self.place_text() else { return self.path.trim_matches('/').into() };
        let inside = self.route().map_or_else(|| inside.trim_matches('/'), |route| route.asset.trim_matches('/'));
        match (name, inside) {
            ("", only) | (only, "") => only.into(),
            (name, inside) => format!("{name}/{inside}").into(),
        }
    }
}

impl TargetKind {
    /// Finds what a path of media names. Without `sources` there are no running streams.
    fn media(path: &str, place: Option<&PlacePart>, sources: Option<&Sources>) -> Self {
        let inside = place.and_then(|place| path.get(place.inside..));
        if let Some(live) = sources.and_then(|sources| LiveTarget::find(path, place, sources)) {
            return Self::Live(live);
        }
        inside.and_then(route).map_or(Self::File, Self::Asset)
    }
}

impl PageTarget {
    /// Parses a path; `None` where it is not that of the page.
    fn parse(path: &str, query: &str) -> Option<Self> {
        let parameter = |name| uri::parameter(query, name).trim_matches('/').to_owned();
        Some(match path {
            "/" => Self::Document,
            TIME => Self::Time,
            "/.millpond/assets" => Self::Folder(parameter("folder")),
            "/.millpond/asset" => Self::Asset(parameter("path")),
            "/.millpond/brief" if uri::parameter(query, "path").ends_with('/') => Self::FolderBrief(parameter("path")),
            "/.millpond/brief" => Self::Brief(parameter("path")),
            "/.millpond/all.m3u" => Self::Titles(parameter("folder"), ListFormat::M3u),
            "/.millpond/all.xspf" => Self::Titles(parameter("folder"), ListFormat::Xspf),
            "/.millpond/search" => Self::Search,
            "/.millpond/network" => Self::Network,
            STEERING | HEALTH => return None,
            _ if is_node_api(path) => return None,
            _ if path.starts_with(PAGE) => Self::File,
            _ => return None,
        })
    }

    /// Returns the path that the data is about.
    fn subject(&self) -> Option<&str> {
        match self {
            Self::Folder(path) | Self::Asset(path) | Self::Brief(path) => Some(path),
            // The list of all places has of each what its rules show.
            Self::Titles(path, _) => Some(path.as_str()).filter(|path| !path.is_empty()),
            _ => None,
        }
    }
}

impl LiveTarget {
    /// Finds the stream that a path is about; `None` for stored media.
    fn find(path: &str, place: Option<&PlacePart>, sources: &Sources) -> Option<Self> {
        let is_live = place.is_some_and(|place| path.get(place.name.clone()).is_some_and(|name| sources.is_live(name)));
        if !is_live && !sources.has_channels() {
            return None;
        }
        let (stream, resource) = match live_route(path) {
            Some(LiveRoute { stream, resource }) => (Cow::Owned(stream), Some(resource)),
            None => (Cow::Borrowed(path), None),
        };
        let named = stream.trim_matches('/');
        let list = sources.list(named);
        // All of these paths begin as `path` does, but for its slashes.
        let slashes = path.len() - path.trim_start_matches('/').len();
        let within =
            |place: &PlacePart| PlaceOffset { index: place.index, inside: place.inside.saturating_sub(slashes) };
        if let Some(index) = list.or_else(|| place.filter(|_| is_live).map(|place| place.index)) {
            let stream = StreamPath::new(named, list, place.map(within));
            return Some(Self { place: index, stream, is_source: true, resource });
        }
        let channel = match resource.as_ref()? {
            LiveResource::Long(_) => &*stream,
            _ => stream.strip_suffix(CHANNEL)?,
        };
        let place = place?;
        let stream = || StreamPath::new(channel.trim_matches('/'), None, Some(within(place)));
        sources.is_channel(channel).then(|| Self { place: place.index, stream: stream(), is_source: false, resource })
    }
}

impl PlacePart {
    fn find(places: &Places, path: &str) -> Option<Self> {
        let PlacePath { index, name, inside } = places.find(path)?;
        let start = path.len() - path.strip_prefix('/').unwrap_or(path).len();
        Some(Self { index, name: start..start + name.len(), inside: path.len() - inside.len() })
    }
}

/// Tells whether a path is one of the API for other nodes.
fn is_node_api(path: &str) -> bool {
    path.strip_prefix(NODE_API).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the place whose rules hold for a path.
fn rules(gates: &Gates, path: &str, kind: &TargetKind) -> RuledPlace {
    let subject = match kind {
        TargetKind::Page(page) => page.subject(),
        _ => None,
    };
    gates.place(subject.unwrap_or(path))
}

/// Returns the path of the asset that a request for a steering manifest names in its query.
fn asset_to_steer(query: &str) -> Option<String> {
    let path = query.split('&').find_map(|pair| pair.strip_prefix("path="))?;
    uri::decode_path(path).map(Cow::into_owned)
}

/// Decodes the path of a request.
fn decode(raw: &str) -> Option<Cow<'_, str>> {
    #[cfg(test)]
    super::parses::count(|parses| parses.paths += 1);
    uri::decode_path(raw)
}

/// Parses the route of a path inside a place.
fn route(inside: &str) -> Option<Route> {
    #[cfg(test)]
    super::parses::count(|parses| parses.routes += 1);
    Route::parse(inside)
}

/// Parses the route of a path that may be that of a running stream.
fn live_route(path: &str) -> Option<LiveRoute> {
    #[cfg(test)]
    super::parses::count(|parses| parses.live_routes += 1);
    LiveRoute::parse(path)
}
