//! What an operator asks of the front end: what a request needs and where it would come from, and which objects a
//! path stands for.

use super::answer::Front;
use crate::delivery::{Body, Needs};
use crate::library::{LibraryError, Route};
use millpond_store::{Object, ObjectPath, OriginLink, Whence};
use serde::Serialize;
use std::sync::Arc;

/// What a request needs, and where that would come from now.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Explanation {
    /// The path that was asked about.
    url: String,
    /// Bytes of the reply, where they are known before it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Bytes that are made: manifests, headers, texts.
    made_bytes: u64,
    /// Whether samples are rewritten on the way.
    rewritten: bool,
    /// Ranges of objects, in the order in which they are needed.
    parts: Vec<Part>,
    /// Bytes that would be asked from the origin at the moment of the request.
    origin_bytes: u64,
    /// How long they would take, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Cost>,
}

/// What asking the origin takes, as far as its link was measured. All objects of an asset are of one place.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Cost {
    /// Until the first byte comes, what is on its way already included.
    first_byte_seconds: f64,
    /// Until the last one does.
    last_byte_seconds: f64,
    /// Bytes a second of the link.
    bandwidth: u64,
    /// Whether sibling caches are asked before.
    siblings_first: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Part {
    object: String,
    first: u64,
    end: u64,
    from: &'static str,
}

impl Front {
    /// What a request for a path needs. The index of its asset is read for it, where it is not known yet.
    pub(crate) async fn explain(&self, path: &str) -> Result<Explanation, LibraryError> {
        let none = || LibraryError::NoAsset(path.to_owned());
        let (_, place, inside) = self.place(path).ok_or_else(none)?;
        let body = match Route::parse(inside) {
            Some(route) => {
                let asset = self.library.open_version(place, &route.asset, route.version).await?;
                self.renderer.make(&asset, &route.resource).await?
            }
            None => {
                let object = self.object(place, inside).await?;
                Body::object(&self.store, &object, 0..object.meta().len)
            }
        };
        let Needs { made_bytes, ranges, rewritten } = body.needs();
        let mut parts = Vec::new();
        let mut origin_bytes = 0;
        let mut way: Option<OriginLink> = None;
        for (object, range) in ranges {
            for (part, whence) in self.store.whence(&object, range) {
                if whence == Whence::Origin {
                    origin_bytes += part.end - part.start;
                    way.get_or_insert_with(|| self.store.origin_link(&object));
                }
                let object = object.path().to_string();
                parts.push(Part { object, first: part.start, end: part.end, from: whence.as_str() });
            }
        }
        let origin = way.map(|way| {
            let first = (way.busy + way.delay).as_secs_f64();
            Cost {
                first_byte_seconds: first,
                last_byte_seconds: first + origin_bytes as f64 / way.bandwidth,
                bandwidth: way.bandwidth as u64,
                siblings_first: way.siblings,
            }
        });
        Ok(Explanation { url: path.to_owned(), bytes: body.len(), made_bytes, rewritten, parts, origin_bytes, origin })
    }

    /// The objects that a path stands for: a file, or those of an asset's media.
    pub(crate) async fn objects(&self, path: &str) -> Result<Vec<Arc<Object>>, LibraryError> {
        let none = || LibraryError::NoAsset(path.to_owned());
        let (_, place, inside) = self.place(path).ok_or_else(none)?;
        match self.object(place, inside).await {
            Ok(object) => Ok(vec![object]),
            Err(error) => match self.library.open(place, inside.trim_end_matches('/')).await {
                Ok(asset) => Ok(asset.objects.clone()),
                Err(_) => Err(error),
            },
        }
    }

    async fn object(&self, place: &str, inside: &str) -> Result<Arc<Object>, LibraryError> {
        let bad = |error: millpond_store::PathError| LibraryError::BadPath {
            path: inside.to_owned(),
            why: error.to_string(),
        };
        let path = ObjectPath::parse(inside.trim_end_matches('/')).map_err(bad)?;
        Ok(self.store.open(place, &path).await?)
    }
}
