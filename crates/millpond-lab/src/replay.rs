//! A trace played for real: each visit reads its part of a file by plain HTTP, range after range, at its pace.
//!
//! The counterpart of [`simulate::run`](crate::simulate::run): the server's counters after the one are what the other
//! says they will be.

use crate::client::cause;
use crate::histogram::Histogram;
use crate::report::Latency;
use crate::simulate::{Visit, Workload};
use reqwest::{StatusCode, header};
use serde::Serialize;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;
use url::Url;

/// The longest time that one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The results of a replay.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReplayReport {
    /// Visits begun.
    pub visits: u64,
    /// Requests.
    pub requests: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Visits that ended early because a request failed.
    pub failed: u64,
    /// Why the first of them did.
    pub failure: Option<String>,
    /// From a visit's first request to its first byte.
    pub startup: Latency,
    /// Ranges that arrived later than they were needed.
    pub stalls: u64,
    /// For how many seconds, in all.
    pub stall_seconds: f64,
}

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} visits, {} requests, {:.3} GB, {} failed; startup {:.1} ms (p50) {:.1} ms (p95); {} stalls, {:.1} s",
            self.visits,
            self.requests,
            self.bytes as f64 / 1e9,
            self.failed,
            self.startup.p50,
            self.startup.p95,
            self.stalls,
            self.stall_seconds
        )
    }
}

#[derive(Default)]
struct Tally {
    report: ReplayReport,
    startup: Histogram,
}

/// Plays a workload in real time. A visit of object N reads `base`/N in ranges of `block` bytes, each when the reader has
/// come to it, and names itself in its `User-Agent`. `progress` is told the seconds gone and the visits begun.
///
/// # Errors
///
/// Where no HTTP client can be made. Failures of visits are in the report.
pub async fn replay(
    workload: &Workload,
    base: &Url,
    block: u64,
    mut progress: impl FnMut(f64, usize),
) -> Result<ReplayReport, reqwest::Error> {
    let tally = Rc::new(RefCell::new(Tally::default()));
    let began = Instant::now();
    let local = LocalSet::new();
    let mut visits = JoinSet::new();
    let run = local.run_until(async {
        for (number, visit) in workload.visits.iter().enumerate() {
            tokio::time::sleep_until(began + Duration::from_secs_f64(visit.at.max(0.0))).await;
            if number % 64 == 0 {
                progress(visit.at, number);
            }
            while visits.try_join_next().is_some() {}
            let client = reqwest::Client::builder()
                .no_proxy()
                .timeout(TIMEOUT)
                .tls_certs_only([])
                .user_agent(format!("millpond-load/{number}"))
                .build()?;
            visits.spawn_local(watch(client, base.clone(), *visit, block.max(1), tally.clone()));
        }
        while visits.join_next().await.is_some() {}
        Ok(())
    });
    run.await?;
    let Tally { mut report, startup } = tally.take();
    report.startup = Latency::from(&startup);
    Ok(report)
}

async fn watch(client: reqwest::Client, base: Url, visit: Visit, block: u64, tally: Rc<RefCell<Tally>>) {
    tally.borrow_mut().report.visits += 1;
    let url = format!("{}/{}", base.as_str().trim_end_matches('/'), visit.object);
    let mut at = visit.from;
    let mut clock = Instant::now();
    while at < visit.to {
        tokio::time::sleep_until(clock).await;
        let end = ((at / block + 1) * block).min(visit.to);
        let asked = Instant::now();
        let first = match read(&client, &url, at, end).await {
            Ok(first) => first,
            Err(why) => {
                let mut tally = tally.borrow_mut();
                tally.report.failed += 1;
                tally.report.failure.get_or_insert(why);
                return;
            }
        };
        let mut tally = tally.borrow_mut();
        tally.report.requests += 1;
        tally.report.bytes += end - at;
        // Played as it comes: from its first byte on at the visit's start, else from where the last range ends.
        if at == visit.from {
            tally.startup.record(first - asked);
            clock = first;
        }
        clock += Duration::try_from_secs_f64((end - at) as f64 / visit.rate).unwrap_or_default();
        let late = Instant::now().saturating_duration_since(clock);
        if visit.rate.is_finite() && !late.is_zero() {
            tally.report.stalls += 1;
            tally.report.stall_seconds += late.as_secs_f64();
            clock += late;
        }
        at = end;
    }
    // It stays until it has played the last range.
    tokio::time::sleep_until(clock).await;
}

/// Reads a range. Returns when its first bytes arrived.
async fn read(client: &reqwest::Client, url: &str, from: u64, end: u64) -> Result<Instant, String> {
    let failed = |error: reqwest::Error| format!("{url}: {}", cause(&error));
    let range = format!("bytes={from}-{}", end - 1);
    let mut response = client.get(url).header(header::RANGE, range).send().await.map_err(failed)?;
    if response.status() != StatusCode::PARTIAL_CONTENT {
        return Err(format!("{url}: status {}, expected 206", response.status()));
    }
    let first = Instant::now();
    let mut left = end - from;
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        left = left.checked_sub(chunk.len() as u64).ok_or_else(|| format!("{url}: more bytes than asked for"))?;
    }
    if left == 0 { Ok(first) } else { Err(format!("{url}: {left} bytes fewer than asked for")) }
}
