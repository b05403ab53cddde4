//! Whether other nodes answer, before viewers are sent to them.
//!
//! etcd removes a dead node when its lease is over. Until then, and while etcd itself is away, a probe tells: a request that the
//! application must answer. The system of a node that hangs accepts connections for it, so a connection proves nothing.

use super::clocks::{CLOCK_HEADER, StatedTimes};
use millpond_cluster::{ClockReading, Liveness, Probed};
use millpond_outbound::{CertificateFault, Client, SendError};
use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Mutex,
    time::{Instant, timeout},
};
use url::Url;

/// Time for which an answer holds. A node that dies gets viewers for no longer.
const FRESH: Duration = Duration::from_millis(250);
/// Time limit of a probe. A busy machine may be late by some hundred milliseconds.
const LIMIT: Duration = Duration::from_secs(1);
/// Most addresses that are remembered. Beyond it, all are forgotten.
const MOST: usize = 1024;
/// Path of probes by HTTP. Every answer tells that the node lives.
const HEALTH: &str = "/.millpond/health";

/// The state of one address: the results of its probes, and the probe under way.
#[derive(Debug, Default)]
struct Known {
    /// A lock, held for a look or a change.
    liveness: StdMutex<Liveness>,
    /// Fault of a certificate that the last probe found. A lock, held for a look or a change.
    fault: StdMutex<Option<CertificateFault>>,
    /// The times that the last answer stated. A lock, held for a look or a change.
    clock: StdMutex<Option<ClockReading>>,
    /// A lock, held while the address is probed: callers that come meanwhile wait for the same answer.
    probe: Mutex<()>,
}

impl Known {
    fn liveness(&self) -> MutexGuard<'_, Liveness> {
        self.liveness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock(&self) -> MutexGuard<'_, Option<ClockReading>> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self) -> MutexGuard<'_, Option<CertificateFault>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Addresses of nodes that answer, and those that do not.
#[derive(Debug)]
pub(super) struct Reach {
    /// A lock, held for a look-up.
    known: StdMutex<HashMap<Arc<str>, Arc<Known>>>,
    /// The client by which nodes with TLS are probed.
    client: Client,
    clock: Instant,
}

impl Reach {
    /// Knows no address yet. `clock` is the start of the server.
    pub(super) fn new(client: Client, clock: Instant) -> Self {
        Self { known: StdMutex::default(), client, clock }
    }

    /// Whether viewers may be sent to an address: it answered its last probe, a moment ago, and is not [down](Liveness). An address
    /// that does not answer is probed by [`again`](Self::again), beside the callers: each node that hangs costs them one time limit, once.
    pub(super) async fn is_up(&self, base: &Arc<str>) -> bool {
        let known = self.known(base);
        let is_known = |liveness: &Liveness| liveness.is_fresh(self.clock.elapsed(), FRESH) || !liveness.is_usable();
        if !is_known(&known.liveness()) {
            let _probe = known.probe.lock().await;
            if !is_known(&known.liveness()) {
                self.note(base, &known).await;
            }
        }
        known.liveness().is_usable()
    }

    /// Whether an address answers a probe that is sent now, or was sent within the last moments.
    pub(super) async fn answers(&self, base: &Arc<str>) -> bool {
        let known = self.known(base);
        let _probe = known.probe.lock().await;
        if !known.liveness().is_fresh(self.clock.elapsed(), LIMIT) {
            self.note(base, &known).await;
        }
        known.liveness().is_usable()
    }

    /// Time since the start of the server.
    pub(super) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Whether an address is down, by probes that were sent after `since`. It takes two of them: one slow answer does not suffice. All callers
    /// wait for the same probes, so that none waits for those of the others.
    pub(super) async fn is_lost(&self, base: &Arc<str>, since: Duration) -> bool {
        let (known, mut since) = (self.known(base), since);
        loop {
            let _probe = known.probe.lock().await;
            let is_probed = known.liveness().probed_at().is_some_and(|at| at >= since);
            if !is_probed {
                self.note(base, &known).await;
            }
            let liveness = known.liveness().clone();
            match liveness.probed_at() {
                Some(at) if !liveness.is_usable() && liveness.is_down() != Some(true) => {
                    since = at + Duration::from_nanos(1);
                }
                _ => return liveness.is_down() == Some(true),
            }
        }
    }

    /// Notes that a request to an address failed. After some of them in a short time the address counts as silent, until it is probed.
    pub(super) fn failed(&self, base: &Arc<str>) {
        let (known, now) = (self.known(base), self.clock.elapsed());
        let mut liveness = known.liveness();
        if liveness.failed(now) {
            liveness.probed(Probed::Silent, now);
        }
    }

    /// Whether an address is down; `None` where it was never probed.
    pub(super) fn is_down(&self, base: &str) -> Option<bool> {
        let known = self.all().get(base)?.clone();
        known.liveness().is_down()
    }

    /// Whether this node can't use an address because one end refuses the certificate of the other. Viewers may trust others than nodes do.
    pub(super) fn is_distrusted(&self, base: &Arc<str>) -> bool {
        self.known(base).fault().is_some()
    }

    /// Addresses of which a certificate was refused at the last probe.
    pub(super) fn faults(&self) -> Vec<(Arc<str>, CertificateFault)> {
        let all = self.all();
        all.iter().filter_map(|(base, known)| Some((base.clone(), known.fault().clone()?))).collect()
    }

    /// The times that the last answer of an address stated, against the time since the start of the server.
    pub(super) fn clock(&self, base: &str) -> Option<ClockReading> {
        let known = self.all().get(base)?.clone();
        *known.clock()
    }

    /// Takes over times as if an address had answered a probe with it.
    #[cfg(test)]
    pub(super) fn hears(&self, base: &Arc<str>, reading: ClockReading) {
        *self.known(base).clock() = Some(reading);
    }

    /// Addresses that did not answer their last probe.
    pub(super) fn unusable(&self) -> Vec<Arc<str>> {
        let all = self.all();
        all.iter().filter(|(_, known)| !known.liveness().is_usable()).map(|(base, _)| base.clone()).collect()
    }

    /// Forgets addresses that no node has.
    pub(super) fn keep(&self, is_kept: impl Fn(&str) -> bool) {
        self.all().retain(|base, _| is_kept(base));
    }

    /// Probes an address, whatever is known of it.
    pub(super) async fn again(&self, base: &Arc<str>) {
        let known = self.known(base);
        let _probe = known.probe.lock().await;
        self.note(base, &known).await;
    }

    async fn note(&self, base: &Arc<str>, known: &Known) {
        let sent = self.clock.elapsed();
        let Answer { result, fault, times } = probe(base, &self.client).await;
        if result != Probed::Silent {
            *known.fault() = fault;
        }
        if let Some(times) = times {
            *known.clock() = Some(times.read(sent, self.clock.elapsed()));
        }
        let changed = known.liveness().probed(result, sent);
        if let Some(is_up) = changed {
            tracing::debug!(%base, is_up, "whether an address of a node answers has changed");
        }
    }

    fn known(&self, base: &Arc<str>) -> Arc<Known> {
        let mut all = self.all();
        if all.len() >= MOST && !all.contains_key(base) {
            all.clear();
        }
        all.entry(base.clone()).or_default().clone()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Known>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to a probe, or its lack.
#[derive(Debug)]
struct Answer {
    result: Probed,
    /// Fault of a certificate, beside an answer.
    fault: Option<CertificateFault>,
    /// Times that the answer states.
    times: Option<StatedTimes>,
}

impl From<Probed> for Answer {
    fn from(result: Probed) -> Self {
        Self { result, fault: None, times: None }
    }
}

/// Probes an address. A certificate that is refused is a fault beside an answer.
async fn probe(base: &str, client: &Client) -> Answer {
    let Ok(url) = Url::parse(base) else { return Probed::Refused.into() };
    let asked = async {
        match url.scheme() {
            "http" => {
                hello(
                    &url,
                    &format!("HEAD {HEALTH} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", authority(&url)),
                )
                .await
            }
            "rtsp" => hello(&url, &format!("OPTIONS {base}/ RTSP/1.0\r\nCSeq: 1\r\n\r\n")).await,
            "https" => by_tls(&url, client).await,
            // A connection must suffice: RTSP has no client here that reads certificates.
            _ => connected(&url).await.map_or(Probed::Refused, |_| Probed::Answered).into(),
        }
    };
    timeout(LIMIT, asked).await.unwrap_or(Probed::Silent.into())
}

/// Sends a request, and waits for the first bytes of an answer: its head is short. A connection that the application closes is one: a client has
/// reached a limit.
async fn hello(url: &Url, request: &str) -> Answer {
    let Ok(mut stream) = connected(url).await else { return Probed::Refused.into() };
    if stream.write_all(request.as_bytes()).await.is_err() {
        return Probed::Silent.into();
    }
    let mut head = [0; 1024];
    match stream.read(&mut head).await {
        Ok(length) => Answer { times: StatedTimes::of_head(&head[..length]), ..Probed::Answered.into() },
        Err(_) => Probed::Silent.into(),
    }
}

async fn by_tls(url: &Url, client: &Client) -> Answer {
    let Ok(health) = url.join(HEALTH) else { return Probed::Refused.into() };
    let error = match client.request(http::Method::HEAD, health).send().await {
        Ok(answer) => {
            let times = answer.headers().get(CLOCK_HEADER).and_then(|value| StatedTimes::parse(value.to_str().ok()?));
            return Answer { times, ..Probed::Answered.into() };
        }
        Err(error) => error,
    };
    match (error.certificate_fault(), error) {
        // The node lives. Viewers may trust an authority that this machine does not know.
        (Some(fault), _) => Answer { fault: Some(fault), ..Probed::Answered.into() },
        (None, SendError::Connect(_)) => Probed::Refused.into(),
        (None, _) => Probed::Silent.into(),
    }
}

async fn connected(url: &Url) -> io::Result<TcpStream> {
    let port = url.port_or_known_default().unwrap_or(if url.scheme() == "rtsps" { 322 } else { 554 });
    let address = match url.host() {
        Some(url::Host::Domain(name)) => name.to_owned(),
        Some(url::Host::Ipv4(ip)) => ip.to_string(),
        Some(url::Host::Ipv6(ip)) => ip.to_string(),
        // Schemes that the standard of URLs doesn't know keep the text of their hosts.
        None => return Err(io::ErrorKind::InvalidInput.into()),
    };
    TcpStream::connect((address.as_str(), port)).await
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::net::TcpListener;

    fn reach() -> Reach {
        Reach::new(super::super::passage::client(None).unwrap(), Instant::now())
    }

    /// A listener that answers each request while `answers` is true, and its requests.
    async fn node(scheme: &str) -> (Arc<str>, tokio::sync::watch::Sender<bool>, Arc<AtomicU32>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("{scheme}://{}", listener.local_addr().unwrap()).into();
        let ((answers, answering), asked) = (tokio::sync::watch::channel(true), Arc::<AtomicU32>::default());
        let counted = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut answering = answering.clone();
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 256]).await;
                    let _ = answering.wait_for(|answers| *answers).await;
                    let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\n\r\n").await;
                });
            }
        });
        (base, answers, asked)
    }

    #[tokio::test]
    async fn an_address_is_asked_once_in_a_while() {
        for scheme in ["http", "rtsp"] {
            let ((base, ..), reach) = (node(scheme).await, reach());
            assert!(reach.is_up(&base).await && reach.is_up(&base).await, "{base}");
        }
        let ((base, _, asked), reach) = (node("http").await, reach());
        for _ in 0..20 {
            assert!(reach.is_up(&base).await);
        }
        assert_eq!((asked.load(Ordering::Relaxed), reach.is_down(&base)), (1, Some(false)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let refused: Arc<str> = format!("http://{}", listener.local_addr().unwrap()).into();
        drop(listener);
        assert!(!reach.is_up(&refused).await);
        assert_eq!((reach.is_down(&refused), reach.unusable()), (Some(true), vec![refused]));
        reach.keep(|kept| kept == &*base);
        assert!(reach.unusable().is_empty() && reach.is_down(&base) == Some(false));
    }

    #[tokio::test]
    async fn a_node_that_accepts_and_never_answers_costs_one_time_limit() {
        let ((base, answers, _), reach) = (node("http").await, Arc::new(reach()));
        answers.send_replace(false);
        // Callers that come together wait together.
        let asked = Instant::now();
        let all = (0..8).map(|_| {
            let (reach, base) = (reach.clone(), base.clone());
            tokio::spawn(async move { reach.is_up(&base).await })
        });
        for one in all.collect::<Vec<_>>() {
            assert!(!one.await.unwrap());
        }
        assert!(asked.elapsed() < LIMIT * 3, "{:?}", asked.elapsed());
        let asked = Instant::now();
        assert!(!reach.is_up(&base).await && asked.elapsed() < LIMIT / 5);
        assert_eq!(reach.is_down(&base), Some(false), "it may have been late once");
        reach.again(&base).await;
        assert_eq!(reach.is_down(&base), Some(true));
        // Two answers bring it back.
        answers.send_replace(true);
        reach.again(&base).await;
        assert!(!reach.is_up(&base).await);
        reach.again(&base).await;
        assert!(reach.is_up(&base).await);
    }

    #[tokio::test]
    async fn many_callers_learn_by_the_same_two_probes_that_a_node_is_lost() {
        let ((base, answers, asked), reach) = (node("http").await, Arc::new(reach()));
        assert!(reach.is_up(&base).await);
        answers.send_replace(false);
        let (before, since) = (asked.load(Ordering::Relaxed), reach.now());
        let all = (0..50).map(|_| {
            let (reach, base) = (reach.clone(), base.clone());
            tokio::spawn(async move { reach.is_lost(&base, since).await })
        });
        for one in all.collect::<Vec<_>>() {
            assert!(one.await.unwrap());
        }
        assert_eq!(asked.load(Ordering::Relaxed) - before, 2);
        // One slow answer is none.
        let ((base, answers, _), reach) = (node("http").await, Arc::new(self::reach()));
        answers.send_replace(false);
        assert!(!reach.is_up(&base).await && reach.is_down(&base) == Some(false));
        answers.send_replace(true);
        assert!(!reach.is_lost(&base, reach.now()).await && reach.is_up(&base).await);
    }

    #[tokio::test]
    async fn requests_that_fail_take_a_node_out_until_it_answers() {
        let ((base, ..), reach) = (node("http").await, reach());
        assert!(reach.is_up(&base).await);
        (0..3).for_each(|_| reach.failed(&base));
        assert!(!reach.is_up(&base).await);
        assert!(
            reach.answers(&base).await || {
                tokio::time::sleep(LIMIT).await;
                reach.answers(&base).await
            }
        );
        assert!(reach.is_up(&base).await);
    }
}
