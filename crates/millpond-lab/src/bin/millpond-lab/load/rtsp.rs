//! `millpond load rtsp://...`: clients of any RTSP server.

use super::{Given, Outcome, draw, interrupted, runtime, show};
use millpond_lab::rtsp::{Audience, Options, Transport, Watch, expand, run_until};
use millpond_terminal::urls;

pub(super) fn run(given: &Given<'_>) -> Outcome {
    let options = options(given)?;
    let report = runtime()?.block_on(run_until(options, |progress| show(progress), interrupted()))?;
    given.publish(&report, serde_json::to_string_pretty(&report))?;
    draw(given, || report.plot())?;
    match report.sessions.failed {
        0 => Ok(()),
        failed => Err(format!("{failed} sessions failed").into()),
    }
}

fn options(given: &Given<'_>) -> Result<Options, String> {
    let mut parsed = Vec::new();
    for pattern in given.urls() {
        for url in expand(pattern)? {
            parsed.push(urls::parse("URL", &url, &["rtsp", "rtsps", "http", "https"])?);
        }
    }
    let mut options = Options::new(parsed);
    options.zipf = given.number("zipf").unwrap_or(options.zipf);
    options.audience = match given.number("rate") {
        Some(rate) => Audience::Rate(rate),
        None => {
            Audience::Places { clients: given.number("clients").unwrap_or(10), ramp_up: given.duration("ramp-up")? }
        }
    };
    options.arrivals = given.arrivals();
    options.length = given.optional_duration("duration")?;
    options.watch = match (given.optional_duration("watch")?, given.text("watch-distribution")) {
        (None, _) => Watch::Title,
        (Some(mean), "exponential") => Watch::Exponential(mean),
        (Some(time), _) => Watch::Fixed(time),
    };
    options.mean_watch = given.number("mean-watch").unwrap_or(options.mean_watch);
    options.start_within = given.number("start-within").unwrap_or(options.start_within);
    options.seeks = given.number("seeks").unwrap_or(options.seeks);
    options.pauses = given.number("pauses").unwrap_or(options.pauses);
    options.transport = if given.text("transport") == "tcp" { Transport::Tcp } else { Transport::Udp };
    if let Some(silence) = given.optional_duration("silence")? {
        (options.timeout, options.silence) = (options.timeout.max(silence), silence);
    }
    options.reports = given.optional_duration("reports")?;
    options.mute = given.flag("mute");
    options.once = given.flag("once");
    options.threads = given.number("threads").unwrap_or(1);
    Ok(options)
}
