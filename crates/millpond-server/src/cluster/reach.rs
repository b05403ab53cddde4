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

/// The last answer of an address. Callers that come while it is asked wait for the answer.
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
        let mut known = known.lock().await;
        if let Some((_, is_up)) = known.filter(|(asked, _)| asked.elapsed() < FRESH) {
            return is_up;
        }
        let is_up = connects(base).await;
        *known = Some((Instant::now(), is_up));
        is_up
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
}
