//! Metrics of the store, asked at each scrape, and how much of what it read was turned into what went out.

use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use millpond_store::{
    CacheCounters, ErrorKind, LOOKUP_BOUNDS, LookupTimes, PlaceStats, Stats, StripeStoreStats, WAIT_BOUNDS, WaitCounts,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Bytes that went to clients from one place; a handle to clone and keep.
#[derive(Debug, Clone)]
pub struct PlaceBytes(Arc<PlaceOut>);

#[derive(Debug)]
struct PlaceOut {
    name: String,
    bytes: AtomicU64,
}

impl PlaceBytes {
    /// A place from which nothing was sent yet.
    pub(crate) fn new(name: String) -> Self {
        Self(Arc::new(PlaceOut { name, bytes: AtomicU64::new(0) }))
    }

    /// Name of the place.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    fn get(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Counts bytes sent to a client.
    pub fn add(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Bytes that went to clients from each place. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentBytes(Arc<RwLock<Vec<PlaceBytes>>>);

impl SentBytes {
    /// Counts of these places.
    pub(crate) fn new(places: impl IntoIterator<Item = PlaceBytes>) -> Self {
        Self(Arc::new(RwLock::new(places.into_iter().collect())))
    }

    /// The count of a place; `None` where it is none of the places.
    pub(crate) fn place(&self, name: &str) -> Option<PlaceBytes> {
        self.all().into_iter().find(|place| place.name() == name)
    }

    /// Replaces the places.
    pub(crate) fn replace(&self, places: impl IntoIterator<Item = PlaceBytes>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = places.into_iter().collect();
    }

    fn all(&self) -> Vec<PlaceBytes> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Asks the store for its numbers.
pub(crate) type ReadStats = Box<dyn Fn() -> Stats + Send + Sync>;

/// One counter of a place: name, help, value.
type Field = (&'static str, &'static str, fn(&PlaceStats) -> u64);

const COUNTERS: &[Field] = &[
    (
        "origin_requests",
        "Requests to the origin, including retries, without those that a sibling cache answered",
        |place| place.origin_requests,
    ),
    ("origin_bytes", "Bytes received from the origin, without those of sibling caches", |place| place.origin_bytes),
    ("origin_retries", "Requests to the origin repeated after a failure", |place| place.retries),
    ("slice_hits", "Slices found complete in memory or on the disk", |place| place.slice_hits),
    ("slice_misses", "Slices that were not complete in memory or on the disk", |place| place.slice_misses),
    ("slice_memory_hit_bytes", "Bytes read from complete slices in memory", |place| place.memory_hit_bytes),
    ("slice_disk_hit_bytes", "Bytes read from complete slices on the disk", |place| place.disk_hit_bytes),
    ("slice_miss_bytes", "Bytes read from slices while they arrived from the origin", |place| place.miss_bytes),
    ("file_bytes", "Bytes read straight from local files", |place| place.file_bytes),
    ("stale_opens", "Opened objects whose last known version was used because the origin failed", |place| place.stale),
    ("cut_tags", "Tags of objects beyond 64 or 1 KiB, by which purges do not find the objects", |place| place.cut_tags),
    ("sibling_hits", "Requests that a sibling cache answered", |place| place.neighbours.unwrap_or_default().hits),
    ("sibling_misses", "Requests that no sibling cache could answer", |place| {
        place.neighbours.unwrap_or_default().misses
    }),
    ("sibling_bytes", "Bytes received from sibling caches, or from the homes of a cluster", |place| {
        place.neighbours.unwrap_or_default().bytes
    }),
    ("sibling_zone_bytes", "Bytes received from homes in other zones of a cluster", |place| {
        place.neighbours.unwrap_or_default().zone_bytes
    }),
    ("sibling_failures", "Requests to sibling caches that failed or were too slow", |place| {
        place.neighbours.unwrap_or_default().failures
    }),
    ("prefetched_bytes", "Bytes of slices fetched before a viewer requested them", |place| place.prefetched_bytes),
    ("collapsed_requests", "Reads that joined a request that another reader had made", |place| place.collapsed),
];

const GAUGES: &[Field] = &[
    ("origin_requests_in_flight", "Requests to the origin in progress", |place| place.in_flight),
    ("origin_bandwidth_bytes_per_second", "Measured throughput of the link to the origin", |place| {
        place.link_bandwidth
    }),
    ("prefetched_unused_bytes", "Bytes of slices fetched before a viewer requested them, and not read yet", |place| {
        place.prefetched_unused_bytes
    }),
    ("watched_tracks", "Tracks whose viewers' positions are tracked for prefetch", |place| place.watched),
];

/// Encodes [`Stats`] with the place as label.
pub(crate) struct StorageCollector {
    places: SentBytes,
    read: ReadStats,
}

impl StorageCollector {
    pub(crate) fn new(places: SentBytes, read: ReadStats) -> Self {
        Self { places, read }
    }

    fn bytes_out(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Bytes of a place's media sent to clients";
        let mut family = encoder.encode_descriptor("place_sent_bytes", help, None, MetricType::Counter)?;
        for place in &self.places.all() {
            let labels = [("place", place.name())];
            ConstCounter::new(place.get()).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Bytes out over bytes in from storage; absent until something came in, as nothing can be said before.
    fn efficiency(&self, stats: &Stats, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Bytes sent to clients for each byte read from storage, since the start";
        let name = "conversion_efficiency_ratio";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for place in &stats.places {
            let sent = self.places.place(&place.name).map(|place| place.get());
            let came = place.origin_bytes.saturating_add(place.file_bytes);
            if let (Some(sent), 1..) = (sent, came) {
                let labels = [("place", place.name.as_str())];
                ConstGauge::new(sent as f64 / came as f64).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for StorageCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageCollector").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Collector for StorageCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stats = (self.read)();
        for (name, help, value) in COUNTERS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for place in &stats.places {
                let labels = [("place", place.name.as_str())];
                ConstCounter::new(value(place)).encode(family.encode_family(&labels)?)?;
            }
        }
        errors(&stats, &mut encoder)?;
        stripes(&stats, &mut encoder)?;
        self.bytes_out(&mut encoder)?;
        self.efficiency(&stats, &mut encoder)?;
        for (name, help, value) in GAUGES {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for place in &stats.places {
                let labels = [("place", place.name.as_str())];
                ConstGauge::new(signed(value(place))).encode(family.encode_family(&labels)?)?;
            }
        }
        waits(&stats, &mut encoder)?;
        lookups(&stats, &mut encoder)?;
        slices(&stats, &mut encoder)
    }
}

fn waits(stats: &Stats, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Time for which readers waited for the first bytes of a slice that was not cached";
    let name = "slice_miss_duration_seconds";
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for place in &stats.places {
        let labels = [("place", place.name.as_str())];
        encode_times(family.encode_family(&labels)?, WAIT_BOUNDS, &place.misses)?;
    }
    Ok(())
}

fn lookups(stats: &Stats, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Time of look-ups of slices, one of 64, by where the slice was found: memory, disk, absent";
    let mut family = encoder.encode_descriptor("slice_lookup_duration_seconds", help, None, MetricType::Histogram)?;
    let LookupTimes { memory, disk, absent } = &stats.lookups;
    for (found, times) in [("memory", memory), ("disk", disk), ("absent", absent)] {
        encode_times(family.encode_family(&[("found", found)])?, LOOKUP_BOUNDS, times)?;
    }
    Ok(())
}

fn encode_times(mut encoder: MetricEncoder<'_>, bounds: &[f64], times: &WaitCounts) -> fmt::Result {
    let bounds = bounds.iter().copied().chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(times.counts.iter().copied()).collect();
    let count = times.counts.iter().sum();
    encoder.encode_histogram::<NoLabelSet>(times.total.as_secs_f64(), count, &buckets, None)
}

/// The slice cache as a whole: places share it.
fn slices(stats: &Stats, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let disk = stats.disk.clone().unwrap_or_default();
    let gauges = [
        ("memory_bytes", "Bytes in memory of all entries, including slices being filled", stats.memory_used),
        ("memory_limit_bytes", "Limit of the memory for all entries", stats.cache.budget),
        ("disk_bytes", "Bytes of slices on the disk", disk.ledger.bytes),
        ("disk_limit_bytes", "Limit of the bytes of slices on the disk", disk.capacity),
        ("disk_pinned_bytes", "Bytes of slices on the disk that are being sent", disk.ledger.pinned),
        ("disk_slices", "Slices on the disk", disk.ledger.entries),
        ("disk_failed", "Whether the disk is unused after a failure", u64::from(disk.failure.is_some())),
    ];
    for (name, help, value) in gauges {
        let gauge = ConstGauge::new(signed(value));
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
    }
    let counters = [
        ("disk_hits", "Slices found on the disk", disk.ledger.hits),
        ("disk_misses", "Slices not found on the disk", disk.ledger.misses),
        ("disk_writes", "Slices written to the disk", disk.written),
        ("disk_writes_passed_over", "Slices not written to the disk because too many waited", disk.passed_over),
        ("disk_evictions", "Slices evicted from the disk cache because it was full", disk.ledger.evictions),
        ("disk_errors", "Writes to the disk that failed", disk.errors),
        (
            "disk_damaged",
            "Slices on the disk whose bytes were missing or differed from the written bytes",
            disk.damaged,
        ),
        ("disk_untagged", "Objects on the disk whose tags had no room beside their names", disk.untagged),
        ("disk_verified", "Slices on the disk compared with their checksum", disk.verified),
    ];
    for (name, help, value) in counters {
        let counter = ConstCounter::new(value);
        counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
    }
    kinds(stats, encoder)
}

/// One figure of a kind of entries: name, help, whether it only grows, value.
type KindField = (&'static str, &'static str, MetricType, fn(&CacheCounters) -> u64);

/// Bytes in memory by kind.
fn kinds(stats: &Stats, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let fields: [KindField; 5] = [
        ("memory_kind_bytes", "Bytes in memory by kind of entry", MetricType::Gauge, |kind| kind.weight),
        ("memory_entries", "Entries in memory by kind", MetricType::Gauge, |kind| kind.entries),
        ("memory_hits", "Lookups that found an entry in memory", MetricType::Counter, |kind| kind.hits),
        ("memory_misses", "Lookups that found no entry in memory", MetricType::Counter, |kind| kind.misses),
        ("memory_evictions", "Entries evicted from memory because it was full", MetricType::Counter, |kind| {
            kind.evictions
        }),
    ];
    for (name, help, form, value) in fields {
        let mut family = encoder.encode_descriptor(name, help, None, form)?;
        for (kind, counters) in &stats.memory {
            let labels = [("kind", *kind)];
            let value = value(counters);
            match form {
                MetricType::Gauge => ConstGauge::new(signed(value)).encode(family.encode_family(&labels)?)?,
                _ => ConstCounter::new(value).encode(family.encode_family(&labels)?)?,
            }
        }
    }
    Ok(())
}

/// One figure of a store: name, help, whether it only grows, value.
type StripeField = (&'static str, &'static str, MetricType, fn(&StripeStoreStats) -> u64);

/// Stores of striped objects.
fn stripes(stats: &Stats, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let fields: [StripeField; 7] = [
        ("stripe_requests", "Requests to a store for units", MetricType::Counter, |store| store.requests),
        ("stripe_bytes", "Bytes of units that a store sent", MetricType::Counter, |store| store.bytes),
        ("stripe_failures", "Requests for units that failed at a store", MetricType::Counter, |store| store.failures),
        (
            "stripe_damaged_reads",
            "Reads of a store whose bytes differed from their checksum",
            MetricType::Counter,
            |store| store.damaged_reads,
        ),
        ("stripe_repaired_units", "Damaged units that were replaced by a good copy", MetricType::Counter, |store| {
            store.repaired_units
        }),
        ("stripe_requests_in_flight", "Requests for units in progress", MetricType::Gauge, |store| store.in_flight),
        ("stripe_resting", "Whether a store is unused after a failure", MetricType::Gauge, |store| {
            u64::from(store.is_resting)
        }),
    ];
    for (name, help, form, value) in fields {
        let mut family = encoder.encode_descriptor(name, help, None, form)?;
        for place in &stats.places {
            for store in &place.stripes {
                let labels = [("place", place.name.as_str()), ("store", store.store.as_str())];
                match form {
                    MetricType::Gauge => {
                        ConstGauge::new(signed(value(store))).encode(family.encode_family(&labels)?)?
                    }
                    _ => ConstCounter::new(value(store)).encode(family.encode_family(&labels)?)?,
                }
            }
        }
    }
    Ok(())
}

fn errors(stats: &Stats, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Failures of the origin by kind";
    let mut family = encoder.encode_descriptor("origin_errors", help, None, MetricType::Counter)?;
    for place in &stats.places {
        // Kinds without a failure too: an alert needs the first one.
        for kind in ErrorKind::ALL {
            let count = place.errors.iter().find(|(of, _)| *of == kind).map_or(0, |(_, count)| *count);
            let labels = [("place", place.name.as_str()), ("error", kind.as_str())];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// Gauges are signed in the client library; nothing counted here comes near the limit.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
