//! The report of a load run, as JSON by serde and as text for people.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::histogram::Histogram;
use crate::simulate::{Axis, Plot};
use crate::tally::{Counts, ErrorTally, RequestKind, Tally};

/// The state of a run, given about once a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Progress {
    /// Seconds since the run began.
    pub elapsed: f64,
    /// Players that are watching.
    pub active: u64,
    /// Requests answered a second, since the last progress.
    pub requests_per_second: f64,
    /// Million bytes of bodies a second, since the last progress.
    pub megabytes_per_second: f64,
    /// Requests answered since the run began.
    pub requests: u64,
    /// Bytes of bodies since the run began.
    pub bytes: u64,
    /// Errors since the run began.
    pub errors: u64,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:6.0} s  {:6} active  {:9.1} req/s  {:9.2} MB/s  {} errors",
            self.elapsed, self.active, self.requests_per_second, self.megabytes_per_second, self.errors
        )
    }
}

impl Progress {
    pub(crate) fn new(elapsed: Duration, before: (Duration, Counts), now: Counts) -> Self {
        let (then, before) = before;
        let seconds = elapsed.saturating_sub(then).as_secs_f64().max(1e-9);
        Self {
            elapsed: elapsed.as_secs_f64(),
            active: now.active,
            requests_per_second: (now.requests - before.requests) as f64 / seconds,
            megabytes_per_second: (now.bytes - before.bytes) as f64 / 1e6 / seconds,
            requests: now.requests,
            bytes: now.bytes,
            errors: now.errors,
        }
    }
}

/// The report of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The URL of the run.
    pub url: String,
    /// `hls`, `dash`, `live` or `plain`.
    pub mode: &'static str,
    /// Players at once.
    pub clients: u32,
    /// Seconds from the first arrival to the end.
    pub elapsed: f64,
    /// Requests answered in full with what was asked for.
    pub requests: u64,
    /// The same a second.
    pub requests_per_second: f64,
    /// Bytes of bodies, those of requests that failed or were cut off included.
    pub bytes: u64,
    /// Million bytes of bodies a second.
    pub megabytes_per_second: f64,
    /// The answered requests by what they were for; kinds without any are left out.
    pub kinds: Vec<KindReport>,
    /// From asking for the first manifest until the first segments of video and audio were there, in
    /// milliseconds, over the viewers that got so far.
    pub startup: Latency,
    /// Playback that stood still for want of media.
    pub stalls: Stalls,
    /// Lateness of the parts of live streams.
    pub late: Late,
    /// Changes of rendition.
    pub switches: SwitchReport,
    /// The viewers.
    pub viewers: Viewers,
    /// Failed requests.
    pub errors: Vec<ErrorReport>,
    /// How times are distributed; what was not measured is left out.
    pub distributions: Vec<Distribution>,
}

/// The distribution of one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Distribution {
    /// Name of the time, such as `segment, first byte`.
    pub name: String,
    /// Milliseconds, and the percentage that is not longer.
    pub points: Vec<(f64, f64)>,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct KindReport {
    /// `manifest`, `init`, `segment`, `reload`, `part` or `plain`.
    pub kind: &'static str,
    /// Answered in full.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// From asking to the head of the response, in milliseconds. Setting up a connection counts, where the
    /// request had to.
    pub first_byte: Latency,
    /// From asking to the end of the body, in milliseconds.
    pub total: Latency,
}

/// Percentiles in milliseconds, at most 1.6 % too high; all zero when there was nothing to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 90 % were not longer.
    pub p90: f64,
    /// 95 % were not longer.
    pub p95: f64,
    /// 99 % were not longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl From<&Histogram> for Latency {
    fn from(histogram: &Histogram) -> Self {
        let millis = |duration: Duration| duration.as_micros() as f64 / 1e3;
        let quantile = |fraction| millis(histogram.quantile(fraction));
        Self {
            count: histogram.count(),
            mean: millis(histogram.mean()),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
            max: millis(histogram.max()),
        }
    }
}

/// Playback that stood still, over all viewers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stalls {
    /// How often.
    pub count: u64,
    /// How long in all.
    pub seconds: f64,
    /// How many viewers had one.
    pub viewers: u64,
    /// Longest sum of the stalls of one viewer, in seconds.
    pub longest: f64,
}

/// Lateness of the parts of live streams, over all viewers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Late {
    /// Percentage of parts that arrived more than 100 ms behind the schedule of the earliest one of their viewer and track.
    pub percent: f64,
    /// Delays behind that schedule, in milliseconds.
    pub delay: Latency,
    /// Time from the ends of parts by the wall clock of their playlist (`EXT-X-PROGRAM-DATE-TIME`) to their arrival, in milliseconds.
    pub age: Latency,
}

/// Changes of rendition and of server, over all viewers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SwitchReport {
    /// To a higher bandwidth.
    pub up: u64,
    /// To a lower bandwidth.
    pub down: u64,
    /// To another server that the manifest lists, after a request failed.
    pub servers: u64,
}

/// How viewers fared. A place whose viewer has left is taken by a new one while the run lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Viewers {
    /// Began.
    pub started: u64,
    /// Watched all they wanted to.
    pub done: u64,
    /// Gave up after errors.
    pub failed: u64,
    /// Were still watching when the run ended.
    pub cut_off: u64,
}

/// Errors of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ErrorReport {
    /// For instance `status 404` or `timeout`.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// The first few different ones: the URL and what happened.
    pub examples: Vec<String>,
}

impl ErrorReport {
    /// Reports all kinds of errors, in their order.
    pub(crate) fn all<K: fmt::Display>(errors: &BTreeMap<K, ErrorTally>) -> Vec<Self> {
        let report = |(kind, errors): (&K, &ErrorTally)| Self {
            kind: kind.to_string(),
            count: errors.count,
            examples: errors.examples.clone(),
        };
        errors.iter().map(report).collect()
    }
}

/// The count and kind of an error, then a line for each example.
impl fmt::Display for ErrorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{} x {}", self.count, self.kind)?;
        for example in &self.examples {
            writeln!(f, "    {example}")?;
        }
        Ok(())
    }
}

/// The subject of a report.
pub(crate) struct Subject {
    pub(crate) url: String,
    pub(crate) mode: &'static str,
    pub(crate) clients: u32,
}

impl Report {
    pub(crate) fn new(subject: Subject, elapsed: Duration, counts: Counts, tally: &Tally) -> Self {
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let kinds = RequestKind::ALL.iter().zip(&tally.kinds).filter(|(_, kind)| kind.total.count() > 0);
        let kinds = kinds.map(|(kind, measured)| KindReport {
            kind: kind.name(),
            requests: measured.total.count(),
            bytes: measured.bytes,
            first_byte: Latency::from(&measured.first_byte),
            total: Latency::from(&measured.total),
        });
        Self {
            url: subject.url,
            mode: subject.mode,
            clients: subject.clients,
            elapsed: elapsed.as_secs_f64(),
            requests: counts.requests,
            requests_per_second: counts.requests as f64 / seconds,
            bytes: counts.bytes,
            megabytes_per_second: counts.bytes as f64 / 1e6 / seconds,
            kinds: kinds.collect(),
            startup: Latency::from(&tally.startup),
            stalls: Stalls {
                count: tally.stalls,
                seconds: tally.stalled.as_secs_f64(),
                viewers: tally.stalled_viewers,
                longest: tally.longest_stalled.as_secs_f64(),
            },
            late: Late {
                percent: 100.0 * tally.late as f64 / tally.lateness.count().max(1) as f64,
                delay: Latency::from(&tally.lateness),
                age: Latency::from(&tally.ages),
            },
            switches: SwitchReport { up: tally.switches.up, down: tally.switches.down, servers: tally.moves },
            viewers: Viewers {
                started: tally.done + tally.failed + tally.cut_off,
                done: tally.done,
                failed: tally.failed,
                cut_off: tally.cut_off,
            },
            errors: ErrorReport::all(&tally.errors),
            distributions: distributions(tally),
        }
    }

    /// Returns the distribution of times, as a picture.
    #[must_use]
    pub fn plot(&self) -> Plot {
        Plot {
            title: format!(
                "{} clients, {}, {:.0} requests a second",
                self.clients, self.mode, self.requests_per_second
            ),
            x: "ms".to_owned(),
            across: Axis::Powers,
            y: "of 100 not longer".to_owned(),
            lines: self.distributions.iter().map(|times| (times.name.clone(), times.points.clone())).collect(),
        }
    }

    /// All failed requests.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }
}

fn distributions(tally: &Tally) -> Vec<Distribution> {
    let of = |name: String, histogram: &Histogram| {
        let points = histogram.distribution();
        (!points.is_empty()).then_some(Distribution { name, points })
    };
    let kinds = RequestKind::ALL.iter().zip(&tally.kinds).flat_map(|(kind, measured)| {
        let name = kind.name();
        [of(format!("{name}, first byte"), &measured.first_byte), of(format!("{name}, whole"), &measured.total)]
    });
    kinds.chain([of("startup".to_owned(), &tally.startup)]).flatten().collect()
}

/// A page of text: totals, a row for each kind of request, then what viewers saw, then errors.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({}), {} clients, {:.1} s", self.url, self.mode, self.clients, self.elapsed)?;
        writeln!(
            f,
            "{} requests ({:.1}/s), {:.2} MB ({:.2} MB/s), {} errors",
            self.requests,
            self.requests_per_second,
            self.bytes as f64 / 1e6,
            self.megabytes_per_second,
            self.error_count()
        )?;
        writeln!(f)?;
        writeln!(
            f,
            "{:<10}{:>10}{:>12}  {:>9}{:>9}{:>9}  {:>9}{:>9}{:>9}{:>9}",
            "ms", "requests", "MB", "first p50", "p95", "p99", "total p50", "p95", "p99", "max"
        )?;
        for kind in &self.kinds {
            let (first, total) = (&kind.first_byte, &kind.total);
            writeln!(
                f,
                "{:<10}{:>10}{:>12.2}  {:>9.2}{:>9.2}{:>9.2}  {:>9.2}{:>9.2}{:>9.2}{:>9.2}",
                kind.kind,
                kind.requests,
                kind.bytes as f64 / 1e6,
                first.p50,
                first.p95,
                first.p99,
                total.p50,
                total.p95,
                total.p99,
                total.max
            )?;
        }
        if self.mode != "plain" {
            self.fmt_viewing(f)?;
        }
        self.errors.iter().try_for_each(|error| error.fmt(f))
    }
}

impl Report {
    fn fmt_viewing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { startup, stalls, late, switches, viewers, .. } = self;
        writeln!(f)?;
        writeln!(
            f,
            "startup   p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms, of {} viewers",
            startup.p50, startup.p95, startup.p99, startup.count
        )?;
        let Stalls { count, seconds, viewers: stalled, longest } = stalls;
        writeln!(f, "stalls    {count} ({seconds:.1} s), at {stalled} viewers, at most {longest:.1} s")?;
        if late.delay.count > 0 {
            let Late { percent, delay, age } = late;
            writeln!(
                f,
                "late      {percent:.2} % of {} parts; behind p50 {:.1} ms, p99 {:.1} ms; age p50 {:.1} ms, p99 {:.1} ms",
                delay.count, delay.p50, delay.p99, age.p50, age.p99
            )?;
        }
        writeln!(f, "switches  {} up, {} down, {} to another server", switches.up, switches.down, switches.servers)?;
        writeln!(
            f,
            "viewers   {} started, {} done, {} failed, {} cut off by the end of the run",
            viewers.started, viewers.done, viewers.failed, viewers.cut_off
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::{Answered, Counters, ErrorKind, Failure};

    fn report() -> Report {
        let counters = Counters::default();
        let mut tally = Tally::default();
        let millis = Duration::from_millis;
        for total in [2, 4, 100] {
            let answered = Answered { bytes: 1_000_000, first_byte: millis(1), total: millis(total) };
            tally.answered(RequestKind::Segment, answered, &counters);
            counters.received(answered.bytes);
        }
        let failure = Failure { kind: ErrorKind::Status(404), detail: "http://h/9.m4s".to_owned() };
        tally.failed(&failure, &counters);
        let subject = Subject { url: "http://h/a.m3u8".to_owned(), mode: "hls", clients: 5 };
        Report::new(subject, Duration::from_secs(2), counters.read(), &tally)
    }

    #[test]
    fn rates_and_percentiles() {
        let report = report();
        assert_eq!((report.requests, report.requests_per_second), (3, 1.5));
        assert_eq!((report.bytes, report.megabytes_per_second), (3_000_000, 1.5));
        assert_eq!(report.kinds.len(), 1, "kinds without requests are left out");
        let total = report.kinds[0].total;
        assert!((4.0..=4.0 * 65.0 / 64.0).contains(&total.p50), "{}", total.p50);
        assert_eq!((total.p99, total.max), (100.0, 100.0));
        assert_eq!(report.error_count(), 1);
    }

    #[test]
    fn json_and_text_say_the_same() {
        let report = report();
        let json = serde_json::to_value(&report).expect("serialises");
        assert_eq!(json["kinds"][0]["kind"], "segment");
        assert_eq!(json["kinds"][0]["total"]["max"], 100.0);
        assert_eq!(json["errors"][0]["examples"][0], "http://h/9.m4s");
        assert_eq!(json["requests-per-second"], 1.5);
        assert_eq!(json["distributions"][1]["name"], "segment, whole");
        assert!(report.plot().svg().contains("segment, first byte"));
        let text = report.to_string();
        for part in
            ["3 requests (1.5/s)", "3.00 MB (1.50 MB/s)", "1 errors", "1 x status 404", "http://h/9.m4s", "startup"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn progress_is_over_the_last_interval() {
        let before = Counts { active: 1, requests: 10, bytes: 1_000_000, errors: 0 };
        let now = Counts { active: 2, requests: 40, bytes: 5_000_000, errors: 1 };
        let progress = Progress::new(Duration::from_secs(4), (Duration::from_secs(2), before), now);
        assert_eq!((progress.requests_per_second, progress.megabytes_per_second), (15.0, 2.0));
        assert_eq!((progress.active, progress.requests, progress.errors), (2, 40, 1));
    }
}
