//! One RTSP connection: requests in, replies and actions out, and interleaved data beside them.

use super::{
    action::{Action, Ended, Named, Outcome, SetUp, Step},
    answer, ask,
    channels::Channels,
    sessions::{Sessions, Viewer},
};
use crate::cluster::Cluster;
use crate::rtsp::{
    challenge,
    record::End,
    reply::{self, PUBLIC, PUBLIC_TO_PUBLISHERS, Reply},
};
use bytes::BytesMut;
use millpond_access::{
    AccessRefusal, AskingClient, AuthAction, Gates, Limited, Pass, Passwords, PublisherAdmission, Publishers, Question,
    RtspDecision, Unproved, query_token,
};
use millpond_connections::ConnectionTimeouts;
use millpond_rtp::{
    digest::DigestRefusal,
    framing::{self, ClientMessage, FramingError},
    message::{
        Method, Request, StatusCode,
        headers::{PUBLIC as PUBLIC_HEADER, RETRY_AFTER, SESSION},
    },
    setup::Mode,
};
use millpond_stream::outlet::Backlog;
use std::{collections::HashSet, net::SocketAddr, sync::Arc, time::Duration};
use url::Url;

/// Wrong answers to challenges after which a connection ends.
pub(super) const WRONG: usize = 8;

/// Settings of a connection.
#[derive(Clone, Debug)]
pub(in crate::rtsp) struct Terms {
    pub(in crate::rtsp) peer: SocketAddr,
    pub(in crate::rtsp) timeouts: ConnectionTimeouts,
    /// Silence after which a session ends.
    pub(in crate::rtsp) session_timeout: Duration,
    /// Whether the client is connected by TLS, here or to a trusted proxy.
    pub(in crate::rtsp) is_secure: bool,
    /// Where clients are sent when there is no room here.
    pub(in crate::rtsp) overflow: Option<Url>,
    /// Whether refusals are logged.
    pub(in crate::rtsp) access_log: bool,
    /// Credentials that clients must present; `None` admits everyone.
    pub(in crate::rtsp) passwords: Option<Arc<Passwords>>,
    /// Rules of access, per place.
    pub(in crate::rtsp) gates: Arc<Gates>,
    /// Admission of publishers; `None` where no stream is pushed.
    pub(in crate::rtsp) publishers: Option<Arc<Publishers>>,
    /// The cluster, whose nodes have passes.
    pub(in crate::rtsp) cluster: Option<Arc<Cluster>>,
    /// Whether the client is another node, whose certificate was checked.
    pub(in crate::rtsp) is_of_node: bool,
}

/// One RTSP connection.
///
/// [`next`](Self::next) gives a [`Step`], whose doc tells the calls that must follow it. Requests are performed one after
/// another: the next one is read when the reply to the last one was [sent](Self::sent). At the end of the connection,
/// [`leave`](Self::leave) ends the sessions that can't outlive it.
#[derive(Debug)]
pub(in crate::rtsp) struct Dialogue {
    terms: Terms,
    input: BytesMut,
    /// The request whose action is performed.
    performed: Option<Request<Vec<u8>>>,
    /// The request that another server decides on.
    asked: Option<Request<Vec<u8>>>,
    /// Names of sessions that were set up here.
    own: HashSet<String>,
    channels: Channels,
    /// Path of the last ANNOUNCE that was admitted.
    announced: Option<String>,
    /// Wrong answers to challenges.
    wrong: usize,
    /// Time of the last request, or of the last packet on a track's channel.
    active: Duration,
    /// Time at which the first byte of an incomplete message was seen.
    began: Option<Duration>,
}

impl Dialogue {
    /// Begins at a time, with bytes that came already.
    pub(in crate::rtsp) fn new(terms: Terms, input: BytesMut, now: Duration) -> Self {
        Self {
            terms,
            input,
            performed: None,
            asked: None,
            own: HashSet::new(),
            channels: Channels::default(),
            announced: None,
            wrong: 0,
            active: now,
            began: None,
        }
    }

    /// Whether the client is connected by TLS, here or to a trusted proxy.
    pub(in crate::rtsp) fn is_secure(&self) -> bool {
        self.terms.is_secure
    }

    /// Where bytes of the client are added.
    pub(in crate::rtsp) fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// The next step.
    pub(in crate::rtsp) fn next<T: Viewer>(&mut self, sessions: &Sessions<T>, now: Duration) -> Step<T> {
        loop {
            let taken = framing::take(&mut self.input);
            if !matches!(taken, Ok(None)) {
                self.began = None;
            }
            match taken {
                Ok(Some(ClientMessage::Request(request))) => return self.request(request, sessions, now),
                Ok(Some(ClientMessage::Data(channel, packet))) => {
                    // Packets on a channel of no track are ignored.
                    if let Some(session) = self.on_channel(channel, sessions) {
                        // The session's client is there.
                        self.active = now;
                        session.heard(now);
                        return Step::Hear { session, channel, packet };
                    }
                }
                Ok(Some(ClientMessage::Response)) => {}
                Ok(None) => {
                    if self.input.is_empty() {
                        // An idle connection holds no buffer.
                        self.input = BytesMut::new();
                    } else {
                        self.began = self.began.or(Some(now));
                    }
                    let ConnectionTimeouts { idle, head, .. } = self.terms.timeouts;
                    return Step::Read { until: self.began.map_or(self.active + idle, |began| began + head) };
                }
                Err(error) => return self.refuse(error),
            }
        }
    }

    /// Notes that no bytes came before the time of [`Step::Read`].
    ///
    /// # Errors
    /// The connection ends: a request is incomplete, or no session that has played needs the connection.
    pub(in crate::rtsp) fn timed_out<T: Viewer>(&mut self, sessions: &Sessions<T>, now: Duration) -> Result<(), Ended> {
        if self.began.is_some() {
            return Err(Ended::Incomplete);
        }
        if !self.is_needed(sessions) {
            return Err(Ended::Silent);
        }
        self.active = now;
        Ok(())
    }

    /// The URL of the request whose action is performed at another server. `mark` is added to its query.
    pub(in crate::rtsp) fn moved(&self, base: &str, mark: &str) -> Option<String> {
        ask::moved(self.performed.as_ref()?, base, mark)
    }

    /// The reply to the request whose action was performed.
    pub(in crate::rtsp) fn finish(&mut self, outcome: Outcome<'_>) -> Vec<u8> {
        let Some(request) = self.performed.take() else { return Vec::new() };
        if let Outcome::SetUp { name, .. } = &outcome {
            self.own.insert(name.clone());
        }
        let token = self.in_path(&request);
        let mut reply = answer::reply(&request, outcome, self.terms.session_timeout, token.as_deref());
        let is_done = reply.status == StatusCode::Ok;
        match (request.method(), ask::session(&request)) {
            (Method::Pause | Method::Record, Some(name)) if is_done => reply = reply.with(SESSION, name),
            (Method::Teardown, Some(name)) if is_done => {
                self.own.remove(&name);
            }
            _ => {}
        }
        self.write(&request, &reply)
    }

    /// Notes that a reply was sent. `backlog` is how far the client is behind with reading.
    ///
    /// # Errors
    /// The connection ends: the client guesses passwords, or reads no replies.
    pub(in crate::rtsp) fn sent(&mut self, backlog: Backlog, now: Duration) -> Result<(), Ended> {
        if self.wrong >= WRONG {
            return Err(Ended::WrongPasswords);
        }
        // Replies are no frames: none of them can be left out.
        if backlog == Backlog::Stuck {
            return Err(Ended::Unread);
        }
        self.active = now;
        Ok(())
    }

    /// Ends the sessions whose packets go over the connection, and those that never played. Called when the connection ends.
    pub(in crate::rtsp) fn leave<T: Viewer>(&mut self, sessions: &Sessions<T>, is_stopping: bool) {
        for name in std::mem::take(&mut self.own) {
            let Some(session) = sessions.find(&name, self.terms.peer.ip()) else { continue };
            // A session with a request on another connection outlives this one.
            let Some(signs) = session.signs() else { continue };
            if session.is_interleaved() || !signs.has_played {
                if !is_stopping {
                    session.ends(End::ConnectionLost);
                }
                sessions.remove(&name);
            }
        }
    }

    /// Channels of the connection for a session's track, of those that are free.
    pub(in crate::rtsp) fn find_channels<T: Viewer>(
        &self,
        asked: Option<(u8, u8)>,
        (session, track): (&str, usize),
        sessions: &Sessions<T>,
    ) -> Option<(u8, u8)> {
        let client = self.terms.peer.ip();
        self.channels.find(asked, session, track, |name| sessions.find(name, client).is_some())
    }

    /// Gives channels to a session's track.
    pub(in crate::rtsp) fn give_channels<T: Viewer>(
        &mut self,
        channels: (u8, u8),
        (session, track): (&str, usize),
        sessions: &Sessions<T>,
    ) {
        let client = self.terms.peer.ip();
        self.channels.give(channels, session, track, |name| sessions.find(name, client).is_some());
    }

    fn on_channel<T: Viewer>(&self, channel: u8, sessions: &Sessions<T>) -> Option<T> {
        sessions.find(self.channels.session(channel)?, self.terms.peer.ip())
    }

    /// Whether a session that was set up here has played and is there still.
    fn is_needed<T: Viewer>(&mut self, sessions: &Sessions<T>) -> bool {
        let client = self.terms.peer.ip();
        self.own.retain(|name| sessions.find(name, client).is_some());
        let mut own = self.own.iter().filter_map(|name| sessions.find(name, client));
        // A session without signs has a request that is performed.
        own.any(|session| session.signs().is_none_or(|signs| signs.has_played))
    }

    fn request<T: Viewer>(&mut self, request: Request<Vec<u8>>, sessions: &Sessions<T>, now: Duration) -> Step<T> {
        if let Some(reply) = ask::unfit(&request).or_else(|| self.limited(&request, now)) {
            return Step::Send(self.write(&request, &reply));
        }
        match self.check(&request, now) {
            Check::Admitted(pass) => self.admitted(request, pass, sessions, now),
            Check::Ask(question) => {
                self.asked = Some(request);
                Step::Ask(question)
            }
            Check::Refused(reply) => Step::Send(self.write(&request, &reply)),
        }
    }

    /// The step after the answer to [`Step::Ask`].
    pub(in crate::rtsp) fn answered<T: Viewer>(
        &mut self,
        answer: Result<Pass, AccessRefusal>,
        sessions: &Sessions<T>,
        now: Duration,
    ) -> Step<T> {
        let Some(request) = self.asked.take() else { return self.next(sessions, now) };
        match answer {
            Ok(pass) => {
                self.announced = announced(&request).or(self.announced.take());
                self.admitted(request, pass, sessions, now)
            }
            Err(refusal) => {
                let is_guess = ask::authorization(&request).is_some() || ask::token(&request).is_some();
                self.wrong += usize::from(is_guess && refusal != AccessRefusal::NoAnswer);
                let reply = self.turned_away(&request, &refusal);
                Step::Send(self.write(&request, &reply))
            }
        }
    }

    /// The step after a request was admitted.
    fn admitted<T: Viewer>(
        &mut self,
        request: Request<Vec<u8>>,
        pass: Pass,
        sessions: &Sessions<T>,
        now: Duration,
    ) -> Step<T> {
        let limits = self.terms.gates.limits();
        if let Err(limited) = limits.map_or(Ok(()), |limits| limits.token_request(&pass, now)) {
            return Step::Send(self.write(&request, &too_many(limited)));
        }
        match self.action(&request, sessions, now) {
            Ok(mut action) => {
                if let Action::SetUp(set_up) = &mut action {
                    set_up.pass = pass;
                }
                self.performed = Some(request);
                Step::Perform(action)
            }
            Err(reply) => Step::Send(self.write(&request, &reply)),
        }
    }

    /// The reply to a client that sends too many requests. It may always end its sessions.
    fn limited(&self, request: &Request<Vec<u8>>, now: Duration) -> Option<Reply> {
        if matches!(request.method(), Method::Teardown) || self.is_of_node(request) {
            return None;
        }
        self.terms.gates.count_request(self.terms.peer.ip(), now).err().map(too_many)
    }

    /// The reply to a request that rules of access refuse.
    fn turned_away(&self, request: &Request<Vec<u8>>, refusal: &AccessRefusal) -> Reply {
        let (peer, why, rule) = (self.terms.peer, refusal.to_string(), refusal.rule());
        let path = ask::path(request).unwrap_or_default();
        match refusal {
            AccessRefusal::Credentials(challenges) if !challenges.is_empty() => {
                tracing::debug!(%peer, path, rule, why, "RTSP request not admitted");
                Reply::challenge(challenges.clone())
            }
            // The keys of tokens, or the other server, may be there soon.
            AccessRefusal::NoKeys | AccessRefusal::NoAnswer => {
                tracing::debug!(%peer, path, rule, why, "RTSP request not admitted");
                Reply::refusal(StatusCode::ServiceUnavailable, why).with(RETRY_AFTER, "5")
            }
            // 401 asks for a scheme of RTSP, of which tokens are none.
            _ => {
                tracing::info!(%peer, path, rule, why, "RTSP request not admitted");
                Reply::refusal(StatusCode::Forbidden, why).telling(refusal.for_viewers())
            }
        }
    }

    /// Whether a request has valid credentials.
    fn check(&mut self, request: &Request<Vec<u8>>, now: Duration) -> Check {
        let is_publishers = self.is_publishers(request);
        if !is_publishers && self.is_of_node(request) {
            return Check::Admitted(Pass::of_node());
        }
        let of_publishers = || self.ruled_for_publishers(request);
        if let Some(check) = (is_publishers && self.terms.publishers.is_some()).then(of_publishers).flatten() {
            return check;
        }
        let ruled = if is_publishers { RtspDecision::Open } else { self.ruled(request) };
        match self.refusal(request, (is_publishers, &ruled), now) {
            Some(reply) => Check::Refused(reply),
            None => match ruled {
                RtspDecision::Admitted(pass) => Check::Admitted(pass),
                RtspDecision::Ask(question) => Check::Ask(question),
                _ => Check::Admitted(Pass::default()),
            },
        }
    }

    /// Asks the server of `auth-url` whether a client may publish. `None` where there is none. After an admitted ANNOUNCE, the SETUP and
    /// RECORD of the connection are admitted too.
    fn ruled_for_publishers(&self, request: &Request<Vec<u8>>) -> Option<Check> {
        let path = ask::path(request)?;
        let query = ask::query(request);
        let agent = ask::agent(request);
        let asker = self.asker(AuthAction::Publish, request, &query, agent.as_deref());
        let question = self.terms.gates.ask_to_publish(ask::stream(request, &path), &asker)?;
        match request.method() {
            Method::Announce => Some(Check::Ask(question)),
            _ if self.announced.is_some() => Some(Check::Admitted(Pass::default())),
            _ => None,
        }
    }

    fn asker<'a>(
        &self,
        action: AuthAction,
        request: &'a Request<Vec<u8>>,
        query: &'a str,
        agent: Option<&'a str>,
    ) -> AskingClient<'a> {
        AskingClient {
            address: self.terms.peer.ip(),
            action,
            protocol: if self.terms.is_secure { "rtsps" } else { "rtsp" },
            token: ask::token(request),
            query,
            authorization: ask::authorization(request),
            agent,
        }
    }

    /// The reply to a request without valid credentials.
    fn refusal(
        &mut self,
        request: &Request<Vec<u8>>,
        (is_publishers, ruled): (bool, &RtspDecision),
        now: Duration,
    ) -> Option<Reply> {
        if let RtspDecision::Refused(refusal) = ruled {
            // A client without credentials may get a token from its user. Each wrong one counts.
            self.wrong += usize::from(matches!(refusal, AccessRefusal::Token(_)));
            return Some(self.turned_away(request, refusal));
        }
        let admission = match (&self.terms.publishers, &self.terms.passwords, ruled) {
            (Some(publishers), ..) if is_publishers => publishers.admission(self.terms.peer.ip()),
            (_, _, RtspDecision::Users(passwords)) | (_, Some(passwords), RtspDecision::Open) => {
                PublisherAdmission::Users(passwords)
            }
            _ => PublisherAdmission::Free,
        };
        let refused = match admission {
            PublisherAdmission::Free => Ok(()),
            PublisherAdmission::Users(passwords) => challenge::check(passwords, request, self.terms.peer.ip(), now),
            PublisherAdmission::Forbidden => {
                let why = "without publish-users only clients of this machine may publish";
                return Some(Reply::refusal(StatusCode::Forbidden, why));
            }
        };
        if refused.is_ok() {
            self.announced = announced(request).or(self.announced.take());
        }
        let refused = refused.err()?;
        let (peer, why) = (self.terms.peer, &refused.why);
        let is_no_guess = |why: &DigestRefusal| matches!(why, DigestRefusal::Anonymous) || why.is_stale();
        if matches!(why, Unproved::Digest(why) if is_no_guess(why)) {
            tracing::debug!(%peer, %why, "RTSP request refused");
        } else {
            self.wrong += 1;
            tracing::warn!(%peer, %why, "RTSP request refused");
        }
        Some(refused.reply)
    }

    /// What the rules of a request's place ask for. Later requests of a session belong to whom it was given.
    fn ruled(&self, request: &Request<Vec<u8>>) -> RtspDecision {
        let Some(path) = ask::path(request) else { return RtspDecision::Open };
        let begins = matches!(request.method(), Method::Describe | Method::Setup);
        let (query, agent) = (ask::query(request), ask::agent(request));
        let asker = self.asker(AuthAction::Read, request, &query, agent.as_deref());
        self.terms.gates.rtsp((&path, begins), ask::stream(request, &path), &asker)
    }

    /// Whether another node of the cluster asks.
    fn is_of_node(&self, request: &Request<Vec<u8>>) -> bool {
        self.terms.is_of_node || self.pass_of_node(request).is_some()
    }

    /// The pass of another node of the cluster, with which it takes a live stream for viewers that it has admitted.
    fn pass_of_node(&self, request: &Request<Vec<u8>>) -> Option<String> {
        let cluster = self.terms.cluster.as_ref()?;
        let token = match ask::token(request) {
            Some(token) => token.to_owned(),
            None => query_token(&ask::query(request))?,
        };
        cluster.admits_node(&token).then_some(token)
    }

    /// The token that stands for the credentials of a request's query in paths. `None` where its path has a token already.
    fn in_path(&self, request: &Request<Vec<u8>>) -> Option<String> {
        if ask::token(request).is_some() {
            return None;
        }
        if let Some(pass) = self.pass_of_node(request) {
            return Some(pass);
        }
        self.terms.gates.of(&ask::path(request)?)?.in_path(&ask::query(request))
    }

    /// Whether a request is that of a publisher. Requests that send media to the client never are.
    fn is_publishers(&self, request: &Request<Vec<u8>>) -> bool {
        match request.method() {
            Method::Announce | Method::Record => true,
            Method::Setup => self.is_to_record(request),
            Method::Describe | Method::Play => false,
            _ => self.announced.is_some(),
        }
    }

    /// Whether a SETUP is that of a publisher. Some publishers state no mode.
    fn is_to_record(&self, request: &Request<Vec<u8>>) -> bool {
        let is_announced = || {
            let path = ask::path(request)?;
            path.strip_prefix(self.announced.as_deref()?).map(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        ask::is_to_record(request) || (!ask::states_mode(request) && is_announced().unwrap_or(false))
    }

    /// The supported methods.
    fn public(&self) -> &'static str {
        if self.terms.publishers.is_some() { PUBLIC_TO_PUBLISHERS } else { PUBLIC }
    }

    /// The action of a request.
    ///
    /// # Errors
    /// The reply to a request that needs none.
    fn action<T: Viewer>(
        &self,
        request: &Request<Vec<u8>>,
        sessions: &Sessions<T>,
        now: Duration,
    ) -> Result<Action<T>, Reply> {
        let named = ask::session(request);
        let known = named.clone().and_then(|name| self.find(name, sessions, now));
        if named.is_some() && known.is_none() {
            return Err(no_session("no session of this name and client"));
        }
        let known_or = |known: Option<_>| known.ok_or_else(|| no_session("the request names no session"));
        Ok(match request.method() {
            Method::Options => return Err(Reply::ok().with(PUBLIC_HEADER, self.public())),
            Method::GetParameter | Method::SetParameter => return Err(parameter(request, named)),
            Method::Describe => {
                let path = ask::path(request).ok_or_else(ask::no_path)?;
                let elsewhere = ask::elsewhere(request, self.terms.overflow.as_ref(), self.terms.is_secure);
                let (most, agent) = (ask::bandwidth(request), ask::agent(request));
                Action::Describe { path, query: ask::query(request), most, elsewhere, agent }
            }
            Method::Setup => {
                let set_up = ask::set_up(request, known)?;
                let mode = if self.is_to_record(request) { Mode::Record } else { set_up.mode };
                Action::SetUp(SetUp { mode, ..set_up })
            }
            Method::Play => Action::Play(known_or(known)?, ask::play(request)?),
            Method::Announce if self.terms.publishers.is_some() => Action::Announce(ask::announce(request)?),
            Method::Record if self.terms.publishers.is_some() => Action::Record(known_or(known)?),
            Method::Pause => Action::Pause(known_or(known)?),
            Method::Teardown => Action::TearDown(known_or(known)?),
            method => {
                let why = format!("{} is not supported here", reply::name(method));
                return Err(Reply::refusal(StatusCode::NotImplemented, why).with(PUBLIC_HEADER, self.public()));
            }
        })
    }

    /// The session of a name, where it was given to this client. A session whose packets go over another connection takes
    /// requests on that one only. The session's client counts as heard.
    fn find<T: Viewer>(&self, name: String, sessions: &Sessions<T>, now: Duration) -> Option<Named<T>> {
        let session = sessions.find(&name, self.terms.peer.ip())?;
        if session.is_interleaved() && !self.own.contains(&name) {
            return None;
        }
        session.heard(now);
        Some(Named { name, session })
    }

    fn refuse<T>(&self, error: FramingError) -> Step<T> {
        let status = match error {
            FramingError::Malformed => "400 Bad Request",
            FramingError::TooLong { .. } => "413 Request Entity Too Large",
        };
        if self.terms.access_log {
            tracing::info!(target: millpond_logging::ACCESS, peer = %self.terms.peer, status, why = %error, "RTSP request refused");
        }
        let body = format!("{error}\r\n");
        let head = format!("Server: millpond\r\nContent-Type: text/plain\r\nContent-Length: {}", body.len());
        Step::Refuse { reply: format!("RTSP/1.0 {status}\r\n{head}\r\n\r\n{body}"), error }
    }

    /// Logs a reply, and writes it.
    fn write(&self, request: &Request<Vec<u8>>, reply: &Reply) -> Vec<u8> {
        let (peer, method, status) = (self.terms.peer, reply::name(request.method()), u16::from(reply.status));
        tracing::debug!(%peer, method, status, "RTSP request");
        // A challenge is no refusal yet. Wrong answers are logged where they are found.
        if status >= 400 && reply.status != StatusCode::Unauthorized && self.terms.access_log {
            let (uri, agent) = (ask::logged(request), ask::agent(request));
            let protocol = "RTSP/1.0";
            tracing::info!(target: millpond_logging::ACCESS, %peer, client = %peer.ip(), method, uri, protocol, status, agent,
                why = reply.why, "RTSP request refused");
        }
        reply.to_bytes(request)
    }
}

/// Whether a request has valid credentials.
enum Check {
    Admitted(Pass),
    /// Another server decides.
    Ask(Question),
    Refused(Reply),
}

/// The reply to a request of a client or token that has reached a limit (RFC 2326 11.3 has no other status for it).
fn too_many(limited: Limited) -> Reply {
    Reply::refusal(StatusCode::ServiceUnavailable, limited).with(RETRY_AFTER, limited.retry_after().to_string())
}

fn no_session(why: &str) -> Reply {
    Reply::refusal(StatusCode::SessionNotFound, why)
}

/// The reply to GET_PARAMETER and SET_PARAMETER, which keep sessions alive. There are no parameters (RFC 2326 10.8).
fn parameter(request: &Request<Vec<u8>>, session: Option<String>) -> Reply {
    let reply = match request.body().is_empty() {
        true => Reply::ok(),
        false => Reply::refusal(StatusCode::ParameterNotUnderstood, "there are no parameters"),
    };
    session.into_iter().fold(reply, |reply, name| reply.with(SESSION, name))
}

/// The path of an ANNOUNCE; `None` for other requests.
fn announced(request: &Request<Vec<u8>>) -> Option<String> {
    ask::path(request).filter(|_| matches!(request.method(), Method::Announce))
}
