//! Bodies of exactly the length that was announced.

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use crate::error::{At, OriginError};
use crate::origin::OriginBody;

/// Returns exactly `count` bytes of a body, those after the first `skip`. Further bytes are cut off. A shorter body
/// ends in [`OriginError::Truncated`].
pub(super) fn exact(body: OriginBody, at: At, skip: u64, count: u64) -> OriginBody {
    let exact = Exact { body, at, skip, count, received: 0 };
    Box::pin(stream::try_unfold(exact, |mut exact| async move {
        let bytes = exact.next().await?;
        Ok(bytes.map(|bytes| (bytes, exact)))
    }))
}

struct Exact {
    body: OriginBody,
    at: At,
    skip: u64,
    count: u64,
    received: u64,
}

impl Exact {
    async fn next(&mut self) -> Result<Option<Bytes>, OriginError> {
        loop {
            if self.received >= self.count {
                return Ok(None);
            }
            let bytes = match self.body.next().await {
                Some(Ok(bytes)) => self.part(bytes),
                Some(Err(error)) => return Err(self.truncated(error)),
                None => return Err(self.short("the body ended".into())),
            };
            if !bytes.is_empty() {
                self.received += bytes.len() as u64;
                return Ok(Some(bytes));
            }
        }
    }

    /// Returns the wanted part of a piece.
    fn part(&mut self, mut bytes: Bytes) -> Bytes {
        let skipped = bytes.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        self.skip -= skipped as u64;
        bytes = bytes.slice(skipped..);
        bytes.truncate(usize::try_from(self.count - self.received).unwrap_or(usize::MAX));
        bytes
    }

    /// Adds the number of bytes of the range that had arrived.
    fn truncated(&self, error: OriginError) -> OriginError {
        match error {
            OriginError::Truncated { detail, .. } => self.short(detail),
            other => other,
        }
    }

    fn short(&self, detail: String) -> OriginError {
        OriginError::Truncated { at: self.at.clone(), expected: self.count, received: self.received, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn take(pieces: &[&'static str], skip: u64, count: u64) -> (String, Option<OriginError>) {
        let pieces: Vec<_> = pieces.iter().map(|s| Ok(Bytes::from_static(s.as_bytes()))).collect();
        let mut body = exact(stream::iter(pieces).boxed(), At::new("o", "p"), skip, count);
        let mut text = String::new();
        while let Some(item) = body.next().await {
            match item {
                Ok(bytes) => text.push_str(std::str::from_utf8(&bytes).unwrap()),
                Err(error) => return (text, Some(error)),
            }
        }
        (text, None)
    }

    #[tokio::test]
    async fn the_middle_of_a_body() {
        assert_eq!(take(&["abc", "", "defg"], 4, 2).await, ("ef".into(), None));
        assert_eq!(take(&["abc", "def"], 0, 6).await, ("abcdef".into(), None));
        assert_eq!(take(&["abc"], 0, 0).await, (String::new(), None));
        let (text, error) = take(&["abc", "def"], 4, 5).await;
        assert_eq!(text, "ef");
        assert!(matches!(error, Some(OriginError::Truncated { expected: 5, received: 2, .. })));
    }
}
