//! The system's figures of this process, under the names that every Prometheus client uses.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Clock ticks a second in `/proc/PID/stat`: USER_HZ, 100 on every architecture Linux runs servers on.
const TICKS: f64 = 100.0;

/// Reads `/proc` at each scrape; gives nothing where there is none.
#[derive(Debug)]
pub(super) struct ProcessCollector {
    started: f64,
}

impl ProcessCollector {
    pub(super) fn new() -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: started.as_secs_f64() }
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut gauge = |name: &str, help: &str, value: Option<f64>| match value {
            Some(value) => {
                let gauge = ConstGauge::new(value);
                gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
            }
            None => Ok(()),
        };
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        gauge("process_start_time_seconds", "Unix time at which the process started", Some(self.started))?;
        let resident = field(&status, "VmRSS:").map(|kib| kib * 1024.0);
        gauge("process_resident_memory_bytes", "Memory in use", resident)?;
        gauge("process_threads", "Threads", field(&status, "Threads:"))?;
        gauge("process_open_fds", "Open file descriptors", open_files())?;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        gauge("process_max_fds", "Limit of open file descriptors", limit.map(|limit| limit as f64))?;
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        if let Some(seconds) = cpu_seconds(&stat) {
            let counter = ConstCounter::new(seconds);
            let help = "Processor time, user and system";
            let encoder = encoder.encode_descriptor("process_cpu_seconds", help, None, counter.metric_type())?;
            counter.encode(encoder)?;
        }
        Ok(())
    }
}

/// Figures of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Memory in use, in bytes.
    pub(crate) memory: u64,
    /// Processor time, user and system, in seconds.
    pub(crate) cpu_seconds: f64,
    /// Open file descriptors.
    pub(crate) open_files: u64,
}

impl Figures {
    /// Reads `/proc`; zeros where there is none.
    pub(crate) fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            memory: field(&text("/proc/self/status"), "VmRSS:").map_or(0, |kib| kib as u64 * 1024),
            cpu_seconds: cpu_seconds(&text("/proc/self/stat")).unwrap_or(0.0),
            open_files: open_files().unwrap_or(0.0) as u64,
        }
    }
}

/// The number after a name in `/proc/self/status`.
fn field(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn open_files() -> Option<f64> {
    // Reading the folder opens it, which is one of the entries found.
    fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count().saturating_sub(1) as f64)
}

/// utime and stime, fields 14 and 15 of proc(5); the command in field 2 may itself hold spaces and brackets.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let mut after_command = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().skip(11);
    let user: f64 = after_command.next()?.parse().ok()?;
    let system: f64 = after_command.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_proc_says() {
        let stat = "42 (mill) pond) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20 0 9";
        assert_eq!(cpu_seconds(stat), Some(4.0));
        assert_eq!(cpu_seconds(""), None);
        assert_eq!(cpu_seconds("42 (x) S 1"), None);
        assert_eq!(field("Name:\tx\nVmRSS:\t   1024 kB\n", "VmRSS:"), Some(1024.0));
        assert_eq!(field("", "VmRSS:"), None);
    }
}
