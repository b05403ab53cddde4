//! Readiness of the server, for load balancers.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// Whether this server can serve: listeners are up, every place has answered once, and no shutdown has begun.
///
/// A place that has answered stays ready. An origin that fails later makes errors for its own assets. A server that
/// left its load balancer for that would make errors for all assets.
#[derive(Debug)]
pub(crate) struct Readiness {
    listening: AtomicBool,
    draining: AtomicBool,
    /// Each place, and whether it has answered. A lock: taken by probes and when places change.
    places: Mutex<Vec<(String, bool)>>,
}

impl Readiness {
    /// Not ready yet; waits for these places.
    pub(crate) fn new(places: impl IntoIterator<Item = String>) -> Self {
        Self {
            listening: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            places: Mutex::new(places.into_iter().map(|name| (name, false)).collect()),
        }
    }

    /// All listeners accept connections.
    pub(crate) fn listening(&self) {
        self.listening.store(true, Ordering::Relaxed);
    }

    /// Shutdown has begun: new clients should go elsewhere.
    pub(crate) fn draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// A place has answered, also with the error that an object does not exist.
    pub(crate) fn place_answered(&self, name: &str) {
        if let Some((_, answered)) = self.places().iter_mut().find(|(known, _)| known == name) {
            *answered = true;
        }
    }

    /// Replaces the places after a reload. A server that is ready stays so: a new place whose origin is down makes errors for its
    /// own assets only.
    pub(crate) fn replace(&self, names: impl IntoIterator<Item = String>) {
        let mut places = self.places();
        let was_ready = places.iter().all(|(_, answered)| *answered);
        let known = |name: &String| places.iter().any(|(known, answered)| known == name && *answered);
        let new: Vec<_> = names.into_iter().map(|name| (known(&name) || was_ready, name)).collect();
        *places = new.into_iter().map(|(answered, name)| (name, answered)).collect();
    }

    fn places(&self) -> MutexGuard<'_, Vec<(String, bool)>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a place has answered.
    pub(crate) fn has_answered(&self, name: &str) -> bool {
        self.places().iter().any(|(known, answered)| known == name && *answered)
    }

    /// Conditions that are not met yet, in words; empty where the server is ready.
    pub(crate) fn waiting_for(&self) -> Vec<String> {
        if self.draining.load(Ordering::Relaxed) {
            return vec!["shutting down".to_owned()];
        }
        let listeners = (!self.listening.load(Ordering::Relaxed)).then(|| "listeners are not up".to_owned());
        let places = self.places();
        let places = places.iter().filter(|(_, answered)| !answered);
        let places = places.map(|(name, _)| match name.as_str() {
            "" => "the place has not answered yet".to_owned(),
            name => format!("place {name:?} has not answered yet"),
        });
        listeners.into_iter().chain(places).collect()
    }
}
