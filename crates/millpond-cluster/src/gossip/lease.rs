//! Names of leases.

use crate::NodeName;
use std::{fmt, str::FromStr};

/// A lease: keys under it end with it. Only the run of the node that began it renews it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GossipLease {
    /// The node.
    pub node: NodeName,
    /// The run of the node.
    pub incarnation: u64,
    /// Number of the lease among those of the run.
    pub number: u64,
}

/// A text that is no name of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected NAME/INCARNATION/NUMBER, the last two hexadecimal")]
pub struct InvalidLease;

impl fmt::Display for GossipLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:x}/{:x}", self.node, self.incarnation, self.number)
    }
}

impl FromStr for GossipLease {
    type Err = InvalidLease;

    fn from_str(text: &str) -> Result<Self, InvalidLease> {
        let mut parts = text.split('/');
        let mut next = || parts.next().ok_or(InvalidLease);
        let number = |text: &str| u64::from_str_radix(text, 16).map_err(|_| InvalidLease);
        let lease = Self {
            node: next()?.parse().map_err(|_| InvalidLease)?,
            incarnation: number(next()?)?,
            number: number(next()?)?,
        };
        if parts.next().is_some() { Err(InvalidLease) } else { Ok(lease) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let lease = GossipLease { node: "edge-1".parse().unwrap(), incarnation: u64::MAX, number: 10 };
        assert_eq!(lease.to_string(), "edge-1/ffffffffffffffff/a");
        assert_eq!(lease.to_string().parse(), Ok(lease));
        for bad in ["", "a", "a/1", "a/1/2/3", "a b/1/2", "a/x/2", "a/1/"] {
            assert_eq!(bad.parse::<GossipLease>(), Err(InvalidLease), "{bad}");
        }
    }
}
