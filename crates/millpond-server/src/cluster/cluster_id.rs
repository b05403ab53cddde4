//! The key in etcd that tells to which cluster a prefix belongs. Pure.
//!
//! The first node with an id writes it, and no node with another id joins. The key has no lease: a cluster that is down as a whole keeps its prefix.

use millpond_etcd::{Compare, KeyValue, Operation};

/// Longest text of another cluster's id that is shown.
const SHOWN: usize = 64;

/// The key of a prefix.
pub(super) fn id_key(prefix: &str) -> Vec<u8> {
    format!("{prefix}cluster-id").into_bytes()
}

/// Conditions and changes with which a node registers, so that its prefix is that of its cluster at this moment.
#[derive(Debug, Default)]
pub(super) struct Claim {
    pub(super) conditions: Vec<Compare>,
    pub(super) changes: Vec<Operation>,
}

impl Claim {
    /// The claim of a node of the cluster `own`, where `found` is the key's value. A node without an id claims nothing.
    ///
    /// # Errors
    /// The prefix belongs to another cluster, whose id it is.
    pub(super) fn new(key: Vec<u8>, own: Option<&str>, found: Option<&KeyValue>) -> Result<Self, String> {
        match (own, found) {
            (None, _) => Ok(Self::default()),
            (Some(own), None) => {
                let put = Operation::Put { key: key.clone(), value: own.as_bytes().to_vec(), lease: None };
                Ok(Self { conditions: vec![Compare::Absent(key)], changes: vec![put] })
            }
            (Some(own), Some(found)) if found.value == own.as_bytes() => {
                Ok(Self { conditions: vec![Compare::Unchanged(key, found.revision)], changes: Vec::new() })
            }
            (Some(_), Some(found)) => {
                let text = String::from_utf8_lossy(&found.value);
                Err(text.chars().filter(char::is_ascii_graphic).take(SHOWN).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_belongs_to_the_cluster_that_came_first() {
        let claim = |own, found: Option<&str>| {
            let found = found.map(|id| KeyValue { value: id.into(), revision: 7, ..KeyValue::default() });
            Claim::new(id_key("/m/"), own, found.as_ref())
        };
        let first = claim(Some("east"), None).unwrap();
        assert!(matches!(&first.conditions[..], [Compare::Absent(key)] if key == b"/m/cluster-id"));
        assert!(matches!(&first.changes[..], [Operation::Put { value, lease: None, .. }] if value == b"east"));
        let next = claim(Some("east"), Some("east")).unwrap();
        assert!(matches!(&next.conditions[..], [Compare::Unchanged(_, 7)]) && next.changes.is_empty());
        assert_eq!(claim(Some("west"), Some("ea\u{1b}st")).unwrap_err(), "east");
        for found in [None, Some("east")] {
            let none = claim(None, found).unwrap();
            assert!(none.conditions.is_empty() && none.changes.is_empty());
        }
    }
}
