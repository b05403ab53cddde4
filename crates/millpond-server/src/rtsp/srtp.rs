//! SRTP of a session's tracks. Its keys are exchanged on a connection that nobody else can read (RTSPS).
//!
//! A description has the key of the server's packets (RFC 4567 3.1, `a=key-mgmt:mikey`). SETUP has the key of the
//! client's reports (`KeyMgmt`). A key is for one source and one SETUP: it never protects two streams.

use millpond_access::random;
use millpond_rtp::{
    key_management::{
        carriage::{self, CarriageError, KeyMgmt},
        mikey::{CryptoSession, MikeyMessage},
    },
    srtp::{MasterKey, Unprotector},
};
use millpond_stream::Protection;
use std::{collections::HashMap, io};

/// Random bytes of a message (RFC 3830 6.11: at least 16).
const RANDOM: usize = 16;

/// Keys that the last description on a connection promised to tracks.
#[derive(Debug, Default)]
pub(super) struct Promises {
    /// Path of the presentation.
    path: String,
    tracks: HashMap<usize, Promise>,
}

/// A track's key, before its SETUP.
#[derive(Debug)]
pub(super) struct Promise {
    pub(super) ssrc: u32,
    key: MasterKey,
}

impl Promises {
    /// Creates an empty set for another description.
    pub(super) fn of(path: &str) -> Self {
        Self { path: path.to_owned(), tracks: HashMap::new() }
    }

    /// Makes a key for a track. Returns the value of its `key-mgmt` attribute. `time` is NTP's.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub(super) fn make(&mut self, track: usize, time: u64) -> io::Result<String> {
        let (key, random, bundle) = (MasterKey::new(&random::bytes()?), random::bytes::<RANDOM>()?, random::bytes()?);
        let ssrc = u32::from_ne_bytes(random::bytes()?);
        let streams = vec![CryptoSession { ssrc, rollovers: 0 }];
        let bundle = u32::from_ne_bytes(bundle);
        let message =
            MikeyMessage { bundle, streams, time, random: random.to_vec(), key: key.clone(), name: Vec::new() };
        self.tracks.insert(track, Promise { ssrc, key });
        Ok(carriage::to_attribute(&message))
    }

    /// Removes and returns the key of a track. A key is used once.
    pub(super) fn take(&mut self, path: &str, track: usize) -> Option<Promise> {
        if self.path == path { self.tracks.remove(&track) } else { None }
    }
}

/// Returns the protection of a track: its promised key, and the key of the client's header for its reports.
///
/// # Errors
/// The client's header is not valid or not supported.
pub(super) fn protection(promise: &Promise, header: Option<&str>) -> Result<Protection, CarriageError> {
    let told = header.map(KeyMgmt::from_header).transpose()?;
    // Reports with a key identifier (MKI) are not supported.
    let receiver = told.filter(|told| told.message.name.is_empty()).map(|told| Unprotector::new(&told.message.key, 0));
    Ok(Protection::new(&promise.key, receiver))
}
