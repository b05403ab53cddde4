//! SETUP: the transport of a track (RFC 2326 10.4).

use super::{Connection, PUBLISHES, describe::NO_RANDOM, failed, refused};
use crate::rtsp::{
    interleaved::Interleaved,
    medium::Medium,
    party::Party,
    record::About,
    reply::Reply,
    session::{Session, Way},
    signalling::{Named, Outcome, SetUp},
    srtp::protection,
};
use millpond_access::{ClientHold, Pass, random};
use millpond_rtp::{
    key_management::carriage::CarriageError,
    message::{StatusCode, headers::RETRY_AFTER},
    sdp_writer::{Described, repeat_type},
    setup::{Offer, RtpProfile, TransportHeader},
};
use millpond_stream::{GroupAddress, Udp};
use std::{
    net::{IpAddr, SocketAddr},
    time::SystemTime,
};

/// Lowest UDP port that media is sent to: lower ones are system ports (RFC 6335 6).
const FIRST_PORT: u16 = 1024;

/// Reason why no offered transport is accepted.
const NO_TRANSPORT: &str = "Transport: none of the offers is possible here. Media is sent to the client's own address, to ports from \
                            1024 on, or over the RTSP connection (RTP/AVP/TCP)";

/// Returns the reason for an unknown track, with the tracks of the medium.
fn no_track(medium: &Medium, track: &str) -> String {
    let (path, tracks) = (medium.feed().path(), medium.codecs().join(", "));
    format!("{path}: no track {track:?}. Its tracks are: {tracks}")
}

impl Connection<'_> {
    pub(super) async fn set_up(&mut self, request: SetUp<Party>) -> Outcome<'static> {
        let SetUp { path, query, track, session, offers, key, agent, pass, .. } = request;
        let medium = match self.medium(&path, &query).await {
            Ok((medium, _)) => medium,
            Err(error) => return failed(&path, &error),
        };
        let Some(number) = medium.track(&track) else {
            return refused(StatusCode::NotFound, no_track(&medium, &track));
        };
        let described = medium.feed().format(number as u16).and_then(|format| format.described(number));
        let Some(described) = described else {
            let why = format!("{path}: the track {track:?} can't be sent by RTP");
            return refused(StatusCode::UnsupportedMediaType, why);
        };
        let client = self.peer.ip();
        if matches!(&session, Some(Named { session: Party::Publisher(_), .. })) {
            return refused(StatusCode::AggregateOperationNotAllowed, PUBLISHES);
        }
        let find = |known: Named<Party>| Some((self.rtsp.sessions.find(&known.name, client)?.viewer()?, known.name));
        let known = session.and_then(find);
        let (shared, name) = match known {
            Some(known) => known,
            None => {
                let hold = match self.hold(client, &pass) {
                    Ok(hold) => hold,
                    Err(outcome) => return outcome,
                };
                let about = |id| About {
                    began: SystemTime::now(),
                    id,
                    peer: self.peer,
                    asset: medium.feed().path().to_owned(),
                    agent,
                    _open: self.rtsp.records.clone(),
                };
                let Ok(random) = random::bytes() else { return refused(StatusCode::InternalServerError, NO_RANDOM) };
                let name = format!("{:032x}", u128::from_ne_bytes(random));
                let of = (&*path, medium.clone());
                let on = (&self.wire, client, &self.waiting);
                let added = self.rtsp.add(on, name.clone(), about, of, (pass, hold));
                match added {
                    Ok(shared) => (shared, name),
                    Err(full) => return self.full(full),
                }
            }
        };
        let mut session = shared.session.lock().await;
        // A file that was replaced since the first SETUP is another presentation.
        if session.path != path || session.medium.feed().id() != medium.feed().id() {
            let why = "the session is for another path, or for the file before it was replaced";
            return refused(StatusCode::AggregateOperationNotAllowed, why);
        }
        if session.is_playing() {
            return refused(StatusCode::MethodNotValidInThisState, "the session plays: PAUSE comes before SETUP");
        }
        let mut accept = |offer: &(RtpProfile, Offer)| {
            let taken = self.accept(*offer, (&mut session, &name), (number, &described), key.as_deref())?;
            Some(taken.map(|transport| (transport, transport.header(offer.0))))
        };
        let (transport, header) = match offers.iter().find_map(&mut accept) {
            Some(Ok(transport)) => transport,
            other => {
                let is_new = !session.is_set_up();
                drop(session);
                if is_new {
                    self.rtsp.sessions.remove(&name);
                }
                let Some(Err(error)) = other else {
                    return refused(StatusCode::UnsupportedTransport, NO_TRANSPORT);
                };
                tracing::debug!(path, %error, "no key of the client's");
                // 463: key management failure (RFC 4567 3.2), which has another name in RTSP 2.0.
                return refused(StatusCode::DestinationProhibited, format!("KeyMgmt: {error}"));
            }
        };
        shared.is_set_up(&session);
        drop(session);
        self.described = None;
        if let TransportHeader::Interleaved { channels, .. } = transport {
            self.dialogue.give_channels(channels, (&name, number), &self.rtsp.sessions);
        }
        Outcome::SetUp { name, transport: header }
    }

    /// Counts a new session among those of its client and token. The sessions of a stream of another server have no limit here.
    fn hold(&self, client: IpAddr, pass: &Pass) -> Result<ClientHold, Outcome<'static>> {
        if self.shared.is_some() {
            return Ok(ClientHold::default());
        }
        self.rtsp.gates.hold(client, pass).map_err(|limited| {
            let reply = Reply::refusal(StatusCode::NotEnoughBandwidth, limited);
            Outcome::Refused(reply.with(RETRY_AFTER, limited.retry_after().to_string()))
        })
    }

    /// Sets a track up by one of the client's offers. Returns `None` where that is impossible. Media is sent only to
    /// the address that requested it, and to configured multicast groups.
    fn accept(
        &mut self,
        (profile, offer): (RtpProfile, Offer),
        (session, name): (&mut Session, &str),
        (number, described): (usize, &Described<'_>),
        key: Option<&str>,
    ) -> Option<Result<TransportHeader, CarriageError>> {
        let is_sealed = profile == RtpProfile::Savp;
        if offer == Offer::Multicast && self.inlet.takes_udp(RtpProfile::Avp) && !is_sealed {
            let address = session.group(&self.rtsp.manager)?.address(number)?;
            let GroupAddress { group, ports, ttl, ssrc } = address;
            return Some(Ok(TransportHeader::Multicast { group, ports, ttl, ssrc }));
        }
        if session.is_grouped() || (is_sealed && !self.inlet.is_secure()) {
            return None;
        }
        let way = match offer {
            Offer::Interleaved(channels) => {
                let channels = self.dialogue.find_channels(channels, (name, number), &self.rtsp.sessions)?;
                Way::Interleaved(Interleaved::new(self.wire.clone(), channels))
            }
            Offer::Unicast { ports, destination } if self.inlet.takes_udp(profile) => {
                let address = self.peer.ip();
                // Lower ports belong to services of this host, or of another one behind the same address, that did not
                // request media.
                let is_reserved = ports.0 < FIRST_PORT || ports.1 < FIRST_PORT;
                let is_elsewhere = |to: IpAddr| to.to_canonical() != address.to_canonical();
                if is_reserved || destination.is_some_and(is_elsewhere) {
                    return None;
                }
                let to = |port| SocketAddr::new(address, port);
                Way::Udp(Udp { rtp: to(ports.0), rtcp: to(ports.1) })
            }
            _ => return None,
        };
        let (ssrc, keys) = if is_sealed {
            let promise = self.promises.take(&session.path, number)?;
            match protection(&promise, key) {
                Ok(protection) => (promise.ssrc, Some(Box::new(protection))),
                Err(error) => return Some(Err(error)),
            }
        } else {
            (fastrand::u32(..), None)
        };
        let transport = match &way {
            Way::Interleaved(interleaved) => TransportHeader::Interleaved { channels: interleaved.channels(), ssrc },
            Way::Udp(Udp { rtp, rtcp }) => {
                let server = session.subscriber.ports();
                TransportHeader::Unicast { client: (rtp.port(), rtcp.port()), server, ssrc }
            }
        };
        let repeats = profile == RtpProfile::Avpf && matches!(way, Way::Udp(_));
        session.set_up(number, described, way, (ssrc, keys));
        if repeats {
            session.subscriber.keep_packets(number, repeat_type(described.payload_type));
        }
        Some(Ok(transport))
    }
}
