//! Stored assets as the stream engine plays them.

use crate::library::{Asset, IndexError, Library, LibraryError, PlacePath, Places};
use futures_util::future::BoxFuture;
use http::StatusCode;
use millpond_stream::{
    Manager, StoredMedia, Titles,
    reception::{SourceError, SourceErrorKind},
};
use std::{
    fmt,
    sync::{Arc, Weak},
};

/// Opens the assets of all places.
pub(crate) struct Shelf {
    library: Arc<Library>,
    places: Places,
    /// Channels of the manager hold this.
    manager: Weak<Manager>,
}

impl Shelf {
    pub(super) fn new(library: Arc<Library>, places: Places, manager: &Arc<Manager>) -> Self {
        Self { library, places, manager: Arc::downgrade(manager) }
    }

    /// Opens the asset of a path, if one decoder plays all of it: a session has one description. Returns the rendition too, where the
    /// path's last part names one.
    ///
    /// # Errors
    /// The library's.
    pub(super) async fn open(&self, path: &str) -> Result<(Arc<Asset>, Option<String>), LibraryError> {
        let opened = self.find(path).await?;
        match opened.0.presentation.stitched().and_then(|stitched| stitched.split.as_ref()) {
            Some(split) => {
                let why =
                    format!("RTSP plays a title with one decoder for each track: {split}; play it by HLS or DASH");
                Err(LibraryError::Manifest { manifest: opened.0.path.clone(), why })
            }
            None => Ok(opened),
        }
    }

    async fn find(&self, path: &str) -> Result<(Arc<Asset>, Option<String>), LibraryError> {
        let none = || LibraryError::NoAsset(path.to_owned());
        let PlacePath { name: place, inside, .. } = self.places.find(path).ok_or_else(none)?;
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
}

/// Returns an asset as the engine plays it.
pub(super) fn media(manager: &Manager, asset: &Asset) -> Arc<StoredMedia> {
    // Sessions share media, and frames in memory, only where they read from the same origin.
    let id = asset.id.wrapping_add(asset.edition.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let make = || {
        let (objects, presentation) = (asset.objects.clone(), asset.presentation.clone());
        StoredMedia::new(asset.path.clone(), id, objects, presentation)
    };
    manager.stored(id, make)
}

/// Describes why an asset can't be opened. Viewers of a channel read it; the log has the location.
fn words(asset: &str, why: &LibraryError) -> String {
    if let LibraryError::Index(IndexError::Origin(error)) = why {
        tracing::info!(asset, %error, "the asset of a stream can't be opened");
        return format!("{asset}: {}", error.for_viewers());
    }
    why.to_string()
}

impl Titles for Shelf {
    fn open<'a>(&'a self, asset: &'a str) -> BoxFuture<'a, Result<Arc<StoredMedia>, SourceError>> {
        let error = |kind, words| SourceError { kind, address: asset.to_owned(), words };
        Box::pin(async move {
            let (found, _) = Self::open(self, asset).await.map_err(|why| {
                let kind = match crate::problem::status(&why) {
                    StatusCode::NOT_FOUND => SourceErrorKind::NotFound,
                    status if status.is_server_error() => SourceErrorKind::Unreachable,
                    _ => SourceErrorKind::NoMedia,
                };
                error(kind, words(asset, &why))
            })?;
            let manager = self.manager.upgrade();
            let manager = manager.ok_or_else(|| error(SourceErrorKind::Unreachable, "the server stops".to_owned()))?;
            Ok(media(&manager, &found))
        })
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").finish_non_exhaustive()
    }
}
