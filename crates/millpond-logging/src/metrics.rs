//! Counts of the logs, read at each scrape.

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// Encodes the counts of the log and of the access log. `log` is `server` or `access`.
#[derive(Debug)]
pub struct LogCollector;

impl Collector for LogCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let logs = super::figures();
        let help = "Log lines that their output did not accept in time";
        let mut lost = encoder.encode_descriptor("log_lines_lost", help, None, MetricType::Counter)?;
        for (log, figures) in logs {
            ConstCounter::new(figures.lost).encode(lost.encode_family(&[("log", log)])?)?;
        }
        let mut written = encoder.encode_descriptor("log_lines", "Log lines written", None, MetricType::Counter)?;
        for (log, figures) in logs {
            ConstCounter::new(figures.written).encode(written.encode_family(&[("log", log)])?)?;
        }
        let help = "Whether the newest line of a log was lost because its output is full, blocked or closed";
        let mut failing = encoder.encode_descriptor("log_failing", help, None, MetricType::Gauge)?;
        for (log, figures) in logs {
            ConstGauge::new(i64::from(figures.is_failing)).encode(failing.encode_family(&[("log", log)])?)?;
        }
        Ok(())
    }
}
