//! Session keys of RTP or RTCP: what each suite encrypts and what it signs.

use super::{
    MasterKey, SrtpError,
    counter_mode::CounterMode,
    gcm::Gcm,
    suite::{INDEX, MOST_TAG, Suite},
    word,
};
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM};
use std::sync::Arc;

/// Flag in the index of encrypted RTCP.
pub(super) const ENCRYPTED: u32 = 1 << 31;

/// Length of the header of an RTCP compound, which stays readable.
pub(super) const RTCP_HEADER: usize = 8;

/// Source and index of a packet. No two packets under one key have the same.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) ssrc: u32,
    /// 48 bits.
    pub(super) index: u64,
}

impl Place {
    /// Writes the place into the middle of a counter or nonce.
    pub(super) fn write(self, at: &mut [u8]) {
        at[..4].copy_from_slice(&self.ssrc.to_be_bytes());
        at[4..10].copy_from_slice(&self.index.to_be_bytes()[2..]);
    }
}

/// Session keys for RTP or for RTCP: derived once, used for every packet.
#[derive(Clone)]
pub(super) enum SessionKeys {
    CounterMode(Arc<CounterMode>),
    Gcm(Arc<Gcm>),
}

impl SessionKeys {
    pub(super) fn rtp(master: &MasterKey) -> Self {
        Self::derive(master, 0)
    }

    pub(super) fn rtcp(master: &MasterKey) -> Self {
        Self::derive(master, 3)
    }

    /// Derives the keys, whose labels are consecutive from `first` (RFC 3711 4.3.2).
    fn derive(master: &MasterKey, first: u8) -> Self {
        match master.suite() {
            Suite::AesCm128HmacSha1_80 => Self::CounterMode(Arc::new(CounterMode::derive(master, first))),
            Suite::AeadAes128Gcm => Self::Gcm(Arc::new(Gcm::derive(&AES_128_GCM, master, first))),
            Suite::AeadAes256Gcm => Self::Gcm(Arc::new(Gcm::derive(&AES_256_GCM, master, first))),
        }
    }

    /// Encrypts the body of an RTP packet. Returns its tag, with zeros after a shorter one. The header includes contributing
    /// sources and the extension.
    pub(super) fn seal_rtp(&self, header: &[u8], body: &mut [u8], index: u64) -> [u8; MOST_TAG] {
        let place = Place { ssrc: word(header, 8), index };
        match self {
            Self::CounterMode(keys) => keys.seal(place, header, body, rollovers(index)),
            Self::Gcm(keys) => keys.seal(place, header, body),
        }
    }

    /// Checks the tag of an RTP packet, then decrypts its body.
    pub(super) fn open_rtp(&self, header: &[u8], body: &mut [u8], index: u64, tag: &[u8]) -> Result<(), SrtpError> {
        let place = Place { ssrc: word(header, 8), index };
        match self {
            Self::CounterMode(keys) => keys.open(place, header, body, rollovers(index), tag),
            Self::Gcm(keys) => keys.open(place, header, body, tag),
        }
    }

    /// Encrypts the body of an RTCP compound. Returns its tag, as for RTP. `marked` is the index with the flag.
    pub(super) fn seal_rtcp(&self, header: &[u8], body: &mut [u8], marked: u32) -> [u8; MOST_TAG] {
        let place = rtcp_place(header, marked);
        match self {
            Self::CounterMode(keys) => keys.seal(place, header, body, marked.to_be_bytes()),
            Self::Gcm(keys) => keys.seal(place, &associated(header, marked), body),
        }
    }

    /// Checks the tag of an RTCP compound, then decrypts its body.
    pub(super) fn open_rtcp(&self, header: &[u8], body: &mut [u8], marked: u32, tag: &[u8]) -> Result<(), SrtpError> {
        let place = rtcp_place(header, marked);
        match self {
            Self::CounterMode(keys) => keys.open(place, header, body, marked.to_be_bytes(), tag),
            Self::Gcm(keys) => keys.open(place, &associated(header, marked), body, tag),
        }
    }
}

/// The upper part of an index, which RTP packets do not contain (ROC).
fn rollovers(index: u64) -> [u8; 4] {
    ((index >> 16) as u32).to_be_bytes()
}

fn rtcp_place(header: &[u8], marked: u32) -> Place {
    Place { ssrc: word(header, 4), index: (marked & !ENCRYPTED).into() }
}

/// Associated data of an SRTCP packet: its header, then the ESRTCP word (RFC 7714 9.2).
fn associated(header: &[u8], marked: u32) -> [u8; RTCP_HEADER + INDEX] {
    let mut associated = [0; RTCP_HEADER + INDEX];
    associated[..RTCP_HEADER].copy_from_slice(header);
    associated[RTCP_HEADER..].copy_from_slice(&marked.to_be_bytes());
    associated
}
