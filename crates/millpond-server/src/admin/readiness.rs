//! Readiness of the server, for load balancers.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this server can serve: listeners are up, every place has answered once, and no shutdown has begun.
///
/// A place that has answered counts for good: an origin that goes away later makes errors for its own assets, and
/// taking the whole server out of rotation for it would make them for all.
#[derive(Debug)]
pub(crate) struct Readiness {
    listening: AtomicBool,
    draining: AtomicBool,
    places: Vec<(String, AtomicBool)>,
}

impl Readiness {
    /// Not ready yet; waits for these places.
    pub(crate) fn new(places: impl IntoIterator<Item = String>) -> Self {
        Self {
            listening: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            places: places.into_iter().map(|name| (name, AtomicBool::new(false))).collect(),
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

    /// A place has answered, be it that something is not there.
    pub(crate) fn place_answered(&self, name: &str) {
        if let Some((_, answered)) = self.places.iter().find(|(known, _)| known == name) {
            answered.store(true, Ordering::Relaxed);
        }
    }

    /// Conditions that are not met yet, in words; empty where the server is ready.
    pub(crate) fn waiting_for(&self) -> Vec<String> {
        if self.draining.load(Ordering::Relaxed) {
            return vec!["shutting down".to_owned()];
        }
        let listeners = (!self.listening.load(Ordering::Relaxed)).then(|| "listeners are not up".to_owned());
        let places = self.places.iter().filter(|(_, answered)| !answered.load(Ordering::Relaxed));
        let places = places.map(|(name, _)| match name.as_str() {
            "" => "the place has not answered yet".to_owned(),
            name => format!("place {name:?} has not answered yet"),
        });
        listeners.into_iter().chain(places).collect()
    }
}
