//! The half of ICE that a called server needs (RFC 8445 2.5, "lite").

use crate::{
    ice::{self, AddressProbe},
    known_addresses::KnownAddresses,
    sdp::IceCredentials,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Time without a valid check after which a peer has left (RFC 7675 5.1).
pub(crate) const CONSENT: Duration = Duration::from_secs(30);
/// Time for the first check: a peer that knows the answer begins at once.
const FIRST_CHECK: Duration = Duration::from_secs(15);

/// Answers the checks of a peer that has called, and knows the address that media is sent to.
#[derive(Debug)]
pub(crate) struct LiteAgent {
    local: IceCredentials,
    remote: IceCredentials,
    /// Addresses whose checks were valid.
    known: KnownAddresses,
    /// Address that media is sent to.
    address: Option<SocketAddr>,
    /// Address that the connected peer has nominated since, with the check that it has to answer from there.
    nominated: Option<(SocketAddr, AddressProbe)>,
    /// Time of the last valid check from the address of media, or of the beginning.
    checked: Instant,
}

impl LiteAgent {
    pub(crate) fn new(local: IceCredentials, remote: IceCredentials, now: Instant) -> Self {
        Self { local, remote, known: KnownAddresses::default(), address: None, nominated: None, checked: now }
    }

    /// Address that media is sent to.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Whether an address has made a valid check.
    pub(crate) fn knows(&self, address: SocketAddr) -> bool {
        self.known.has(address)
    }

    /// Time at which the peer has left, unless a check arrives before.
    pub(crate) fn end(&self) -> Instant {
        self.checked + if self.known.is_empty() { FIRST_CHECK } else { CONSENT }
    }

    /// Time since the last valid check.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.checked)
    }

    /// Takes a message of STUN, and gives what it has to send to `send`. `is_connected` is whether DTLS has shown that the peer receives.
    pub(crate) fn receive(
        &mut self,
        (from, datagram): (SocketAddr, &[u8]),
        is_connected: bool,
        now: Instant,
        mut send: impl FnMut(SocketAddr, Vec<u8>),
    ) {
        let Some(check) = ice::check(datagram, from, &self.local, &self.remote) else {
            return self.move_if_answered(from, datagram, now);
        };
        self.known.add(from);
        send(from, check.answer);
        if self.address == Some(from) {
            self.checked = now;
        } else if self.address.is_none() || (check.nominates && !is_connected) {
            // The handshake shows that the peer receives there.
            self.move_to(from, now);
        } else if check.nominates
            && let Some(probe) = AddressProbe::new(&self.local, &self.remote)
        {
            send(from, probe.message.clone());
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
        self.address = Some(address);
    }
}
