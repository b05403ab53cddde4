//! Errors of changes.

/// Why a change is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GossipError {
    /// The lease of a key is over.
    #[error("the lease is over")]
    NoLease,
    /// A key or value is too long.
    #[error("{field} of {found} bytes: expected at most {most}")]
    TooLong {
        /// `key` or `value`.
        field: &'static str,
        /// Its bytes.
        found: usize,
        /// Most bytes.
        most: usize,
    },
    /// A key or value is no text.
    #[error("a key or value is not UTF-8 text")]
    NotText,
    /// There are too many keys, or bytes of them.
    #[error("the cluster has {keys} keys of {bytes} bytes, and no room for more")]
    Full {
        /// Number of keys, with deleted ones that are remembered.
        keys: usize,
        /// Their bytes.
        bytes: usize,
    },
    /// The changes from which a reader goes on are forgotten.
    #[error("changes before {0} are forgotten")]
    Forgotten(u64),
}
