//! A registration as JSON.
//!
//! Fields that this version does not know are skipped, fields that are absent have defaults: versions of Millpond share a
//! cluster while it is upgraded.

use super::{Addresses, Bitrate, Load, Node, NodeName, Role, Roles};
use serde::{Deserialize, Serialize};
use std::{net::IpAddr, sync::Arc};
use url::Url;

/// Most bytes of a registration.
const LONGEST: usize = 8 << 10;
/// Largest capacity and load: a petabit per second. Larger ones are mistakes, and their sums would overflow.
const FASTEST: Bitrate = Bitrate::from_mbps(1_000_000_000);
/// Longest version, longest id of a cluster, and longest name of a zone.
const LONGEST_WORD: usize = 64;
/// Most sessions of a node.
const MOST_SESSIONS: u32 = 100_000_000;

/// Why a value is no registration.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// More bytes than a registration may have.
    #[error("{0} bytes, expected at most {LONGEST}")]
    TooLong(usize),
    /// No JSON, or a field of another type.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// An address that viewers can't be sent to.
    #[error("{field} {found:?}: expected {expected} and a host, without credentials, path or query")]
    Address {
        /// Name of the field.
        field: &'static str,
        /// The value, cut.
        found: String,
        /// The URL's schemes.
        expected: &'static str,
    },
    /// A number beyond its range.
    #[error("{field} {found}: expected {least} to {most}")]
    Number {
        /// Name of the field.
        field: &'static str,
        /// The value.
        found: u64,
        /// Least value.
        least: u64,
        /// Greatest value.
        most: u64,
    },
}

#[derive(Serialize, Deserialize)]
struct WireNode {
    name: NodeName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    http: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rtsp: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nodes: Option<String>,
    capacity: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    /// Later versions may have another form, which says nothing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prints: Option<serde_json::Value>,
    /// Names; those that this version does not know are skipped. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    roles: Option<Vec<String>>,
    #[serde(default)]
    draining: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    purged: Option<u64>,
    #[serde(default)]
    load: WireLoad,
}

#[derive(Default, Serialize, Deserialize)]
struct WireLoad {
    #[serde(default)]
    rate: u64,
    #[serde(default)]
    sessions: u64,
}

impl Node {
    /// The registration as JSON.
    ///
    /// # Panics
    /// Never: a registration has no maps with other keys than texts, and no numbers that JSON lacks.
    pub fn to_json(&self) -> String {
        let text = |address: &Option<Arc<str>>| address.as_deref().map(str::to_owned);
        let wire = WireNode {
            name: self.name.clone(),
            http: text(&self.addresses.http),
            rtsp: text(&self.addresses.rtsp),
            nodes: text(&self.addresses.nodes),
            capacity: self.capacity.bps(),
            limit: self.limit.map(Bitrate::bps),
            version: self.version.as_deref().map(str::to_owned),
            source: self.source,
            cluster: self.cluster.as_deref().map(str::to_owned),
            zone: self.zone.as_deref().map(str::to_owned),
            prints: self.prints.as_deref().and_then(|prints| serde_json::to_value(prints).ok()),
            roles: Some(self.roles.iter().map(|role| role.to_string()).collect()),
            draining: self.draining,
            purged: self.purged,
            load: WireLoad { rate: self.load.rate.bps(), sessions: self.load.sessions.into() },
        };
        serde_json::to_string(&wire).expect("plain structs are JSON")
    }

    /// Reads a registration.
    ///
    /// # Errors
    /// A value that is too long, no JSON, or has a field out of its range.
    pub fn from_json(bytes: &[u8]) -> Result<Self, NodeError> {
        if bytes.len() > LONGEST {
            return Err(NodeError::TooLong(bytes.len()));
        }
        let wire: WireNode = serde_json::from_slice(bytes)?;
        let roles = match &wire.roles {
            None => Roles::ALL,
            Some(names) => names.iter().filter_map(|name| name.parse::<Role>().ok()).collect(),
        };
        let addresses = Addresses {
            http: address("http", wire.http, &["http", "https"], "http:// or https://")?,
            rtsp: address("rtsp", wire.rtsp, &["rtsp", "rtsps"], "rtsp:// or rtsps://")?,
            nodes: address("nodes", wire.nodes, &["https"], "https://")?,
        };
        let capacity = rate("capacity", wire.capacity, 1)?;
        let limit = wire.limit.map(|limit| rate("limit", limit, 1)).transpose()?;
        let version = wire.version.map(|version| plain(&version));
        let cluster = wire.cluster.map(|cluster| plain(&cluster));
        let zone = wire.zone.map(|zone| plain(&zone)).filter(|zone| !zone.is_empty());
        let prints = wire.prints.and_then(|prints| serde_json::from_value(prints).ok()).map(Arc::new);
        let sessions = number("load.sessions", wire.load.sessions, 0, MOST_SESSIONS.into())?;
        let load = Load {
            rate: rate("load.rate", wire.load.rate, 0)?,
            sessions: u32::try_from(sessions).unwrap_or(MOST_SESSIONS),
        };
        let WireNode { name, source, draining, purged, .. } = wire;
        Ok(Self {
            name,
            addresses,
            capacity,
            limit,
            version,
            source,
            cluster,
            zone,
            prints,
            roles,
            draining,
            purged,
            load,
        })
    }
}

/// The plain characters of a word that is shown to operators.
fn plain(word: &str) -> Arc<str> {
    word.chars().filter(char::is_ascii_graphic).take(LONGEST_WORD).collect::<String>().into()
}

fn rate(field: &'static str, found: u64, least: u64) -> Result<Bitrate, NodeError> {
    number(field, found, least, FASTEST.bps()).map(Bitrate::from_bps)
}

fn number(field: &'static str, found: u64, least: u64, most: u64) -> Result<u64, NodeError> {
    (least..=most).contains(&found).then_some(found).ok_or(NodeError::Number { field, found, least, most })
}

/// Checks an address. Viewers are redirected to it, so it can't carry anything but a scheme, a host and a port.
fn address(
    field: &'static str,
    text: Option<String>,
    schemes: &[&str],
    expected: &'static str,
) -> Result<Option<Arc<str>>, NodeError> {
    let Some(text) = text else { return Ok(None) };
    let plain = |url: &Url| {
        schemes.contains(&url.scheme())
            && url.host_str().is_some_and(|host| !host.is_empty())
            && (url.username().is_empty() && url.password().is_none())
            && matches!(url.path(), "" | "/")
            && (url.query().is_none() && url.fragment().is_none())
    };
    match Url::parse(&text).ok().filter(plain) {
        Some(url) => Ok(Some(url.as_str().trim_end_matches('/').into())),
        None => Err(NodeError::Address { field, found: text.chars().take(200).collect(), expected }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Print, Prints};
    use proptest::prelude::*;

    #[test]
    fn what_is_absent_has_defaults_and_what_is_new_is_skipped() {
        let text =
            r#"{"name":"a","capacity":5,"roles":["storage","critic"],"colour":"red","load":{"rate":7,"heat":1}}"#;
        let node = Node::from_json(text.as_bytes()).unwrap();
        assert!(node.roles.contains(Role::Storage) && !node.roles.contains(Role::Manager) && !node.draining);
        assert_eq!((node.load.rate, node.addresses), (Bitrate::from_bps(7), Addresses::default()));
        let least = Node::from_json(br#"{"name":"a","capacity":5}"#).unwrap();
        assert_eq!((least.roles, least.limit, least.version), (Roles::ALL, None, None));
        // Prints in a form of a later version say nothing.
        let other = Node::from_json(br#"{"name":"a","capacity":5,"prints":{"server":7},"cluster":"b c"}"#).unwrap();
        assert_eq!((other.prints, other.cluster.as_deref(), other.zone), (None, Some("bc"), None));
        let zone = |text: &str| Node::from_json(text.as_bytes()).unwrap().zone;
        assert_eq!(zone(r#"{"name":"a","capacity":5,"zone":"eu 1a"}"#).as_deref(), Some("eu1a"));
        assert_eq!(zone(r#"{"name":"a","capacity":5,"zone":" "}"#), None);
    }

    #[test]
    fn versions_are_plain_text() {
        let text = format!(r#"{{"name":"a","capacity":5,"version":"1.2\u001b[31m é{}"}}"#, "x".repeat(100));
        let version = Node::from_json(text.as_bytes()).unwrap().version.unwrap();
        assert!(version.starts_with("1.2[31mxx") && version.len() == LONGEST_WORD, "{version}");
    }

    #[test]
    fn errors_name_the_field() {
        for (fields, told) in [
            (r#""capacity":0"#, "capacity 0: expected 1 to"),
            (r#""capacity":1e30"#, "invalid type: floating point"),
            (r#""capacity":-1"#, "invalid value: integer `-1`"),
            (r#""capacity":1,"limit":0"#, "limit 0: expected 1 to"),
            (r#""capacity":1,"load":{"rate":18446744073709551615}"#, "load.rate 18446744073709551615: expected 0 to"),
            (r#""capacity":1,"load":{"sessions":100000001}"#, "load.sessions 100000001"),
            (r#""capacity":1,"http":"ftp://a""#, "http \"ftp://a\": expected http:// or https://"),
            (r#""capacity":1,"http":"http://user:word@a""#, "without credentials"),
            (r#""capacity":1,"http":"http://a/path""#, "without credentials, path or query"),
            (r#""capacity":1,"http":"http://a?x""#, "without credentials, path or query"),
            (r#""capacity":1,"rtsp":"rtsp:///a""#, "expected rtsp:// or rtsps:// and a host"),
            (r#""capacity":1,"rtsp":"http://a""#, "expected rtsp:// or rtsps:// and a host"),
            (r#""capacity":1,"nodes":"http://a""#, "nodes \"http://a\": expected https:// and a host"),
        ] {
            let error = Node::from_json(format!("{{\"name\":\"a\",{fields}}}").as_bytes()).unwrap_err().to_string();
            assert!(error.contains(told), "{fields}: {error}");
        }
        assert!(Node::from_json(br#"{"name":"a/b","capacity":1}"#).unwrap_err().to_string().contains("node name"));
        assert!(matches!(Node::from_json(&[b' '; LONGEST + 1]), Err(NodeError::TooLong(_))));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            name in "[a-zA-Z0-9][a-zA-Z0-9._-]{0,20}",
            capacity in 1_u64..1_000_000_000_000_000,
            (rate, sessions) in (0_u64..1_000_000_000_000_000, 0_u32..1000),
            roles in 0_usize..8,
            draining: bool,
            port in 1_u16..,
        ) {
            let node = Node {
                addresses: Addresses {
                    http: (port != 80).then(|| format!("http://10.0.0.1:{port}").into()),
                    rtsp: draining.then(|| format!("rtsps://[::1]:{port}").into()),
                    nodes: (port > 700 && port != 443).then(|| format!("https://a.example:{port}").into()),
                },
                roles: Role::ALL.into_iter().enumerate().filter(|(bit, _)| roles >> bit & 1 == 1).map(|(_, role)| role).collect(),
                draining,
                purged: draining.then_some(capacity),
                limit: (port > 9000).then(|| Bitrate::from_bps(capacity / 2 + 1)),
                source: (port > 500).then(|| [10, 0, 0, 1].into()),
                cluster: (port > 700).then(|| "pond".into()),
                zone: (port > 800).then(|| "eu-1a".into()),
                prints: (port > 900).then(|| {
                    let places = (0..port % 70).map(|place| (format!("p{place}"), Print::of([name.as_str()]))).collect();
                    Prints::new(Print::of(["4s"]), places).into()
                }),
                version: (port > 99).then(|| format!("0.{port}").into()),
                load: Load { rate: Bitrate::from_bps(rate), sessions },
                ..Node::new(name.parse().unwrap(), Bitrate::from_bps(capacity))
            };
            prop_assert_eq!(Node::from_json(node.to_json().as_bytes()).unwrap(), node);
        }
    }
}
