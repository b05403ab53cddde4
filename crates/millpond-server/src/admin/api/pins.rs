//! Pins: objects that are protected from eviction until the server stops.

use super::{
    super::AdminState,
    Outcome, bad,
    cache::{CachedFile, ObjectQuery, failed, fetch, objects},
    page::Page,
    request::ApiRequest,
    show,
};
use crate::http::{objects_at, opening_at};
use millpond_settings::value;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// Bounds of the time that `first` pins of a title.
const FIRST: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));

/// The pin to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pin {
    /// Path of a file or asset, as in URLs, but not percent-encoded.
    path: String,
    /// Fetches and pins only the index and the first part of the title, such as 30s; 1s to 1h.
    first: Option<String>,
}

/// The pins to end.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Unpin {
    /// Path of a file or asset, as in URLs, but not percent-encoded.
    path: String,
}

/// Objects whose pins were changed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Pinned {
    /// Their number.
    objects: usize,
    /// Bytes that were asked for; 0 where pins ended.
    bytes: u64,
    /// Pinned bytes of the whole cache.
    pinned_bytes: u64,
}

/// Lists the objects with pinned slices.
#[utoipa::path(get, path = "/api/v1/cache/pins", tag = "cache", params(ObjectQuery),
    responses((status = 200, body = Page<CachedFile>)))]
pub(super) fn list_pins(request: &ApiRequest, state: &AdminState) -> Outcome {
    let mut query: ObjectQuery = request.query()?;
    query.set_pinned();
    Ok(show(&objects(state, query)?))
}

/// Pins a file or asset, whole or its first media.
#[utoipa::path(post, path = "/api/v1/cache/pins", tag = "cache", request_body = Pin, responses((status = 200, body = Pinned)))]
pub(super) async fn pin(request: &ApiRequest, state: &AdminState) -> Outcome {
    let Pin { path, first } = request.json()?;
    let (path, store) = (path.trim_start_matches('/'), state.front.store());
    let Some(first) = first else {
        let objects = objects_at(&state.front, path).await.map_err(|error| failed(&error))?;
        let bytes = objects.iter().map(|object| object.meta().len).sum();
        let pinned_bytes = objects.iter().fold(0, |_, object| {
            let whole = 0..object.meta().len;
            store.keep(object, std::slice::from_ref(&whole))
        });
        return Ok(show(&Pinned { objects: objects.len(), bytes, pinned_bytes }));
    };
    let first = value::duration_in(&first, FIRST.0, FIRST.1);
    let first = first.map_err(|_| bad("first: a time from 1s to 1h such as 30s"))?;
    let ranges = opening_at(&state.front, path, first).await.map_err(|error| failed(&error))?;
    let pinned_bytes = ranges.iter().fold(0, |_, (object, ranges)| store.keep(object, ranges));
    let bytes = ranges.iter().flat_map(|(_, ranges)| ranges).map(|range| range.end - range.start).sum();
    let pinned = Pinned { objects: ranges.len(), bytes, pinned_bytes };
    fetch(store.clone(), ranges);
    Ok(show(&pinned))
}

/// Ends the pins of a file or asset.
#[utoipa::path(delete, path = "/api/v1/cache/pins", tag = "cache", params(Unpin), responses((status = 200, body = Pinned)))]
pub(super) async fn unpin(request: &ApiRequest, state: &AdminState) -> Outcome {
    let Unpin { path } = request.query()?;
    let objects = objects_at(&state.front, path.trim_start_matches('/')).await.map_err(|error| failed(&error))?;
    let pinned_bytes = objects.iter().fold(0, |_, object| state.front.store().release(object));
    Ok(show(&Pinned { objects: objects.len(), bytes: 0, pinned_bytes }))
}
