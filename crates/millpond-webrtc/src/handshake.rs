//! The handshake of DTLS, up to the keys of SRTP (RFC 5764).

use crate::{Ended, Identity, SrtpKeys, sdp::Fingerprint};
use dimpl::{Dtls, Output, SrtpProfile};
use millpond_rtp::srtp::{Suite, keys_of_dtls};
use sha2::{Digest as _, Sha256};
use std::{fmt, time::Instant};

/// Bytes of a record, and most of them: larger ones than the library's own fit no datagram.
pub(crate) const RECORD: usize = 2048;

/// The DTLS of one connection.
pub(crate) struct Handshake {
    dtls: Dtls,
    expected: Fingerprint,
    /// Whether the peer begins, and not the server.
    peer_begins: bool,
    /// Whether the certificate was the right one.
    is_known: bool,
    /// Keys that were not told yet.
    keys: Option<Box<SrtpKeys>>,
    has_keys: bool,
    is_connected: bool,
    /// Time of the next repetition of a flight.
    timer: Option<Instant>,
}

impl Handshake {
    /// Prepares the handshake with a peer whose certificate has a fingerprint.
    pub(crate) fn new(identity: &Identity, expected: Fingerprint, peer_begins: bool, now: Instant) -> Self {
        let mut dtls = Dtls::new_auto(identity.config.clone(), identity.certificate.clone(), now);
        dtls.set_active(!peer_begins);
        let (is_known, has_keys, is_connected) = (false, false, false);
        Self { dtls, expected, peer_begins, is_known, keys: None, has_keys, is_connected, timer: None }
    }

    /// Whether the peer begins.
    pub(crate) fn peer_begins(&self) -> bool {
        self.peer_begins
    }

    /// Whether it is complete.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Time of the next repetition of a flight.
    pub(crate) fn timer(&self) -> Option<Instant> {
        self.timer
    }

    /// Takes the keys of a complete handshake, once.
    pub(crate) fn take_keys(&mut self) -> Option<Box<SrtpKeys>> {
        self.keys.take_if(|_| self.is_connected)
    }

    /// Takes records of the peer.
    pub(crate) fn receive(&mut self, records: &[u8], now: Instant, send: impl FnMut(&[u8])) -> Result<(), Ended> {
        self.step(now, |dtls| dtls.handle_packet(records), send)
    }

    /// Takes the time: begins, or repeats what was lost.
    pub(crate) fn tick(&mut self, now: Instant, send: impl FnMut(&[u8])) -> Result<(), Ended> {
        self.step(now, |_| Ok(()), send)
    }

    /// Tells the peer that the connection is over.
    pub(crate) fn close(&mut self, now: Instant, send: impl FnMut(&[u8])) {
        if self.is_connected {
            let _ = self.step(now, Dtls::close, send);
        }
    }

    /// Lets DTLS go one step, and takes what it puts out.
    fn step(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>,
        mut send: impl FnMut(&[u8]),
    ) -> Result<(), Ended> {
        let failed = |error: dimpl::Error| Ended::Dtls(error.to_string());
        self.dtls.handle_timeout(now).map_err(failed)?;
        act(&mut self.dtls).map_err(failed)?;
        let mut buffer = vec![0; RECORD];
        loop {
            match self.dtls.poll_output(&mut buffer) {
                Output::Packet(packet) => send(packet),
                Output::BufferTooSmall { needed } => buffer.resize(needed, 0),
                Output::Timeout(at) => {
                    self.timer = Some(at);
                    break;
                }
                Output::PeerCert(certificate) => {
                    self.is_known = Sha256::digest(certificate)[..] == self.expected.0;
                    if !self.is_known {
                        return Err(Ended::Certificate);
                    }
                }
                Output::KeyingMaterial(material, profile) => {
                    let suite = suite(profile).ok_or(Ended::Suite)?;
                    let (client, server) = keys_of_dtls(suite, &material).ok_or(Ended::Suite)?;
                    let (sent, received) = if self.peer_begins { (server, client) } else { (client, server) };
                    self.keys = Some(Box::new(SrtpKeys { sent, received }));
                    self.has_keys = true;
                }
                Output::Connected => {
                    if !self.is_known {
                        return Err(Ended::Certificate);
                    }
                    self.is_connected = true;
                }
                Output::CloseNotify => return Err(Ended::Closed),
                // Data channels are not offered.
                _ => {}
            }
        }
        if self.is_connected && !self.has_keys {
            return Err(Ended::Suite);
        }
        Ok(())
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer_begins, is_connected, .. } = self;
        f.debug_struct("Handshake")
            .field("peer_begins", peer_begins)
            .field("is_connected", is_connected)
            .finish_non_exhaustive()
    }
}

fn suite(profile: SrtpProfile) -> Option<Suite> {
    match profile {
        SrtpProfile::AES128_CM_SHA1_80 => Some(Suite::AesCm128HmacSha1_80),
        SrtpProfile::AEAD_AES_128_GCM => Some(Suite::AeadAes128Gcm),
        SrtpProfile::AEAD_AES_256_GCM => Some(Suite::AeadAes256Gcm),
        _ => None,
    }
}
