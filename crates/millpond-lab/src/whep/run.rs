//! A run put together: viewers, threads that receive, progress, and the report.

use super::{
    handshake::Identity,
    options::Options,
    receiver,
    report::{Report, Total},
    session::{Common, visit},
};
use crate::rtsp::{
    Progress,
    clock::{Clock, until},
    figures::{Counters, MediaFigures},
    observation::observe,
    system,
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::JoinSet, time::timeout};

/// How long viewers may take to leave at the end of the run.
const GRACE: Duration = Duration::from_secs(10);
/// Descriptors of a viewer: its port, and the connection of its requests.
const FILES: u64 = 2;

/// Why a run could not begin, or not be brought to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The options make no sense.
    #[error("{0}")]
    Options(String),
    /// The server's name has no address, or none that can be reached.
    #[error("{url}: {cause}")]
    Unreachable {
        /// The URL of the run.
        url: String,
        /// The cause.
        cause: io::Error,
    },
    /// Too few files may be open.
    #[error("{viewers} viewers need {needed} open files, and the limit is {limit}: raise it with `ulimit -Hn`")]
    Files {
        /// How many viewers there are to be.
        viewers: u32,
        /// Files that they need at least.
        needed: u64,
        /// Files that may be open.
        limit: u64,
    },
    /// The HTTP client can't be made.
    #[error("HTTP client: {0}")]
    Client(#[source] reqwest::Error),
    /// No certificate can be made.
    #[error("{0}")]
    Identity(String),
    /// The system gives no thread.
    #[error("load thread: {0}")]
    Thread(#[source] io::Error),
    /// A thread panicked, which is a defect here.
    #[error("a load thread ended without its figures")]
    Lost,
}

/// Runs the load that `options` describe, calls `progress` about once a second, and ends early, with a report, when
/// `stop` is ready (say at Ctrl-C).
///
/// Must be called in a tokio runtime with time and I/O enabled.
///
/// # Errors
/// When the run can't begin: see [`RunError`]. Failures of single viewers are in the report.
pub async fn run_until(
    options: Options,
    progress: impl FnMut(&Progress),
    stop: impl Future<Output = ()>,
) -> Result<Report, RunError> {
    if let Some(problem) = options.problem() {
        return Err(RunError::Options(problem));
    }
    let (needed, limit) = (system::needed(options.viewers, FILES), system::open_files());
    if needed > limit {
        return Err(RunError::Files { viewers: options.viewers, needed, limit });
    }
    let (ways, threads): (Vec<_>, Vec<_>) = (0..options.threads).map(|_| receiver::prepare()).unzip();
    let clock = Clock::start();
    let common = Arc::new(Common {
        http: client(&options).map_err(RunError::Client)?,
        identity: Identity::new().map_err(RunError::Identity)?,
        local: local(&options).await.map_err(|cause| RunError::Unreachable { url: options.url.to_string(), cause })?,
        options,
        clock,
        counters: Counters::default(),
        tally: Mutex::default(),
        receivers: ways,
    });
    let before = (system::processor_time(), system::overflows());
    let mut receiving = Vec::new();
    for (number, thread) in threads.into_iter().enumerate() {
        let name = format!("receive-{number}");
        receiving.push(thread.start(name, common.clone()).map_err(RunError::Thread)?);
    }
    let (stopper, stopped) = watch::channel(false);
    let mut viewers = JoinSet::new();
    viewers.spawn(arrive(common.clone(), stopped));

    let began = Instant::now();
    let deadline = began.checked_add(common.options.length);
    let end = async {
        tokio::select! {
            () = stop => {}
            () = until(deadline) => {}
        }
    };
    let history = observe(began, &common.counters, progress, end).await;
    let elapsed = began.elapsed();
    let (processor, overflows) = (system::processor_time(), system::overflows());
    common.receivers.iter().for_each(receiver::Receiver::stop);
    let mut media = MediaFigures::default();
    for thread in receiving {
        media.merge(&thread.join().map_err(|_| RunError::Lost)?);
    }
    stopper.send_replace(true);
    let all_left = async { while viewers.join_next().await.is_some() {} };
    let _ = timeout(GRACE, all_left).await;
    let tally = common.tally().clone();
    let total = Total {
        elapsed,
        tally: &tally,
        media: &media,
        history: &history,
        processor: processor.saturating_sub(before.0),
        overflows: overflows.saturating_sub(before.1),
    };
    Ok(Report::new(&common.options, &total))
}

/// Lets viewers in one after the other, and waits until all have left.
async fn arrive(common: Arc<Common>, stopped: watch::Receiver<bool>) {
    let mut viewers = JoinSet::new();
    let began = Instant::now();
    for number in 0..common.options.viewers {
        let at = Duration::from_secs_f64(f64::from(number) / common.options.rate);
        let mut stopped_meanwhile = stopped.clone();
        tokio::select! {
            biased;
            _ = stopped_meanwhile.wait_for(|&stopped| stopped) => break,
            () = until(began.checked_add(at)) => {}
        }
        viewers.spawn(visit(common.clone(), number as usize, stopped.clone()));
    }
    while viewers.join_next().await.is_some() {}
}

fn client(options: &Options) -> Result<reqwest::Client, reqwest::Error> {
    let builder = reqwest::Client::builder()
        .no_proxy()
        .timeout(options.timeout)
        .user_agent(concat!("millpond-load/", env!("CARGO_PKG_VERSION")))
        .http1_only();
    // Reading the system's certificates takes milliseconds.
    if options.url.scheme() == "https" { builder.build() } else { builder.tls_certs_only([]).build() }
}

/// The address of this machine by which it reaches the server.
async fn local(options: &Options) -> io::Result<IpAddr> {
    let (host, port) = (options.url.host_str().unwrap_or_default(), options.url.port_or_known_default().unwrap_or(80));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let server = tokio::net::lookup_host((host, port)).await?.next();
    let server = server.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let any: SocketAddr = if server.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0; 8], 0).into() };
    let probe = tokio::net::UdpSocket::bind(any).await?;
    // No packet is sent.
    probe.connect(server).await?;
    Ok(probe.local_addr()?.ip())
}
