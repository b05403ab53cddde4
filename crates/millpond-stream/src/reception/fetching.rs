//! Requests for the resources of one source, within bounds: hosts, redirects, bytes and times.

use crate::{
    source_health::{SourceError, SourceErrorKind},
    web::{Web, WebReply, WebRequest},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use millpond_media::ByteRange;
use millpond_store::without_secrets;
use std::{fmt, sync::Arc, time::Duration};
use tokio::time::timeout;
use url::Url;

/// Most redirects of one request.
const HOPS: usize = 5;
/// Most bytes before a range that are read and dropped, where the server sends the whole resource.
const SKIP: u64 = 16 << 20;

/// Fetches the resources of a source. `Debug` shows no credentials.
#[derive(Clone)]
pub(super) struct Fetcher {
    web: Arc<dyn Web>,
    /// URL of the source, with its credentials.
    origin: Url,
    hosts: Arc<[String]>,
    patience: Duration,
}

/// A resource that arrives.
pub(super) struct Resource {
    /// URL after redirects.
    pub(super) url: Url,
    /// Time of the server when it replied, since the Unix epoch.
    pub(super) date: Option<Duration>,
    body: BoxStream<'static, Result<Bytes, String>>,
    /// Bytes to drop before the wanted ones.
    skip: u64,
    /// Bytes that are still wanted; `None` for all.
    left: Option<u64>,
    patience: Duration,
}

impl Fetcher {
    /// Creates the fetcher of a source. `hosts` may have resources besides its own host.
    pub(super) fn new(web: Arc<dyn Web>, origin: Url, hosts: Arc<[String]>, patience: Duration) -> Self {
        Self { web, origin, hosts, patience }
    }

    /// Opens a resource. The server may wait for `longer` than usual before it replies.
    ///
    /// # Errors
    /// There is no reply in time, its status is an error, or it leads to another host.
    pub(super) async fn open(
        &self,
        mut url: Url,
        range: Option<ByteRange>,
        longer: Duration,
    ) -> Result<Resource, SourceError> {
        for _ in 0..=HOPS {
            self.permit(&url)?;
            let mut request = WebRequest { url: url.clone(), range };
            self.authorize(&mut request.url);
            let patience = self.patience.saturating_add(longer);
            let reply = timeout(patience, self.web.get(request)).await;
            let reply = reply.map_err(|_| late(&url, "no reply", patience))?;
            let WebReply { status, location, date, body, .. } =
                reply.map_err(|words| error(SourceErrorKind::Unreachable, &url, words))?;
            let (skip, left) = match (status, range) {
                (301 | 302 | 303 | 307 | 308, _) => {
                    let target = location.and_then(|target| url.join(&target).ok());
                    let found = "a redirect without a valid Location".to_owned();
                    url = target.ok_or_else(|| error(SourceErrorKind::Protocol, &url, found))?;
                    continue;
                }
                (206, Some(range)) => (0, Some(range.len())),
                (200, Some(range)) if range.start <= SKIP => (range.start, Some(range.len())),
                (200, None) => (0, None),
                (200, Some(_)) => {
                    let words = "the server sends no ranges of bytes: 200 in reply to Range".to_owned();
                    return Err(error(SourceErrorKind::Protocol, &url, words));
                }
                (status, _) => return Err(refusal(&url, status)),
            };
            return Ok(Resource { url, date, body, skip, left, patience: self.patience });
        }
        Err(error(SourceErrorKind::Protocol, &url, format!("more than {HOPS} redirects")))
    }

    /// Reads a whole resource of at most `most` bytes.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); it is longer, or breaks off.
    pub(super) async fn read(
        &self,
        url: Url,
        range: Option<ByteRange>,
        (most, longer): (usize, Duration),
    ) -> Result<(Url, Vec<u8>), SourceError> {
        let mut resource = self.open(url, range, longer).await?;
        let all = resource.read(most).await?;
        Ok((resource.url, all))
    }

    /// Resolves a URI of a playlist.
    ///
    /// # Errors
    /// It is none, or leads to another host.
    pub(super) fn resolve(&self, playlist: &Url, uri: &str) -> Result<Url, SourceError> {
        let url = playlist.join(uri);
        let url = url.map_err(|why| error(SourceErrorKind::Protocol, playlist, format!("a URI is none: {why}")))?;
        self.permit(&url)?;
        Ok(url)
    }

    /// Refuses URLs that a source must not lead to.
    fn permit(&self, url: &Url) -> Result<(), SourceError> {
        let is_web = matches!(url.scheme(), "http" | "https");
        let is_downgrade = self.origin.scheme() == "https" && url.scheme() != "https";
        if is_web && !is_downgrade && (is_same_host(&self.origin, url) || self.is_listed(url)) {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default();
        let words = match is_web && !is_downgrade {
            true => format!(
                "the source leads to the host {host}: if it belongs to the source, add it to follow-redirects-to"
            ),
            false => format!("the source leads to a URL of {}, expected {}", url.scheme(), self.origin.scheme()),
        };
        Err(error(SourceErrorKind::Protocol, url, words))
    }

    fn is_listed(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let name = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        self.hosts.contains(&name)
    }

    /// Adds the source's credentials to a URL of its server.
    fn authorize(&self, url: &mut Url) {
        let is_own = (url.scheme(), url.host(), url.port_or_known_default())
            == (self.origin.scheme(), self.origin.host(), self.origin.port_or_known_default());
        let (user, password) = if is_own { (self.origin.username(), self.origin.password()) } else { ("", None) };
        // Neither call fails for a URL with a host.
        let _ = (url.set_username(user), url.set_password(password));
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fetcher({})", without_secrets(&self.origin))
    }
}

impl Resource {
    /// Reads the rest, of at most `most` bytes.
    ///
    /// # Errors
    /// It is longer, breaks off, or stands still.
    pub(super) async fn read(&mut self, most: usize) -> Result<Vec<u8>, SourceError> {
        let mut all = Vec::new();
        while let Some(piece) = self.next().await? {
            if all.len() + piece.len() > most {
                let words = format!("more than {most} bytes, expected at most that");
                return Err(error(SourceErrorKind::Protocol, &self.url, words));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    /// Returns the next piece; `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// The reply breaks off, or stands still.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, SourceError> {
        loop {
            if self.left == Some(0) {
                return Ok(None);
            }
            let next = timeout(self.patience, self.body.next()).await;
            let mut piece = match next.map_err(|_| late(&self.url, "no bytes", self.patience))? {
                Some(piece) => piece.map_err(|words| error(SourceErrorKind::Unreachable, &self.url, words))?,
                None if self.left.is_some() => {
                    let words = "the reply ends before the wanted bytes".to_owned();
                    return Err(error(SourceErrorKind::Protocol, &self.url, words));
                }
                None => return Ok(None),
            };
            let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(piece.len());
            self.skip -= skipped as u64;
            drop(piece.split_to(skipped));
            if let Some(left) = &mut self.left {
                piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= piece.len() as u64;
            }
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
    }
}

/// Whether two URLs have the same host. Ports and schemes may differ.
fn is_same_host(one: &Url, other: &Url) -> bool {
    one.host().is_some() && one.host() == other.host()
}

/// An error of a resource. Its address shows no secrets.
pub(super) fn error(kind: SourceErrorKind, url: &Url, words: String) -> SourceError {
    SourceError { kind, address: without_secrets(url), words }
}

fn late(url: &Url, what: &str, after: Duration) -> SourceError {
    error(SourceErrorKind::TimedOut, url, format!("{what} in {} s", after.as_secs_f64()))
}

fn refusal(url: &Url, status: u16) -> SourceError {
    let kind = match status {
        401 => SourceErrorKind::Unauthorized,
        404 | 410 => SourceErrorKind::NotFound,
        status => SourceErrorKind::Refused(status),
    };
    error(kind, url, format!("the server replies with status {status}"))
}

#[cfg(test)]
mod tests;
