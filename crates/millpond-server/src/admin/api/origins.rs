//! Origins of stored media: their counters, errors and links.

use super::{super::AdminState, Reply, page::Items, show};
use millpond_store::{ErrorKind, PlaceStats};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The origin of a place.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Origin {
    /// Name of the place.
    place: String,
    /// Location, without secrets.
    location: String,
    /// Requests, including retries.
    requests: u64,
    /// Bytes received.
    received_bytes: u64,
    /// Requests under way.
    in_flight: u64,
    /// Repeated requests.
    retries: u64,
    /// Reads that joined a request that another reader had made.
    collapsed: u64,
    /// Objects that were opened as last seen, because the origin failed.
    stale: u64,
    /// Failures by their kind.
    errors: BTreeMap<String, u64>,
    /// Requests for names that do not exist.
    not_found: u64,
    /// Objects that had changed since they were opened.
    changed: u64,
    /// Bytes read from complete slices in memory.
    memory_hit_bytes: u64,
    /// Bytes read from complete slices on the disk.
    disk_hit_bytes: u64,
    /// Bytes read as they arrived.
    miss_bytes: u64,
    /// Bytes read of local files.
    file_bytes: u64,
    /// Share of hits in the bytes read; null where none were.
    hit_ratio: Option<f64>,
    /// Bytes fetched ahead of viewers.
    prefetched_bytes: u64,
    /// Prefetched bytes that have not been read yet.
    prefetched_unused_bytes: u64,
    /// Tracks of viewers whose positions are known.
    watched_tracks: u64,
    /// Measured bandwidth of the link; null before the first measurement.
    bandwidth_bps: Option<u64>,
    /// Stores of a striping group.
    stripes: Vec<StripeStore>,
    /// Sibling caches, if there are any.
    neighbours: Option<Neighbours>,
}

/// A store of a striping group.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct StripeStore {
    /// Name.
    store: String,
    /// Requests for units.
    requests: u64,
    /// Bytes of units.
    bytes: u64,
    /// Requests that failed.
    failures: u64,
    /// Reads whose bytes differed from their checksum.
    damaged_reads: u64,
    /// Damaged units that were replaced by a good copy.
    repaired_units: u64,
    /// Requests under way.
    in_flight: u64,
    /// Whether the store is unused after a failure.
    is_resting: bool,
}

/// Requests to sibling caches.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Neighbours {
    /// Requests that a sibling answered with bytes.
    hits: u64,
    /// Requests that no sibling could answer.
    misses: u64,
    /// Failures and timeouts.
    failures: u64,
    /// Bytes of bodies that siblings sent.
    received_bytes: u64,
}

impl Origin {
    fn of(stats: PlaceStats, location: String) -> Self {
        let hits = stats.memory_hit_bytes + stats.disk_hit_bytes;
        let read = hits + stats.miss_bytes;
        let count = |of| stats.errors.iter().find(|(kind, _)| *kind == of).map_or(0, |(_, count)| *count);
        let failures = stats.errors.iter().filter(|(kind, _)| kind.is_failure());
        Self {
            place: stats.name,
            location,
            requests: stats.origin_requests,
            received_bytes: stats.origin_bytes,
            in_flight: stats.in_flight,
            retries: stats.retries,
            collapsed: stats.collapsed,
            stale: stats.stale,
            errors: failures.map(|(kind, count)| (kind.as_str().to_owned(), *count)).collect(),
            not_found: count(ErrorKind::NotFound),
            changed: count(ErrorKind::Changed),
            memory_hit_bytes: stats.memory_hit_bytes,
            disk_hit_bytes: stats.disk_hit_bytes,
            miss_bytes: stats.miss_bytes,
            file_bytes: stats.file_bytes,
            hit_ratio: (read > 0).then(|| hits as f64 / read as f64),
            prefetched_bytes: stats.prefetched_bytes,
            prefetched_unused_bytes: stats.prefetched_unused_bytes,
            watched_tracks: stats.watched,
            bandwidth_bps: (stats.link_bandwidth > 0).then(|| stats.link_bandwidth.saturating_mul(8)),
            stripes: stats.stripes.into_iter().map(StripeStore::of).collect(),
            neighbours: stats.neighbours.map(|of| Neighbours {
                hits: of.hits,
                misses: of.misses,
                failures: of.failures,
                received_bytes: of.bytes,
            }),
        }
    }
}

impl StripeStore {
    fn of(stats: millpond_store::StripeStoreStats) -> Self {
        let millpond_store::StripeStoreStats {
            store,
            requests,
            bytes,
            failures,
            damaged_reads,
            repaired_units,
            in_flight,
            is_resting,
        } = stats;
        Self { store, requests, bytes, failures, damaged_reads, repaired_units, in_flight, is_resting }
    }
}

/// Lists the origins of all places with stored media.
#[utoipa::path(get, path = "/api/v1/origins", tag = "origins", responses((status = 200, body = Items<Origin>)))]
pub(super) fn list_origins(state: &AdminState) -> Reply {
    let store = state.front.store();
    let locations: BTreeMap<String, String> = store.places().collect();
    let origin = |stats: PlaceStats| {
        let location = locations.get(&stats.name).cloned().unwrap_or_default();
        Origin::of(stats, location)
    };
    show(&Items { items: store.stats().places.into_iter().map(origin).collect() })
}
