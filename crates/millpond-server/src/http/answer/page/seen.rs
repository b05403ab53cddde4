//! Places whose names a viewer may see.

use super::super::Front;
use millpond_access::Sight;
use std::sync::Arc;

/// A place, and what a viewer may see of its names.
#[derive(Clone, Debug)]
pub(super) struct SeenPlace {
    /// Name.
    pub(super) name: Arc<str>,
    /// Text that the paths of the place begin with.
    pub(super) prefix: String,
    sight: Sight,
}

impl SeenPlace {
    /// Returns the places of which a viewer may see anything. `sights` has what it may see of each place.
    pub(super) fn all(front: &Front, sights: &[Option<Sight>]) -> Vec<Self> {
        // More places than rules: all of them are open.
        let sight = |place: usize| sights.get(place).map_or(Some(Sight::Whole), Clone::clone);
        let places = front.places.iter().enumerate();
        places.filter_map(|(index, name)| Some(Self::new(name, sight(index)?))).collect()
    }

    /// Returns a place whose rules have admitted the viewer.
    pub(super) fn admitted(name: &Arc<str>) -> Self {
        Self::new(name, Sight::Whole)
    }

    fn new(name: &Arc<str>, sight: Sight) -> Self {
        let prefix = if name.is_empty() { String::new() } else { format!("{name}/") };
        Self { name: name.clone(), prefix, sight }
    }

    /// Tells whether a path is that of the place or lies in it.
    fn has(&self, path: &str) -> bool {
        path.starts_with(&self.prefix) || path == self.prefix.trim_end_matches('/')
    }
}

/// Tells whether the viewer may see a path. `seen` are the places of which it may see anything.
pub(super) fn sees(seen: &[SeenPlace], path: &str) -> bool {
    seen.iter().find(|place| place.has(path)).is_some_and(|place| place.sight.has(path))
}
