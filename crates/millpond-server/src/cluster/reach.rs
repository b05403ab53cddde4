//! Whether other nodes can be reached, before viewers are sent to them.
//!
//! etcd removes a dead node when its lease is over. Until then, and while etcd itself is away, a connection tells.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex as StdMutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{net::TcpStream, sync::Mutex, time::timeout};
use url::Url;

/// Time for which an answer holds.
const FRESH: Duration = Duration::from_secs(1);
/// Time limit of a connection.
const LIMIT: Duration = Duration::from_millis(300);
/// Most addresses that are remembered. Beyond it, all are forgotten.
const MOST: usize = 1024;

/// The last answer of an address. Callers that come while it is asked wait for the answer. An address that could not be reached is
/// asked again beside the callers: each node that hangs costs its callers one time limit, once.
type Known = Arc<Mutex<Option<(Instant, bool)>>>;

/// Addresses of nodes that could be reached, and those that could not.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// A lock, held for a look-up.
    known: StdMutex<HashMap<Arc<str>, Known>>,
}

impl Reach {
    /// Whether an address accepts connections, or did within the last second.
    pub(super) async fn is_up(&self, base: &Arc<str>) -> bool {
        let known = {
            let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= MOST && !all.contains_key(base) {
                all.clear();
            }
            all.entry(base.clone()).or_default().clone()
        };
        let mut answer = known.lock().await;
        match *answer {
            Some((asked, is_up)) if asked.elapsed() < FRESH => is_up,
            Some((_, false)) => {
                *answer = Some((Instant::now(), false));
                let (base, known) = (base.clone(), known.clone());
                tokio::spawn(async move {
                    let is_up = connects(&base).await;
                    *known.lock().await = Some((Instant::now(), is_up));
                });
                false
            }
            _ => {
                let is_up = connects(base).await;
                *answer = Some((Instant::now(), is_up));
                is_up
            }
        }
    }
}

async fn connects(base: &str) -> bool {
    let Ok(url) = Url::parse(base) else { return false };
    let port = url.port_or_known_default().unwrap_or(if url.scheme() == "rtsps" { 322 } else { 554 });
    let address = match url.host() {
        Some(url::Host::Domain(name)) => name.to_owned(),
        Some(url::Host::Ipv4(ip)) => ip.to_string(),
        Some(url::Host::Ipv6(ip)) => ip.to_string(),
        // Schemes that the standard of URLs doesn't know keep the text of their hosts.
        None => return false,
    };
    matches!(timeout(LIMIT, TcpStream::connect((address.as_str(), port))).await, Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_is_asked_once_in_a_while() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        for scheme in ["http", "rtsp"] {
            let base: Arc<str> = format!("{scheme}://{}", listener.local_addr().unwrap()).into();
            let reach = Reach::default();
            assert!(reach.is_up(&base).await, "{base}");
            let first = listener.accept().await.unwrap();
            assert!(reach.is_up(&base).await);
            drop(first);
        }
        let base: Arc<str> = format!("http://{}", listener.local_addr().unwrap()).into();
        drop(listener);
        assert!(!Reach::default().is_up(&base).await);
    }

    #[tokio::test]
    async fn an_address_that_hangs_costs_one_time_limit() {
        // A full queue: its system drops further attempts to connect.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut queued = Vec::new();
        while let Ok(stream) = timeout(LIMIT, TcpStream::connect(address)).await {
            queued.push(stream.unwrap());
        }
        let (base, reach): (Arc<str>, _) = (format!("http://{address}").into(), Reach::default());
        assert!(!reach.is_up(&base).await);
        for _ in 0..2 {
            tokio::time::sleep(FRESH).await;
            let asked = Instant::now();
            assert!(!reach.is_up(&base).await);
            assert!(asked.elapsed() < LIMIT / 3, "{:?}", asked.elapsed());
        }
        // It is noticed when it works again.
        drop(queued);
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        let is_up = async {
            while !reach.is_up(&base).await {
                tokio::time::sleep(FRESH / 4).await;
            }
        };
        timeout(FRESH * 8, is_up).await.unwrap();
    }
}
