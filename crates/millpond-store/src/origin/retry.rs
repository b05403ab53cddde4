//! Retries, around any origin.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};

use crate::error::OriginError;
use crate::layout::Striping;
use crate::origin::{BoxFuture, Fetched, Listing, ObjectMeta, OpenFile, Origin, OriginBody, OriginCounts, OriginFacts};
use crate::path::ObjectPath;

/// Longest pause between two attempts.
const LONGEST: Duration = Duration::from_secs(5);

/// Number of attempts, and pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Highest number of attempts of a request, including the first.
    pub tries: u32,
    /// Longest pause after the first attempt. It doubles with each failure. The real pause is a random part of it, so
    /// that requests that failed together are not repeated together.
    pub base: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { tries: 3, base: Duration::from_millis(100) }
    }
}

impl RetryPolicy {
    /// Returns the pause after `failed` attempts; `random` is in 0..1.
    fn pause(&self, failed: u32, random: f64) -> Duration {
        let doubled = 1_u32.checked_shl(failed.saturating_sub(1)).unwrap_or(u32::MAX);
        let longest = self.base.saturating_mul(doubled).min(LONGEST);
        longest.mul_f64(random.clamp(0.0, 1.0))
    }
}

/// An origin that repeats requests after transient failures, and resumes a broken body where it stopped.
///
/// A resumed body has the same version. Where the object changed meanwhile, the body ends in [`OriginError::Changed`].
/// Each attempt that brings bytes counts as a success, so that a long body arrives over a bad connection.
#[derive(Debug)]
pub struct RetryOrigin {
    inner: Arc<dyn Origin>,
    policy: RetryPolicy,
    retries: Arc<AtomicU64>,
}

impl RetryOrigin {
    /// Wraps an origin.
    pub fn new(inner: Arc<dyn Origin>, policy: RetryPolicy) -> Self {
        Self { inner, policy, retries: Arc::default() }
    }

    async fn again<'a, T>(
        &self,
        request: impl Fn() -> BoxFuture<'a, Result<T, OriginError>>,
    ) -> Result<T, OriginError> {
        let mut tries = Tries::new(self.policy, self.retries.clone());
        loop {
            match request().await {
                Ok(result) => return Ok(result),
                Err(error) => tries.after(error).await?,
            }
        }
    }
}

/// Counts the attempts of one request.
struct Tries {
    policy: RetryPolicy,
    retries: Arc<AtomicU64>,
    failed: u32,
}

impl Tries {
    fn new(policy: RetryPolicy, retries: Arc<AtomicU64>) -> Self {
        Self { policy, retries, failed: 0 }
    }

    /// Waits after a failure, or returns the final error.
    async fn after(&mut self, error: OriginError) -> Result<(), OriginError> {
        if !error.is_retryable() {
            return Err(error);
        }
        self.failed += 1;
        if self.failed >= self.policy.tries {
            let tries = self.failed;
            let last = Box::new(error);
            return Err(OriginError::TooManyRetries { tries, last });
        }
        let pause = self.policy.pause(self.failed, fastrand::f64());
        tracing::debug!(%error, failed = self.failed, ?pause, "trying again");
        tokio::time::sleep(pause).await;
        self.retries.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A body, and the request that continues it from its middle.
struct Resumable {
    origin: Arc<dyn Origin>,
    path: ObjectPath,
    meta: ObjectMeta,
    rest: Range<u64>,
    body: OriginBody,
    tries: Tries,
}

impl Resumable {
    fn into_body(self) -> OriginBody {
        Box::pin(stream::try_unfold(self, |mut body| async move {
            while !body.rest.is_empty() {
                match body.next().await {
                    Ok(bytes) => return Ok(Some((bytes, body))),
                    Err(error) => body.resume(error).await?,
                }
            }
            Ok(None)
        }))
    }

    async fn next(&mut self) -> Result<bytes::Bytes, OriginError> {
        let Some(item) = self.body.next().await else {
            return Err(OriginError::Truncated {
                at: crate::error::At::new(&self.origin.describe(), self.path.as_str()),
                expected: self.meta.len,
                received: self.rest.start,
                detail: "the body ended".into(),
            });
        };
        let bytes = item?;
        self.rest.start = self.rest.start.saturating_add(bytes.len() as u64).min(self.rest.end);
        self.tries.failed = 0;
        Ok(bytes)
    }

    /// Requests the rest until a reply arrives.
    async fn resume(&mut self, error: OriginError) -> Result<(), OriginError> {
        let mut error = error;
        loop {
            self.tries.after(error).await?;
            let request = self.origin.read(&self.path, self.rest.clone(), Some(&self.meta));
            match request.await {
                Ok(fetched) => {
                    self.body = fetched.body;
                    return Ok(());
                }
                Err(next) => error = next,
            }
        }
    }
}

impl Origin for RetryOrigin {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        Box::pin(self.again(move || self.inner.head(path)))
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(async move {
            let request = || self.inner.read(path, range.clone(), expected);
            let fetched = self.again(request).await?;
            let range = fetched.range.clone();
            let resumable = Resumable {
                origin: self.inner.clone(),
                path: path.clone(),
                meta: fetched.meta.clone(),
                rest: range.clone(),
                body: fetched.body,
                tries: Tries::new(self.policy, self.retries.clone()),
            };
            Ok(Fetched { meta: fetched.meta, range, body: resumable.into_body(), sender: fetched.sender })
        })
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(self.again(move || self.inner.list(folder)))
    }

    fn open_file<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<Option<OpenFile>, OriginError>> {
        self.inner.open_file(path)
    }

    fn facts(&self) -> OriginFacts {
        self.inner.facts()
    }

    fn counts(&self) -> OriginCounts {
        let inner = self.inner.counts();
        OriginCounts { retries: self.retries.load(Ordering::Relaxed) + inner.retries, ..inner }
    }

    fn striping(&self, path: &ObjectPath) -> Option<Striping> {
        self.inner.striping(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.pause(1, 1.0), Duration::from_millis(100));
        assert_eq!(policy.pause(2, 1.0), Duration::from_millis(200));
        assert_eq!(policy.pause(3, 0.5), Duration::from_millis(200));
        assert_eq!(policy.pause(1, 0.0), Duration::ZERO);
        assert_eq!(policy.pause(u32::MAX, 1.0), LONGEST);
    }
}
