//! SRTP of a session's tracks, with keys that are told on a connection that nobody else can read (RTSPS).
//!
//! A description tells the key of what will be sent (RFC 4567 3.1, `a=key-mgmt:mikey`), SETUP that of the client's reports
//! (`KeyMgmt`). A key is for one source and one SETUP: it never protects two streams.

use super::chance;
use millpond_rtp::{
    key_management::{
        carriage::{self, CarriageError, KeyMgmt},
        mikey::{CryptoSession, MikeyMessage},
    },
    srtp::{MasterKey, Protector, SrtpError, Unprotector},
};
use std::{collections::HashMap, io};

/// Bytes of chance in a message (RFC 3830 6.11: at least 16).
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

/// A track's keys.
#[derive(Clone, Debug)]
pub(super) struct Srtp {
    protector: Protector,
    /// Of its receiver's reports, where the client told a key.
    receiver: Option<Unprotector>,
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
        let (key, random, bundle) = (MasterKey::new(&chance::bytes()?), chance::bytes::<RANDOM>()?, chance::bytes()?);
        let ssrc = u32::from_ne_bytes(chance::bytes()?);
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

impl Srtp {
    /// By what was promised, and by what the client says of its own key.
    ///
    /// # Errors
    /// What it says can't be used.
    pub(super) fn new(promise: &Promise, header: Option<&str>) -> Result<Self, CarriageError> {
        let told = header.map(KeyMgmt::from_header).transpose()?;
        // Reports with a key's name (MKI) in them are not read.
        let receiver =
            told.filter(|told| told.message.name.is_empty()).map(|told| Unprotector::new(&told.message.key, 0));
        Ok(Self { protector: Protector::new(&promise.key), receiver })
    }

    /// Protects the RTP packet at the end of a buffer.
    pub(super) fn seal(&mut self, buffer: &mut Vec<u8>, start: usize) -> Result<(), SrtpError> {
        self.protector.rtp(buffer, start)
    }

    /// Protects a compound of reports.
    pub(super) fn seal_reports(&mut self, reports: &mut Vec<u8>) -> Result<(), SrtpError> {
        self.protector.rtcp(reports, 0)
    }

    /// What a receiver's reports say; nothing where they are not the client's.
    pub(super) fn open_reports<'a>(&mut self, reports: &'a mut [u8]) -> Option<&'a [u8]> {
        self.receiver.as_mut()?.rtcp(reports).ok().map(|reports| &*reports)
    }
}
