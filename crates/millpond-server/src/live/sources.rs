//! Paths as the stream engine plays them.

use super::LiveSettings;
use crate::library::{Asset, Library, LibraryError, Places, live_name};
use millpond_rtp::client::ClientError;
use millpond_stream::{
    Linger, LiveRequest, Manager, Program, Source, StoredMedia, live::WindowOptions, reception::RtspSource,
};
use std::{collections::HashMap, sync::Arc};

/// Finds what the engine plays at a path.
pub(crate) struct Sources {
    library: Arc<Library>,
    places: Places,
    /// Places with live streams, by name.
    live: HashMap<Arc<str>, LivePlace>,
    /// How streams of each place are cut.
    windows: Vec<WindowOptions>,
    manager: Arc<Manager>,
}

/// Segments that a playlist lists at least.
const LISTED: u32 = 6;

/// Returns how streams are cut by these settings.
pub(crate) fn window_options(settings: &LiveSettings) -> WindowOptions {
    let LiveSettings { part, segment, window, .. } = *settings;
    WindowOptions { part, segment, listed: window.max(segment * LISTED), ..WindowOptions::default() }
}

/// A place with live streams.
#[derive(Clone, Debug)]
pub(crate) struct LivePlace {
    /// Source of the empty name. With a server the others lie below it.
    source: Source,
    linger: Linger,
}

impl LivePlace {
    /// Makes the place of an RTSP server.
    ///
    /// # Errors
    /// The URL can't be that of a stream.
    pub(crate) fn new(url: &str, settings: &LiveSettings) -> Result<Self, ClientError> {
        let mut source = RtspSource::new(url)?;
        source.transport = settings.transport;
        source.timeout = settings.timeout;
        Ok(Self { source: Source::Rtsp(source), linger: settings.linger })
    }

    /// Makes a place whose streams are pushed.
    pub(crate) fn published(settings: &LiveSettings) -> Self {
        Self { source: Source::Published, linger: settings.linger }
    }

    /// Returns the stream of a name, whose path in URLs is `path`. A published stream has a name.
    fn request(&self, path: &str, name: &str) -> Option<LiveRequest> {
        let source = match &self.source {
            Source::Rtsp(source) if !name.is_empty() => Source::Rtsp(source.join(name)),
            Source::Published if name.is_empty() => return None,
            source => source.clone(),
        };
        Some(LiveRequest { path: path.into(), source, linger: self.linger })
    }
}

impl Sources {
    /// Makes those of a server. `live` are the places with live streams, and `windows` tells how streams of each place are cut.
    pub(crate) fn new(
        library: Arc<Library>,
        places: Places,
        live: HashMap<Arc<str>, LivePlace>,
        windows: Vec<WindowOptions>,
        manager: Arc<Manager>,
    ) -> Self {
        Self { library, places, live, windows, manager }
    }

    /// Returns the engine's manager.
    pub(crate) fn manager(&self) -> &Arc<Manager> {
        &self.manager
    }

    /// Returns how streams of a place are cut. Places have the indexes of [`Places::find`].
    pub(crate) fn window_options(&self, place: usize) -> WindowOptions {
        self.windows.get(place).copied().unwrap_or_default()
    }

    /// Tells whether a place has live streams.
    pub(crate) fn is_live(&self, place: &str) -> bool {
        self.live.contains_key(place)
    }

    /// Returns the live stream of a path; `None` where its place is stored.
    ///
    /// # Errors
    /// The path can't be the name of a stream.
    pub(crate) fn live(&self, path: &str) -> Result<Option<LiveRequest>, LibraryError> {
        let path = path.trim_matches('/');
        let Some((_, place, name)) = self.places.find(path) else { return Ok(None) };
        let Some(live) = self.live.get(place) else { return Ok(None) };
        let request = live.request(path, live_name(name)?);
        request.map(Some).ok_or_else(|| LibraryError::NoAsset(path.to_owned()))
    }

    /// Tells whether a place has streams that are pushed.
    pub(crate) fn has_published(&self) -> bool {
        self.live.values().any(|place| place.source == Source::Published)
    }

    /// Opens the asset of a path. Returns the rendition too, where the path's last part names one.
    ///
    /// # Errors
    /// The library's.
    pub(crate) async fn open(&self, path: &str) -> Result<(Arc<Asset>, Option<String>), LibraryError> {
        let none = || LibraryError::NoAsset(path.to_owned());
        let (_, place, inside) = self.places.find(path).ok_or_else(none)?;
        let inside = inside.trim_matches('/');
        let whole = self.library.open(place, inside).await;
        // A place may be an asset itself.
        let (asset, rendition) = inside.rsplit_once('/').unwrap_or(("", inside));
        if whole.is_err()
            && !rendition.is_empty()
            && let Ok(asset) = self.library.open(place, asset).await
            && asset.presentation.track(rendition).is_some()
        {
            return Ok((asset, Some(rendition.to_owned())));
        }
        Ok((whole?, None))
    }

    /// Returns an asset as the engine plays it.
    pub(crate) fn media(&self, asset: &Asset) -> Arc<StoredMedia> {
        let make = || {
            let (objects, presentation) = (asset.objects.clone(), asset.presentation.clone());
            StoredMedia::new(asset.path.clone(), asset.id, objects, presentation)
        };
        self.manager.stored(asset.id, make)
    }

    /// Tells whether a path is that of a channel.
    pub(crate) fn is_channel(&self, path: &str) -> bool {
        self.manager.is_channel(path)
    }

    /// Returns the channel of a path; `None` where its asset is no channel.
    ///
    /// # Errors
    /// The library's.
    pub(crate) async fn program(&self, path: &str) -> Result<Option<Program>, LibraryError> {
        let (asset, rendition) = self.open(path.trim_matches('/')).await?;
        Ok(self.manager.program(&self.media(&asset), rendition.as_deref()))
    }
}
