//! The stored titles that are in use.

use crate::stored::StoredMedia;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// Titles that are in use, by their ids. A lock: taken for a look-up.
#[derive(Debug, Default)]
pub(super) struct StoredTitles(Mutex<HashMap<u64, Weak<StoredMedia>>>);

impl StoredTitles {
    /// Returns the title of an id: the one that is in use, else what `make` gives.
    pub(super) fn find(&self, id: u64, make: impl FnOnce() -> StoredMedia) -> Arc<StoredMedia> {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = stored.get(&id).and_then(Weak::upgrade) {
            return known;
        }
        stored.retain(|_, media| media.strong_count() > 0);
        let new = Arc::new(make());
        stored.insert(id, Arc::downgrade(&new));
        new
    }
}
