//! `millpond-lab load whep URL`: viewers of any server of WebRTC.

use super::{Given, Outcome, interrupted, option, optional, runtime, show};
use clap::{Arg, Command, value_parser};
use millpond_lab::whep::{Options, run_until};
use millpond_terminal::urls;

pub(super) fn command() -> Command {
    Command::new("whep").about("Loads any WebRTC server with many simulated viewers of one stream, by WHEP").args([
        Arg::new("url")
            .value_name("URL")
            .required(true)
            .help("WHEP endpoint of the stream, such as http://h/live/cam/whep"),
        option("viewers", "NUMBER", "10", "Number of viewers").value_parser(value_parser!(u32)),
        option("rate", "NUMBER", "50", "Number of viewers that arrive in a second").value_parser(value_parser!(f64)),
        option("duration", "DURATION", "30s", "Duration of the run, arrivals included"),
        option("reports", "DURATION", "1s", "Interval of receiver reports"),
        option("silence", "DURATION", "4s", "Longest time without a packet before a viewer has failed"),
        option("threads", "NUMBER", "1", "Number of threads that receive").value_parser(value_parser!(usize)),
        optional("json", "FILE", "Writes the report as JSON; - for standard output"),
    ])
}

pub(super) fn run(given: &Given<'_>) -> Outcome {
    let options = options(given)?;
    let report = runtime()?.block_on(run_until(options, |progress| show(progress), interrupted()))?;
    given.publish(&report, serde_json::to_string_pretty(&report))?;
    match report.sessions.failed {
        0 => Ok(()),
        failed => Err(format!("{failed} viewers failed").into()),
    }
}

fn options(given: &Given<'_>) -> Result<Options, String> {
    let mut options = Options::new(urls::parse("URL", given.text("url"), &["http", "https"])?);
    options.viewers = given.number("viewers").unwrap_or(options.viewers);
    options.rate = given.number("rate").unwrap_or(options.rate);
    options.length = given.duration("duration")?;
    options.reports = given.duration("reports")?;
    options.silence = given.duration("silence")?;
    options.timeout = options.timeout.max(options.silence);
    options.threads = given.number("threads").unwrap_or(options.threads);
    Ok(options)
}
