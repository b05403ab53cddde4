//! Derived objects in use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::reading::object::Object;

/// The derived objects that somebody holds: one for each version of a source and each derivation.
#[derive(Default)]
pub(crate) struct DerivedObjects {
    /// Objects by the hash of the source's name and by the name of the derivation. A lock: taken when an asset is made.
    known: Mutex<HashMap<(u64, &'static str), Derived>>,
}

/// An object and its source.
struct Derived {
    object: Weak<Object>,
    source: Weak<Object>,
}

impl Derived {
    /// Returns the object, if somebody holds it and neither it nor its source has changed.
    fn current(&self) -> Option<Arc<Object>> {
        let source_is_current = self.source.upgrade().is_some_and(|source| !source.is_outdated());
        self.object.upgrade().filter(|object| source_is_current && !object.is_outdated())
    }
}

impl DerivedObjects {
    /// Returns the object that a derivation makes of this version of `source`: the one in use, or a new one of `make`.
    pub(crate) fn get_or_make(
        &self,
        source: &Arc<Object>,
        derivation: &'static str,
        make: impl FnOnce() -> Arc<Object>,
    ) -> Arc<Object> {
        let mut known = self.known();
        let key = (source.named().hash, derivation);
        if let Some(object) = known.get(&key).and_then(Derived::current) {
            return object;
        }
        known.retain(|_, derived| derived.object.strong_count() > 0);
        let object = make();
        known.insert(key, Derived { object: Arc::downgrade(&object), source: Arc::downgrade(source) });
        object
    }

    /// Returns all objects in use.
    pub(crate) fn all(&self) -> Vec<Arc<Object>> {
        self.known().values().filter_map(|derived| derived.object.upgrade()).collect()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(u64, &'static str), Derived>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
