//! The report of a run, as JSON by serde and as text for people.

use super::{
    figures::{Counts, History, MediaFigures},
    histograms::Histograms,
    options::{Audience, Options},
    tally::Tally,
};
use crate::{
    histogram::Histogram,
    report::{ErrorReport, Latency},
};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The state of a run, given about once a second; rates are those since the last one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Progress {
    /// Seconds since the run began.
    pub elapsed: f64,
    /// Sessions that play.
    pub active: u64,
    /// Sessions that began to play, a second.
    pub starts_per_second: f64,
    /// RTP packets a second.
    pub packets_per_second: f64,
    /// Million bits of them a second.
    pub megabits_per_second: f64,
    /// Late packets, in percent.
    pub late_percent: f64,
    /// Packets lost, less those that arrived after all.
    pub lost: i64,
    /// Sessions that failed since the run began.
    pub failures: u64,
}

impl Progress {
    pub(crate) fn new(before: (Duration, Counts), now: (Duration, Counts)) -> Self {
        let ((then, old), (elapsed, new)) = (before, now);
        let seconds = elapsed.saturating_sub(then).as_secs_f64().max(1e-9);
        let packets = new.packets - old.packets;
        Self {
            elapsed: elapsed.as_secs_f64(),
            active: new.active,
            starts_per_second: (new.starts - old.starts) as f64 / seconds,
            packets_per_second: packets as f64 / seconds,
            megabits_per_second: (new.bytes - old.bytes) as f64 * 8e-6 / seconds,
            late_percent: percent(new.late - old.late, packets),
            lost: new.lost - old.lost,
            failures: new.failures,
        }
    }

    pub(crate) fn timeline(history: &History) -> Vec<Self> {
        history.stretches().map(|(before, now)| Self::new(before, now)).collect()
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:6.0} s  {:6} active  {:7.1} starts/s  {:8.0} packets/s  {:8.1} Mbit/s  {:5.2} % late  {} lost  {} failed",
            self.elapsed,
            self.active,
            self.starts_per_second,
            self.packets_per_second,
            self.megabits_per_second,
            self.late_percent,
            self.lost,
            self.failures
        )
    }
}

/// The report of a run. Times are in milliseconds, except `elapsed`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The first of the URLs.
    pub url: String,
    /// How many there are.
    pub urls: usize,
    /// `udp` or `tcp`.
    pub transport: &'static str,
    /// Whether only signalling was asked for.
    pub mute: bool,
    /// Clients at once, where their number is fixed.
    pub clients: Option<u32>,
    /// Clients a second, where that is.
    pub rate: Option<f64>,
    /// Seconds from the beginning to the end.
    pub elapsed: f64,
    /// The sessions.
    pub sessions: Sessions,
    /// From DESCRIBE sent to the first packet.
    pub startup: Latency,
    /// From a later PLAY sent, after a jump or a pause, to the first packet.
    pub resumed: Latency,
    /// From asking to the reply, by request; those without any are left out.
    pub methods: Vec<MethodReport>,
    /// The same of all requests together, without connections.
    pub requests: Latency,
    /// The packets.
    pub media: MediaReport,
    /// Why sessions failed.
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

/// How sessions fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sessions {
    /// Began to play.
    pub started: u64,
    /// The same a second.
    pub started_per_second: f64,
    /// Saw all they wanted to.
    pub done: u64,
    /// Failed, before playing or after.
    pub failed: u64,
    /// Were there when the run ended.
    pub cut_off: u64,
    /// Jumps.
    pub seeks: u64,
    /// Pauses.
    pub pauses: u64,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct MethodReport {
    /// The method; `connect` for the connection and `keep-alive` for signs of life.
    pub method: &'static str,
    /// From asking to the reply.
    pub latency: Latency,
}

/// The packets of all sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct MediaReport {
    /// RTP packets received.
    pub packets: u64,
    /// The same a second.
    pub packets_per_second: f64,
    /// Bytes of them, RTP headers included.
    pub bytes: u64,
    /// Million bits of them a second.
    pub megabits_per_second: f64,
    /// More than 100 ms behind the schedule that the first packet after a PLAY and the timestamps make.
    pub late: u64,
    /// Of 100.
    pub late_percent: f64,
    /// Sequence numbers that never arrived.
    pub lost: i64,
    /// Share of the expected packets, in percent.
    pub lost_percent: f64,
    /// Packets that arrived after one with a higher number.
    pub reordered: u64,
    /// Packets that arrived again.
    pub duplicates: u64,
    /// Packets that are no RTP, or far from the expected numbers.
    pub foreign: u64,
    /// How far packets were behind the schedule; where pictures are reordered, that is in it.
    pub behind: Latency,
    /// From one frame's first packet to the next one's, in each track.
    pub between: Latency,
    /// Interarrival jitter (RFC 3550 A.8) of each track at its end.
    pub jitter: Latency,
    /// The largest of `behind` in each track: the time that its receiver must buffer.
    pub buffer: Latency,
}

/// Resources that the generator itself used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Generator {
    /// Seconds of processor time.
    pub processor_seconds: f64,
    /// Of one processor, of 100.
    pub processor_percent: f64,
    /// Packets that this machine's sockets had no room for during the run, whosever they were: counted as lost.
    /// Always 0 for mute clients, whose packets are not read.
    pub overflows: u64,
}

/// Points of distributions: a time, and of 100 how many were not longer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Distributions {
    /// Of the startup.
    pub startup: Vec<(f64, f64)>,
    /// Of the time between frames.
    pub between: Vec<(f64, f64)>,
    /// Of how far packets were behind.
    pub behind: Vec<(f64, f64)>,
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
        let (clients, rate) = match options.audience {
            Audience::Places { clients, .. } => (Some(clients), None),
            Audience::Rate(rate) => (None, Some(rate)),
        };
        let methods =
            tally.methods().map(|(kind, times)| MethodReport { method: kind.name(), latency: Latency::from(times) });
        Self {
            url: options.urls.first().map(ToString::to_string).unwrap_or_default(),
            urls: options.urls.len(),
            transport: options.transport.name(),
            mute: options.mute,
            clients,
            rate,
            elapsed: total.elapsed.as_secs_f64(),
            sessions: Sessions {
                started: tally.starts,
                started_per_second: tally.starts as f64 / seconds,
                done: tally.done,
                failed: tally.failed,
                cut_off: tally.cut_off,
                seeks: tally.seeks,
                pauses: tally.pauses,
            },
            startup: Latency::from(&tally.startup),
            resumed: Latency::from(&tally.resumed),
            methods: methods.collect(),
            requests: Latency::from(&tally.requests()),
            media: MediaReport::new(media, seconds),
            failures: ErrorReport::all(&tally.failures),
            generator: Generator::new(total.processor, seconds, total.overflows),
            distributions: Distributions::new(&tally.startup, media),
            histograms: Histograms::new(media),
            timeline: Progress::timeline(total.history),
        }
    }
}

impl Generator {
    /// `processor` is the time that the generator took of processors in a run of `seconds`.
    pub(crate) fn new(processor: Duration, seconds: f64, overflows: u64) -> Self {
        let processor_seconds = processor.as_secs_f64();
        Self { processor_seconds, processor_percent: processor_seconds / seconds * 100.0, overflows }
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\ngenerator: {:.1} % of a processor", self.processor_percent)?;
        if self.overflows > 0 {
            write!(f, "; sockets of this machine had no room for {} packets", self.overflows)?;
        }
        writeln!(f)
    }
}

impl Distributions {
    pub(crate) fn new(startup: &Histogram, media: &MediaFigures) -> Self {
        Self {
            startup: startup.distribution(),
            between: media.between.distribution(),
            behind: media.behind.distribution(),
        }
    }
}

impl MediaReport {
    pub(crate) fn new(figures: &MediaFigures, seconds: f64) -> Self {
        let counts = figures.counts;
        let lost = u64::try_from(counts.lost).unwrap_or(0);
        Self {
            packets: counts.packets,
            packets_per_second: counts.packets as f64 / seconds,
            bytes: counts.bytes,
            megabits_per_second: counts.bytes as f64 * 8e-6 / seconds,
            late: counts.late,
            late_percent: percent(counts.late, counts.packets),
            lost: counts.lost,
            lost_percent: percent(lost, counts.packets + lost),
            reordered: counts.reordered,
            duplicates: counts.duplicates,
            foreign: counts.foreign,
            behind: Latency::from(&figures.behind),
            between: Latency::from(&figures.between),
            jitter: Latency::from(&figures.jitter),
            buffer: Latency::from(&figures.buffer),
        }
    }
}

fn percent(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 * 100.0 / of as f64 }
}

/// A page of text: sessions, a row for each kind of request, the packets, then failures.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sessions, startup, resumed, generator, .. } = self;
        write!(f, "{}", self.url)?;
        if self.urls > 1 {
            write!(f, " and {} more", self.urls - 1)?;
        }
        let mute = if self.mute { ", mute" } else { "" };
        write!(f, " ({}{mute}), ", self.transport)?;
        match (self.clients, self.rate) {
            (Some(clients), _) => write!(f, "{clients} clients")?,
            (None, rate) => write!(f, "{} clients a second", rate.unwrap_or_default())?,
        }
        writeln!(f, ", {:.1} s", self.elapsed)?;
        writeln!(
            f,
            "{} sessions started ({:.1}/s): {} done, {} failed, {} cut off by the end of the run",
            sessions.started, sessions.started_per_second, sessions.done, sessions.failed, sessions.cut_off
        )?;
        writeln!(f)?;
        writeln!(f, "{:<14}{:>9}  {:>9}{:>9}{:>9}{:>9}", "ms", "count", "p50", "p95", "p99", "max")?;
        for MethodReport { method, latency } in &self.methods {
            row(f, method, latency)?;
        }
        row(f, "all requests", &self.requests)?;
        row(f, "startup", startup)?;
        if resumed.count > 0 {
            row(f, "resumed", resumed)?;
        }
        if self.media.packets > 0 {
            self.media.fmt(f)?;
        }
        if sessions.seeks + sessions.pauses > 0 {
            writeln!(f, "\n{} jumps, {} pauses", sessions.seeks, sessions.pauses)?;
        }
        self.failures.iter().try_for_each(|failure| failure.fmt(f))?;
        generator.fmt(f)
    }
}

impl fmt::Display for MediaReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        row(f, "behind", &self.behind)?;
        row(f, "between frames", &self.between)?;
        row(f, "jitter", &self.jitter)?;
        row(f, "buffer needed", &self.buffer)?;
        writeln!(
            f,
            "\n{} packets ({:.0}/s), {:.2} MB ({:.1} Mbit/s)",
            self.packets,
            self.packets_per_second,
            self.bytes as f64 / 1e6,
            self.megabits_per_second
        )?;
        writeln!(
            f,
            "{} late ({:.3} %), {} lost ({:.3} %), {} reordered, {} duplicates, {} foreign",
            self.late, self.late_percent, self.lost, self.lost_percent, self.reordered, self.duplicates, self.foreign
        )
    }
}

pub(crate) fn row(f: &mut fmt::Formatter<'_>, name: &str, latency: &Latency) -> fmt::Result {
    let Latency { count, p50, p95, p99, max, .. } = latency;
    writeln!(f, "{name:<14}{count:>9}  {p50:>9.2}{p95:>9.2}{p99:>9.2}{max:>9.2}")
}

#[cfg(test)]
mod tests;
