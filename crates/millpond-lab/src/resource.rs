//! Resources that a player requests: a URL, or a byte range of one.

use std::cell::Cell;
use std::fmt;

use url::Url;

/// A run of bytes of a resource that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSpan {
    start: u64,
    last: u64,
}

impl ByteSpan {
    /// `length` bytes from `start`; `None` when that is nothing or ends beyond 2^64.
    #[must_use]
    pub fn new(start: u64, length: u64) -> Option<Self> {
        Some(Self { start, last: start.checked_add(length.checked_sub(1)?)? })
    }

    /// From `first` to `last`, both included, as HTTP and DASH write it; `None` when it is backwards.
    #[must_use]
    pub fn inclusive(first: u64, last: u64) -> Option<Self> {
        (first <= last && last - first < u64::MAX).then_some(Self { start: first, last })
    }

    /// Returns how many bytes it has.
    #[must_use]
    pub fn length(self) -> u64 {
        self.last - self.start + 1
    }
}

/// The form of the Range header's `byte-range-spec` (RFC 9110 14.1.2): `first-last`.
impl fmt::Display for ByteSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.start, self.last)
    }
}

/// One thing to fetch, and the length it had when it was first fetched.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) url: Url,
    pub(crate) range: Option<ByteSpan>,
    /// Shared among the players of a worker thread, which compare what they get with it.
    length: Cell<Option<u64>>,
}

impl Resource {
    pub(crate) fn new(url: Url, range: Option<ByteSpan>) -> Self {
        Self { url, range, length: Cell::new(None) }
    }

    /// Notes the length received now, and gives the one received first when that was another.
    pub(crate) fn other_length(&self, now: u64) -> Option<u64> {
        match self.length.get() {
            Some(first) => (first != now).then_some(first),
            None => {
                self.length.set(Some(now));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_never_empty_nor_endless() {
        assert_eq!(ByteSpan::new(5, 0), None);
        assert_eq!(ByteSpan::new(u64::MAX, 2), None);
        assert_eq!(ByteSpan::inclusive(6, 5), None);
        assert_eq!(ByteSpan::inclusive(0, u64::MAX), None);
        let span = ByteSpan::new(100, 50);
        assert_eq!(span, ByteSpan::inclusive(100, 149));
        assert_eq!(span.map(|span| (span.length(), span.to_string())), Some((50, "100-149".to_owned())));
    }

    #[test]
    fn a_changed_length_is_told_from_the_first() {
        let resource = Resource::new(Url::parse("http://h/1.m4s").unwrap(), None);
        assert_eq!(resource.other_length(10), None);
        assert_eq!(resource.other_length(10), None);
        assert_eq!(resource.other_length(11), Some(10));
        assert_eq!(resource.other_length(10), None);
    }
}
