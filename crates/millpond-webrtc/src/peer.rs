//! One connection: ICE, then DTLS, then keys.

use crate::{
    Datagram, Identity,
    ice::{self, AddressProbe},
    sdp::{Fingerprint, IceCredentials},
};
use dimpl::{Dtls, Output, SrtpProfile};
use millpond_rtp::srtp::{MasterKey, Suite, keys_of_dtls};
use sha2::{Digest as _, Sha256};
use std::{
    collections::VecDeque,
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Time without a valid check after which a peer has left (RFC 7675 5.1).
const CONSENT: Duration = Duration::from_secs(30);
/// Time for the first check: a peer that knows the answer begins at once.
const FIRST_CHECK: Duration = Duration::from_secs(15);
/// Time for the handshake. Checks alone keep no session.
const CONNECTED: Duration = Duration::from_secs(30);
/// Addresses of a peer that are known at once. Browsers check from each of their interfaces.
const ADDRESSES: usize = 16;
/// Bytes of a record, and most of them: larger ones than the library's own fit no datagram.
const RECORD: usize = 2048;

/// Keys of the packets of a connection.
#[derive(Clone, Debug)]
pub struct SrtpKeys {
    /// Key of the packets that the server sends.
    pub sent: MasterKey,
    /// Key of the packets that the peer sends.
    pub received: MasterKey,
}

/// An event of a connection.
#[derive(Debug)]
pub enum PeerEvent {
    /// A datagram must be sent to an address.
    Send(SocketAddr, Vec<u8>),
    /// The handshake is complete: media may be sent to the address.
    Connected(SocketAddr, Box<SrtpKeys>),
    /// The peer has another address from now on.
    Moved(SocketAddr),
}

/// The reason why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// No check arrived for long.
    #[error("no check of ICE arrived for {} s", .0.as_secs())]
    Silent(Duration),
    /// The handshake was not completed in time.
    #[error("no handshake of DTLS was completed within {} s", CONNECTED.as_secs())]
    Unconnected,
    /// The certificate is not the one of the offer.
    #[error("the certificate of DTLS is not the one of the offer")]
    Certificate,
    /// The handshake gave no keys for SRTP.
    #[error("the handshake of DTLS has no use_srtp (RFC 5764) with a suite that is known")]
    Suite,
    /// DTLS failed.
    #[error("DTLS: {0}")]
    Dtls(String),
}

/// One connection of a peer, which made an offer.
///
/// Give it datagrams of STUN and DTLS by [`receive`](Self::receive). Call [`tick`](Self::tick) when the time of [`next`](Self::next)
/// has come. After each call take all events by [`poll`](Self::poll).
pub struct RtcPeer {
    local: IceCredentials,
    remote: IceCredentials,
    expected: Fingerprint,
    dtls: Dtls,
    /// Whether the certificate was the right one.
    is_known: bool,
    /// Addresses whose checks were valid, the newest one last.
    addresses: VecDeque<SocketAddr>,
    /// Address that media is sent to.
    remote_address: Option<SocketAddr>,
    /// Address that the connected peer has nominated since, with the check that it has to answer from there.
    nominated: Option<(SocketAddr, AddressProbe)>,
    /// Keys that were not told yet.
    keys: Option<Box<SrtpKeys>>,
    has_keys: bool,
    is_connected: bool,
    began: Instant,
    /// Time of the last valid check from the address of media, or of the beginning.
    checked: Instant,
    /// Time of the next repetition of a flight.
    timer: Option<Instant>,
    events: VecDeque<PeerEvent>,
}

impl RtcPeer {
    /// Begins a connection. `remote` and `fingerprint` are those of the offer; `local` is what the answer tells.
    #[must_use]
    pub fn new(
        (local, identity): (IceCredentials, &Identity),
        (remote, fingerprint): (IceCredentials, Fingerprint),
        now: Instant,
    ) -> Self {
        let dtls = Dtls::new_auto(identity.config.clone(), identity.certificate.clone(), now);
        Self {
            local,
            remote,
            expected: fingerprint,
            dtls,
            is_known: false,
            addresses: VecDeque::new(),
            remote_address: None,
            nominated: None,
            keys: None,
            has_keys: false,
            is_connected: false,
            began: now,
            checked: now,
            timer: None,
            events: VecDeque::new(),
        }
    }

    /// Whether media may be sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// The address that media is sent to.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.remote_address
    }

    /// Whether an address has made a valid check. Datagrams from others are not the peer's.
    #[must_use]
    pub fn has_checked(&self, from: SocketAddr) -> bool {
        self.addresses.contains(&from)
    }

    /// Takes a datagram of STUN or DTLS. Others, and those of strangers, are ignored.
    ///
    /// # Errors
    /// The connection is over.
    pub fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) -> Result<(), Ended> {
        match Datagram::of(datagram) {
            Some(Datagram::Stun) => self.check(from, datagram, now),
            Some(Datagram::Dtls) if self.has_checked(from) => {
                self.step(now, |dtls| dtls.handle_packet(datagram))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the time.
    ///
    /// # Errors
    /// The connection is over.
    pub fn tick(&mut self, now: Instant) -> Result<(), Ended> {
        let silent = now.saturating_duration_since(self.checked);
        if silent >= self.patience() {
            return Err(Ended::Silent(silent));
        }
        if !self.is_connected && now.saturating_duration_since(self.began) >= CONNECTED {
            return Err(Ended::Unconnected);
        }
        if self.timer.is_some_and(|at| at <= now) {
            self.step(now, |_| Ok(()))?;
        }
        Ok(())
    }

    /// The time of the next [`tick`](Self::tick).
    #[must_use]
    pub fn next(&self) -> Instant {
        let end = self.checked + self.patience();
        let end = if self.is_connected { end } else { end.min(self.began + CONNECTED) };
        self.timer.map_or(end, |timer| timer.min(end))
    }

    /// Takes the next event.
    pub fn poll(&mut self) -> Option<PeerEvent> {
        self.events.pop_front()
    }

    /// Tells the peer that the connection is over.
    pub fn close(&mut self, now: Instant) {
        if self.is_connected {
            let _ = self.step(now, Dtls::close);
        }
    }

    /// Time without a valid check after which the connection is over.
    fn patience(&self) -> Duration {
        if self.addresses.is_empty() { FIRST_CHECK } else { CONSENT }
    }

    fn check(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) {
        let Some(check) = ice::check(datagram, from, &self.local, &self.remote) else {
            return self.move_if_answered(from, datagram, now);
        };
        self.addresses.retain(|known| *known != from);
        self.addresses.push_back(from);
        if self.addresses.len() > ADDRESSES {
            self.addresses.pop_front();
        }
        self.events.push_back(PeerEvent::Send(from, check.answer));
        let is_first = self.remote_address.is_none();
        if self.remote_address == Some(from) {
            self.checked = now;
        } else if is_first || (check.nominates && !self.is_connected) {
            // The handshake shows that the peer receives there.
            self.move_to(from, now);
        } else if check.nominates
            && let Some(probe) = AddressProbe::new(&self.local, &self.remote)
        {
            self.events.push_back(PeerEvent::Send(from, probe.message.clone()));
            self.nominated = Some((from, probe));
        }
    }

    /// Moves to the address that the peer has nominated, where a datagram from there answers the server's check.
    fn move_if_answered(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) {
        let is_answer = |(address, probe): &mut (SocketAddr, AddressProbe)| {
            *address == from && probe.is_answered_by(datagram, &self.remote)
        };
        if self.nominated.take_if(is_answer).is_some() {
            self.move_to(from, now);
        }
    }

    fn move_to(&mut self, address: SocketAddr, now: Instant) {
        self.checked = now;
        let before = self.remote_address.replace(address);
        if before.is_some_and(|before| before != address) {
            self.events.push_back(PeerEvent::Moved(address));
        }
    }

    /// Lets DTLS go one step, and takes what it puts out.
    fn step(&mut self, now: Instant, act: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>) -> Result<(), Ended> {
        let failed = |error: dimpl::Error| Ended::Dtls(error.to_string());
        self.dtls.handle_timeout(now).map_err(failed)?;
        act(&mut self.dtls).map_err(failed)?;
        let mut buffer = vec![0; RECORD];
        loop {
            match self.dtls.poll_output(&mut buffer) {
                Output::Packet(packet) => {
                    if let Some(to) = self.remote_address {
                        self.events.push_back(PeerEvent::Send(to, packet.to_vec()));
                    }
                }
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
                    self.keys = Some(Box::new(SrtpKeys { sent: server, received: client }));
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
        if self.is_connected
            && let (Some(address), Some(keys)) = (self.remote_address, self.keys.take())
        {
            self.events.push_back(PeerEvent::Connected(address, keys));
        }
        Ok(())
    }
}

impl fmt::Debug for RtcPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { remote_address, is_connected, checked, .. } = self;
        f.debug_struct("RtcPeer")
            .field("address", remote_address)
            .field("is_connected", is_connected)
            .field("checked", checked)
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

#[cfg(test)]
mod tests {
    use super::*;
    use hmac::{Hmac, KeyInit as _, Mac as _};
    use is::stun::{StunMessage, TransId};
    use sha1::Sha1;

    fn hmac_sha1(key: &[u8], parts: &[&[u8]]) -> [u8; 20] {
        let mut mac = Hmac::<Sha1>::new_from_slice(key).unwrap();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }

    fn credentials(name: &str) -> IceCredentials {
        IceCredentials { ufrag: name.to_owned(), password: format!("password-of-{name}-22-bytes") }
    }

    fn bytes(message: StunMessage<'_>, password: &str) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        let length = message.to_bytes(Some(password.as_bytes()), &mut bytes, hmac_sha1).unwrap();
        bytes.truncate(length);
        bytes
    }

    /// A nominating check of the client.
    fn check() -> Vec<u8> {
        let request = StunMessage::binding_request("local:remote", TransId::new(), true, 7, 9, true);
        bytes(request, &credentials("local").password)
    }

    /// A peer whose offer has the fingerprint, and the library's own client, which has checked from an address.
    fn pair(fingerprint: Option<Fingerprint>, address: SocketAddr, now: Instant) -> (RtcPeer, Dtls) {
        let (server, client) = (Identity::new().unwrap(), Identity::new().unwrap());
        let offered = fingerprint.unwrap_or(*client.fingerprint());
        let mut peer = RtcPeer::new((credentials("local"), &server), (credentials("remote"), offered), now);
        peer.receive(address, &check(), now).unwrap();
        let mut dtls = Dtls::new_12(client.config.clone(), client.certificate.clone(), now);
        dtls.set_active(true);
        (peer, dtls)
    }

    /// Passes datagrams between both until none is left.
    fn handshake(peer: &mut RtcPeer, dtls: &mut Dtls, address: SocketAddr, now: Instant) -> Result<(), Ended> {
        let mut buffer = vec![0; RECORD];
        for _ in 0..50 {
            dtls.handle_timeout(now).unwrap();
            let mut sent = Vec::new();
            loop {
                match dtls.poll_output(&mut buffer) {
                    Output::Packet(packet) => sent.push(packet.to_vec()),
                    Output::Timeout(_) => break,
                    _ => {}
                }
            }
            for packet in sent {
                peer.receive(address, &packet, now)?;
            }
            while let Some(event) = peer.poll() {
                match event {
                    PeerEvent::Send(to, packet) => {
                        assert_eq!(to, address);
                        if Datagram::of(&packet) == Some(Datagram::Dtls) {
                            dtls.handle_packet(&packet).unwrap();
                        }
                    }
                    PeerEvent::Connected(at, _) => assert_eq!(at, address),
                    PeerEvent::Moved(to) => panic!("moved to {to}"),
                }
            }
        }
        Ok(())
    }

    #[test]
    fn media_moves_where_the_peer_answers_and_nowhere_else() {
        let [home, other] = ["192.0.2.1:4000", "192.0.2.2:4000"].map(|text| text.parse::<SocketAddr>().unwrap());
        let now = Instant::now();
        let (mut peer, mut dtls) = pair(None, home, now);
        handshake(&mut peer, &mut dtls, home, now).unwrap();
        assert!(peer.is_connected());
        peer.receive(other, &check(), now).unwrap();
        let sent: Vec<_> = std::iter::from_fn(|| peer.poll()).collect();
        let [PeerEvent::Send(_, answer), PeerEvent::Send(to, probe)] = &sent[..] else { panic!("{sent:?}") };
        assert!(StunMessage::parse(answer).unwrap().is_successful_binding_response());
        assert_eq!((*to, peer.address()), (other, Some(home)), "a check alone moves nothing");
        let seen = StunMessage::parse(probe).unwrap();
        let reply = bytes(StunMessage::binding_reply(seen.trans_id(), home), &credentials("remote").password);
        peer.receive(home, &reply, now).unwrap();
        assert_eq!(peer.address(), Some(home), "the answer has another sender");
        // Checks from an address that has not answered are no consent (RFC 7675 5.1).
        assert_eq!(peer.tick(now + CONSENT), Err(Ended::Silent(CONSENT)));
        peer.receive(other, &reply, now).unwrap();
        assert_eq!(peer.address(), Some(other));
        assert!(matches!(peer.poll(), Some(PeerEvent::Moved(to)) if to == other));
    }

    #[test]
    fn checks_alone_keep_no_session() {
        let (address, mut now) = ("192.0.2.1:4000".parse().unwrap(), Instant::now());
        let (mut peer, _) = pair(None, address, now);
        for _ in 0..29 {
            now += Duration::from_secs(1);
            peer.receive(address, &check(), now).unwrap();
            assert_eq!(peer.tick(now), Ok(()));
        }
        assert_eq!(peer.next(), now + Duration::from_secs(1));
        assert_eq!(peer.tick(now + Duration::from_secs(1)), Err(Ended::Unconnected));
    }

    #[test]
    fn another_certificate_ends_the_connection() {
        let (address, now) = ("192.0.2.1:4000".parse().unwrap(), Instant::now());
        let (mut peer, mut dtls) = pair(Some(Fingerprint([7; 32])), address, now);
        assert_eq!(handshake(&mut peer, &mut dtls, address, now), Err(Ended::Certificate));
        assert!(!peer.is_connected());
    }
}
