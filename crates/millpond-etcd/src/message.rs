//! Messages of etcd as JSON: bytes in base64, numbers of 64 bits as strings, and no fields of default values
//! (the JSON mapping of Protocol Buffers 3).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};

/// A revision of etcd: the number of a change.
pub type Revision = i64;

/// The number of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseId(pub i64);

/// A key with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyValue {
    /// Key.
    pub key: Vec<u8>,
    /// Value.
    pub value: Vec<u8>,
    /// Revision of the last change.
    pub revision: Revision,
    /// Revision at which the key was made.
    pub created: Revision,
}

/// A change that a watch reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyEvent {
    /// A key has a value.
    Put(KeyValue),
    /// A key is gone.
    Delete {
        /// Key.
        key: Vec<u8>,
        /// Revision of the change.
        revision: Revision,
    },
}

/// Bytes in base64.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Base64(pub(crate) Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A number of 64 bits: a string, or a number.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Int(pub(crate) i64);

impl Serialize for Int {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(i64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(number) => Ok(Self(number)),
            Either::Text(text) => text.parse().map(Self).map_err(serde::de::Error::custom),
        }
    }
}

/// Head of each reply.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Header {
    /// A number without a sign, which is only compared.
    #[serde(default)]
    cluster_id: serde_json::Value,
    #[serde(default)]
    pub(crate) revision: Int,
}

impl Header {
    /// The id of the cluster that etcd's members are; empty where it is not stated.
    pub(crate) fn cluster(&self) -> String {
        match &self.cluster_id {
            serde_json::Value::String(id) => id.clone(),
            serde_json::Value::Number(id) => id.to_string(),
            _ => String::new(),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Pair {
    #[serde(default)]
    key: Base64,
    #[serde(default)]
    value: Base64,
    #[serde(default)]
    mod_revision: Int,
    #[serde(default)]
    create_revision: Int,
}

impl From<Pair> for KeyValue {
    fn from(pair: Pair) -> Self {
        Self { key: pair.key.0, value: pair.value.0, revision: pair.mod_revision.0, created: pair.create_revision.0 }
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct RangeReply {
    #[serde(default)]
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) kvs: Vec<Pair>,
    #[serde(default)]
    pub(crate) more: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TokenReply {
    pub(crate) token: String,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Nothing {}

#[derive(Debug, Deserialize)]
pub(crate) struct LeaseReply {
    #[serde(rename = "ID")]
    pub(crate) id: Int,
    /// Seconds; absent where the lease is over.
    #[serde(rename = "TTL", default)]
    pub(crate) ttl: Int,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct WatchReply {
    #[serde(default)]
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) created: bool,
    #[serde(default)]
    pub(crate) canceled: bool,
    #[serde(default)]
    pub(crate) cancel_reason: String,
    #[serde(default)]
    pub(crate) compact_revision: Int,
    #[serde(default)]
    pub(crate) events: Vec<Change>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Change {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    kv: Pair,
}

impl From<Change> for KeyEvent {
    fn from(change: Change) -> Self {
        let kv = KeyValue::from(change.kv);
        match change.kind.as_str() {
            "DELETE" => Self::Delete { key: kv.key, revision: kv.revision },
            _ => Self::Put(kv),
        }
    }
}

/// A refusal, with the words of gRPC.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Failure {
    #[serde(default)]
    code: Int,
    #[serde(default)]
    grpc_code: Int,
    #[serde(default)]
    pub(crate) message: String,
}

impl Failure {
    /// The failure in the body of a refusal; calls that are streams wrap it.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let wrapped = parse::<Streamed<serde::de::IgnoredAny>>(text).ok().and_then(|streamed| streamed.error);
        wrapped.or_else(|| parse(text).ok())
    }

    /// Code of gRPC. etcd before 3.6 has it in another field in streams.
    pub(crate) fn code(&self) -> i64 {
        if self.grpc_code.0 == 0 { self.code.0 } else { self.grpc_code.0 }
    }
}

/// One message of a stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Streamed<T> {
    pub(crate) result: Option<T>,
    pub(crate) error: Option<Failure>,
}

/// Parses a reply.
///
/// # Errors
/// The fault, in words.
pub(crate) fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    // A list would be taken for the fields of a reply in their order.
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err("not a reply of etcd's JSON gateway: expected an object".to_owned());
    }
    serde_json::from_slice(text).map_err(|error| format!("not a reply of etcd's JSON gateway: {error}"))
}

/// The first key behind all keys with a prefix: the prefix with its last byte one higher.
pub(crate) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end;
        }
    }
    // To the end of all keys.
    vec![0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_etcd_are_parsed() {
        let text = br#"{"header":{"cluster_id":"3","revision":"4"},"kvs":[{"key":"L20vYQ==","create_revision":"1","mod_revision":"2","value":"dg=="}],"count":"1"}"#;
        let reply: RangeReply = parse(text).unwrap();
        assert_eq!((reply.header.revision, reply.header.cluster().as_str()), (Int(4), "3"));
        let pair = KeyValue::from(reply.kvs.into_iter().next().unwrap());
        assert_eq!(pair, KeyValue { key: b"/m/a".to_vec(), value: b"v".to_vec(), revision: 2, created: 1 });
        let text = br#"{"result":{"events":[{"type":"DELETE","kv":{"key":"L20vYQ==","mod_revision":"3"}}]}}"#;
        let reply: Streamed<WatchReply> = parse(text).unwrap();
        let events: Vec<KeyEvent> = reply.result.unwrap().events.into_iter().map(KeyEvent::from).collect();
        assert_eq!(events, [KeyEvent::Delete { key: b"/m/a".to_vec(), revision: 3 }]);
        let over: LeaseReply = parse(br#"{"ID":"7"}"#).unwrap();
        assert_eq!((over.id, over.ttl), (Int(7), Int(0)));
    }

    #[test]
    fn refusals_of_all_calls_have_their_code() {
        for text in [
            r#"{"error":"etcdserver: no leader","code":14,"message":"etcdserver: no leader"}"#,
            r#"{"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}}"#,
            r#"{"error":{"code":14,"message":"etcdserver: no leader"}}"#,
        ] {
            let failure = Failure::parse(text.as_bytes()).unwrap();
            assert_eq!((failure.code(), failure.message.as_str()), (14, "etcdserver: no leader"), "{text}");
        }
    }

    #[test]
    fn garbage_is_an_error() {
        for text in ["<html>", "", "[]", r#"{"kvs":[{"key":"!"}]}"#, r#"{"header":{"revision":"x"}}"#] {
            assert!(parse::<RangeReply>(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_prefix_ends_behind_its_last_key() {
        assert_eq!(end_of(b"/m/"), b"/m0");
        assert_eq!(end_of(&[b'a', 0xff]), b"b");
        assert_eq!(end_of(&[0xff]), [0]);
    }
}
