//! The handshake of DTLS whose keys protect the media (RFC 5764). Pure but for the library's random numbers.

use dimpl::{Dtls, DtlsCertificate, Output, SrtpProfile};
use millpond_rtp::srtp::{MasterKey, Suite, keys_of_dtls};
use millpond_webrtc::sdp::Fingerprint;
use sha2::{Digest as _, Sha256};
use std::{sync::Arc, time::Instant};

/// Bytes of a record.
const RECORD: usize = 2048;

/// The certificate of all viewers.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    certificate: DtlsCertificate,
    config: Arc<dimpl::Config>,
    /// As offers tell it.
    pub(crate) fingerprint: Fingerprint,
}

impl Identity {
    /// Makes a certificate.
    pub(crate) fn new() -> Result<Self, String> {
        let certificate =
            dimpl::certificate::generate_self_signed_certificate().map_err(|error| format!("certificate: {error}"))?;
        let config = dimpl::Config::builder().build().map_err(|error| format!("DTLS: {error}"))?;
        let fingerprint = Fingerprint(Sha256::digest(&certificate.certificate).into());
        Ok(Self { certificate, config: Arc::new(config), fingerprint })
    }
}

/// Keys of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// Of what the viewer sends.
    pub(crate) sent: MasterKey,
    /// Of what the server sends.
    pub(crate) received: MasterKey,
}

/// One side of a handshake.
pub(crate) struct Handshake {
    dtls: Dtls,
    is_client: bool,
    expected: Fingerprint,
    is_known: bool,
    is_connected: bool,
    keys: Option<Keys>,
    timer: Instant,
    datagrams: Vec<Vec<u8>>,
}

impl Handshake {
    /// Begins a handshake with the server of a certificate. Version 1.2 lets the server speak last, so media never comes before the end.
    pub(crate) fn begin(identity: &Identity, expected: Fingerprint, is_client: bool, now: Instant) -> Self {
        let mut dtls = Dtls::new_12(identity.config.clone(), identity.certificate.clone(), now);
        dtls.set_active(is_client);
        Self {
            dtls,
            is_client,
            expected,
            is_known: false,
            is_connected: false,
            keys: None,
            timer: now,
            datagrams: Vec::new(),
        }
    }

    /// Takes a datagram.
    pub(crate) fn receive(&mut self, datagram: &[u8], now: Instant) -> Result<(), String> {
        self.step(now, |dtls| dtls.handle_packet(datagram))
    }

    /// Takes the time.
    pub(crate) fn tick(&mut self, now: Instant) -> Result<(), String> {
        if self.timer <= now { self.step(now, |_| Ok(())) } else { Ok(()) }
    }

    /// The time of the next [`tick`](Self::tick).
    pub(crate) fn next(&self) -> Instant {
        self.timer
    }

    /// Datagrams to be sent.
    pub(crate) fn take_datagrams(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.datagrams)
    }

    /// The keys, when the handshake is complete.
    pub(crate) fn keys(&self) -> Option<&Keys> {
        self.keys.as_ref().filter(|_| self.is_connected)
    }

    fn step(&mut self, now: Instant, act: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>) -> Result<(), String> {
        self.dtls.handle_timeout(now).map_err(|error| error.to_string())?;
        act(&mut self.dtls).map_err(|error| error.to_string())?;
        let mut buffer = vec![0; RECORD];
        loop {
            match self.dtls.poll_output(&mut buffer) {
                Output::Packet(packet) => self.datagrams.push(packet.to_vec()),
                Output::BufferTooSmall { needed } => buffer.resize(needed, 0),
                Output::Timeout(at) => {
                    self.timer = at;
                    break;
                }
                Output::PeerCert(certificate) => {
                    self.is_known = Sha256::digest(certificate)[..] == self.expected.0;
                    if !self.is_known {
                        return Err("the certificate is not the one of the answer".to_owned());
                    }
                }
                Output::KeyingMaterial(material, profile) => {
                    let keys = suite(profile).and_then(|suite| keys_of_dtls(suite, &material));
                    let (client, server) =
                        keys.ok_or_else(|| format!("no suite of SRTP that is known: {profile:?}"))?;
                    let (sent, received) = if self.is_client { (client, server) } else { (server, client) };
                    self.keys = Some(Keys { sent, received });
                }
                Output::Connected => self.is_connected = true,
                Output::CloseNotify => return Err("the server closed the connection".to_owned()),
                _ => {}
            }
        }
        match (self.is_connected, &self.keys, self.is_known) {
            (true, None, _) => Err("no use_srtp (RFC 5764)".to_owned()),
            (true, _, false) => Err("no certificate".to_owned()),
            _ => Ok(()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(expected: impl Fn(Fingerprint) -> Fingerprint) -> Result<(Keys, Keys), String> {
        let (one, other) = (Identity::new()?, Identity::new()?);
        let now = Instant::now();
        let mut client = Handshake::begin(&one, expected(other.fingerprint), true, now);
        let mut server = Handshake::begin(&other, one.fingerprint, false, now);
        client.tick(now)?;
        for _ in 0..10 {
            client.take_datagrams().iter().try_for_each(|datagram| server.receive(datagram, now))?;
            server.take_datagrams().iter().try_for_each(|datagram| client.receive(datagram, now))?;
            if let (Some(client), Some(server)) = (client.keys(), server.keys()) {
                return Ok((client.clone(), server.clone()));
            }
        }
        Err("no keys".to_owned())
    }

    #[test]
    fn both_sides_have_the_same_keys() {
        let (client, server) = pair(|known| known).unwrap();
        assert_eq!(client.sent.to_bytes(), server.received.to_bytes());
        assert_eq!(client.received.to_bytes(), server.sent.to_bytes());
        assert_ne!(client.sent.to_bytes(), client.received.to_bytes());
    }

    #[test]
    fn another_certificate_is_refused() {
        let problem = pair(|Fingerprint(mut bytes)| {
            bytes[0] ^= 1;
            Fingerprint(bytes)
        });
        assert!(problem.unwrap_err().contains("certificate"));
    }
}
