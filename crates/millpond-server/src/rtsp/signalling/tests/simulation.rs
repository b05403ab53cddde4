//! Clients beside a stream engine that plays one title, on a virtual clock.

use super::super::{
    Action, Asked, Course, Dialogue, Ended, Named, Outcome, SetUp, Signs, Step, Terms, Viewer, sessions::Sessions,
};
use crate::{
    rtsp::{record::End, reply::Reply},
    wire,
};
use bytes::BytesMut;
use millpond_access::Gates;
use millpond_connections::ConnectionTimeouts;
use millpond_rtp::{framing::FramingError, message::StatusCode, setup::Offer};
use millpond_stream::{Full, Played, PlayedPart, Start, Stopped, outlet::Backlog};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

pub(super) const SECOND: Duration = Duration::from_secs(1);
/// Seconds of the title.
pub(super) const LENGTH: f64 = 100.0;
/// Interval between searches for silent sessions.
const SWEEP: Duration = Duration::from_secs(5);
/// Silence after which a session ends.
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limits of connections.
pub(super) const TIMEOUTS: ConnectionTimeouts =
    ConnectionTimeouts { idle: Duration::from_secs(30), head: Duration::from_secs(10), write: Duration::from_secs(20) };
/// Most sessions at a time.
pub(super) const SESSIONS: usize = 200;
/// The only title.
const PATH: &str = "a.mp4";

/// A session of the simulated engine.
#[derive(Clone, Debug, Default)]
pub(super) struct Viewing(Arc<Mutex<State>>);

#[derive(Debug, Default)]
pub(super) struct State {
    course: Course<()>,
    /// Time and position at which it last began to play, and its scale.
    began: (Duration, f64, f64),
    pub(super) now: Duration,
    heard: Duration,
    is_interleaved: bool,
    has_played: bool,
    pub(super) is_stuck: bool,
    /// Whether a request of it is performed.
    pub(super) is_busy: bool,
    pub(super) ended: Option<End>,
    /// Reports that came on its channels.
    pub(super) reports: usize,
    /// How many times it was opened, and stopped.
    pub(super) opened: usize,
    pub(super) stopped: usize,
}

impl Viewing {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    /// Where it is, in seconds of the title.
    fn position(&self) -> f64 {
        let (at, from, scale) = self.began;
        (from + scale * (self.now - at).as_secs_f64()).clamp(0.0, LENGTH)
    }

    fn is_sent(&self) -> bool {
        let position = self.position();
        self.course.playing().is_some() && position > 0.0 && position < LENGTH
    }

    fn stop(&mut self) {
        if self.course.take().is_some() {
            self.stopped += 1;
            let position = Duration::from_secs_f64(self.position());
            let is_normal = self.began.2 == 1.0;
            self.course.stopped(if is_normal { Stopped::Before(position) } else { Stopped::At(position) });
        }
    }

    /// Opens a part, as the engine's manager does; `None` outside of the title.
    fn open(&mut self, asked: Asked) -> Option<Played> {
        self.stop();
        let asked_for = asked.range.npt()?;
        let from = match self.course.start(asked_for.from, asked.scale, LENGTH) {
            Start::At(at) => at,
            Start::Next(due) => due.as_secs_f64(),
        };
        let to = asked_for.to.map_or(if asked.scale < 0.0 { 0.0 } else { LENGTH }, |to| to.min(LENGTH));
        let is_empty = if asked.scale < 0.0 { from <= to } else { from >= to };
        if from > LENGTH || is_empty {
            return None;
        }
        self.opened += 1;
        self.began = (self.now, from, asked.scale);
        let tracks = vec![("v1".to_owned(), 1, 2)];
        Some(Played { part: PlayedPart::Title(from, to), scale: asked.scale, speed: asked.speed, tracks })
    }
}

fn range(part: PlayedPart) -> String {
    match part {
        PlayedPart::Title(from, to) => millpond_rtp::play::range(from, to),
        other => panic!("{other:?}"),
    }
}

impl Viewer for Viewing {
    fn signs(&self) -> Option<Signs> {
        let state = self.state();
        let State { heard, is_stuck, has_played, .. } = *state;
        (!state.is_busy).then(|| Signs { heard, is_stuck, is_sent: state.is_sent(), has_played })
    }

    fn is_interleaved(&self) -> bool {
        self.state().is_interleaved
    }

    fn heard(&self, now: Duration) {
        self.state().heard = now;
    }

    fn ends(&self, why: End) {
        self.state().ended.get_or_insert(why);
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Ended(Ended),
    Framing(FramingError),
    /// By the client.
    Closed,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    dialogue: Dialogue,
    peer: SocketAddr,
    until: Duration,
    /// Bytes that were sent to it.
    received: Vec<u8>,
    /// Bytes that it has not taken; it takes everything unless this is set.
    unread: Option<usize>,
    pub(super) over: Option<Over>,
}

/// A reply, as its client reads it.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) status: u16,
    text: String,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.text.lines().find_map(|line| line.strip_prefix(prefix.as_str()))
    }

    pub(super) fn number(&self) -> Option<u64> {
        self.header("CSeq")?.parse().ok()
    }
}

/// A server and its clients.
#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Duration,
    pub(super) sessions: Sessions<Viewing>,
    pub(super) clients: Vec<Client>,
    swept: Duration,
    /// Sessions that were made.
    pub(super) made: Vec<Viewing>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            now: Default::default(),
            sessions: Sessions::new(SESSION_TIMEOUT),
            clients: Default::default(),
            swept: Default::default(),
            made: Default::default(),
        }
    }
}

impl World {
    /// Connects a client of an address of its own; gives its number.
    pub(super) fn connect(&mut self, host: u8) -> usize {
        self.connect_with(host, |_| {})
    }

    pub(super) fn connect_with(&mut self, host: u8, set: impl FnOnce(&mut Terms)) -> usize {
        let peer = SocketAddr::from(([192, 0, 2, host], 5000));
        let mut terms = Terms {
            peer,
            timeouts: TIMEOUTS,
            session_timeout: SESSION_TIMEOUT,
            is_secure: false,
            overflow: None,
            access_log: false,
            passwords: None,
            gates: Arc::new(Gates::none()),
            publishers: None,
            cluster: None,
            is_of_node: false,
        };
        set(&mut terms);
        let dialogue = Dialogue::new(terms, BytesMut::new(), self.now);
        let until = self.now + TIMEOUTS.idle;
        self.clients.push(Client { dialogue, peer, until, received: Vec::new(), unread: None, over: None });
        self.clients.len() - 1
    }

    /// The client takes nothing from now on.
    pub(super) fn stop_reading(&mut self, client: usize) {
        self.clients[client].unread = Some(0);
    }

    /// The client sends bytes; gives the replies.
    pub(super) fn send(&mut self, client: usize, bytes: &[u8]) -> Vec<Received> {
        self.clients[client].dialogue.input().extend_from_slice(bytes);
        self.drive(client);
        replies(std::mem::take(&mut self.clients[client].received))
    }

    /// The client sends one request; gives its reply.
    pub(super) fn ask(&mut self, client: usize, method: &str, headers: &str) -> Received {
        let mut replies = self.send(client, request(method, 1, headers).as_bytes());
        assert_eq!(replies.len(), 1, "{method}");
        replies.remove(0)
    }

    /// Sets a session up; gives its `Session` header for requests.
    pub(super) fn set_up(&mut self, client: usize, transport: &str) -> String {
        let reply = self.ask(client, "SETUP", &format!("Transport: {transport}\r\n"));
        assert_eq!(reply.status, 200);
        let name = reply.header("Session").unwrap();
        assert!(name.ends_with(";timeout=60"), "{name}");
        format!("Session: {}\r\n", name.split(';').next().unwrap())
    }

    /// The client closes the connection, or a reset does.
    pub(super) fn close(&mut self, client: usize) {
        self.end(client, Over::Closed);
    }

    fn end(&mut self, client: usize, over: Over) {
        let Self { clients, sessions, .. } = self;
        clients[client].over = Some(over);
        clients[client].dialogue.leave(sessions, false);
    }

    /// Lets a time go by.
    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let open = self.clients.iter().filter(|client| client.over.is_none());
            let next = open.map(|client| client.until).chain([self.swept + SWEEP]).min().unwrap();
            if next > until {
                break;
            }
            self.turn(next.max(self.now));
            self.sweep();
            self.expire();
        }
        self.turn(until);
    }

    fn turn(&mut self, now: Duration) {
        self.now = now;
        self.made.iter().for_each(|viewing| viewing.state().now = now);
    }

    fn sweep(&mut self) {
        if self.now >= self.swept + SWEEP {
            self.swept = self.now;
            self.sessions.expire(self.now);
        }
    }

    /// Ends connections whose time has come.
    fn expire(&mut self) {
        for number in 0..self.clients.len() {
            let Self { clients, sessions, now, .. } = self;
            let client = &mut clients[number];
            if client.over.is_none() && client.until <= *now {
                match client.dialogue.timed_out(sessions, *now) {
                    Ok(()) => self.drive(number),
                    Err(ended) => self.end(number, Over::Ended(ended)),
                }
            }
        }
    }

    /// Performs steps of a connection until it waits for bytes.
    fn drive(&mut self, number: usize) {
        while self.clients[number].over.is_none() {
            let Self { clients, sessions, now, made, .. } = self;
            let client = &mut clients[number];
            match client.dialogue.next(sessions, *now) {
                Step::Read { until } => {
                    client.until = until;
                    return;
                }
                Step::Send(reply) => client.receive(&reply),
                Step::Perform(action) => {
                    let reply = client.perform(action, sessions, made, *now);
                    client.receive(&reply);
                }
                Step::Ask(_) => unreachable!("no place has rules"),
                Step::Hear { session, .. } => {
                    session.state().reports += 1;
                    continue;
                }
                Step::Refuse { reply, error } => {
                    client.receive(reply.as_bytes());
                    self.end(number, Over::Framing(error));
                    return;
                }
            }
            let backlog = client.backlog();
            if let Err(ended) = client.dialogue.sent(backlog, *now) {
                self.end(number, Over::Ended(ended));
            }
        }
    }
}

impl Client {
    fn receive(&mut self, bytes: &[u8]) {
        match &mut self.unread {
            Some(unread) => *unread += bytes.len(),
            None => self.received.extend_from_slice(bytes),
        }
    }

    fn backlog(&self) -> Backlog {
        wire::backlog(self.unread.unwrap_or(0))
    }

    /// Does what the shell does with the library and the engine; gives the reply.
    fn perform(
        &mut self,
        action: Action<Viewing>,
        sessions: &Sessions<Viewing>,
        made: &mut Vec<Viewing>,
        now: Duration,
    ) -> Vec<u8> {
        let refused = |status| Outcome::Refused(Reply::new(status));
        let outcome = match action {
            Action::Describe { path, .. } if path == PATH => Outcome::Described("v=0\r\n".into()),
            Action::Describe { .. } => refused(StatusCode::NotFound),
            Action::SetUp(set_up) => self.set_up(set_up, sessions, made, now),
            Action::Play(Named { session, .. }, asked) => {
                let played = session.state().open(asked);
                let Some(played) = played else { return self.dialogue.finish(refused(StatusCode::InvalidRange)) };
                let reply = self.dialogue.finish(Outcome::Plays(&played, range(played.part)));
                let mut state = session.state();
                state.course = Course::Playing(());
                state.has_played = true;
                return reply;
            }
            Action::Announce(_) | Action::Record(_) => refused(StatusCode::MethodNotAllowed),
            Action::Pause(Named { session, .. }) => {
                session.state().stop();
                Outcome::Done
            }
            Action::TearDown(Named { name, session }) => {
                session.ends(End::Teardown);
                session.state().stop();
                sessions.remove(&name);
                Outcome::Done
            }
        };
        self.dialogue.finish(outcome)
    }

    fn set_up(
        &mut self,
        request: SetUp<Viewing>,
        sessions: &Sessions<Viewing>,
        made: &mut Vec<Viewing>,
        now: Duration,
    ) -> Outcome<'static> {
        let SetUp { path, track, session, offers, .. } = request;
        let refused = |status| Outcome::Refused(Reply::new(status));
        if path != PATH || !matches!(track.as_str(), "v1" | "a1") {
            return refused(StatusCode::NotFound);
        }
        if session.is_none() && sessions.len() >= SESSIONS {
            return Outcome::Full(Full::Sessions);
        }
        let name = session.as_ref().map_or_else(|| format!("session{}", made.len()), |known| known.name.clone());
        let number = usize::from(track == "a1");
        let (channels, transport) = match offers.first() {
            Some((profile, Offer::Interleaved(asked))) => {
                match self.dialogue.find_channels(*asked, (&name, number), sessions) {
                    Some((rtp, rtcp)) => {
                        (Some((rtp, rtcp)), format!("{}/TCP;interleaved={rtp}-{rtcp}", profile.name()))
                    }
                    None => return refused(StatusCode::UnsupportedTransport),
                }
            }
            Some((profile, Offer::Unicast { .. })) => (None, profile.name().to_owned()),
            _ => return refused(StatusCode::UnsupportedTransport),
        };
        let viewing = session.map_or_else(Viewing::default, |known| known.session);
        if viewing.state().course.playing().is_some() {
            return refused(StatusCode::MethodNotValidInThisState);
        }
        if !made.iter().any(|known| Arc::ptr_eq(&known.0, &viewing.0)) {
            sessions.add(name.clone(), self.peer.ip(), viewing.clone());
            made.push(viewing.clone());
        }
        {
            let mut state = viewing.state();
            (state.now, state.heard) = (now, now);
            state.is_interleaved = channels.is_some();
        }
        if let Some(channels) = channels {
            self.dialogue.give_channels(channels, (&name, number), sessions);
        }
        Outcome::SetUp { name, transport }
    }
}

/// A request of the title's first track, or of the title.
pub(super) fn request(method: &str, number: u64, headers: &str) -> String {
    let track = if method == "SETUP" { "/v1" } else { "" };
    format!("{method} rtsp://192.0.2.100/{PATH}{track} RTSP/1.0\r\nCSeq: {number}\r\n{headers}\r\n")
}

/// Splits what a client received into replies.
fn replies(bytes: Vec<u8>) -> Vec<Received> {
    let text = String::from_utf8(bytes).unwrap();
    let mut rest = text.as_str();
    let mut found = Vec::new();
    while let Some((head, behind)) = rest.split_once("\r\n\r\n") {
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let received = Received { status, text: head.to_owned() };
        let length = received.header("Content-Length").map_or(0, |length| length.parse().unwrap());
        rest = &behind[length..];
        found.push(received);
    }
    assert!(rest.is_empty(), "{rest:?}");
    found
}
