//! Paths as the stream engine plays them.

use super::{
    ChannelConfig, Copies, LadderAt, Ladders, LiveSettings, PlaceOffset, StreamPath,
    channels::Channels,
    titles::{self, Shelf},
};
use crate::{
    cluster::Cluster,
    library::{Asset, Library, LibraryError, Places, live_name},
};
use millpond_package::CaptionRule;
use millpond_place::{LiveKind, LiveLocation, LiveSourceError, SourceSettings};
use millpond_store::ring::RingLimits;
use millpond_stream::{
    CannotOpen, Linger, LiveRequest, Manager, Phases, Source, StoredMedia, TimedStart,
    live::{LadderId, ShiftOptions, WindowOptions},
    reception::{SourceError, SourceTransport},
    remote::RemoteTitle,
};
use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

/// Why nothing is known of a title.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoTitle {
    /// The path can't be the name of a stream.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The server refuses the path.
    #[error(transparent)]
    Source(#[from] Arc<SourceError>),
}

/// A title whose phases run.
#[derive(Clone, Debug)]
pub(crate) struct PhasedTitle {
    pub(crate) media: Arc<StoredMedia>,
    /// Path of the channel.
    pub(crate) channel: Arc<str>,
    pub(crate) phases: Arc<Phases>,
}

/// Why the phases of a channel can't be watched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoPhases {
    /// The asset can't be opened.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// Too many streams run.
    #[error(transparent)]
    Stream(#[from] CannotOpen),
    /// The asset has no duration.
    #[error("{0} has no duration, so that it can't play in phases")]
    Endless(String),
}

/// Finds what the engine plays at a path.
pub(crate) struct Sources {
    shelf: Arc<Shelf>,
    channels: Channels,
    pub(super) places: Places,
    /// Places with live streams, by name.
    pub(super) live: HashMap<Arc<str>, LivePlace>,
    /// How streams of each place are cut.
    windows: Vec<WindowOptions>,
    manager: Arc<Manager>,
    /// The cluster whose other nodes have streams that are pushed to them.
    pub(super) cluster: Option<Arc<Cluster>>,
    /// Whether this node may take streams from others.
    pub(super) is_fed: bool,
    /// Copies of streams of other nodes; `None` where this node may not take streams from them.
    copies: Option<Arc<Copies>>,
}

/// Segments that a playlist lists at least.
const LISTED: u32 = 6;

/// Returns how streams are cut by these settings, with the rule by which their manifests announce captions.
pub(crate) fn window_options(settings: &LiveSettings, captions: &Arc<CaptionRule>) -> WindowOptions {
    let LiveSettings { part, segment, window, .. } = *settings;
    let (listed, captions) = (window.max(segment * LISTED), captions.clone());
    WindowOptions { part, segment, listed, captions, ..WindowOptions::default() }
}

/// Bytes of the file system that the past of streams leaves free.
const MIN_FREE: u64 = 256 << 20;

/// Returns where the past of streams is kept, and how much; `None` where none is. `folder` is that of all streams.
fn shift_options((settings, captions): (&LiveSettings, &Arc<CaptionRule>), folder: &Path) -> Option<Arc<ShiftOptions>> {
    let limits = RingLimits { age: settings.shift, bytes: settings.shift_size, min_free: MIN_FREE };
    let options = ShiftOptions { folder: folder.to_owned(), limits, window: window_options(settings, captions) };
    (!settings.shift.is_zero()).then(|| Arc::new(options))
}

/// A place with live streams.
#[derive(Clone, Debug)]
pub(crate) struct LivePlace {
    /// The scheme of its location.
    pub(super) kind: &'static LiveKind,
    /// Source of the empty name. The streams of a server, and the programmes of a transport stream, lie below it.
    pub(super) source: Source,
    linger: Linger,
    shift: Option<Arc<ShiftOptions>>,
    pub(super) ladders: Ladders,
    /// Longest silence of a publisher.
    patience: Duration,
    /// Shortest segment of stored titles; `None` where all are live streams.
    title_segment: Option<Duration>,
}

impl LivePlace {
    /// Makes the place of a location. `folder` is that of the past of streams, and `hosts` are those that media of a web server may come
    /// from besides itself.
    ///
    /// # Errors
    /// The URL can't be that of a stream.
    pub(crate) fn new(
        location: &LiveLocation,
        (settings, captions): (&LiveSettings, &Arc<CaptionRule>),
        (folder, hosts): (&Path, &[String]),
    ) -> Result<Self, LiveSourceError> {
        let LiveSettings { transport, retransmission, timeout, linger, most_bandwidth, .. } = *settings;
        let hosts = hosts.into();
        let source = location.source(&SourceSettings { transport, retransmission, timeout, most_bandwidth, hosts })?;
        let (kind, shift) = (location.kind(), shift_options((settings, captions), folder));
        // Titles come by the connection, so that no packet is missing.
        let is_stored = settings.stored && matches!(transport, SourceTransport::Auto | SourceTransport::Tcp);
        let title_segment = is_stored.then_some(settings.segment);
        Ok(Self { kind, source, linger, shift, patience: timeout, title_segment, ladders: Ladders::default() })
    }

    /// Gives it ladders.
    pub(crate) fn with_ladders(self, ladders: Ladders) -> Self {
        Self { ladders, ..self }
    }

    /// Returns the stream of a name, whose path in URLs is `path`; `None` where no stream can have that name.
    /// `ladder` is the one that it is in.
    fn request(&self, path: &str, name: &str, ladder: Option<LadderId>) -> Option<LiveRequest> {
        let source = self.kind.stream(&self.source, name)?;
        let source = if self.has_titles(ladder.as_ref()) { source.without_titles() } else { source };
        let shift = self.shift_of(ladder);
        Some(LiveRequest { path: path.into(), source, relayed: None, linger: self.linger, shift })
    }

    /// Whether a name that is in this ladder may be that of a stored title. Streams of ladders, and those whose past is kept, are live.
    fn has_titles(&self, ladder: Option<&LadderId>) -> bool {
        self.title_segment.is_some() && self.shift.is_none() && ladder.is_none()
    }

    /// Returns where the past of a stream in a ladder is kept.
    fn shift_of(&self, ladder: Option<LadderId>) -> Option<Arc<ShiftOptions>> {
        let shift = self.shift.as_ref()?;
        if shift.window.ladder == ladder {
            return Some(shift.clone());
        }
        let window = WindowOptions { ladder, ..shift.window.clone() };
        Some(Arc::new(ShiftOptions { window, ..(**shift).clone() }))
    }
}

impl Sources {
    /// Makes those of a server. `live` are the places with live streams, and `windows` tells how streams of each place are cut.
    pub(crate) fn new(
        (library, places): (Arc<Library>, Places),
        live: HashMap<Arc<str>, LivePlace>,
        windows: Vec<WindowOptions>,
        channels: &[ChannelConfig],
        manager: Arc<Manager>,
    ) -> Self {
        let shelf = Arc::new(Shelf::new(library, places.clone(), &manager));
        let channels = Channels::new(channels, &places, &shelf);
        Self { shelf, channels, places, live, windows, manager, cluster: None, is_fed: false, copies: None }
    }

    /// Makes them those of a node of a cluster. Where it `is_fed`, it takes streams that are pushed to other nodes from there.
    pub(crate) fn with_cluster(self, cluster: Option<Arc<Cluster>>, is_fed: bool) -> Self {
        Self { cluster, is_fed, ..self }
    }

    /// Gives them the copies of streams of other nodes.
    pub(crate) fn with_copies(self, copies: Option<Arc<Copies>>) -> Self {
        Self { copies: copies.filter(|_| self.is_fed), ..self }
    }

    /// Returns the copies of streams of other nodes.
    pub(crate) fn copies(&self) -> Option<&Arc<Copies>> {
        self.copies.as_ref()
    }

    /// Returns the engine's manager.
    pub(crate) fn manager(&self) -> &Arc<Manager> {
        &self.manager
    }

    /// Finds the place of a path.
    pub(crate) fn find(&self, path: &str) -> StreamPath {
        let path = path.trim_matches('/');
        let place = self.places.find(path);
        let place = place.map(|found| PlaceOffset { index: found.index, inside: path.len() - found.inside.len() });
        StreamPath::new(path, self.list(path), place)
    }

    /// Returns the name of a path's place, and the path inside it.
    pub(super) fn place_of<'a>(&self, path: &'a StreamPath) -> Option<(&Arc<str>, &'a str)> {
        let (index, name) = path.place()?;
        Some((self.places.iter().nth(index)?, name))
    }

    /// Returns the place with live streams that a path lies in; `None` where its place is stored.
    fn live_place(&self, path: &StreamPath) -> Option<&LivePlace> {
        self.live.get(self.place_of(path)?.0)
    }

    /// Returns how the stream or channel at a path is cut.
    pub(crate) fn window_options(&self, path: &StreamPath) -> WindowOptions {
        if let Some(place) = path.list() {
            return self.windows.get(place).cloned().unwrap_or_default();
        }
        let Some((index, name)) = path.place() else { return WindowOptions::default() };
        let options = self.windows.get(index).cloned().unwrap_or_default();
        let place = self.places.iter().nth(index);
        let ladder = place.and_then(|place| self.live.get(place)?.ladders.of_stream(place, name));
        WindowOptions { ladder: ladder.map(|ladder| LadderId::of(&ladder)), ..options }
    }

    /// Returns the ladder at a path.
    pub(crate) fn ladder(&self, path: &StreamPath) -> Option<LadderAt> {
        let (place, name) = self.place_of(path)?;
        self.live.get(place)?.ladders.at(place, name)
    }

    /// Returns the place of a path.
    pub(crate) fn place(&self, path: &str) -> Option<Arc<str>> {
        self.places.find(path.trim_matches('/')).map(|found| found.name.clone())
    }

    /// Tells whether a place has live streams.
    pub(crate) fn is_live(&self, place: &str) -> bool {
        self.live.contains_key(place)
    }

    /// Returns the live stream of a path, or the channel of a list; `None` where its place is stored.
    ///
    /// # Errors
    /// The path can't be the name of a stream, or its channel has no such phase.
    pub(crate) fn live(&self, path: &StreamPath) -> Result<Option<LiveRequest>, LibraryError> {
        if path.list().is_some() {
            return match self.channels.without_phase(path) {
                Some((channel, what)) => Err(LibraryError::NoResource { asset: channel.to_string(), what }),
                None => Ok(self.channels.request(path, None)),
            };
        }
        let Some((place, name)) = self.place_of(path) else { return Ok(None) };
        let Some(live) = self.live.get(place) else { return Ok(None) };
        let ladder = live.ladders.of_stream(place, name).map(|ladder| LadderId::of(&ladder));
        let request = live.request(path, live_name(name)?, ladder);
        request.map(Some).ok_or_else(|| match name {
            "" => {
                let what = format!("a name is missing: the path of a stream is {place}/NAME");
                LibraryError::NoResource { asset: path.to_string(), what }
            }
            _ => LibraryError::NoAsset(path.to_string()),
        })
    }

    /// Tells whether a path is in a place or that of a channel.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn placed(&self, path: &StreamPath) -> Result<(), LibraryError> {
        if path.list().is_some() || self.place_of(path).is_some() || self.is_channel(path) {
            return Ok(());
        }
        let name = path.split('/').next().unwrap_or_default();
        Err(LibraryError::NoResource { asset: path.to_string(), what: format!("there is no place {name:?}") })
    }

    /// Returns the stored title that the server of a path has there; `None` where it has a live stream. Unless it `asks`, only what is known of
    /// the server counts: a request for the [live stream](Self::stream) fails with [`StoredTitle`](millpond_stream::SourceErrorKind::StoredTitle)
    /// where there is a title that nobody has asked for.
    ///
    /// # Errors
    /// The path can't be the name of a stream; the server has nothing there, or does not answer.
    pub(crate) async fn title(&self, path: &StreamPath, asks: bool) -> Result<Option<Arc<RemoteTitle>>, NoTitle> {
        let Some((place, name)) = self.place_of(path).filter(|_| path.list().is_none()) else { return Ok(None) };
        let Some((live, least)) = self.live.get(place).and_then(|live| Some((live, live.title_segment?))) else {
            return Ok(None);
        };
        let ladder = live.ladders.of_stream(place, name).map(|ladder| LadderId::of(&ladder));
        if !live.has_titles(ladder.as_ref()) {
            return Ok(None);
        }
        let Some(Source::Rtsp(source)) = live.kind.stream(&live.source, live_name(name)?) else { return Ok(None) };
        let titles = self.manager.remote_titles();
        if !asks && titles.known(path).await.is_none() {
            return Ok(None);
        }
        self.manager.add_remote_place(place);
        Ok(titles.find((path, place.len()), &source, least).await?)
    }

    /// Tells whether the streams of a place are pushed.
    pub(crate) fn is_published(&self, place: &str) -> bool {
        self.live.get(place).is_some_and(|place| place.source == Source::Published)
    }

    /// Tells whether the stream of a path is one that publishers push, or a ladder of such.
    pub(crate) fn is_pushed_to(&self, path: &StreamPath) -> bool {
        self.live_place(path).is_some_and(|place| place.source == Source::Published)
    }

    /// Returns the longest silence of a publisher of a path.
    pub(crate) fn patience(&self, path: &StreamPath) -> Duration {
        self.live_place(path).map(|live| live.patience).unwrap_or_default()
    }

    /// Tells whether a place has streams that are pushed.
    pub(crate) fn has_published(&self) -> bool {
        self.live.values().any(|place| place.source == Source::Published)
    }

    /// Returns the stream of a path: a live one, which may be pushed to another node, or a channel. `None` where it is neither.
    ///
    /// # Errors
    /// The path can't be the name of a stream; those of the library for the asset of a channel.
    pub(crate) async fn stream(&self, path: &StreamPath) -> Result<Option<LiveRequest>, LibraryError> {
        match self.received(path).await? {
            Some(request) => Ok(Some(self.fed(request, path).await)),
            None => Ok(None),
        }
    }

    /// Returns the stream of a path for another node: only as this node receives it itself.
    ///
    /// # Errors
    /// Those of [`stream`](Self::stream); that this node has it from another one.
    pub(crate) async fn own_stream(&self, path: &StreamPath) -> Result<Option<LiveRequest>, LibraryError> {
        if self.manager.is_relay(path) {
            return Err(LibraryError::NoAsset(path.to_string()));
        }
        self.received(path).await
    }

    async fn received(&self, path: &StreamPath) -> Result<Option<LiveRequest>, LibraryError> {
        if let Some(request) = self.live(path)? {
            return Ok(Some(self.titles_known(path, request).await));
        }
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        if !self.is_channel(path) && !self.is_channel(above) {
            return Ok(None);
        }
        // Its errors tell more than those of a stream.
        let (_, rendition) = self.open(path).await?;
        Ok(self.channels.request(path, rendition.as_deref()))
    }

    /// Returns a request for the stream of a path. A stored title that is known as such plays as a stream where that is asked for.
    async fn titles_known(&self, path: &StreamPath, request: LiveRequest) -> LiveRequest {
        if !self.manager.remote_titles().is_known(path).await {
            return request;
        }
        LiveRequest { source: request.source.with_titles(), ..request }
    }

    /// Opens the asset of a path. Returns the rendition too, where the path's last part names one.
    ///
    /// # Errors
    /// The library's.
    pub(crate) async fn open(&self, path: &str) -> Result<(Arc<Asset>, Option<String>), LibraryError> {
        self.shelf.open(path).await
    }

    /// Returns a stream of an asset that plays round and round.
    pub(crate) fn looped(&self, asset: &str) -> LiveRequest {
        Channels::looped(&self.shelf, asset)
    }

    /// Returns a stream of an asset, under a name that no path has: it plays round and round, or as its start says.
    pub(crate) fn timed(&self, name: String, asset: &str, start: Option<TimedStart>) -> LiveRequest {
        Channels::timed(&self.shelf, name, (asset, start))
    }

    /// Returns an asset as the engine plays it.
    pub(crate) fn media(&self, asset: &Asset) -> Arc<StoredMedia> {
        titles::media(&self.manager, asset)
    }

    /// Returns the path of the asset that plays in phases at `path`.
    pub(crate) fn phased_asset(&self, path: &str) -> Option<&str> {
        Some(&self.channels.phased(path.trim_matches('/'))?.asset)
    }

    /// Opens the asset that plays in phases at `path`, and starts its phases. `None` where the path is no channel with phases.
    ///
    /// # Errors
    /// Those of the library for the asset; too many streams run.
    pub(crate) async fn phased(&self, path: &str) -> Result<Option<PhasedTitle>, NoPhases> {
        let Some(channel) = self.channels.phased(path.trim_matches('/')) else { return Ok(None) };
        let (asset, _) = self.shelf.open(&channel.asset).await?;
        let media = self.media(&asset);
        let phases = self.manager.phases(&channel.name, &media, self.channels.requests(channel))?;
        let phases = Arc::new(phases.ok_or_else(|| NoPhases::Endless(channel.asset.to_string()))?);
        Ok(Some(PhasedTitle { media, channel: channel.name.clone(), phases }))
    }

    /// Tells whether there are channels.
    pub(crate) fn has_channels(&self) -> bool {
        !self.channels.is_empty()
    }

    /// Tells whether a path is that of an asset that plays as a channel.
    pub(crate) fn is_channel(&self, path: &str) -> bool {
        self.channels.is_asset(path.trim_matches('/'))
    }

    /// Returns the index of the place whose settings a list of assets has; `None` where the path is no list.
    pub(crate) fn list(&self, path: &str) -> Option<usize> {
        self.channels.list(path.trim_matches('/'))
    }
}
