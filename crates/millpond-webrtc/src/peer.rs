//! One connection: ICE, then DTLS, then keys.

use crate::{
    Datagram, Identity,
    agent::Agent,
    controlling_agent::ControllingAgent,
    handshake::Handshake,
    lite_agent::LiteAgent,
    sdp::{IceCredentials, PeerOffer, ReceivedAnswer},
};
use millpond_rtp::srtp::MasterKey;
use std::{
    collections::VecDeque,
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Time for the handshake. Checks alone keep no session.
const CONNECTED: Duration = Duration::from_secs(30);

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
}

/// The reason why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// No check of a peer that has called arrived for long.
    #[error("no check of ICE arrived for {} s", .0.as_secs())]
    Silent(Duration),
    /// A peer that was called answered no check for long.
    #[error("no check of ICE was answered for {} s", .0.as_secs())]
    Unanswered(Duration),
    /// The handshake was not completed in time.
    #[error("no handshake of DTLS was completed within {} s", CONNECTED.as_secs())]
    Unconnected,
    /// The certificate is not the one that the peer's session description names.
    #[error("the certificate of DTLS is not the one of a=fingerprint")]
    Certificate,
    /// The handshake gave no keys for SRTP.
    #[error("the handshake of DTLS has no use_srtp (RFC 5764) with a suite that is known")]
    Suite,
    /// DTLS failed.
    #[error("DTLS: {0}")]
    Dtls(String),
}

/// One connection of a peer.
///
/// Give it datagrams of STUN and DTLS by [`receive`](Self::receive). Call [`tick`](Self::tick) when the time of [`next`](Self::next)
/// has come. After each call take all events by [`poll`](Self::poll).
pub struct RtcPeer {
    agent: Agent,
    handshake: Handshake,
    began: Instant,
    events: VecDeque<PeerEvent>,
}

impl RtcPeer {
    /// Begins the connection of an offer. `local` is what the answer tells.
    #[must_use]
    pub fn new(local: IceCredentials, identity: &Identity, offer: &PeerOffer, now: Instant) -> Self {
        let PeerOffer { ref remote, fingerprint, begins_dtls, .. } = *offer;
        let agent = Agent::Lite(LiteAgent::new(local, remote.clone(), now));
        Self::with(agent, Handshake::new(identity, fingerprint, begins_dtls, now), now)
    }

    /// Begins the connection to a peer that has answered an offer. `local` is what the offer tells, `tie_breaker` a random number.
    #[must_use]
    pub fn calling(
        local: IceCredentials,
        identity: &Identity,
        answer: &ReceivedAnswer,
        tie_breaker: u64,
        now: Instant,
    ) -> Self {
        let ReceivedAnswer { ref remote, fingerprint, begins_dtls, ref addresses, .. } = *answer;
        let agent = ControllingAgent::new((local, remote.clone()), addresses, tie_breaker, now);
        Self::with(Agent::Controlling(agent), Handshake::new(identity, fingerprint, begins_dtls, now), now)
    }

    fn with(agent: Agent, handshake: Handshake, now: Instant) -> Self {
        Self { agent, handshake, began: now, events: VecDeque::new() }
    }

    /// The address that media is sent to. It may change with each datagram of the peer.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.agent.address()
    }

    /// Whether an address has made a valid check, or has answered one. Datagrams from others are not the peer's.
    #[must_use]
    pub fn has_checked(&self, from: SocketAddr) -> bool {
        self.agent.knows(from)
    }

    /// Takes a datagram of STUN or DTLS. Others, and those of strangers, are ignored.
    ///
    /// # Errors
    /// The connection is over.
    pub fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) -> Result<(), Ended> {
        match Datagram::of(datagram) {
            Some(Datagram::Stun) => self.check(from, datagram, now),
            Some(Datagram::Dtls) if self.has_checked(from) => {
                self.step(|handshake, send| handshake.receive(datagram, now, send))
            }
            _ => Ok(()),
        }
    }

    /// Takes the time.
    ///
    /// # Errors
    /// The connection is over.
    pub fn tick(&mut self, now: Instant) -> Result<(), Ended> {
        let Self { agent, events, .. } = self;
        agent.tick(now, |to, bytes| events.push_back(PeerEvent::Send(to, bytes)))?;
        if !self.handshake.is_connected() && now.saturating_duration_since(self.began) >= CONNECTED {
            return Err(Ended::Unconnected);
        }
        if self.handshake.timer().is_some_and(|at| at <= now) {
            self.step(|handshake, send| handshake.tick(now, send))?;
        }
        Ok(())
    }

    /// The time of the next [`tick`](Self::tick).
    #[must_use]
    pub fn next(&self) -> Instant {
        let limit = (!self.handshake.is_connected()).then(|| self.began + CONNECTED);
        let others = [limit, self.handshake.timer()].into_iter().flatten();
        others.fold(self.agent.next(), Instant::min)
    }

    /// Takes the next event.
    pub fn poll(&mut self) -> Option<PeerEvent> {
        self.events.pop_front()
    }

    /// Tells the peer that the connection is over.
    pub fn close(&mut self, now: Instant) {
        let _ = self.step(|handshake, send| {
            handshake.close(now, send);
            Ok(())
        });
    }

    fn check(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) -> Result<(), Ended> {
        let Self { agent, handshake, events, .. } = self;
        let had_address = agent.address().is_some();
        let send = |to, bytes| events.push_back(PeerEvent::Send(to, bytes));
        agent.receive((from, datagram), handshake.is_connected(), now, send);
        let is_first = !had_address && agent.address().is_some();
        if is_first && !handshake.peer_begins() {
            self.step(|handshake, send| handshake.tick(now, send))?;
        }
        Ok(())
    }

    /// Lets DTLS go one step. Its records have the address that media is sent to.
    fn step(
        &mut self,
        act: impl FnOnce(&mut Handshake, &mut dyn FnMut(&[u8])) -> Result<(), Ended>,
    ) -> Result<(), Ended> {
        let Self { agent, handshake, events, .. } = self;
        let address = agent.address();
        act(handshake, &mut |records| {
            if let Some(to) = address {
                events.push_back(PeerEvent::Send(to, records.to_vec()));
            }
        })?;
        if let Some(address) = address
            && let Some(keys) = handshake.take_keys()
        {
            events.push_back(PeerEvent::Connected(address, keys));
        }
        Ok(())
    }
}

impl fmt::Debug for RtcPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, handshake, .. } = self;
        f.debug_struct("RtcPeer").field("agent", agent).field("handshake", handshake).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{handshake::RECORD, lite_agent::CONSENT, sdp::Fingerprint};
    use dimpl::{Dtls, Output};
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

    /// A peer whose offer has the fingerprint, and the library's own end, which has checked from an address and begins DTLS or waits.
    fn pair(
        (fingerprint, begins_dtls): (Option<Fingerprint>, bool),
        address: SocketAddr,
        now: Instant,
    ) -> (RtcPeer, Dtls) {
        let (server, client) = (Identity::new().unwrap(), Identity::new().unwrap());
        let fingerprint = fingerprint.unwrap_or(*client.fingerprint());
        let offer = PeerOffer { remote: credentials("remote"), fingerprint, begins_dtls, sections: Vec::new() };
        let mut peer = RtcPeer::new(credentials("local"), &server, &offer, now);
        peer.receive(address, &check(), now).unwrap();
        let mut dtls = Dtls::new_12(client.config.clone(), client.certificate.clone(), now);
        dtls.set_active(begins_dtls);
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
                }
            }
        }
        Ok(())
    }

    #[test]
    fn media_moves_where_the_peer_answers_and_nowhere_else() {
        let [home, other] = ["192.0.2.1:4000", "192.0.2.2:4000"].map(|text| text.parse::<SocketAddr>().unwrap());
        let now = Instant::now();
        let (mut peer, mut dtls) = pair((None, true), home, now);
        handshake(&mut peer, &mut dtls, home, now).unwrap();
        assert!(peer.handshake.is_connected());
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
    }

    #[test]
    fn a_peer_that_waits_is_sent_the_first_record() {
        let (address, now) = ("192.0.2.1:4000".parse().unwrap(), Instant::now());
        let (mut peer, mut dtls) = pair((None, false), address, now);
        handshake(&mut peer, &mut dtls, address, now).unwrap();
        assert!(peer.handshake.is_connected());
    }

    #[test]
    fn checks_alone_keep_no_session() {
        let (address, mut now) = ("192.0.2.1:4000".parse().unwrap(), Instant::now());
        let (mut peer, _) = pair((None, true), address, now);
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
        let (mut peer, mut dtls) = pair((Some(Fingerprint([7; 32])), true), address, now);
        assert_eq!(handshake(&mut peer, &mut dtls, address, now), Err(Ended::Certificate));
        assert!(!peer.handshake.is_connected());
    }

    fn addresses() -> [SocketAddr; 2] {
        ["192.0.2.1:4000", "192.0.2.9:8189"].map(|text| text.parse().unwrap())
    }

    /// The server's end of the connection to a peer that it has called, with the identities of both.
    fn calling(begins_dtls: bool, (own, remote): (&Identity, &Identity), now: Instant) -> RtcPeer {
        let answer = ReceivedAnswer {
            remote: credentials("remote"),
            fingerprint: *remote.fingerprint(),
            begins_dtls,
            addresses: vec![addresses()[1]],
            sections: Vec::new(),
        };
        RtcPeer::calling(credentials("local"), own, &answer, 7, now)
    }

    /// Passes what one end sends to the other one, at whose end it has an address. Returns the keys that it tells.
    fn pass(one: &mut RtcPeer, from: SocketAddr, other: &mut RtcPeer, now: Instant) -> Option<Box<SrtpKeys>> {
        let mut found = None;
        while let Some(event) = one.poll() {
            match event {
                PeerEvent::Send(_, bytes) => other.receive(from, &bytes, now).unwrap(),
                PeerEvent::Connected(_, keys) => found = Some(keys),
            }
        }
        found
    }

    #[test]
    fn the_two_roles_connect_with_each_other() {
        let [near, far] = addresses();
        for called_begins in [false, true] {
            let (mut now, own, remote) = (Instant::now(), Identity::new().unwrap(), Identity::new().unwrap());
            let mut caller = calling(called_begins, (&own, &remote), now);
            let offer = PeerOffer {
                remote: credentials("local"),
                fingerprint: *own.fingerprint(),
                begins_dtls: !called_begins,
                sections: Vec::new(),
            };
            let mut called = RtcPeer::new(credentials("remote"), &remote, &offer, now);
            let (mut keys, mut keys_of_called) = (None, None);
            for _ in 0..100 {
                now += Duration::from_millis(10);
                for peer in [&mut caller, &mut called] {
                    peer.tick(now).unwrap();
                }
                keys = pass(&mut caller, near, &mut called, now).or(keys);
                keys_of_called = pass(&mut called, far, &mut caller, now).or(keys_of_called);
            }
            let (Some(keys), Some(other)) = (keys, keys_of_called) else { panic!("not connected") };
            assert_eq!((&keys.sent, &keys.received), (&other.received, &other.sent));
            assert_eq!((caller.address(), called.address()), (Some(far), Some(near)));
            // The called end is silent only if the caller is.
            for _ in 0..300 {
                now += Duration::from_secs(1);
                for peer in [&mut caller, &mut called] {
                    peer.tick(now).unwrap();
                }
                pass(&mut caller, near, &mut called, now);
                pass(&mut called, far, &mut caller, now);
            }
            caller.close(now);
            let close = std::iter::from_fn(|| caller.poll()).find_map(|event| match event {
                PeerEvent::Send(_, bytes) if Datagram::of(&bytes) == Some(Datagram::Dtls) => Some(bytes),
                _ => None,
            });
            assert_eq!(called.receive(near, &close.unwrap(), now), Err(Ended::Closed));
        }
    }

    #[test]
    fn a_peer_that_never_answers_is_given_up() {
        let (mut now, identity, [_, far]) = (Instant::now(), Identity::new().unwrap(), addresses());
        let mut peer = calling(false, (&identity, &identity), now);
        let began = now;
        let end = loop {
            now = peer.next();
            if let Err(end) = peer.tick(now) {
                break end;
            }
            while let Some(event) = peer.poll() {
                assert!(matches!(event, PeerEvent::Send(to, _) if to == far));
            }
        };
        assert_eq!(end, Ended::Unanswered(Duration::from_secs(15)));
        assert_eq!(now, began + Duration::from_secs(15));
    }
}
