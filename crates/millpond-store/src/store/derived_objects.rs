//! Objects in use that are made of others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::reading::object::Object;

/// The objects made of others that somebody holds: one for each version of the source and each derivation, or for each list of joined
/// ranges.
#[derive(Default)]
pub(crate) struct DerivedObjects {
    /// Objects by a hash of their content, and by the name of the derivation. A lock: taken when an asset is made.
    known: Mutex<HashMap<(u64, String), Derived>>,
}

/// An object, and the one that it is made of or that lists its ranges.
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
    /// Returns the object that a derivation makes of this version of `source`: the one in use, or a new one of `make`. `content` is a
    /// hash of everything that its bytes depend on.
    pub(crate) fn get_or_make(
        &self,
        content: u64,
        source: &Arc<Object>,
        derivation: &str,
        make: impl FnOnce() -> Arc<Object>,
    ) -> Arc<Object> {
        let mut known = self.known();
        let key = (content, derivation.to_owned());
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

    fn known(&self) -> MutexGuard<'_, HashMap<(u64, String), Derived>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
