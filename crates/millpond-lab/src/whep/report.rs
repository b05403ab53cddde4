//! The report of a run, as JSON by serde and as text for people.

use super::{options::Options, tally::Tally};
use crate::{
    report::{ErrorReport, Latency},
    rtsp::{
        Distributions, Generator, Histograms, MediaReport, Progress,
        figures::{History, MediaFigures},
        report::row,
    },
};
use serde::Serialize;
use std::{fmt, time::Duration};

/// The report of a run. Times are in milliseconds, except `elapsed`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The endpoint.
    pub url: String,
    /// How many viewers were asked for.
    pub viewers: u32,
    /// How many of them a second.
    pub rate: f64,
    /// Seconds from the beginning to the end.
    pub elapsed: f64,
    /// The viewers.
    pub sessions: Sessions,
    /// From the offer sent to the first packet.
    pub startup: Latency,
    /// The steps of starts: `answer` of the offer, `check` of ICE, `handshake` of DTLS, first `packet`.
    pub steps: Vec<StepReport>,
    /// The packets.
    pub media: MediaReport,
    /// Why viewers failed.
    pub failures: Vec<ErrorReport>,
    /// Resources that the generator itself used.
    pub generator: Generator,
    /// How times are distributed.
    pub distributions: Distributions,
    /// Numbers of packets and frames by time.
    pub histograms: Histograms,
    /// The run over time, in steps of a second; of more in long runs.
    pub timeline: Vec<Progress>,
}

/// How viewers fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sessions {
    /// Got a packet.
    pub started: u64,
    /// Failed, before media or after.
    pub failed: u64,
    /// Were about to start when the run ended.
    pub cut_off: u64,
}

/// One step of starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StepReport {
    /// Name of the step.
    pub step: &'static str,
    /// Its time.
    pub latency: Latency,
}

/// The parts of a report.
pub(crate) struct Total<'a> {
    pub(crate) elapsed: Duration,
    pub(crate) tally: &'a Tally,
    pub(crate) media: &'a MediaFigures,
    pub(crate) history: &'a History,
    pub(crate) processor: Duration,
    pub(crate) overflows: u64,
}

impl Report {
    pub(crate) fn new(options: &Options, total: &Total<'_>) -> Self {
        let Total { tally, media, .. } = *total;
        let seconds = total.elapsed.as_secs_f64().max(1e-9);
        let steps = tally.steps().map(|(step, times)| StepReport { step: step.name(), latency: Latency::from(times) });
        Self {
            url: options.url.to_string(),
            viewers: options.viewers,
            rate: options.rate,
            elapsed: total.elapsed.as_secs_f64(),
            sessions: Sessions { started: tally.starts, failed: tally.failed, cut_off: tally.cut_off },
            startup: Latency::from(&tally.startup),
            steps: steps.collect(),
            media: MediaReport::new(media, seconds),
            failures: ErrorReport::all(&tally.failures),
            generator: Generator::new(total.processor, seconds, total.overflows),
            distributions: Distributions::new(&tally.startup, media),
            histograms: Histograms::new(media),
            timeline: Progress::timeline(total.history),
        }
    }
}

/// A page of text: viewers, a row for each step of their starts, the packets, then failures.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sessions, generator, .. } = self;
        writeln!(f, "{} (WHEP), {} viewers, {} a second, {:.1} s", self.url, self.viewers, self.rate, self.elapsed)?;
        writeln!(
            f,
            "{} viewers started, {} failed, {} cut off by the end of the run",
            sessions.started, sessions.failed, sessions.cut_off
        )?;
        writeln!(f)?;
        writeln!(f, "{:<14}{:>9}  {:>9}{:>9}{:>9}{:>9}", "ms", "count", "p50", "p95", "p99", "max")?;
        for StepReport { step, latency } in &self.steps {
            row(f, step, latency)?;
        }
        row(f, "startup", &self.startup)?;
        if self.media.packets > 0 {
            self.media.fmt(f)?;
        }
        self.failures.iter().try_for_each(|failure| failure.fmt(f))?;
        generator.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rtsp::figures::Counters,
        whep::{
            failure::{Failure, FailureKind},
            tally::Step,
        },
    };
    use url::Url;

    #[test]
    fn the_page_has_steps_packets_and_failures() {
        let options = Options::new(Url::parse("http://h/live/cam/whep").unwrap());
        let (mut tally, mut media) = (Tally::default(), MediaFigures::default());
        tally.starts = 9;
        tally.took(Step::Handshake, Duration::from_millis(3));
        tally.failure(Failure::new(FailureKind::Checks, "no answer from [192.0.2.1:8189]"), &Counters::default());
        media.counts.packets = 200;
        media.counts.late = 1;
        let total = Total {
            elapsed: Duration::from_secs(10),
            tally: &tally,
            media: &media,
            history: &History::new(),
            processor: Duration::from_secs(1),
            overflows: 0,
        };
        let report = Report::new(&options, &total);
        let text = report.to_string();
        for part in [
            "9 viewers started, 1 failed",
            "handshake             1       3.0",
            "200 packets (20/s)",
            "1 late (0.500 %)",
            "1 x no answer to checks of ICE",
            "generator: 10.0 %",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["media"]["late-percent"], 0.5);
        assert_eq!(json["steps"][0]["step"], "handshake");
    }
}
