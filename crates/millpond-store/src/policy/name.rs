//! The names of the policies, in configuration, commands and tables.

use super::{Gdsf, Lfu, Lru, Policy, S3Fifo, Sieve, StreamPolicy, WTinyLfu};
use std::{fmt, str::FromStr};

/// The eviction policy of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PolicyName {
    /// Least recently used.
    Lru,
    /// Least frequently used.
    Lfu,
    /// Greedy dual size frequency.
    Gdsf,
    /// Three FIFO queues (S3-FIFO).
    S3Fifo,
    /// A FIFO queue with a second chance (SIEVE).
    Sieve,
    /// A small window before a segmented LRU with frequency admission (W-TinyLFU).
    WTinyLfu,
    /// The best recent one of several policies, one of which forecasts the reads of viewers.
    #[default]
    Stream,
}

impl PolicyName {
    /// All policies.
    pub const ALL: [Self; 7] =
        [Self::Lru, Self::Lfu, Self::Gdsf, Self::S3Fifo, Self::Sieve, Self::WTinyLfu, Self::Stream];

    /// The names of all policies, as [`FromStr`] accepts them.
    pub const NAMES: &[&str] = &{
        let mut names = [""; Self::ALL.len()];
        let mut number = 0;
        while number < names.len() {
            names[number] = Self::ALL[number].as_str();
            number += 1;
        }
        names
    };

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Lfu => "lfu",
            Self::Gdsf => "gdsf",
            Self::S3Fifo => "s3-fifo",
            Self::Sieve => "sieve",
            Self::WTinyLfu => "w-tinylfu",
            Self::Stream => "stream",
        }
    }

    /// Creates the policy.
    pub(super) fn policy(self) -> Box<dyn Policy> {
        match self {
            Self::Lru => Box::new(Lru::default()),
            Self::Lfu => Box::new(Lfu::default()),
            Self::Gdsf => Box::new(Gdsf::default()),
            Self::S3Fifo => Box::new(S3Fifo::default()),
            Self::Sieve => Box::new(Sieve::default()),
            Self::WTinyLfu => Box::new(WTinyLfu::default()),
            Self::Stream => Box::new(StreamPolicy::default()),
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text names no eviction policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an eviction policy: expected one of {}", PolicyName::NAMES.join(", "))]
pub struct BadPolicy {
    text: String,
}

impl FromStr for PolicyName {
    type Err = BadPolicy;

    fn from_str(text: &str) -> Result<Self, BadPolicy> {
        let named = Self::ALL.into_iter().find(|policy| policy.as_str() == text);
        named.ok_or_else(|| BadPolicy { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (policy, name) in PolicyName::ALL.into_iter().zip(PolicyName::NAMES) {
            assert_eq!((name.parse(), policy.to_string()), (Ok(policy), (*name).to_owned()));
        }
        let error = "best".parse::<PolicyName>().unwrap_err().to_string();
        assert!(error.starts_with("\"best\" is not an eviction policy: expected one of lru, "), "{error}");
    }
}
