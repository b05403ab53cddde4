//! SETUP: where a track of an asset goes (RFC 2326 10.4).

use super::{Connection, agent, failed, path};
use crate::rtsp::{
    TIMEOUT,
    interleaved::Interleaved,
    random,
    record::About,
    reply::Reply,
    session::{Session, Way},
    srtp::protection,
};
use millpond_rtp::{
    description::Described,
    key_management::carriage::{self, CarriageError},
    message::{
        HeaderName, Request, StatusCode,
        headers::{SESSION, TRANSPORT},
    },
    setup::{self, Offer, RtpProfile, TransportHeader},
};
use millpond_stream::{GroupAddress, Udp};
use std::net::{IpAddr, SocketAddr};

/// First port that media is sent to: those below are of the system (RFC 6335 6).
const FIRST_PORT: u16 = 1024;

impl Connection<'_> {
    pub(super) async fn set_up(&mut self, request: &Request<Vec<u8>>, session: Option<String>) -> Reply {
        let Some(path) = path(request) else { return Reply::new(StatusCode::BadRequest) };
        let Some((base, track)) = path.rsplit_once('/') else { return Reply::new(StatusCode::NotFound) };
        let offers = setup::offers(request.header(&TRANSPORT).map_or("", |value| value.as_str()));
        let (asset, rendition) = match self.rtsp.open(base).await {
            Ok(found) => found,
            Err(error) => return failed(&error),
        };
        let tracks = asset.presentation.tracks();
        let Some(number) = tracks.iter().position(|known| known.name() == track) else {
            return Reply::new(StatusCode::NotFound);
        };
        let media = self.rtsp.media(&asset);
        let Some(described) = media.format(number).and_then(|format| format.described(number)) else {
            return Reply::new(StatusCode::UnsupportedMediaType);
        };
        let program = self.rtsp.manager.program(&media, rendition.as_deref());
        if program.as_ref().is_some_and(|program| !program.has(number)) {
            return Reply::new(StatusCode::NotFound);
        }
        let client = self.peer.ip();
        let (name, shared) = match session.and_then(|name| Some((name.clone(), self.rtsp.session(&name, client)?))) {
            Some(known) => known,
            None => {
                let about = |id| About {
                    id,
                    peer: self.peer,
                    asset: asset.path.clone(),
                    agent: agent(request),
                    _open: self.rtsp.records.clone(),
                };
                let Ok(random) = random::bytes() else { return Reply::new(StatusCode::InternalServerError) };
                let name = format!("{:032x}", u128::from_ne_bytes(random));
                match self.rtsp.add((client, &self.waiting), name, about, (base, media.clone(), program)) {
                    Ok(added) => added,
                    Err(full) => return self.full(full),
                }
            }
        };
        let mut session = shared.lock().await;
        // A file that was replaced since the first SETUP is another presentation.
        if session.path != base || session.media.id() != asset.id {
            return Reply::new(StatusCode::AggregateOperationNotAllowed);
        }
        if session.is_playing() {
            return Reply::new(StatusCode::MethodNotValidInThisState);
        }
        let key = HeaderName::try_from(carriage::HEADER).ok();
        let key = key.and_then(|name| request.header(&name)).map(|value| value.as_str());
        let mut accept = |offer: &(RtpProfile, Offer)| {
            let taken = self.accept(*offer, &mut session, (number, &described), key)?;
            Some(taken.map(|transport| (transport, transport.header(offer.0))))
        };
        let (transport, header) = match offers.iter().find_map(&mut accept) {
            Some(Ok(transport)) => transport,
            refused => {
                let is_new = !session.is_set_up();
                drop(session);
                if is_new {
                    self.rtsp.remove(&name);
                }
                let Some(Err(error)) = refused else { return Reply::new(StatusCode::UnsupportedTransport) };
                tracing::debug!(path, %error, "no key of the client's");
                // 463: key management failure (RFC 4567 3.2), which has another name in RTSP 2.0.
                return Reply::new(StatusCode::DestinationProhibited);
            }
        };
        if let TransportHeader::Interleaved { channels, .. } = transport {
            self.channels.give(channels, session.id(), number, &shared);
        }
        drop(session);
        self.own.names.insert(name.clone());
        let named = format!("{name};timeout={}", TIMEOUT.as_secs());
        Reply::ok().with(SESSION, named).with(TRANSPORT, header)
    }

    /// Sets a track up as it is offered; nothing where that can't be. Media goes only to who asks for it, and to groups that are
    /// configured.
    fn accept(
        &mut self,
        (profile, offer): (RtpProfile, Offer),
        session: &mut Session,
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
                let channels = self.channels.find(channels, session.id(), number)?;
                Way::Interleaved(Interleaved::new(self.wire.clone(), channels))
            }
            Offer::Unicast { ports, destination } if self.inlet.takes_udp(profile) => {
                let address = self.peer.ip();
                // Below are services, of this host or another behind the same address: none of them asked for media.
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
        session.set_up(number, described, way, (ssrc, keys));
        Some(Ok(transport))
    }
}
