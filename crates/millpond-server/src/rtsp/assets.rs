//! Assets by path, as the stream engine plays them.

use super::Rtsp;
use crate::library::{Asset, LibraryError};
use millpond_stream::{Program, StoredMedia};
use std::sync::Arc;

impl Rtsp {
    /// The asset of a path, and the rendition that its last part names, where it does.
    pub(super) async fn open(&self, path: &str) -> Result<(Arc<Asset>, Option<String>), LibraryError> {
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

    /// The asset as the stream engine plays it.
    pub(super) fn media(&self, asset: &Asset) -> Arc<StoredMedia> {
        let make = || {
            let (objects, presentation) = (asset.objects.clone(), asset.presentation.clone());
            StoredMedia::new(asset.path.clone(), asset.id, objects, presentation)
        };
        self.manager.stored(asset.id, make)
    }

    /// The channel of a path; `None` where its asset is no channel.
    ///
    /// # Errors
    /// The library's.
    pub(crate) async fn program(&self, path: &str) -> Result<Option<Program>, LibraryError> {
        let (asset, rendition) = self.open(path.trim_matches('/')).await?;
        Ok(self.manager.program(&self.media(&asset), rendition.as_deref()))
    }
}
