//! An RTSP client as a state machine: the session of one player, from DESCRIBE to TEARDOWN, or of one publisher, from ANNOUNCE on.
//!
//! [`RtspClient`] takes bytes and times, and returns [`ClientAction`]s. It knows no sockets: the caller connects, sends
//! and receives. It authenticates, follows redirects, keeps the session alive, and offers the connection where a server
//! refuses UDP. It does not reconnect, and does not look into packets: [`crate::reception`] and
//! [`crate::payload::Depacketizer`] do.

mod action;
mod authenticator;
mod error;
mod keep_alive;
mod options;
mod publishing;
mod replies;
mod request;
mod rtp_info;
mod server_requests;
mod target;
#[cfg(test)]
mod tests;
mod transport;

pub use action::{ClientAction, ClientPlayback, ClientTrack, Received};
pub use error::ClientError;
pub use options::{ClientOptions, Credentials, RedirectPolicy};
pub use publishing::Announcement;
pub use request::RequestKind;
pub use rtp_info::RtpStart;
pub use target::Endpoint;
pub use transport::TrackTransport;

use crate::{
    framing::{self, ServerMessage},
    sdp_reader::SessionDescription,
    setup::{Offer, RtpProfile},
};
use authenticator::Authenticator;
use bytes::{Bytes, BytesMut};
use keep_alive::{KeepAlive, SessionHeader};
use request::{Exchange, Numbers, Request};
use std::{collections::VecDeque, time::Duration};
use target::Target;

/// Most bytes that are no message between two packets.
const MOST_SKIPPED: usize = 256 << 10;

/// A client of one presentation.
///
/// Call [`poll`](RtspClient::poll) until it returns `None` after [`new`](RtspClient::new) and after every other call
/// that changes the client, and carry out each action. Call [`tick`](RtspClient::tick) at the time that
/// [`wake`](RtspClient::wake) returns. All times count from one epoch of the caller's choice.
///
/// A session begins with [`ClientAction::Connect`], then [`ClientAction::Described`]. The caller chooses the streams by
/// [`set_up`](RtspClient::set_up), and after [`ClientAction::Opened`] calls [`play`](RtspClient::play). A redirect, even
/// while it plays, begins with `Connect` again. The session ends with [`ClientAction::Closed`] or
/// [`ClientAction::Failed`].
#[derive(Debug)]
pub struct RtspClient {
    options: ClientOptions,
    target: Target,
    state: State,
    /// The request that waits for its reply. There is one at a time.
    exchange: Option<Exchange>,
    /// Requests to send after it.
    waiting: VecDeque<Request>,
    actions: VecDeque<ClientAction>,
    numbers: Numbers,
    /// Kind and URL of the last request, for errors.
    last: (RequestKind, String),
    authenticator: Authenticator,
    keep_alive: KeepAlive,
    session: Option<SessionHeader>,
    tracks: Tracks,
    /// The announcement of a publisher; `None` for a player.
    announcement: Option<Announcement>,
    redirects: u32,
    /// Bytes that were skipped since the last packet.
    skipped: usize,
}

/// Progress of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for [`RtspClient::connected`], until a time.
    Connecting { until: Duration },
    /// Waits for the description.
    Describing,
    /// Waits for [`RtspClient::set_up`].
    Described,
    /// Waits for replies to SETUP.
    SettingUp,
    /// Set up, playing or paused.
    Open,
    /// Waits for the reply to TEARDOWN.
    Leaving,
    /// Over. `is_connected` is whether TEARDOWN can still be sent.
    Over { is_connected: bool },
}

/// Streams of the presentation, and streams that are set up.
#[derive(Debug, Default)]
struct Tracks {
    /// URL of requests for all tracks.
    control: String,
    /// URL of each stream of the description.
    streams: Vec<String>,
    /// Profiles of each stream, the preferred one first.
    profiles: Vec<Vec<RtpProfile>>,
    /// Streams to set up, and the transport offered for each.
    offers: Vec<(usize, Offer)>,
    agreed: Vec<ClientTrack>,
}

impl Tracks {
    /// Whether media of a track arrives on the connection.
    fn has_channels(&self) -> bool {
        self.agreed.iter().any(|track| matches!(track.transport, TrackTransport::Interleaved { .. }))
    }

    /// Whether a track uses a channel of the connection.
    fn has_channel(&self, channel: u8) -> bool {
        self.agreed.iter().any(|track| match track.transport {
            TrackTransport::Interleaved { channels: (rtp, rtcp) } => channel == rtp || channel == rtcp,
            _ => false,
        })
    }
}

impl RtspClient {
    /// Creates a client for a URL, whose credentials are ignored in favour of those in `options`.
    ///
    /// # Errors
    /// The URL has another scheme than `rtsp` or `rtsps`, or no host.
    pub fn new(url: &str, options: ClientOptions, now: Duration) -> Result<Self, ClientError> {
        let target = Target::new(url)?;
        let mut client = Self {
            state: State::Over { is_connected: false },
            exchange: None,
            waiting: VecDeque::new(),
            actions: VecDeque::new(),
            numbers: Numbers::default(),
            last: (RequestKind::Connect, target.url.clone()),
            authenticator: Authenticator::new(options.random),
            keep_alive: KeepAlive::new(options.keep_alive),
            session: None,
            tracks: Tracks::default(),
            announcement: None,
            redirects: 0,
            skipped: 0,
            target,
            options,
        };
        client.connect(now);
        Ok(client)
    }

    /// Removes and returns the next action.
    pub fn poll(&mut self) -> Option<ClientAction> {
        self.actions.pop_front()
    }

    /// Time at which [`tick`](RtspClient::tick) must be called, if any.
    #[must_use]
    pub fn wake(&self) -> Option<Duration> {
        match self.state {
            State::Connecting { until } => Some(until),
            State::Over { .. } => None,
            _ => match &self.exchange {
                Some(exchange) => Some(exchange.until),
                None => self.keep_alive.next(),
            },
        }
    }

    /// Acts on the time: a request may have taken too long, or a keep-alive may be due.
    pub fn tick(&mut self, now: Duration) {
        if self.wake().is_none_or(|wake| now < wake) {
            return;
        }
        match self.exchange.take() {
            None if matches!(self.state, State::Connecting { .. }) => self.timed_out(),
            None => {
                let request = Request::new(RequestKind::KeepAlive, self.keep_alive.method(), &self.tracks.control);
                self.keep_alive.sent(now);
                self.ask(request, now);
            }
            Some(exchange) if exchange.request.kind == RequestKind::KeepAlive => {
                self.numbers.abandon(exchange.number);
                if self.keep_alive.failed() > self.options.most_unanswered {
                    return self.timed_out();
                }
                self.ask_next(now);
            }
            Some(exchange) => {
                self.numbers.abandon(exchange.number);
                self.timed_out();
            }
        }
    }

    /// Begins with the requests, after [`ClientAction::Connect`].
    pub fn connected(&mut self, now: Duration) {
        if matches!(self.state, State::Connecting { .. }) {
            self.state = State::Describing;
            let url = self.target.url.clone();
            self.ask(Request::new(RequestKind::Options, "OPTIONS", &url), now);
        }
    }

    /// Ends the session, because the connection ended or could not be made. `why` is for people.
    pub fn disconnected(&mut self, why: &str) {
        if !matches!(self.state, State::Over { .. }) {
            let (request, url) = self.last.clone();
            self.fail(ClientError::Disconnected { request, url, why: why.to_owned() });
        }
        self.state = State::Over { is_connected: false };
        self.session = None;
    }

    /// Takes the first message from `input`; `None` while it is incomplete. Call it again after each message.
    pub fn receive(&mut self, input: &mut BytesMut, now: Duration) -> Option<Received> {
        if matches!(self.state, State::Connecting { .. } | State::Over { .. }) {
            return None;
        }
        match framing::take_reply(input) {
            Ok(None) => None,
            Ok(Some(ServerMessage::Data(channel, bytes))) => {
                self.media_arrived();
                self.skipped = 0;
                Some(Received::Media { channel, bytes })
            }
            Ok(Some(ServerMessage::Response(reply))) => {
                self.replied(&reply, now);
                Some(Received::Control)
            }
            Ok(Some(ServerMessage::Request(request))) => {
                self.requested(&request, now);
                Some(Received::Control)
            }
            Err(_) if self.may_skip() => {
                let bytes = framing::skip(input, |channel| self.tracks.has_channel(channel));
                self.skipped += bytes;
                Some(Received::Skipped(bytes))
            }
            Err(error) => {
                let (request, url) = self.last.clone();
                self.fail(ClientError::Framing { request, url, error });
                self.disconnected("");
                Some(Received::Control)
            }
        }
    }

    /// Whether bytes that are no message may be skipped. Cameras lose parts of packets on the connection, or send others' bytes between
    /// them; other players skip those too.
    fn may_skip(&self) -> bool {
        self.state == State::Open && self.skipped < MOST_SKIPPED && self.tracks.has_channels()
    }

    /// Records that media arrived by UDP: a server that sends media is alive, even if it ignores keep-alives.
    pub fn media_arrived(&mut self) {
        self.keep_alive.heard();
    }

    /// Sets up streams of the description, each with the transport to offer. Only valid after
    /// [`ClientAction::Described`]. The channels of [`Offer::Interleaved`] are chosen by the client where not stated.
    ///
    /// # Panics
    /// A stream is not in the description, or there is none.
    pub fn set_up(&mut self, offers: &[(usize, Offer)], now: Duration) {
        if self.state != State::Described {
            return;
        }
        let is_known = |(stream, _): &(usize, Offer)| *stream < self.tracks.streams.len();
        assert!(!offers.is_empty() && offers.iter().all(is_known), "streams of the description");
        self.tracks.offers = offers.to_vec();
        self.state = State::SettingUp;
        self.set_up_next(now);
    }

    /// Plays from a time in seconds, or from where it paused or begins. Only valid after [`ClientAction::Opened`].
    pub fn play(&mut self, from: Option<f64>, now: Duration) {
        if self.state == State::Open {
            let request = Request::new(RequestKind::Play, "PLAY", &self.tracks.control);
            self.ask(
                match from {
                    Some(from) => request.with("Range", format!("npt={from:.3}-")),
                    None => request,
                },
                now,
            );
        }
    }

    /// Plays from a time in seconds, and asks for media at `speed` times the usual pace (RFC 2326 12.35). Only valid after
    /// [`ClientAction::Opened`].
    pub fn play_faster(&mut self, from: f64, speed: f64, now: Duration) {
        if self.state == State::Open {
            let request = Request::new(RequestKind::Play, "PLAY", &self.tracks.control);
            let request = request.with("Range", format!("npt={from:.3}-"));
            self.ask(request.with("Speed", format!("{speed:.1}")), now);
        }
    }

    /// Pauses. Only valid after [`ClientAction::Opened`].
    pub fn pause(&mut self, now: Duration) {
        if self.state == State::Open {
            self.ask(Request::new(RequestKind::Pause, "PAUSE", &self.tracks.control), now);
        }
    }

    /// Ends the session. Nobody waits for the replies to earlier requests any more. It can be called after
    /// [`ClientAction::Failed`] too, so that the server doesn't keep the session until its timeout.
    pub fn tear_down(&mut self, now: Duration) {
        let is_over = matches!(self.state, State::Connecting { .. } | State::Over { is_connected: false });
        if self.state == State::Leaving {
            return;
        }
        self.waiting.clear();
        if let Some(exchange) = self.exchange.take() {
            self.numbers.abandon(exchange.number);
        }
        self.keep_alive.stop();
        if is_over || self.session.is_none() {
            return self.close();
        }
        self.state = State::Leaving;
        let request = Request::new(RequestKind::Teardown, "TEARDOWN", &self.tracks.control);
        self.ask(request, now);
    }

    fn close(&mut self) {
        self.session = None;
        self.state = State::Over { is_connected: false };
        self.actions.push_back(ClientAction::Closed);
    }

    fn connect(&mut self, now: Duration) {
        self.state = State::Connecting { until: now.saturating_add(self.options.patience) };
        self.last = (RequestKind::Connect, self.target.url.clone());
        self.actions.push_back(ClientAction::Connect(self.target.endpoint.clone()));
    }

    /// Sends a request, or queues it until the last one is answered.
    fn ask(&mut self, request: Request, now: Duration) {
        self.waiting.push_back(request);
        self.ask_next(now);
    }

    fn ask_next(&mut self, now: Duration) {
        if self.exchange.is_none()
            && let Some(request) = self.waiting.pop_front()
        {
            let until = now.saturating_add(self.options.patience);
            self.send(Exchange { request, number: 0, sent: now, until, answers: 0 });
        }
    }

    /// Sends the request of an exchange, with a new number and a new answer to the server's challenge.
    fn send(&mut self, exchange: Exchange) {
        let number = self.numbers.next();
        let request = &exchange.request;
        self.last = (request.kind, request.url.clone());
        let authorization = self.authenticator.authorization(request.method, &request.url, &self.options);
        let others = [
            ("Session", self.session.as_ref().map(|session| session.id.as_str())),
            ("Authorization", authorization.as_deref()),
            ("User-Agent", Some(self.options.agent.as_str())),
        ];
        let bytes = Bytes::from(request.to_bytes(number, &others));
        self.actions.push_back(ClientAction::Send(bytes));
        self.exchange = Some(Exchange { number, ..exchange });
    }

    fn set_up_next(&mut self, now: Duration) {
        let place = self.tracks.agreed.len();
        let Some((stream, offer)) = self.tracks.offers.get_mut(place) else {
            self.state = State::Open;
            if self.announcement.is_some() {
                return self.record(now);
            }
            return self.actions.push_back(ClientAction::Opened(self.tracks.agreed.clone()));
        };
        if let Offer::Interleaved(channels @ None) = offer {
            *channels = Some(own_channels(place));
        }
        let request = Request::new(RequestKind::Setup, "SETUP", &self.tracks.streams[*stream]);
        let mut header = offer.header(&profiles(&self.tracks.profiles[*stream], offer, &self.options));
        if self.announcement.is_some() {
            // RFC 2326 12.39.
            header.push_str(";mode=record");
        }
        self.ask(request.with("Transport", header), now);
    }

    fn describe(&mut self, now: Duration) {
        if self.announcement.is_some() {
            return self.announce(now);
        }
        let request = Request::new(RequestKind::Describe, "DESCRIBE", &self.target.url);
        self.ask(request.with("Accept", "application/sdp"), now);
    }

    fn described(&mut self, description: SessionDescription) {
        self.tracks = Tracks {
            control: description.control.clone(),
            streams: description.streams.iter().map(|stream| stream.control.clone()).collect(),
            profiles: description.streams.iter().map(|stream| stream.feedback.profiles.clone()).collect(),
            ..Tracks::default()
        };
        self.state = State::Described;
        self.actions.push_back(ClientAction::Described(description));
    }

    fn timed_out(&mut self) {
        let (request, url) = self.last.clone();
        self.fail(ClientError::Timeout { request, url, after: self.options.patience });
    }

    fn fail(&mut self, error: ClientError) {
        let is_connected = !matches!(self.state, State::Connecting { .. } | State::Leaving);
        self.state = State::Over { is_connected };
        self.exchange = None;
        self.waiting.clear();
        self.keep_alive.stop();
        self.actions.push_back(ClientAction::Failed(error));
    }
}

/// Returns the profiles to offer. Early feedback is of use by UDP only; a stream without another profile is set up with it too.
fn profiles(described: &[RtpProfile], offer: &Offer, options: &ClientOptions) -> Vec<RtpProfile> {
    let is_wanted = options.uses_feedback && matches!(offer, Offer::Unicast { .. });
    let has_other = described.iter().any(|profile| *profile != RtpProfile::Avpf);
    let mut profiles = described.to_vec();
    if !is_wanted && has_other {
        profiles.retain(|profile| *profile != RtpProfile::Avpf);
    }
    profiles
}

/// Channels for the track at a place. The last ones are shared, but no description has as many streams.
fn own_channels(place: usize) -> (u8, u8) {
    let rtp = u8::try_from(2 * place).unwrap_or(254);
    (rtp, rtp + 1)
}
