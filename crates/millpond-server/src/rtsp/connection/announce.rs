//! ANNOUNCE, SETUP and RECORD of publishers (RFC 2326 10.3, 10.4, 10.11).

use super::{Connection, Named, describe::NO_RANDOM, failed, refused};
use crate::rtsp::{
    medium::NoMedium,
    party::Party,
    publisher::{NoRecord, Publisher},
    record::{About, Record},
    signalling::{Announce, Outcome, SetUp},
};
use millpond_access::{Publishers, random};
use millpond_rtp::{
    message::StatusCode,
    sdp_reader::SessionDescription,
    setup::{Offer, RtpProfile},
};
use millpond_stream::{
    Conflict, Full, LiveRequest, PublishRefused, Source,
    reception::{AnnouncedMedia, Backchannel},
};
use std::{sync::Arc, time::SystemTime};

/// Reason why the session of a viewer can't publish.
const PLAYS: &str = "the session plays a medium";

/// A stream that was announced and not set up yet.
pub(super) struct Announced {
    stream: LiveRequest,
    media: Box<AnnouncedMedia>,
}

impl Connection<'_> {
    pub(super) fn announce(&mut self, request: Announce) -> Outcome<'static> {
        let Announce { path, url, description } = request;
        self.announced = None;
        let stream = match self.rtsp.sources.live(&self.rtsp.sources.find(&path)) {
            Ok(Some(stream)) if stream.source == Source::Published => stream,
            Ok(_) => return refused(StatusCode::MethodNotAllowed, "a place whose streams are not pushed"),
            Err(error) => return failed(&path, &NoMedium::Library(error)),
        };
        if self.rtsp.manager.is_taken(&stream.path, self.conflict()) {
            return refused(StatusCode::MethodNotValidInThisState, PublishRefused::Taken);
        }
        let description = match SessionDescription::read(&description, &url) {
            Ok(description) => description,
            Err(error) => return refused(StatusCode::BadRequest, error),
        };
        match AnnouncedMedia::new(description) {
            Ok(media) => self.announced = Some(Announced { stream, media: Box::new(media) }),
            Err(error) => return refused(StatusCode::UnsupportedMediaType, error),
        }
        Outcome::Done
    }

    fn conflict(&self) -> Conflict {
        self.rtsp.publishers.as_deref().map(Publishers::conflict).unwrap_or_default()
    }

    /// Sets up a stream of the announced ones.
    pub(super) async fn set_up_to_record(&mut self, request: SetUp<Party>) -> Outcome<'static> {
        let SetUp { path, track, session, offers, agent, .. } = request;
        let (publisher, name, is_new) = match session {
            Some(Named { name, session }) => match session.publisher() {
                Some(publisher) => (publisher, name, false),
                None => return refused(StatusCode::AggregateOperationNotAllowed, PLAYS),
            },
            None => match self.add_publisher(agent) {
                Ok((publisher, name)) => (publisher, name, true),
                Err(outcome) => return outcome,
            },
        };
        let url = format!("{path}/{track}");
        let outcome = self.agree(&publisher, &name, (&url, &offers)).await;
        if is_new && !matches!(outcome, Outcome::SetUp { .. }) {
            self.rtsp.sessions.remove(&name);
        }
        outcome
    }

    /// Makes the session of the announced stream.
    fn add_publisher(&mut self, agent: Option<String>) -> Result<(Arc<Publisher>, String), Outcome<'static>> {
        let Some(Announced { stream, media, .. }) = self.announced.take() else {
            return Err(refused(
                StatusCode::MethodNotValidInThisState,
                "no stream is announced: ANNOUNCE comes before SETUP",
            ));
        };
        let client = self.peer.ip();
        let admitted = self.rtsp.manager.admission().admit(client, &self.waiting);
        let admitted = admitted.map_err(|full: Full| self.full(full))?;
        let random = random::bytes().map_err(|_| refused(StatusCode::InternalServerError, NO_RANDOM))?;
        let name = format!("{:032x}", u128::from_ne_bytes(random));
        let about = About {
            began: SystemTime::now(),
            id: fastrand::u64(..),
            peer: self.peer,
            asset: stream.path.to_string(),
            agent,
            _open: self.rtsp.records.clone(),
        };
        let record = Record::new(about, self.rtsp.access_log);
        let publisher = Publisher::new((stream, media), admitted, (record, &self.wire), self.rtsp.clock);
        self.rtsp.sessions.add(name.clone(), client, Party::Publisher(publisher.clone()));
        Ok((publisher, name))
    }

    /// Agrees on the transport of the stream with a URL.
    async fn agree(
        &mut self,
        publisher: &Publisher,
        name: &str,
        (path, offers): (&str, &[(RtpProfile, Offer)]),
    ) -> Outcome<'static> {
        let fits = |control: &str| url_path(control).is_some_and(|control| control == path);
        let stream = publisher.set_up("udp", |media| Some(media.stream(fits))).await;
        let Some(stream) = stream else {
            return refused(StatusCode::MethodNotValidInThisState, NoRecord::State);
        };
        let Some(stream) = stream else {
            return refused(StatusCode::NotFound, format!("{path}: the announced description has no such stream"));
        };
        for (_, offer) in offers.iter().filter(|(profile, _)| *profile == RtpProfile::Avp) {
            let transport = match *offer {
                Offer::Interleaved(channels) => self.agree_on_channels(publisher, name, (stream, channels)).await,
                Offer::Unicast { ports, .. } if self.inlet.takes_udp(RtpProfile::Avp) => {
                    let (local, peer) = (self.rtsp.settings.address.ip(), self.peer.ip());
                    let opened =
                        publisher.set_up("udp", |media| media.set_up_udp(stream, local, (peer, ports)).ok()).await;
                    opened.map(|server| {
                        let ((rtp, rtcp), (to_rtp, to_rtcp)) = (ports, server);
                        format!("RTP/AVP;unicast;client_port={rtp}-{rtcp};server_port={to_rtp}-{to_rtcp}")
                    })
                }
                Offer::Unicast { .. } | Offer::Multicast => None,
            };
            if let Some(transport) = transport {
                return Outcome::SetUp { name: name.to_owned(), transport: format!("{transport};mode=record") };
            }
        }
        let why = "Transport: none of the offers is possible here. Streams are pushed by RTP/AVP or RTP/AVP/TCP";
        refused(StatusCode::UnsupportedTransport, why)
    }

    async fn agree_on_channels(
        &mut self,
        publisher: &Publisher,
        name: &str,
        (stream, channels): (usize, Option<(u8, u8)>),
    ) -> Option<String> {
        let channels = self.dialogue.find_channels(channels, (name, stream), &self.rtsp.sessions)?;
        let wire = self.wire.clone();
        let back: Backchannel = Arc::new(move |channel, report| wire.send_on(channel, report));
        let set_up = |media: &mut AnnouncedMedia| {
            media.set_up_interleaved(stream, channels);
            media.set_backchannel(back);
            Some(())
        };
        publisher.set_up("tcp", set_up).await?;
        self.dialogue.give_channels(channels, (name, stream), &self.rtsp.sessions);
        Some(format!("RTP/AVP/TCP;unicast;interleaved={}-{}", channels.0, channels.1))
    }

    pub(super) async fn record(&mut self, Named { name, session }: Named<Party>) -> Outcome<'static> {
        let Some(publisher) = session.publisher() else {
            return refused(StatusCode::MethodNotValidInThisState, PLAYS);
        };
        let error = match publisher.record(&self.rtsp.manager, self.conflict()).await {
            Ok(()) => return Outcome::Done,
            Err(error) => error,
        };
        if matches!(error, NoRecord::Refused(_)) {
            self.rtsp.sessions.remove(&name);
        }
        match error {
            NoRecord::Refused(PublishRefused::Streams(_) | PublishRefused::Source(_) | PublishRefused::HandedOver) => {
                refused(StatusCode::ServiceUnavailable, error)
            }
            NoRecord::State | NoRecord::Refused(PublishRefused::Taken | PublishRefused::NotPublished) => {
                refused(StatusCode::MethodNotValidInThisState, error)
            }
        }
    }
}

/// The path of a URL, decoded, as requests have it.
fn url_path(url: &str) -> Option<String> {
    let url = millpond_rtp::message::Url::parse(url).ok()?;
    let path = url.path().trim_matches('/');
    Some(percent_encoding::percent_decode_str(path).decode_utf8().ok()?.into_owned())
}
