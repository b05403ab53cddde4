//! Objects whose bytes are made of another object's bytes, such as the frames in a transport stream.

mod maker;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::disk::named::Named;
use crate::error::{At, OriginError};
use crate::freshness::{Freshness, Permission, Storage};
use crate::named_origin::NamedOrigin;
use crate::origin::disk::check;
use crate::origin::{BoxFuture, Fetched, Listing, ObjectMeta, Origin, SentBy};
use crate::path::ObjectPath;
use crate::reading::object::Object;
use crate::store::Store;
use crate::version::Version;

use maker::Maker;

/// A way to make the bytes of an object of those of another one, its source.
pub trait Derivation: Send + Sync + fmt::Debug {
    /// Name of the object, for its path below the source's. Derivations of one name and length make the same of one version.
    fn name(&self) -> &str;

    /// Length of the object in bytes.
    fn length(&self) -> u64;

    /// Returns the bytes of the source that a range is made of.
    ///
    /// # Errors
    /// The range can't be made, and why.
    fn needs(&self, range: &Range<u64>) -> Result<Range<u64>, String>;

    /// Begins to make a range.
    ///
    /// # Errors
    /// As [`needs`](Self::needs).
    fn begin(&self, range: &Range<u64>) -> Result<Box<dyn Making>, String>;
}

/// A range of a derived object that is being made, of one part of its source after the other.
pub trait Making: Send {
    /// Returns the most bytes of memory that it takes, result included.
    fn memory(&self) -> u64;

    /// Takes the next part of the bytes that [`Derivation::needs`] names.
    fn supply(&mut self, part: &[u8]);

    /// Returns the bytes of the range.
    ///
    /// # Errors
    /// The bytes of the source are not those of which the derivation was made.
    fn finish(self: Box<Self>) -> Result<Bytes, String>;
}

/// Spreads lengths over hashes: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The origin of one derived object.
#[derive(Debug)]
struct DerivedOrigin {
    maker: Arc<Maker>,
    meta: ObjectMeta,
}

impl Store {
    /// Returns an object that is made of another one: the same one for all callers while somebody holds it.
    ///
    /// Its slices are cached in memory only: those of its source are on the disk. Each slice is made alone, within the memory budget.
    #[must_use]
    pub fn derived(&self, source: &Arc<Object>, derivation: Arc<dyn Derivation>) -> Arc<Object> {
        let name = derivation.name().to_owned();
        let content = source.named().hash.wrapping_add(derivation.length().wrapping_mul(SPREAD));
        self.derived_objects().get_or_make(content, source, &name, || {
            let meta = meta(source, &*derivation);
            let path = source.path().join(&name).unwrap_or_else(|_| source.path().clone());
            let named = Named::new(&source.source().name, &path, &meta);
            let maker = Maker::new(self.clone(), source.clone(), derivation);
            let origin = DerivedOrigin { maker: Arc::new(maker), meta: meta.clone() };
            let place = NamedOrigin::new(source.place(), Arc::new(origin), self.prefetch_mode(), self.slice_size());
            Arc::new(Object::new(named, Arc::new(place), path, meta, None))
        })
    }
}

/// Metadata of a derived object. Another version of the source makes another object.
fn meta(source: &Object, derivation: &dyn Derivation) -> ObjectMeta {
    let version = format!("{} of {}", derivation.name(), source.meta().version.as_str());
    let permission = Permission { storage: Storage::Never, ..Permission::default() };
    ObjectMeta {
        len: derivation.length(),
        version: Version::new(&version),
        etag: None,
        modified: source.meta().modified,
        content_type: None,
        content_disposition: None,
        content_language: None,
        content_encoding: None,
        freshness: Freshness { permission, ..Freshness::default() },
        tags: source.meta().tags.clone(),
    }
}

impl DerivedOrigin {
    fn at(&self, path: &ObjectPath) -> At {
        At { origin: Arc::from(self.describe()), path: Arc::from(path.as_str()) }
    }
}

impl Origin for DerivedOrigin {
    fn describe(&self) -> String {
        self.maker.describe()
    }

    fn head<'a>(&'a self, _: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        Box::pin(async { Ok(self.meta.clone()) })
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(async move {
            let at = self.at(path);
            let range = check(&at, &self.meta, range, expected)?;
            let body = self.maker.clone().make(at, range.clone());
            Ok(Fetched { meta: self.meta.clone(), range, body, sender: SentBy::Origin })
        })
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(async move { Err(OriginError::NotFound { at: self.at(folder) }) })
    }
}

#[cfg(test)]
mod tests;
