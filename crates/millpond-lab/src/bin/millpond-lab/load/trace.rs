//! `millpond load --trace`: visits of a trace, by plain HTTP.

use super::{Given, Outcome, runtime, show};
use millpond_lab::{replay, simulate::trace};
use millpond_settings::value;
use millpond_terminal::urls;

pub(super) fn run(given: &Given<'_>, url: &str, file: &str) -> Outcome {
    let url = urls::parse("URL", url, &["http", "https"])?;
    let block = value::size(given.text("block")).map_err(|_| "--block: a size such as 64KiB")?;
    let bytes = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let workload = trace::csv(&bytes).map_err(|e| format!("{file}: {e}"))?;
    let all = workload.visits.len();
    let progress = |seconds: f64, visits: usize| show(format_args!("{seconds:.0} s, {visits} of {all} visits"));
    let report = runtime()?.block_on(replay(&workload, &url, block, progress))?;
    given.publish(&report, serde_json::to_string_pretty(&report))?;
    match report.failure {
        Some(why) => Err(format!("{} visits failed: {why}", report.failed).into()),
        None => Ok(()),
    }
}
