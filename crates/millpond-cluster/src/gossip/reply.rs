//! The reply of a node to the question of a peer, as JSON. Fields that this version does not know are skipped.

use super::{
    GossipEntry, GossipHeartbeat, GossipLease, GossipStamp,
    entry::{LONGEST_KEY, LONGEST_VALUE},
    leases::MOST_LEASES,
};
use crate::NodeName;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// Most bytes of a reply. A page ends at a sixteenth of it: each byte may need six as JSON.
const LONGEST: usize = 4 << 20;
/// Most entries of a reply.
pub(super) const MOST_ENTRIES: usize = 4096;
/// Bytes of keys and values after which a reply ends.
pub(super) const PAGE: usize = 256 << 10;

/// The reply of a node to the question of a peer: a page of entries, and the heartbeats of all leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GossipReply {
    /// The node that tells.
    pub node: NodeName,
    /// Its run: sequence numbers are of one run.
    pub incarnation: u64,
    /// Beginning of the keys.
    pub prefix: String,
    /// Number of the last change that is told, from which the next request goes on.
    pub sequence: u64,
    /// Whether there are more entries behind it.
    pub has_more: bool,
    /// Heartbeats.
    pub heartbeats: Vec<GossipHeartbeat>,
    /// Entries.
    pub entries: Vec<GossipEntry>,
}

/// Why bytes are no reply.
#[derive(Debug, thiserror::Error)]
pub enum GossipReplyError {
    /// A field is too long.
    #[error("{field} of {found}: expected at most {most}")]
    TooMuch {
        /// Name of the field.
        field: &'static str,
        /// Its length.
        found: usize,
        /// Greatest length.
        most: usize,
    },
    /// No JSON, or a field of another type.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A number that is no stamp.
    #[error("stamp {0}: expected milliseconds since 1970, times 65,536")]
    Stamp(i64),
    /// A name of a lease that is none.
    #[error("lease {0:?}: expected NAME/INCARNATION/NUMBER")]
    Lease(String),
}

#[derive(Serialize, Deserialize)]
struct WireGossip {
    node: NodeName,
    incarnation: u64,
    prefix: String,
    sequence: u64,
    #[serde(default)]
    more: bool,
    #[serde(default)]
    heartbeats: Vec<WireHeartbeat>,
    #[serde(default)]
    entries: Vec<WireGossipEntry>,
}

#[derive(Serialize, Deserialize)]
struct WireHeartbeat {
    lease: String,
    counter: u64,
    /// Milliseconds.
    ttl: u64,
}

#[derive(Serialize, Deserialize)]
struct WireGossipEntry {
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    stamp: i64,
    created: i64,
    by: NodeName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<String>,
}

impl GossipReply {
    /// Most bytes of a reply.
    pub const LONGEST: usize = LONGEST;

    /// The reply as JSON.
    ///
    /// # Panics
    /// Never: a reply has no maps and no numbers that JSON lacks.
    #[must_use]
    pub fn to_json(&self) -> String {
        let heartbeat = |heartbeat: &GossipHeartbeat| WireHeartbeat {
            lease: heartbeat.lease.to_string(),
            counter: heartbeat.counter,
            ttl: u64::try_from(heartbeat.ttl.as_millis()).unwrap_or(u64::MAX),
        };
        let entry = |entry: &GossipEntry| WireGossipEntry {
            key: entry.key.clone(),
            value: entry.value.as_deref().map(str::to_owned),
            stamp: entry.stamp.number(),
            created: entry.created.number(),
            by: entry.by.clone(),
            lease: entry.lease.as_ref().map(GossipLease::to_string),
        };
        let wire = WireGossip {
            node: self.node.clone(),
            incarnation: self.incarnation,
            prefix: self.prefix.clone(),
            sequence: self.sequence,
            more: self.has_more,
            heartbeats: self.heartbeats.iter().map(heartbeat).collect(),
            entries: self.entries.iter().map(entry).collect(),
        };
        serde_json::to_string(&wire).expect("plain structs are JSON")
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// A reply that is too long, no JSON, or has a field that is none.
    pub fn from_json(bytes: &[u8]) -> Result<Self, GossipReplyError> {
        bounded("reply", bytes.len(), LONGEST)?;
        let wire: WireGossip = serde_json::from_slice(bytes)?;
        bounded("prefix", wire.prefix.len(), LONGEST_KEY)?;
        bounded("heartbeats", wire.heartbeats.len(), MOST_LEASES)?;
        bounded("entries", wire.entries.len(), MOST_ENTRIES)?;
        Ok(Self {
            node: wire.node,
            incarnation: wire.incarnation,
            prefix: wire.prefix,
            sequence: wire.sequence,
            has_more: wire.more,
            heartbeats: wire.heartbeats.into_iter().map(heartbeat).collect::<Result<_, _>>()?,
            entries: wire.entries.into_iter().map(entry).collect::<Result<_, _>>()?,
        })
    }
}

fn heartbeat(wire: WireHeartbeat) -> Result<GossipHeartbeat, GossipReplyError> {
    let ttl = Duration::from_millis(wire.ttl);
    Ok(GossipHeartbeat { lease: lease(wire.lease)?, counter: wire.counter, ttl })
}

fn entry(wire: WireGossipEntry) -> Result<GossipEntry, GossipReplyError> {
    bounded("key", wire.key.len(), LONGEST_KEY)?;
    bounded("value", wire.value.as_ref().map_or(0, String::len), LONGEST_VALUE)?;
    let stamp = |number| GossipStamp::from_number(number).ok_or(GossipReplyError::Stamp(number));
    let (key, by, value) = (wire.key, wire.by, wire.value.map(Arc::from));
    let lease = wire.lease.map(lease).transpose()?;
    Ok(GossipEntry { key, stamp: stamp(wire.stamp)?, by, created: stamp(wire.created)?, lease, value })
}

fn lease(text: String) -> Result<GossipLease, GossipReplyError> {
    text.parse().map_err(|_| GossipReplyError::Lease(text.chars().take(128).collect()))
}

fn bounded(field: &'static str, found: usize, most: usize) -> Result<(), GossipReplyError> {
    if found <= most { Ok(()) } else { Err(GossipReplyError::TooMuch { field, found, most }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_name_the_field_and_what_is_new_is_skipped() {
        let reply = br#"{"node":"a","incarnation":7,"prefix":"/m/","sequence":3,"colour":"red"}"#;
        let reply = GossipReply::from_json(reply).unwrap();
        assert_eq!((reply.node.as_str(), reply.incarnation, reply.sequence, reply.has_more), ("a", 7, 3, false));
        let entry = |fields: &str| {
            format!(r#"{{"node":"a","incarnation":7,"prefix":"/m/","sequence":3,"entries":[{{"by":"a",{fields}}}]}}"#)
        };
        let long = "x".repeat(LONGEST_VALUE + 1);
        for (text, told) in [
            (entry(r#""key":"k","stamp":0,"created":1"#), "stamp 0"),
            (entry(r#""key":"k","stamp":1,"created":-1"#), "stamp -1"),
            (entry(r#""key":"k","stamp":1,"created":1,"lease":"a""#), "lease \"a\""),
            (entry(&format!(r#""key":"k","stamp":1,"created":1,"value":"{long}""#)), "value of 262145"),
            (entry(&format!(r#""key":"{}","stamp":1,"created":1"#, &long[..1025])), "key of 1025"),
            (r#"{"node":"a b","incarnation":7,"prefix":"/m/","sequence":3}"#.to_owned(), "node name"),
            (r#"{"node":"a","prefix":"/m/","sequence":3}"#.to_owned(), "missing field `incarnation`"),
            (" ".repeat(LONGEST + 1), "reply of 4194305"),
        ] {
            let error = GossipReply::from_json(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(told), "{text:.80}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(key in ".{0,20}", value in proptest::option::of(".{0,40}"), number in 1_i64..1 << 61, counter: u64, more: bool) {
            let node: NodeName = "a".parse().unwrap();
            let lease = GossipLease { node: node.clone(), incarnation: counter, number: 1 };
            let stamp = GossipStamp::from_number(number).unwrap();
            let value = value.map(Arc::from);
            let entry = GossipEntry { key, stamp, by: node.clone(), created: stamp, lease: more.then(|| lease.clone()), value };
            let reply = GossipReply {
                node,
                incarnation: counter,
                prefix: "/m/".into(),
                sequence: counter,
                has_more: more,
                heartbeats: vec![GossipHeartbeat { lease, counter, ttl: Duration::from_millis(5000) }],
                entries: vec![entry],
            };
            prop_assert_eq!(GossipReply::from_json(reply.to_json().as_bytes()).unwrap(), reply);
        }
    }
}
