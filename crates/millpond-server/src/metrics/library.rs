//! Counts of the library and of its pool for heavy work, read at each scrape.

use std::fmt;

use millpond_library::{DURATION_BOUNDS, DurationCounts, LibraryStats};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// Reads the counts of the library.
pub(super) type Read = Box<dyn Fn() -> LibraryStats + Send + Sync>;

/// One metric: name, help, value.
type Field = (&'static str, &'static str, fn(&LibraryStats) -> u64);

/// One histogram: name without its unit, help, durations.
type DurationField = (&'static str, &'static str, fn(&LibraryStats) -> &DurationCounts);

const COUNTERS: &[Field] = &[
    ("asset_cache_hits", "Lookups of assets that were open already.", |library| library.asset_hits),
    ("asset_cache_misses", "Lookups of assets that had to be opened.", |library| library.asset_misses),
    ("work_jobs_refused", "Jobs (heavy computations) refused because memory or the queue was full.", |library| {
        library.work.refused
    }),
    (
        "work_jobs_cancelled",
        "Jobs (heavy computations) cancelled because no request waited for them any more.",
        |library| library.work.cancelled,
    ),
];

const GAUGES: &[Field] = &[
    ("work_jobs_running", "Running jobs (heavy computations).", |library| library.work.running),
    ("work_jobs_waiting", "Jobs (heavy computations) that wait for a thread.", |library| library.work.waiting),
];

const DURATIONS: &[DurationField] = &[
    ("index_build_duration", "Time to build an index, storage included.", |library| &library.index_time),
    ("work_job_duration", "Running time of jobs (heavy computations).", |library| &library.work.run_time),
];

/// Encodes [`LibraryStats`].
pub(super) struct LibraryCollector {
    read: Read,
}

impl LibraryCollector {
    pub(super) fn new(read: Read) -> Self {
        Self { read }
    }
}

impl fmt::Debug for LibraryCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LibraryCollector").finish_non_exhaustive()
    }
}

impl Collector for LibraryCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let library = (self.read)();
        for (name, help, value) in COUNTERS {
            let counter = ConstCounter::new(value(&library));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        for (name, help, value) in GAUGES {
            let gauge = ConstGauge::new(i64::try_from(value(&library)).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        for (name, help, value) in DURATIONS {
            durations(name, help, value(&library), &mut encoder)?;
        }
        let read = ConstCounter::new(library.index_bytes);
        let help = "Bytes read to build indexes.";
        read.encode(encoder.encode_descriptor("index_read", help, Some(&Unit::Bytes), read.metric_type())?)?;
        let help = "Indexes built from media files.";
        let mut family = encoder.encode_descriptor("index_builds", help, None, MetricType::Counter)?;
        for (outcome, count) in [("ok", library.indexes_built), ("failed", library.indexes_failed)] {
            ConstCounter::new(count).encode(family.encode_family(&[("outcome", outcome)])?)?;
        }
        Ok(())
    }
}

fn durations(name: &str, help: &str, durations: &DurationCounts, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
    let bounds = DURATION_BOUNDS.into_iter().chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(durations.counts).collect();
    let count = durations.counts.iter().sum();
    metric.encode_histogram::<NoLabelSet>(durations.total.as_secs_f64(), count, &buckets, None)
}
