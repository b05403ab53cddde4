//! `millpond load http://...`: players of HLS and DASH, or plain requests.

use super::{Given, Outcome, draw, interrupted, runtime, show};
use millpond_lab::{Abr, HttpVersion, LoadOptions, Pace, RunLength, Target, run_until};
use millpond_terminal::urls;

pub(super) fn run(given: &Given<'_>, url: &str) -> Outcome {
    let options = options(given, url)?;
    let report = runtime()?.block_on(run_until(options, |progress| show(progress), interrupted()))?;
    given.publish(&report, serde_json::to_string_pretty(&report))?;
    draw(given, || report.plot())?;
    if report.error_count() > 0 { Err(format!("{} requests failed", report.error_count()).into()) } else { Ok(()) }
}

fn options(given: &Given<'_>, url: &str) -> Result<LoadOptions, String> {
    let mut options = LoadOptions::new(urls::parse("URL", url, &["http", "https", "rtsp"])?);
    options.clients = given.number("clients").unwrap_or(options.clients);
    options.ramp_up = given.duration("ramp-up")?;
    options.arrivals = given.arrivals();
    options.length = given.optional_duration("duration")?.map_or(options.length, RunLength::For);
    options.pace = match given.text("pace") {
        "fast" => Pace::Fast,
        _ => Pace::Realtime { buffer: given.duration("buffer")? },
    };
    options.abr = match given.text("abr") {
        "lowest" => Abr::Lowest,
        "highest" => Abr::Highest,
        _ => Abr::Switching,
    };
    options.start_within = given.number("start-within").unwrap_or(options.start_within);
    options.mean_watch = given.number("mean-watch").unwrap_or(options.mean_watch);
    options.random_ranges = given.number("ranges");
    options.threads = given.number("threads").unwrap_or(1);
    options.http = if given.flag("http2") { HttpVersion::Http2 } else { HttpVersion::Http1 };
    options.target = match (given.flag("plain"), given.flag("live")) {
        (true, _) => Target::Plain,
        (false, true) => Target::Live,
        (false, false) => Target::Detect,
    };
    options.timeout = given.duration("timeout")?;
    options.retries = given.number("retries").unwrap_or(options.retries);
    options.insecure = given.flag("insecure");
    Ok(options)
}
