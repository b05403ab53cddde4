//! Reads a striped object back, and compares its checksum.

use std::io;
use std::sync::Arc;

use futures_util::StreamExt;
use sha2::{Digest, Sha256};

use super::hex::hex;
use super::map::{StripeMap, map_path};
use super::origin::StripedOrigin;
use super::sink::{MapTarget, StripeError};
use super::writing::{read_small, remove};
use crate::error::{At, OriginError};
use crate::origin::bare::bare;
use crate::origin::{Origin, RemoteOptions};
use crate::striping::{MAP_SUFFIX, StripeStore, StripingOptions};

/// Reads a striped object, as a server does, and hands its bytes to `out` in order. Returns its map.
///
/// # Errors
///
/// There is no map, the map names a store that is not in `stores`, a unit can't be read, the checksum differs, or `out` fails.
pub async fn unstripe(
    target: &MapTarget,
    stores: &[StripeStore],
    options: &RemoteOptions,
    mut out: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<StripeMap, StripeError> {
    let place = bare(&target.location, options)?;
    let map = present_map(&*place, target).await?;
    let striping = StripingOptions { stores: stores.to_vec(), ..StripingOptions::default() };
    let origin = Arc::new(StripedOrigin::new(place, &striping, options)?);
    let fetched = origin.read(&target.path, 0..u64::MAX, None).await?;
    let mut hash = Sha256::new();
    let mut body = fetched.body;
    while let Some(bytes) = body.next().await {
        let bytes = bytes?;
        hash.update(&bytes);
        out(&bytes)?;
    }
    let found = hex(&hash.finalize());
    if found != map.sha256() {
        let at = target.to_string().trim_end_matches(MAP_SUFFIX).to_owned();
        return Err(StripeError::Checksum { at, expected: map.sha256().to_owned(), found });
    }
    Ok(map)
}

/// Returns the map at a target.
///
/// # Errors
///
/// There is no map, or it can't be read.
pub(super) async fn present_map(place: &dyn Origin, target: &MapTarget) -> Result<StripeMap, StripeError> {
    let map = map_path(&target.path).ok_or_else(|| StripeError::Name { name: target.to_string() })?;
    let Some(text) = read_small(place, &map).await? else {
        return Err(OriginError::NotFound { at: At::new(&place.describe(), map.as_str()) }.into());
    };
    StripeMap::parse(&text).map_err(|error| StripeError::Map { at: target.to_string(), error })
}

/// Removes a map, then its units.
///
/// # Errors
///
/// A store is not one of `stores`, or something cannot be removed.
pub async fn remove_striped(
    target: &MapTarget,
    map: &StripeMap,
    stores: &[StripeStore],
    options: &RemoteOptions,
) -> Result<(), StripeError> {
    let path = map_path(&target.path).ok_or_else(|| StripeError::Name { name: target.to_string() })?;
    target.sink(options)?.remove(&path).await?;
    remove(map, stores, options).await
}
