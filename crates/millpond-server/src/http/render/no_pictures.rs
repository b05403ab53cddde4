//! The pictures of a program that was built without the feature `pictures`: there are none.

use super::{error::AnswerError, resource};
use crate::library::{Asset, Library, Resource};
use millpond_http::body::Body;
use millpond_store::Store;
use millpond_stream::NewestKeyFrame;
use std::sync::Arc;

/// Makes no images.
pub(super) struct Pictures;

impl Pictures {
    pub(super) fn new(_: Store, _: Arc<Library>) -> Self {
        Self
    }

    /// Returns no image.
    ///
    /// # Errors
    /// Always: the asset has none.
    #[expect(clippy::unused_async, reason = "it is as the one that makes images")]
    pub(super) async fn body(&self, asset: &Arc<Asset>, _: (u64, Resource), _: bool) -> Result<Body, AnswerError> {
        Err(resource::no_resource(asset, "no images: built without the feature pictures".to_owned()).into())
    }

    /// Returns no image.
    ///
    /// # Errors
    /// Always: there are no snapshots.
    #[expect(clippy::unused_async, reason = "it is as the one that makes images")]
    pub(super) async fn snapshot(&self, path: &str, _: NewestKeyFrame) -> Result<super::SnapshotImage, AnswerError> {
        let why = "no images: built without the feature pictures".to_owned();
        Err(AnswerError::NoSnapshot { path: path.to_owned(), why })
    }
}
