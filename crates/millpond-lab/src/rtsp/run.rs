//! A run put together: threads of clients, progress, and the report.

use super::{
    clock::{Clock, until},
    figures::{Counters, MediaFigures},
    observation::observe,
    options::{Audience, Options, Transport},
    report::{Progress, Report, Total},
    system,
    tally::Tally,
    thread::Share,
};
use std::{sync::Arc, time::Instant};
use tokio::sync::watch;

/// Why a run could not begin, or not be brought to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The options make no sense.
    #[error("{0}")]
    Options(String),
    /// Too few files may be open.
    #[error("{clients} clients need {needed} open files, and the limit is {limit}: raise it with `ulimit -Hn`")]
    Files {
        /// How many clients there are to be.
        clients: u32,
        /// Files that they need at least.
        needed: u64,
        /// Files that may be open.
        limit: u64,
    },
    /// The system gives no thread, or the thread no runtime.
    #[error("load thread: {0}")]
    Thread(#[source] std::io::Error),
    /// A thread panicked, which is a defect here.
    #[error("a load thread ended without its figures")]
    Lost,
}

/// Runs the load that `options` describe, calls `progress` about once a second, and ends early, with a report, when
/// `stop` is ready (say at Ctrl-C).
///
/// Must be called in a tokio runtime with time enabled. Dropping the future stops the clients soon after.
///
/// # Errors
/// When the run can't begin: see [`RunError`]. Failures of single sessions are in the report.
pub async fn run_until(
    options: Options,
    progress: impl FnMut(&Progress),
    stop: impl Future<Output = ()>,
) -> Result<Report, RunError> {
    if let Some(problem) = options.problem() {
        return Err(RunError::Options(problem));
    }
    check_files(&options)?;
    let (clock, counters) = (Clock::start(), Arc::new(Counters::default()));
    let began = Instant::now();
    let before = (system::processor_time(), system::overflows());
    let (stopper, stopped) = watch::channel(false);
    let mut results = Vec::with_capacity(options.threads);
    for thread in 0..options.threads {
        let counters = counters.clone();
        let share = Share { options: options.clone(), clock, counters, thread, threads: options.threads };
        results.push(share.spawn(stopped.clone()).map_err(RunError::Thread)?);
    }
    drop(stopped);

    let deadline = options.length.and_then(|length| began.checked_add(length));
    let end = async {
        tokio::select! {
            () = stopper.closed() => {}
            () = stop => {}
            () = until(deadline) => {}
        }
    };
    let history = observe(began, &counters, progress, end).await;
    let elapsed = began.elapsed();
    stopper.send_replace(true);
    let (mut tally, mut media) = (Tally::default(), MediaFigures::default());
    for result in results {
        let (signalling, received) = result.await.map_err(|_| RunError::Lost)?;
        tally.merge(signalling);
        media.merge(&received);
    }
    let total = Total {
        elapsed,
        tally: &tally,
        media: &media,
        history: &history,
        processor: system::processor_time().saturating_sub(before.0),
        // The media of mute clients is not read.
        overflows: if options.mute { 0 } else { system::overflows().saturating_sub(before.1) },
    };
    Ok(Report::new(&options, &total))
}

/// A client has a connection, and by UDP two ports or more.
fn check_files(options: &Options) -> Result<(), RunError> {
    let limit = system::open_files();
    let each = if options.transport == Transport::Udp && !options.mute { 3 } else { 1 };
    // How many are there at once at a rate is known only when it happens.
    let Audience::Places { clients, .. } = options.audience else { return Ok(()) };
    let needed = system::needed(clients, each);
    if needed > limit { Err(RunError::Files { clients, needed, limit }) } else { Ok(()) }
}
