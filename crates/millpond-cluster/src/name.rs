//! Names of nodes.

use serde::{Deserialize, Serialize};
use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

/// The name of a node: 1 to 63 letters, digits, `-`, `_` and `.`, of which the first is a letter or digit.
///
/// Hashing depends on names alone. A node that comes back under its old name gets its old objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(Arc<str>);

/// A text that is no name of a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node name {0:?}: expected 1 to 63 letters, digits, \"-\", \"_\" and \".\", beginning with a letter or digit")]
pub struct InvalidName(String);

/// Most bytes of a name, as in DNS labels.
const LONGEST: usize = 63;

impl NodeName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NodeName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let is_valid = text.len() <= LONGEST
            && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        is_valid.then(|| Self(text.into())).ok_or_else(|| InvalidName(text.chars().take(LONGEST + 1).collect()))
    }
}

impl TryFrom<String> for NodeName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> Self {
        name.0.as_ref().into()
    }
}

impl Borrow<str> for NodeName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for good in ["a", "node-7.example.org", "0_x", &"n".repeat(63)] {
            assert_eq!(good.parse::<NodeName>().unwrap().as_str(), good);
        }
        for bad in ["", "-a", ".", "a/b", "a b", "ä", "a\n", &"n".repeat(64)] {
            assert!(bad.parse::<NodeName>().is_err(), "{bad:?}");
        }
    }
}
