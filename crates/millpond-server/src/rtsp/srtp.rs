//! SRTP of a session's tracks, with keys that are told on a connection that nobody else can read (RTSPS).
//!
//! A description tells the key of what will be sent (RFC 4567 3.1, `a=key-mgmt:mikey`), SETUP that of the client's reports
//! (`KeyMgmt`). A key is for one source and one SETUP: it never protects two streams.

use super::random;
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

/// What a connection's last description told of its tracks' keys.
#[derive(Debug, Default)]
pub(super) struct Promises {
    /// Of which presentation.
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
    /// Begins anew, for another description.
    pub(super) fn of(path: &str) -> Self {
        Self { path: path.to_owned(), tracks: HashMap::new() }
    }

    /// Makes a key for a track; gives the value of its `key-mgmt` attribute. `time` is NTP's.
    ///
    /// # Errors
    /// The system has no random bytes.
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

    /// The key of a track, where it was told and has not been taken.
    pub(super) fn take(&mut self, path: &str, track: usize) -> Option<Promise> {
        if self.path == path { self.tracks.remove(&track) } else { None }
    }
}

/// The protection of a track by its promised key, and by the key that the client tells for its reports.
///
/// # Errors
/// The client's header can't be used.
pub(super) fn protection(promise: &Promise, header: Option<&str>) -> Result<Protection, CarriageError> {
    let told = header.map(KeyMgmt::from_header).transpose()?;
    // Reports with a key's name (MKI) in them are not read.
    let receiver = told.filter(|told| told.message.name.is_empty()).map(|told| Unprotector::new(&told.message.key, 0));
    Ok(Protection::new(&promise.key, receiver))
}
