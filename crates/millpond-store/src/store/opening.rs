//! Opening an object: the requests that tell its version.

use std::ops::Range;
use std::sync::Arc;

use super::{Inner, place::Place};
use crate::disk::named::Named;
use crate::disk::slab::ObjectName;
use crate::error::{ErrorKind, OriginError};
use crate::named_origin::NamedOrigin;
use crate::origin::ObjectMeta;
use crate::path::ObjectPath;
use crate::purge_log::PurgeMark;
use crate::reading::object::Object;
use crate::stats;
use crate::tags::StatedTags;
use tracing::Instrument as _;

/// Longest range of the request that opens an object, in bytes.
const FIRST: u64 = 1 << 30;

/// Bytes that the request for an unknown object asks for.
#[derive(Clone, Debug)]
pub(super) enum FirstRead {
    /// The slices of a range.
    Slices(Range<u64>),
    /// The first bytes of the object.
    Head(u64),
}

impl Inner {
    /// Asks the origin for the object.
    pub(super) async fn open_now(
        &self,
        place: &Place,
        path: &ObjectPath,
        first: FirstRead,
    ) -> Result<Arc<Object>, OriginError> {
        let span = place.source.span(path, None);
        let since = self.slices.purges().mark();
        let opened = self.ask(place, path, (first, since)).instrument(span.clone()).await;
        if let Ok(object) = &opened {
            if self.slices.purges().has_doubted(since, (&**object.named()).into()) {
                object.doubt();
            }
            self.note_tags(object);
        }
        if opened.as_ref().is_err_and(|error| error.kind() != ErrorKind::NotFound) {
            span.record("otel.status_code", "ERROR");
        }
        opened
    }

    async fn ask(
        &self,
        place: &Place,
        path: &ObjectPath,
        (first, since): (FirstRead, PurgeMark),
    ) -> Result<Arc<Object>, OriginError> {
        let source = &place.source;
        let known = place.objects.get(path);
        stats::add(&source.counters.requests, 1);
        if let Some((file, meta)) = source.origin.open_file(path).await? {
            if let Some(known) = still(known, &meta) {
                return Ok(known);
            }
            return Ok(self.remember(place, path, meta, Some(file)));
        }
        if known.is_none()
            && source.origin.facts().has_versions_in_paths
            && let Some(name) = self.slices.disk().and_then(|disk| disk.whole(&source.name, path.as_str()))
        {
            let tags = StatedTags { kept: name.tags.clone(), cut: 0 };
            let meta = ObjectMeta { tags, ..ObjectMeta::unchanging(name.len, &name.version) };
            return Ok(self.remember(place, path, meta, None));
        }
        let known = known.filter(|known| !known.is_outdated());
        // A range that the disk may have is not requested.
        let is_cached = || self.slices.disk().is_some_and(|disk| disk.knows(&source.name, path.as_str()));
        if known.is_none() && !is_cached() {
            match source.origin.read(path, self.first_read(source, first), None).await {
                Ok(fetched) => {
                    self.obey(source, path, &fetched.meta);
                    let object = self.remember(place, path, fetched.meta.clone(), None);
                    object.adopt(&self.slices, fetched, since);
                    return Ok(object);
                }
                Err(OriginError::OutOfRange { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let meta = source.origin.head(path).await?;
        self.obey(source, path, &meta);
        if let Some(known) = still(known, &meta) {
            return Ok(known);
        }
        Ok(self.remember(place, path, meta, None))
    }

    /// Has the tags of an object written beside its slices on the disk, which may have others: the origin has changed them, or an
    /// earlier version has written the slices.
    fn note_tags(&self, object: &Object) {
        let (named, Some(disk)) = (object.named().clone(), self.slices.disk()) else { return };
        if disk.has_other_tags(named.hash, &named.tags) {
            let disk = disk.clone();
            tokio::task::spawn_blocking(move || disk.tag(named.hash, &named.tags));
        }
    }

    /// Removes slices from the disk that the origin no longer permits to store.
    fn obey(&self, source: &NamedOrigin, path: &ObjectPath, meta: &ObjectMeta) {
        let Some(disk) = self.slices.disk() else { return };
        if meta.freshness.permission.is_storable() || !disk.knows(&source.name, path.as_str()) {
            return;
        }
        let of = |name: &ObjectName| *name.place == *source.name && *name.path == *path.as_str();
        for held in disk.objects().into_iter().filter(|held| of(&held.name)) {
            disk.purge(|item| item.object == held.hash);
        }
    }

    /// Returns the range of the request that opens an unknown object: the head, or whole slices of the wanted range. With siblings
    /// it is as short as possible, because only the origin knows the version.
    fn first_read(&self, source: &NamedOrigin, first: FirstRead) -> Range<u64> {
        let slice = self.slices.slice();
        let has_neighbours = source.origin.facts().has_neighbours;
        let wanted = match first {
            FirstRead::Head(len) if !has_neighbours => return 0..len.clamp(1, slice),
            FirstRead::Slices(wanted) if !has_neighbours && !wanted.is_empty() => wanted,
            _ => return 0..slice,
        };
        let start = wanted.start / slice * slice;
        let end = wanted.end.min(start.saturating_add(FIRST)).max(start + 1);
        start..end.div_ceil(slice).saturating_mul(slice)
    }

    fn remember(
        &self,
        place: &Place,
        path: &ObjectPath,
        meta: ObjectMeta,
        file: Option<Arc<std::fs::File>>,
    ) -> Arc<Object> {
        let source = place.source.clone();
        stats::add(&source.counters.cut_tags, meta.tags.cut);
        let named = Named::new(&source.name, path, &meta);
        let object = Arc::new(Object::new(named, source, path.clone(), meta, file));
        place.objects.insert(path.clone(), object.clone(), 1);
        place.absent.remove(path);
        object
    }
}

/// Returns the known object if the origin has the same version, with the same tags.
fn still(known: Option<Arc<Object>>, meta: &ObjectMeta) -> Option<Arc<Object>> {
    let known = known?;
    let same = known.meta().version == meta.version && known.meta().len == meta.len && known.meta().tags == meta.tags;
    if !same || known.is_outdated() {
        return None;
    }
    known.confirm(meta.freshness);
    Some(known)
}
