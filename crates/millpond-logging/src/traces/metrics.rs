//! Counts of the export of traces, read at each scrape.

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter},
};
use std::sync::atomic::{AtomicU64, Ordering};

static SENT: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);

/// Counts a batch of spans that the collector took, or did not take.
#[cfg(feature = "traces")]
pub(super) fn count(is_sent: bool) {
    if is_sent { &SENT } else { &FAILED }.fetch_add(1, Ordering::Relaxed);
}

/// Encodes the counts.
#[derive(Debug)]
pub struct TraceCollector;

impl Collector for TraceCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let help = "Requests that send a batch of spans to the trace collector, including retries";
        let mut family = encoder.encode_descriptor("trace_exports", help, None, MetricType::Counter)?;
        for (outcome, count) in [("ok", &SENT), ("failed", &FAILED)] {
            let labels = [("outcome", outcome)];
            ConstCounter::new(count.load(Ordering::Relaxed)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
