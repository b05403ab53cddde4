//! A load run put together: a look at the URL, threads of players, progress, and the report.
//!
//! Each thread has its own single-threaded runtime, its own connections and its own tally, so that threads
//! share nothing but four counters and measuring stays cheap beside making the requests.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tokio::task::{JoinSet, LocalSet};

use crate::client::{self, Client, Meter, Pool};
use crate::library::Library;
use crate::live::LiveViewer;
use crate::llhls::{Checker, KnownPlaylists};
use crate::options::{Arrivals, LoadOptions, RunLength, Target};
use crate::report::{Progress, Report, Subject};
use crate::resource::ByteSpan;
use crate::tally::{Counters, Ending, Tally};
use crate::title::{Document, Format, TitleError, detect};
use crate::viewer::{Common, Viewer};

/// How often progress is given.
const PROGRESS: Duration = Duration::from_secs(1);
/// How long a place stays empty after a viewer that failed, so that a dead server is not asked in a tight loop.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// The longest manifest that is read when looking at the URL.
const LOOK_LIMIT: usize = 32 << 20;

/// Why a run could not begin, or not be brought to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The options make no sense.
    #[error("{0}")]
    Options(String),
    /// The HTTP client can't be made.
    #[error("HTTP client: {0}")]
    Client(#[source] reqwest::Error),
    /// The URL gives no response.
    #[error("{url}: {cause}")]
    Unreachable {
        /// The URL of the run.
        url: String,
        /// The innermost cause.
        cause: String,
    },
    /// The URL gives an error.
    #[error("{url}: status {status}")]
    Status {
        /// The URL of the run.
        url: String,
        /// The HTTP status code.
        status: u16,
    },
    /// The manifest can't be played.
    #[error("{url}: {source}")]
    Manifest {
        /// The URL of the run.
        url: String,
        /// The fault of the manifest.
        source: TitleError,
    },
    /// Random ranges need to know how long the whole is.
    #[error("{url}: {}", match length {
        Some(length) => format!("has {length} bytes, fewer than the random ranges asked for"),
        None => "does not say its length, which random ranges need".to_owned(),
    })]
    Length {
        /// The URL of the run.
        url: String,
        /// The length that it announces.
        length: Option<u64>,
    },
    /// The system gives no thread, or the thread no runtime.
    #[error("load thread: {0}")]
    Thread(#[source] std::io::Error),
    /// A load thread panicked, which is a defect here.
    #[error("a load thread ended without its figures")]
    Lost,
}

/// Resource behind the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detected {
    Title(Format),
    Live,
    /// With the length of the whole, where it is said.
    Plain(Option<u64>),
}

impl Detected {
    fn name(self) -> &'static str {
        match self {
            Self::Title(Format::Hls) => "hls",
            Self::Title(Format::Dash) => "dash",
            Self::Live => "live",
            Self::Plain(_) => "plain",
        }
    }
}

/// Runs the load that `options` describes, and calls `progress` about once a second.
///
/// Must be called in a tokio runtime with time and I/O enabled. Dropping the future stops the players soon after.
///
/// # Errors
/// When the run can't begin: see [`LoadError`]. Errors of single requests are in the report.
pub async fn run(options: LoadOptions, progress: impl FnMut(&Progress)) -> Result<Report, LoadError> {
    run_until(options, progress, std::future::pending()).await
}

/// Like [`run`], but ends the run early, with a report, when `stop` is ready (say at Ctrl-C).
///
/// # Errors
/// As [`run`].
pub async fn run_until(
    mut options: LoadOptions,
    mut progress: impl FnMut(&Progress),
    stop: impl Future<Output = ()>,
) -> Result<Report, LoadError> {
    if let Some(problem) = options.problem() {
        return Err(LoadError::Options(problem));
    }
    let mode = look(&mut options).await?;
    let subject = Subject { url: options.url.to_string(), mode: mode.name(), clients: options.clients };
    let counters = Arc::new(Counters::default());
    let (stopper, stopped) = watch::channel(false);
    let began = Instant::now();
    let threads = options.threads.min(options.clients as usize);
    let mut results = Vec::with_capacity(threads);
    for thread in 0..threads {
        let work = LoadThread { options: options.clone(), mode, thread, threads, began, counters: counters.clone() };
        results.push(work.spawn(stopped.clone())?);
    }
    drop(stopped);

    let mut stop = std::pin::pin!(stop);
    let length = match options.length {
        RunLength::For(length) => length,
        RunLength::Title => Duration::MAX,
    };
    let deadline = began.checked_add(length);
    let mut before = (Duration::ZERO, counters.read());
    let mut ticks = tokio::time::interval_at((began + PROGRESS).into(), PROGRESS);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let (elapsed, now) = (began.elapsed(), counters.read());
                progress(&Progress::new(elapsed, before, now));
                before = (elapsed, now);
            }
            () = stopper.closed() => break,
            () = &mut stop => break,
            () = until(deadline) => break,
        }
    }
    let (elapsed, counts) = (began.elapsed(), counters.read());
    stopper.send_replace(true);
    let mut tally = Tally::default();
    for result in results {
        tally.merge(result.await.map_err(|_| LoadError::Lost)?);
    }
    Ok(Report::new(subject, elapsed, counts, &tally))
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// Fetches the URL once, as much of it as tells what it is; a manifest is read whole, so that one that can't be
/// played is refused here and not by each player. Where it redirects from http to https, that becomes the URL of
/// the run.
async fn look(options: &mut LoadOptions) -> Result<Detected, LoadError> {
    let url = options.url.to_string();
    let unreachable = |error: reqwest::Error| LoadError::Unreachable { url: url.clone(), cause: client::cause(&error) };
    let http = client::builder(options).build().map_err(LoadError::Client)?;
    let mut response = http.get(options.url.clone()).send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(LoadError::Status { url, status: response.status().as_u16() });
    }
    let location = response.url().clone();
    if location.scheme() != options.url.scheme() {
        options.url = location.clone();
    }
    let length = response.content_length();
    if options.target != Target::Plain {
        let body = head_or_manifest(&mut response).await.map_err(unreachable)?;
        if let Some(format) = detect(&body) {
            return match Document::read(&body, &location) {
                Ok(_) if options.target == Target::Live => Ok(Detected::Live),
                Ok(_) => Ok(Detected::Title(format)),
                Err(source) => Err(LoadError::Manifest { url, source }),
            };
        }
    }
    match options.random_ranges {
        Some(range) if length.is_none_or(|length| length < range) => Err(LoadError::Length { url, length }),
        _ => Ok(Detected::Plain(length)),
    }
}

/// The whole body of a manifest, or about the first kilobyte of anything else.
async fn head_or_manifest(response: &mut reqwest::Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while body.len() < LOOK_LIMIT && (body.len() < 1024 || detect(&body).is_some()) {
        let Some(chunk) = response.chunk().await? else { break };
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The viewers of one thread.
struct LoadThread {
    options: LoadOptions,
    mode: Detected,
    thread: usize,
    threads: usize,
    began: Instant,
    counters: Arc<Counters>,
}

/// One viewer after another.
struct ViewerSlot {
    arrives: Instant,
    rng: fastrand::Rng,
    pool: Rc<Pool>,
}

impl LoadThread {
    fn spawn(self, stopped: watch::Receiver<bool>) -> Result<oneshot::Receiver<Tally>, LoadError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LoadError::Thread)?;
        let (done, result) = oneshot::channel();
        let name = format!("load-{}", self.thread);
        let body = move || {
            let tally = LocalSet::new().block_on(&runtime, self.audience(stopped));
            // The receiver is gone when the run was dropped.
            let _ = done.send(tally);
        };
        std::thread::Builder::new().name(name).spawn(body).map_err(LoadError::Thread)?;
        Ok(result)
    }

    /// Seats the clients of this thread, and waits until all have left.
    async fn audience(self, stopped: watch::Receiver<bool>) -> Tally {
        let meter = Rc::new(Meter { tally: Tally::default().into(), counters: self.counters.clone() });
        let options = Rc::new(self.options);
        let checker = RefCell::new(Some(Checker::default()));
        let (library, playlists) = (Library::default(), KnownPlaylists::default());
        let common = Rc::new(Common { options: options.clone(), meter: meter.clone(), library, checker, playlists });
        let arrivals = arrivals(&options);
        let mine = arrivals.into_iter().enumerate().skip(self.thread).step_by(self.threads);
        let mut seats = JoinSet::new();
        let mut pool = Rc::new(Pool::new(options.clone()));
        for (place, (client, offset)) in mine.enumerate() {
            if place.is_multiple_of(options.players_per_pool as usize) {
                pool = Rc::new(Pool::new(options.clone()));
            }
            let rng = fastrand::Rng::with_seed(options.seed.wrapping_add(1 + client as u64));
            let seat = ViewerSlot { arrives: self.began + offset, rng, pool: pool.clone() };
            let (common, stopped, mode) = (common.clone(), stopped.clone(), self.mode);
            seats.spawn_local(async move { seat.occupy(&common, mode, stopped).await });
        }
        drop(stopped);
        while seats.join_next().await.is_some() {}
        meter.tally.take()
    }
}

impl ViewerSlot {
    /// One viewer after the other, until the run ends or each has had its turn.
    async fn occupy(mut self, common: &Common, mode: Detected, mut stopped: watch::Receiver<bool>) {
        let client = Client::new(self.pool.clone(), common.meter.clone());
        let arrived = tokio::select! {
            biased;
            () = stop(&mut stopped) => false,
            () = tokio::time::sleep_until(self.arrives.into()) => true,
        };
        let again = common.options.length != RunLength::Title;
        let mut stay = arrived;
        while stay {
            common.meter.counters.arrived();
            let ending = match mode {
                Detected::Title(_) => watch_title(common, &client, &mut self.rng, &mut stopped).await,
                Detected::Live => watch_live(common, &client, &mut stopped).await,
                Detected::Plain(length) => self.fetch_plain(common, &client, length, &mut stopped).await,
            };
            common.meter.counters.left();
            stay = again && ending != Ending::CutOff;
            if stay && ending == Ending::Failed {
                tokio::select! {
                    () = stop(&mut stopped) => stay = false,
                    () = tokio::time::sleep(AFTER_FAILURE) => {}
                }
            }
        }
    }

    /// A plain file: the URL over and over, or once where the run has no length.
    async fn fetch_plain(
        &mut self,
        common: &Common,
        client: &Client,
        length: Option<u64>,
        stopped: &mut watch::Receiver<bool>,
    ) -> Ending {
        let options = &common.options;
        let requests = async {
            loop {
                let range = options.random_ranges.and_then(|size| random_range(&mut self.rng, length?, size));
                match client.plain(&options.url, range).await {
                    Err(_) => return Ending::Failed,
                    Ok(()) if options.length == RunLength::Title => return Ending::Done,
                    Ok(()) => {}
                }
            }
        };
        let ending = tokio::select! {
            biased;
            () = stop(stopped) => Ending::CutOff,
            ending = requests => ending,
        };
        common.meter.tally.borrow_mut().ended(ending);
        ending
    }
}

async fn watch_title(
    common: &Common,
    client: &Client,
    rng: &mut fastrand::Rng,
    stopped: &mut watch::Receiver<bool>,
) -> Ending {
    let viewer = Viewer::new(common, client, rng);
    let ending = tokio::select! {
        biased;
        () = stop(stopped) => Ending::CutOff,
        watched = viewer.watch() => if watched.is_ok() { Ending::Done } else { Ending::Failed },
    };
    viewer.leave(ending);
    ending
}

async fn watch_live(common: &Common, client: &Client, stopped: &mut watch::Receiver<bool>) -> Ending {
    let viewer = LiveViewer::new(common, client);
    let ending = tokio::select! {
        biased;
        () = stop(stopped) => Ending::CutOff,
        watched = viewer.watch() => if watched.is_ok() { Ending::Done } else { Ending::Failed },
    };
    viewer.leave(ending);
    ending
}

/// Ready when the run ends, or its future was dropped.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

/// When each client arrives, after the run began. Every thread computes the same list and takes its share.
fn arrivals(options: &LoadOptions) -> Vec<Duration> {
    let count = options.clients;
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let mut fractions: Vec<f64> = match options.arrivals {
        Arrivals::Even => (0..count).map(|client| f64::from(client) / f64::from(count)).collect(),
        // Given how many events a Poisson process has in an interval, they lie there independently and evenly.
        Arrivals::Poisson => (0..count).map(|_| rng.f64()).collect(),
    };
    fractions.sort_by(f64::total_cmp);
    fractions.into_iter().map(|fraction| options.ramp_up.mul_f64(fraction)).collect()
}

/// `size` bytes somewhere in `length`.
fn random_range(rng: &mut fastrand::Rng, length: u64, size: u64) -> Option<ByteSpan> {
    ByteSpan::new(rng.u64(0..=length.checked_sub(size)?), size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(clients: u32, arrivals: Arrivals) -> LoadOptions {
        let url = url::Url::parse("http://h/").unwrap();
        LoadOptions { clients, arrivals, ramp_up: Duration::from_secs(10), ..LoadOptions::new(url) }
    }

    #[test]
    fn even_arrivals_are_equally_far_apart() {
        let times = arrivals(&options(5, Arrivals::Even));
        assert_eq!(times, [0, 2, 4, 6, 8].map(Duration::from_secs));
    }

    #[test]
    fn poisson_arrivals_are_irregular_but_within_the_ramp() {
        let options = options(1000, Arrivals::Poisson);
        let times = arrivals(&options);
        assert_eq!(times, arrivals(&options), "the same for every thread");
        assert!(times.is_sorted() && times.iter().all(|&time| time < options.ramp_up));
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let longer = gaps.iter().filter(|&&gap| gap > mean).count() as f64 / gaps.len() as f64;
        // Of exponential gaps, 1/e are longer than the mean.
        assert!((mean - 0.01).abs() < 0.001 && (longer - 0.368).abs() < 0.06, "{mean} {longer}");
    }

    #[test]
    fn random_ranges_stay_inside() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..1000 {
            let span = random_range(&mut rng, 10, 4).expect("fits");
            assert_eq!(span.length(), 4);
            let last: u64 = span.to_string().split('-').nth(1).and_then(|last| last.parse().ok()).expect("last");
            assert!(last < 10);
        }
        assert_eq!(random_range(&mut rng, 3, 4), None);
    }
}
