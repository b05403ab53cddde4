//! Checks of ICE (RFC 8445): those of a peer with their answers, and those of the server.
//!
//! A peer that calls the server finds a lite agent (2.5): it answers checks, and sends none of its own to connect. Sources of datagrams can
//! be forged. So media moves to another address only after an [`AddressProbe`] was answered from there. A peer that the server calls is
//! found by nominating probes of its addresses.

use crate::sdp::IceCredentials;
use hmac::{Hmac, KeyInit as _, Mac as _};
use is::stun::{StunMessage, TransId};
use sha1::Sha1;
use std::net::SocketAddr;

/// Bytes of the longest answer: header, mapped IPv6 address, integrity and fingerprint.
const ANSWER: usize = 128;

/// Bytes of the longest check of the server: credentials have at most 256 bytes each.
const PROBE: usize = 1024;
/// Priority of the server's address, as of a host candidate (RFC 8445 5.1.2.1).
const PRIORITY: u32 = (126 << 24) | (0xffff << 8) | 255;

/// A valid check of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The answer to its sender.
    pub answer: Vec<u8>,
    /// Whether the peer uses this pair of addresses from now on.
    pub nominates: bool,
}

/// The name of the server's half in a check: the first part of its user name. `None` where a datagram is no check.
#[must_use]
pub fn name_of_check(datagram: &[u8]) -> Option<String> {
    let message = StunMessage::parse(datagram).ok().filter(|message| message.is_binding_request())?;
    message.split_username().map(|(local, _)| local.to_owned())
}

/// Answers a check from an address. `None` where it is no check of this peer, or the answer would be longer than the check: nobody
/// can aim answers at others.
#[must_use]
pub fn check(datagram: &[u8], from: SocketAddr, local: &IceCredentials, remote: &IceCredentials) -> Option<Check> {
    let message = StunMessage::parse(datagram).ok().filter(|message| message.is_binding_request())?;
    if message.split_username()? != (local.ufrag.as_str(), remote.ufrag.as_str()) {
        return None;
    }
    if !message.verify(local.password.as_bytes(), hmac_sha1) {
        return None;
    }
    let mut answer = vec![0; ANSWER];
    let reply = StunMessage::binding_reply(message.trans_id(), from);
    let length = reply.to_bytes(Some(local.password.as_bytes()), &mut answer, hmac_sha1).ok()?;
    answer.truncate(length);
    (length <= datagram.len()).then(|| Check { answer, nominates: message.use_candidate() })
}

/// A check of the server's own. The answer shows that the peer receives at the address to which it was sent.
#[derive(Clone, Debug)]
pub struct AddressProbe {
    transaction: TransId,
    /// The check.
    pub message: Vec<u8>,
}

/// The role of an agent that has called its peer (RFC 8445 4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Controlling {
    /// A number that two agents with the same role would compare.
    pub(crate) tie_breaker: u64,
    /// Whether the pair of addresses is used from the answer on.
    pub(crate) nominates: bool,
}

impl AddressProbe {
    /// Makes a check of an address that a connected peer has nominated, with a random transaction. `None` where the credentials are too
    /// long for one.
    #[must_use]
    pub fn new(local: &IceCredentials, remote: &IceCredentials) -> Option<Self> {
        Self::of(local, remote, None)
    }

    /// Makes a check of an agent that has called its peer.
    pub(crate) fn controlling(local: &IceCredentials, remote: &IceCredentials, role: Controlling) -> Option<Self> {
        Self::of(local, remote, Some(role))
    }

    fn of(local: &IceCredentials, remote: &IceCredentials, role: Option<Controlling>) -> Option<Self> {
        let (transaction, user) = (TransId::new(), format!("{}:{}", remote.ufrag, local.ufrag));
        let (tie_breaker, nominates) = role.map_or((0, false), |role| (role.tie_breaker, role.nominates));
        let request =
            StunMessage::binding_request(&user, transaction, role.is_some(), tie_breaker, PRIORITY, nominates);
        let mut message = vec![0; PROBE];
        let length = request.to_bytes(Some(remote.password.as_bytes()), &mut message, hmac_sha1).ok()?;
        message.truncate(length);
        Some(Self { transaction, message })
    }

    /// Whether a datagram is the peer's answer.
    #[must_use]
    pub fn is_answered_by(&self, datagram: &[u8], remote: &IceCredentials) -> bool {
        StunMessage::parse(datagram).is_ok_and(|message| {
            message.is_successful_binding_response()
                && message.trans_id() == self.transaction
                && message.verify(remote.password.as_bytes(), hmac_sha1)
        })
    }
}

fn hmac_sha1(key: &[u8], parts: &[&[u8]]) -> [u8; 20] {
    // A key of any length is valid (RFC 2104 3).
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(key) else { return [0; 20] };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    fn credentials(name: &str) -> IceCredentials {
        IceCredentials { ufrag: format!("{name}-ufrag"), password: format!("{name}-password-of-22-bytes") }
    }

    fn from() -> SocketAddr {
        "[2001:db8::7]:4242".parse().unwrap()
    }

    /// A check by the library's own client.
    fn request(user: &str, password: &str, nominates: bool) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        let message = StunMessage::binding_request(user, TransId::new(), true, 7, 99, nominates);
        let length = message.to_bytes(Some(password.as_bytes()), &mut bytes, hmac_sha1).unwrap();
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn checks_are_answered() {
        let (local, remote) = (credentials("local"), credentials("remote"));
        let user = format!("{}:{}", local.ufrag, remote.ufrag);
        for nominates in [false, true] {
            let bytes = request(&user, &local.password, nominates);
            assert_eq!(name_of_check(&bytes).as_deref(), Some(&*local.ufrag));
            let check = check(&bytes, from(), &local, &remote).unwrap();
            assert_eq!(check.nominates, nominates);
            let answer = StunMessage::parse(&check.answer).unwrap();
            assert!(answer.is_successful_binding_response() && answer.verify(local.password.as_bytes(), hmac_sha1));
            assert_eq!(answer.mapped_address(), Some(from()));
            assert!(check.answer.len() <= bytes.len(), "{} of {}", check.answer.len(), bytes.len());
        }
    }

    #[test]
    fn an_answer_shows_that_the_peer_is_there() {
        let (local, remote) = (credentials("local"), credentials("remote"));
        let probe = AddressProbe::new(&local, &remote).unwrap();
        let seen = StunMessage::parse(&probe.message).unwrap();
        assert!(seen.is_binding_request() && seen.verify(remote.password.as_bytes(), hmac_sha1));
        assert_eq!(seen.split_username(), Some((&*remote.ufrag, &*local.ufrag)));
        let answer = |transaction, password: &str| {
            let mut bytes = vec![0; 256];
            let reply = StunMessage::binding_reply(transaction, from());
            let length = reply.to_bytes(Some(password.as_bytes()), &mut bytes, hmac_sha1).unwrap();
            bytes.truncate(length);
            bytes
        };
        assert!(probe.is_answered_by(&answer(seen.trans_id(), &remote.password), &remote));
        assert!(!probe.is_answered_by(&answer(TransId::new(), &remote.password), &remote), "another transaction");
        assert!(!probe.is_answered_by(&answer(seen.trans_id(), "guessed"), &remote), "another password");
        assert!(!probe.is_answered_by(&probe.message, &remote), "the check itself");
    }

    #[test]
    fn strangers_get_no_answer() {
        let (local, remote) = (credentials("local"), credentials("remote"));
        let user = format!("{}:{}", local.ufrag, remote.ufrag);
        for (user, password) in [(&*user, "wrong"), ("other:one", &*local.password), ("local-ufrag:", &*local.password)]
        {
            assert_eq!(check(&request(user, password, true), from(), &local, &remote), None, "{user}");
        }
        let good = request(&user, &local.password, true);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            // The library does not check the CRC, which is behind the integrity.
            let is_covered = at < good.len() - 8;
            assert!(!is_covered || check(&bad, from(), &local, &remote).is_none(), "byte {at}");
            assert_eq!(check(&good[..at], from(), &local, &remote), None, "{at} bytes");
        }
    }
}
