//! Replies of the server.

use super::{
    RequestKind, RtspClient, State,
    action::{ClientAction, ClientPlayback, ClientTrack},
    authenticator::Challenged,
    error::ClientError,
    keep_alive::{self, SessionHeader},
    options::RedirectPolicy,
    request::{Exchange, Request},
    rtp_info, target,
    transport::{self, Chosen},
};
use crate::{
    message::{HeaderName, Response, headers},
    play,
    sdp_reader::{self, SessionDescription},
    setup::Offer,
};
use std::time::Duration;

/// Most challenges that one request answers: one, and one more because its nonce had expired.
const MOST_ANSWERS: u8 = 2;
/// Longest part of a server's text in an error, in characters.
const MOST_TEXT: usize = 200;

type Reply = Response<Vec<u8>>;

fn header<'a>(reply: &'a Reply, name: &HeaderName) -> &'a str {
    reply.header(name).map_or("", |value| value.as_str().trim())
}

/// Returns a text of the server for an error.
fn shown(text: &str) -> String {
    text.chars().take(MOST_TEXT).collect()
}

impl RtspClient {
    pub(super) fn replied(&mut self, reply: &Reply, now: Duration) {
        let Some(exchange) = self.exchange.take() else { return };
        let number = reply.header(&headers::CSEQ).map(|number| number.as_str());
        let status = u16::from(reply.status());
        if !self.numbers.is_reply(exchange.number, number) || (100..200).contains(&status) {
            self.exchange = Some(exchange);
            return;
        }
        match status {
            200..=299 => self.accepted(&exchange, reply, now),
            301 | 302 | 303 | 305 | 307 | 308 if !is_late(exchange.request.kind) => {
                let location = header(reply, &headers::LOCATION).to_owned();
                self.redirected(Some(status), &location, now);
            }
            401 => self.demanded(exchange, reply),
            _ => self.refused(exchange, reply, now),
        }
    }

    fn accepted(&mut self, exchange: &Exchange, reply: &Reply, now: Duration) {
        let kind = exchange.request.kind;
        let took = now.saturating_sub(exchange.sent);
        self.actions.push_back(ClientAction::Accepted { request: kind, took });
        if self.keep_alive.next().is_some() {
            self.keep_alive.accepted(now);
        }
        match kind {
            RequestKind::Options => {
                self.keep_alive.choose(header(reply, &headers::PUBLIC));
                self.describe(now);
            }
            RequestKind::Describe => self.read_description(reply),
            RequestKind::Announce => self.announced(now),
            RequestKind::Record => self.recording(),
            RequestKind::Setup => self.track_set_up(reply, now),
            RequestKind::Play => self.playing(reply),
            RequestKind::Pause => self.actions.push_back(ClientAction::Paused),
            RequestKind::Teardown => self.close(),
            RequestKind::Connect | RequestKind::KeepAlive => {}
        }
        self.ask_next(now);
    }

    fn read_description(&mut self, reply: &Reply) {
        let optional = |name: &HeaderName| reply.header(name).map(|value| value.as_str());
        let url = &self.target.url;
        let base = sdp_reader::base(optional(&headers::CONTENT_BASE), optional(&headers::CONTENT_LOCATION), url);
        match SessionDescription::read(reply.body(), base) {
            Ok(description) => self.described(description),
            Err(error) => self.fail(ClientError::Description { url: self.target.url.clone(), error }),
        }
    }

    fn track_set_up(&mut self, reply: &Reply, now: Duration) {
        let place = self.tracks.agreed.len();
        let Some(&(stream, offer)) = self.tracks.offers.get(place) else { return };
        if self.session.is_none() {
            let found = header(reply, &headers::SESSION);
            let session = SessionHeader::read(found);
            if session.is_none() && !found.is_empty() {
                return self.invalid("Session", found, "an identifier");
            }
            // Some servers with one session for each connection name none. Others state another identifier for each track, but
            // expect the first one.
            self.keep_alive.start(session.as_ref().map_or(keep_alive::TIMEOUT, |session| session.timeout), now);
            self.session = session;
        }
        let found = header(reply, &headers::TRANSPORT);
        match transport::chosen(found, &offer) {
            Ok(Chosen { transport, ssrc, profile }) => {
                self.tracks.agreed.push(ClientTrack { stream, transport, ssrc, profile });
            }
            Err(expected) => return self.invalid("Transport", found, expected),
        }
        self.set_up_next(now);
    }

    fn playing(&mut self, reply: &Reply) {
        let tracks = &self.tracks;
        let urls: Vec<&str> = tracks.agreed.iter().map(|track| tracks.streams[track.stream].as_str()).collect();
        let range = play::npt_range(header(reply, &headers::RANGE)).ok();
        let speed = play::rate("Speed", header(reply, &headers::SPEED)).ok();
        let starts = rtp_info::starts(header(reply, &headers::RTP_INFO), &tracks.control, &urls);
        self.actions.push_back(ClientAction::Playing(ClientPlayback { range, speed, starts }));
    }

    /// Answers a 401.
    fn demanded(&mut self, exchange: Exchange, reply: &Reply) {
        let challenge = header(reply, &headers::WWW_AUTHENTICATE);
        let why = match self.authenticator.challenged(challenge, &self.options) {
            // An answer to an old challenge may have been refused because its nonce had expired.
            Ok(Challenged::Fresh) if exchange.answers > 0 => "wrong user or password",
            Ok(Challenged::Stale) if exchange.answers >= MOST_ANSWERS => "every nonce has expired",
            Ok(_) => return self.send(Exchange { answers: exchange.answers + 1, ..exchange }),
            Err(why) => why,
        };
        let reason = format!("{} ({why})", shown(reply.reason_phrase()));
        self.status(&exchange.request, 401, reason);
    }

    fn refused(&mut self, exchange: Exchange, reply: &Reply, now: Duration) {
        let (status, reason) = (u16::from(reply.status()), shown(reply.reason_phrase()));
        match (exchange.request.kind, status) {
            // A server need not have OPTIONS.
            (RequestKind::Options, 400 | 405 | 501 | 551) => self.describe(now),
            (RequestKind::Setup, 461) if self.fall_back(now) => {}
            (RequestKind::Setup, _) if self.go_without(now) => {}
            // The session is gone, or the server still has it but not the method.
            (RequestKind::KeepAlive, status) if status != 454 => {
                if self.keep_alive.failed() > self.options.most_unanswered {
                    return self.status(&exchange.request, status, reason);
                }
                self.ask_next(now);
            }
            _ => self.status(&exchange.request, status, reason),
        }
    }

    /// Offers the connection for a track whose other offer was refused.
    fn fall_back(&mut self, now: Duration) -> bool {
        let place = self.tracks.agreed.len();
        match self.tracks.offers.get_mut(place) {
            Some((_, Offer::Interleaved(_))) | None => false,
            Some(_) if !self.options.falls_back => false,
            Some(_) => {
                // The server will refuse UDP for the other tracks too.
                for (_, offer) in &mut self.tracks.offers[place..] {
                    *offer = Offer::Interleaved(None);
                }
                self.set_up_next(now);
                true
            }
        }
    }

    /// Goes on without a track whose SETUP was refused, where another one is set up: some cameras describe sound that they don't have.
    fn go_without(&mut self, now: Duration) -> bool {
        let place = self.tracks.agreed.len();
        if place == 0 || place >= self.tracks.offers.len() {
            return false;
        }
        self.tracks.offers.remove(place);
        self.set_up_next(now);
        true
    }

    /// Continues at another URL. `status` is the reply's status, if there was a reply.
    pub(super) fn redirected(&mut self, status: Option<u16>, location: &str, now: Duration) {
        let refuse = |client: &mut Self, why| {
            let (request, url) = client.last.clone();
            let location = shown(&target::request_url(location));
            client.fail(ClientError::Redirect { request, url, status, location, why });
        };
        let next = match location.trim() {
            path if path.starts_with('/') => sdp_reader::resolve(&self.target.url, path),
            url => url.to_owned(),
        };
        let Ok(next) = target::Target::new(&next) else {
            return refuse(self, "no rtsp or rtsps URL");
        };
        let (from, to) = (&self.target.endpoint, &next.endpoint);
        let is_same = from.host == to.host;
        let why = match self.options.redirects {
            RedirectPolicy::Refuse => Some("not followed"),
            RedirectPolicy::SameHost if !is_same => Some("another host"),
            _ if from.is_tls && !to.is_tls => Some("not encrypted"),
            _ if self.redirects >= self.options.most_redirects => Some("one redirect too many"),
            _ => None,
        };
        if let Some(why) = why {
            return refuse(self, why);
        }
        self.redirects += 1;
        self.leave();
        if !is_same {
            self.options.credentials = None;
        }
        self.authenticator = super::Authenticator::new(self.options.random);
        self.target = next;
        self.connect(now);
    }

    /// Forgets the session, and tells the server without waiting for its reply.
    fn leave(&mut self) {
        if self.session.is_some() {
            let request = Request::new(RequestKind::Teardown, "TEARDOWN", &self.tracks.control);
            let zero = Duration::ZERO;
            self.send(Exchange { request, number: 0, sent: zero, until: zero, answers: 0 });
        }
        self.exchange = None;
        self.waiting.clear();
        self.session = None;
        self.keep_alive.stop();
        self.tracks = super::Tracks::default();
        self.numbers = super::Numbers::default();
    }

    fn status(&mut self, request: &Request, status: u16, reason: String) {
        if matches!(self.state, State::Leaving) || status == 454 {
            self.session = None;
        }
        self.fail(ClientError::Status { request: request.kind, url: request.url.clone(), status, reason });
    }

    fn invalid(&mut self, header: &'static str, found: &str, expected: &'static str) {
        let (request, url) = self.last.clone();
        self.fail(ClientError::Reply { request, url, header, found: shown(found), expected });
    }
}

/// Whether a redirect of the request makes no sense: the session ends, or continues here.
fn is_late(kind: RequestKind) -> bool {
    matches!(kind, RequestKind::Teardown | RequestKind::Pause | RequestKind::KeepAlive)
}
