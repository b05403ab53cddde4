//! A place of a store: its origin, and the known properties of its objects.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::OriginError;
use crate::freshness::Permission;
use crate::memory::cache::Cache;
use crate::named_origin::NamedOrigin;
use crate::origin::Listing;
use crate::path::ObjectPath;
use crate::reading::object::Object;
use crate::single_flight::SingleFlight;
use crate::stats;

/// Time for which an object counts as absent.
pub(super) const ABSENT: Duration = Duration::from_secs(1);

/// Time for which an object is used while its origin fails, where the origin does not state one.
const STALE_IF_ERROR: Duration = Duration::from_secs(24 * 3600);

/// Time after a failure for which a stale object is used before the origin is asked again.
pub(super) const STALE_STEP: Duration = Duration::from_secs(1);

/// An origin, and its known objects.
pub(super) struct Place {
    pub(super) source: Arc<NamedOrigin>,
    pub(super) freshness: Duration,
    pub(super) objects: Cache<ObjectPath, Arc<Object>>,
    /// Absent paths, with the time and the error of the origin.
    pub(super) absent: Cache<ObjectPath, (Instant, OriginError)>,
    /// Stale objects that stand in for a failing origin, with the time of their last use.
    pub(super) standing_in: Cache<ObjectPath, Instant>,
    pub(super) opening: SingleFlight<ObjectPath, Result<Arc<Object>, OriginError>>,
    pub(super) listing: SingleFlight<ObjectPath, Result<Listing, OriginError>>,
    /// Permissions of the origin for a folder's list, with the time at which it stated them.
    pub(super) listed: Cache<ObjectPath, (Instant, Permission)>,
}

impl Place {
    /// Returns the known result without a request: a fresh object, its stand-in, or its absence.
    pub(super) fn known(&self, path: &ObjectPath) -> Option<Result<Arc<Object>, OriginError>> {
        if let Some(object) = self.objects.get(path) {
            let fresh = object.fresh_for(self.freshness);
            let stands_in = || self.standing_in.get(path).is_some_and(|at| at.elapsed() < STALE_STEP);
            if object.is_fresh(fresh) || (!object.is_outdated() && stands_in()) {
                return Some(Ok(object));
            }
        }
        let (at, error) = self.absent.get(path)?;
        (at.elapsed() < ABSENT.min(self.freshness)).then_some(Err(error))
    }

    /// Returns the object as last seen, if it may stand in for the failing origin, else the error.
    pub(super) fn stand_in(&self, path: &ObjectPath, error: OriginError) -> Result<Arc<Object>, OriginError> {
        if error.is_not_found() {
            self.objects.remove(path);
            self.absent.insert(path.clone(), (Instant::now(), error.clone()), 1);
            return Err(error);
        }
        let known = self.objects.get(path).filter(|_| error.may_pass());
        let fresh = |object: &Object| object.fresh_for(self.freshness);
        let Some(known) = known.filter(|object| object.outlasts_errors(fresh(object), STALE_IF_ERROR)) else {
            return Err(error);
        };
        stats::add(&self.source.counters.stale, 1);
        self.standing_in.insert(path.clone(), Instant::now(), 1);
        Ok(known)
    }
}
