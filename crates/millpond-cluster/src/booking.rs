//! A booking, and its form in etcd.

use super::{Bitrate, NodeName};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, sync::Arc, time::Duration};

/// Most bytes of a booking as JSON.
const LONGEST: usize = 16 << 10;
/// Most resources of a booking: a stripe over as many stores.
const MOST_SHARES: usize = 128;
/// Most bytes of a booking's name.
const LONGEST_ID: usize = 128;
/// Largest bandwidth of a share: a petabit per second. Sums of many stay far below 2¹²⁷.
const FASTEST: u64 = 1_000_000_000_000_000;

/// A resource whose bandwidth is booked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Resource {
    /// A node.
    Node(NodeName),
    /// A storage, by the name that all nodes give it: that of a place, or `PLACE/STORE` for a store of its striping group.
    Storage(Arc<str>),
}

impl Resource {
    /// A store of a place's striping group.
    pub fn store(place: &str, store: &str) -> Self {
        Self::Storage(format!("{place}/{store}").into())
    }

    /// Whether it is a store of a striping group. Names of places have no slash.
    pub fn is_store(&self) -> bool {
        matches!(self, Self::Storage(name) if name.contains('/'))
    }
}

/// Bandwidth that is promised to a stream until it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booking {
    /// Its name, that of the stream's session in the cluster: 1 to 128 bytes without slashes and control characters.
    pub id: String,
    /// The bandwidth of each resource.
    pub shares: Vec<(Resource, Bitrate)>,
    /// When it begins, since the Unix epoch.
    pub from: Duration,
    /// When it ends, since the Unix epoch; `None` for live streams.
    pub until: Option<Duration>,
}

impl Booking {
    /// A stream of `rate` from `node` that plays for `length`, `None` without an end. Each of `storages` gives an equal part of it.
    pub fn new(
        id: String,
        node: &NodeName,
        storages: &[Arc<str>],
        rate: Bitrate,
        from: Duration,
        length: Option<Duration>,
    ) -> Self {
        let part = Bitrate::from_bps(rate.bps().div_ceil(storages.len().max(1) as u64));
        let node = std::iter::once((Resource::Node(node.clone()), rate));
        let shares = node.chain(storages.iter().map(|storage| (Resource::Storage(storage.clone()), part)));
        let until = length.map(|length| from.saturating_add(length));
        Self { id, shares: shares.collect(), from, until }
    }

    /// Bandwidth that it has of a resource.
    pub fn share(&self, resource: &Resource) -> Bitrate {
        self.shares.iter().filter(|(other, _)| other == resource).map(|(_, rate)| *rate).sum()
    }

    /// The booking as JSON.
    ///
    /// # Panics
    /// Never: a booking has no maps and no numbers that JSON lacks.
    pub fn to_json(&self) -> String {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let wire = WireBooking {
            id: self.id.clone(),
            shares: self.shares.clone(),
            from: milliseconds(self.from),
            until: self.until.map(milliseconds),
        };
        serde_json::to_string(&wire).expect("plain structs are JSON")
    }

    /// Reads a booking. Times have milliseconds.
    ///
    /// # Errors
    /// A value that is too long, no JSON, or has a field out of its range.
    pub fn from_json(bytes: &[u8]) -> Result<Self, BookingError> {
        if bytes.len() > LONGEST {
            return Err(BookingError::TooLong(bytes.len()));
        }
        let WireBooking { id, shares, from, until } = serde_json::from_slice(bytes)?;
        let is_plain = (1..=LONGEST_ID).contains(&id.len()) && !id.contains(|c: char| c == '/' || c.is_control());
        if !is_plain {
            return Err(BookingError::Id);
        }
        if shares.is_empty() || shares.len() > MOST_SHARES {
            return Err(BookingError::Shares(shares.len()));
        }
        if let Some((resource, rate)) = shares.iter().find(|(_, rate)| rate.bps() > FASTEST) {
            return Err(BookingError::Rate { resource: resource.clone(), rate: *rate });
        }
        if until.is_some_and(|until| until < from) {
            return Err(BookingError::Times);
        }
        let until = until.map(Duration::from_millis);
        Ok(Self { id, shares, from: Duration::from_millis(from), until })
    }
}

/// Why a value is no booking.
#[derive(Debug, thiserror::Error)]
pub enum BookingError {
    /// More bytes than a booking may have.
    #[error("{0} bytes, expected at most {LONGEST}")]
    TooLong(usize),
    /// No JSON, or a field of another type.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A name that is empty, too long or has a slash.
    #[error("id: expected 1 to {LONGEST_ID} bytes without slashes and control characters")]
    Id,
    /// No resources, or too many.
    #[error("{0} shares, expected 1 to {MOST_SHARES}")]
    Shares(usize),
    /// A bandwidth that no machine has.
    #[error("{resource}: {rate}, expected at most {FASTEST} bit/s")]
    Rate {
        /// The resource.
        resource: Resource,
        /// Its bandwidth.
        rate: Bitrate,
    },
    /// It ends before it begins.
    #[error("until is before from")]
    Times,
}

#[derive(Serialize, Deserialize)]
struct WireBooking {
    id: String,
    shares: Vec<(Resource, Bitrate)>,
    /// Milliseconds since the Unix epoch.
    from: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(f, "node:{name}"),
            Self::Storage(name) => write!(f, "storage:{name}"),
        }
    }
}

/// A text that is no resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("resource {0:?}: expected node:NAME or storage:NAME")]
pub struct InvalidResource(String);

impl FromStr for Resource {
    type Err = InvalidResource;

    fn from_str(text: &str) -> Result<Self, InvalidResource> {
        let invalid = || InvalidResource(text.chars().take(64).collect());
        match text.split_once(':') {
            Some(("node", name)) => name.parse().map(Self::Node).map_err(|_| invalid()),
            // The only place of a server may have no name.
            Some(("storage", name)) if !name.contains(char::is_control) => Ok(Self::Storage(name.into())),
            _ => Err(invalid()),
        }
    }
}

impl TryFrom<String> for Resource {
    type Error = InvalidResource;

    fn try_from(text: String) -> Result<Self, InvalidResource> {
        text.parse()
    }
}

impl From<Resource> for String {
    fn from(resource: Resource) -> Self {
        resource.to_string()
    }
}
