//! One client's session: the requests of a player from its connection to TEARDOWN.

use super::{
    agenda::{Agenda, Due},
    connection::{Connection, Refusal},
    habits::{self, Act},
    media::{Event, Media},
    options::Transport,
    ports::Ports,
    sink::{Interleaved, Sink},
    tally::{Failure, FailureKind, Step},
    thread::Common,
    transport::{self, Agreed},
};
use millpond_rtp::{
    message::{HeaderName, Method, Response, headers},
    play,
    sdp_reader::{self, MediaDescription, SessionDescription},
};
use std::{
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{net::TcpStream, time::timeout};
use url::Url;

/// A title that ends this much before its end was not sent whole.
const TAIL: Duration = Duration::from_secs(2);
/// How long the reply to a TEARDOWN that is not measured may take.
const LEAVING: Duration = Duration::from_secs(2);
/// The longest time between two signs of life; less where a server forgets sooner.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// A session, from its connection on.
pub(crate) struct Session {
    common: Rc<Common>,
    /// The URL that is played.
    url: String,
    connection: Connection,
    sink: Sink,
    /// Kept open until the server knows that the session is over, so that its packets don't meet closed ports.
    ports: Vec<Arc<Ports>>,
    /// URL of requests that mean all tracks.
    control: String,
    /// Seconds that the title has, where it is said.
    length: Option<f64>,
    /// Between two signs of life.
    keep_alive: Duration,
    /// Method of the keep-alive requests.
    sign_of_life: Method,
    /// When DESCRIBE was sent, until the first packet arrived.
    described: Option<Duration>,
    /// When the last PLAY was sent, until its first packet arrived.
    asked: Option<Duration>,
    /// When the last packet should arrive, by the reply to PLAY.
    ends: Option<Duration>,
    is_playing: bool,
}

/// A track that was set up.
struct Agreement {
    clock_rate: u32,
    agreed: Agreed,
}

impl Session {
    /// Connects to the server of a URL.
    pub(crate) async fn connect(common: &Rc<Common>, url: &Url) -> Result<Self, Failure> {
        let failure = |kind, why: &str| Failure { kind, detail: format!("{url}: {why}") };
        let host = url.host_str().unwrap_or_default();
        let asked = common.clock.now();
        let connecting = TcpStream::connect(format!("{host}:{}", url.port().unwrap_or(554)));
        let stream = match timeout(common.options.timeout, connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(failure(FailureKind::Connect, &error.to_string())),
            Err(_) => return Err(failure(FailureKind::Timeout(Step::Connect), "no connection")),
        };
        common.tally.borrow_mut().took(Step::Connect, common.clock.now().saturating_sub(asked));
        Ok(Self {
            common: common.clone(),
            url: url.to_string(),
            connection: Connection::new(stream, common.clock, common.scratch.clone()),
            sink: Sink::None,
            ports: Vec::new(),
            control: url.to_string(),
            length: None,
            keep_alive: KEEP_ALIVE,
            sign_of_life: Method::Options,
            described: None,
            asked: None,
            ends: None,
            is_playing: false,
        })
    }

    /// Asks for the title and sets up its tracks.
    pub(crate) async fn open(&mut self) -> Result<(), Failure> {
        let url = self.url.clone();
        let options = self.ask((Step::Options, Method::Options), &url, &[]).await?;
        let public = options.header(&headers::PUBLIC).map_or("", |public| public.as_str());
        if public.contains("GET_PARAMETER") {
            self.sign_of_life = Method::GetParameter;
        }
        let presentation = self.describe().await?;
        self.length = presentation.range.and_then(|part| Some(part.to? - part.from.unwrap_or(0.0)));
        self.control.clone_from(&presentation.control);
        let is_shown = |stream: &&MediaDescription| matches!(stream.media.as_str(), "video" | "audio");
        let mut tracks = Vec::new();
        for stream in presentation.streams.iter().filter(is_shown) {
            tracks.push(self.set_up(stream, tracks.len()).await?);
        }
        if tracks.is_empty() {
            return Err(self.failure(FailureKind::Description, "no video and no audio by RTP"));
        }
        self.receive(&tracks)
    }

    async fn ask(
        &mut self,
        (step, method): (Step, Method),
        url: &str,
        headers: &[(HeaderName, &str)],
    ) -> Result<Response<Vec<u8>>, Failure> {
        let patience = self.common.options.timeout;
        match self.connection.ask((step, method), url, headers, patience, &mut self.sink).await {
            Ok((reply, took)) => {
                self.common.tally.borrow_mut().took(step, took);
                Ok(reply)
            }
            Err(Refusal { kind, why }) => Err(self.failure(kind, &why)),
        }
    }

    fn failure(&self, kind: FailureKind, why: &str) -> Failure {
        Failure { kind, detail: format!("{}: {why}", self.url) }
    }

    async fn describe(&mut self) -> Result<SessionDescription, Failure> {
        self.described = Some(self.common.clock.now());
        let url = self.url.clone();
        let accept = [(headers::ACCEPT, "application/sdp")];
        let reply = self.ask((Step::Describe, Method::Describe), &url, &accept).await?;
        let header = |name: &HeaderName| reply.header(name).map(|value| value.as_str());
        let base = sdp_reader::base(header(&headers::CONTENT_BASE), header(&headers::CONTENT_LOCATION), &url);
        SessionDescription::read(reply.body(), base)
            .map_err(|error| self.failure(FailureKind::Description, &error.to_string()))
    }

    async fn set_up(&mut self, stream: &MediaDescription, place: usize) -> Result<Agreement, Failure> {
        let offer = self.offer(place)?;
        let reply = self.ask((Step::Setup, Method::Setup), &stream.control, &[(headers::TRANSPORT, &offer)]).await?;
        let header = |name: &HeaderName| reply.header(name).map_or("", |value| value.as_str());
        let (name, seconds) = transport::session(header(&headers::SESSION));
        if name.is_empty() {
            return Err(self.failure(FailureKind::Reply(Step::Setup), "SETUP gives no Session"));
        }
        self.connection.session = Some(name);
        self.keep_alive = KEEP_ALIVE.min(Duration::from_secs(seconds) / 2);
        let told = header(&headers::TRANSPORT);
        let agreed = transport::agreed(told, self.common.options.transport).ok_or_else(|| {
            let why = format!("SETUP: Transport is {told:?}, asked for {offer}");
            self.failure(FailureKind::Reply(Step::Setup), &why)
        })?;
        Ok(Agreement { clock_rate: stream.clock_rate, agreed })
    }

    /// The `Transport` that is asked for.
    fn offer(&mut self, place: usize) -> Result<String, Failure> {
        if self.common.options.transport == Transport::Tcp {
            return Ok(format!("RTP/AVP/TCP;unicast;interleaved={}-{}", 2 * place, 2 * place + 1));
        }
        let here = self.connection.stream().local_addr().map(|address| address.ip());
        let ports = here.and_then(|here| match self.common.options.mute {
            true => self.common.unread(here),
            false => Ports::open(here).map(Arc::new),
        });
        let ports = ports.map_err(|error| self.failure(FailureKind::Ports, &error.to_string()))?;
        let (rtp, rtcp) = ports.numbers;
        self.ports.push(ports);
        Ok(format!("RTP/AVP;unicast;client_port={rtp}-{rtcp}"))
    }

    /// Has the media received.
    fn receive(&mut self, tracks: &[Agreement]) -> Result<(), Failure> {
        if self.common.options.mute {
            return Ok(());
        }
        let rates: Vec<u32> = tracks.iter().map(|track| track.clock_rate).collect();
        let media = Media::new(&rates, self.common.options.timeout);
        self.sink = match self.common.options.transport {
            Transport::Tcp => {
                let channels = tracks.iter().zip(0_u8..);
                let channels =
                    channels.map(|(track, place)| track.agreed.channels.unwrap_or((2 * place, 2 * place + 1)));
                Sink::Tcp(Interleaved::new(media, channels.collect(), self.common.figures.clone()))
            }
            Transport::Udp => {
                let peer = self.connection.stream().peer_addr();
                let peer = peer.map_err(|error| self.failure(FailureKind::Closed, &error.to_string()))?;
                let to = |track: &Agreement| {
                    let from = track.agreed.source.unwrap_or(peer.ip());
                    track.agreed.server_ports.map(|(_, rtcp)| SocketAddr::new(from, rtcp))
                };
                let ports = self.ports.iter().cloned().zip(tracks.iter().map(to)).collect();
                Sink::Udp(self.common.receive(media, ports))
            }
        };
        Ok(())
    }

    /// Begins to play at a time, or continues after a pause.
    pub(crate) async fn play(&mut self, from: Option<f64>) -> Result<(), Failure> {
        let now = self.common.clock.now();
        self.asked = Some(now);
        self.sink.play(now);
        let url = self.control.clone();
        let range = from.map(|from| format!("npt={from:.3}-"));
        let headers: Vec<(HeaderName, &str)> = range.iter().map(|range| (headers::RANGE, range.as_str())).collect();
        let reply = self.ask((Step::Play, Method::Play), &url, &headers).await?;
        let part = reply.header(&headers::RANGE).and_then(|range| play::npt_range(range.as_str()).ok());
        let seconds = part.and_then(|part| Some(part.to? - part.from?));
        let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        self.ends = seconds.map(|seconds| self.common.clock.now() + seconds);
        if !self.is_playing {
            self.is_playing = true;
            self.common.tally.borrow_mut().starts += 1;
            self.common.counters.started();
        }
        Ok(())
    }

    async fn pause(&mut self) -> Result<(), Failure> {
        let url = self.control.clone();
        self.ask((Step::Pause, Method::Pause), &url, &[]).await?;
        self.sink.pause();
        Ok(())
    }

    /// Plays until the client has seen enough or the title is over.
    pub(crate) async fn watch(&mut self, rng: &mut fastrand::Rng) -> Result<(), Failure> {
        let common = self.common.clone();
        let (start, stay) = habits::visit(&common.options, self.length, rng);
        self.play(Some(start * self.length.unwrap_or(0.0))).await?;
        if common.options.mute {
            return Ok(());
        }
        let mut agenda = Agenda::new(Instant::now(), stay, self.keep_alive);
        agenda.plan(Instant::now(), habits::next(&common.options, rng));
        loop {
            tokio::select! {
                happened = self.happens() => {
                    let event = happened.map_err(|error| self.failure(FailureKind::Closed, &error.to_string()))?;
                    if self.heard(event)? {
                        return Ok(());
                    }
                }
                () = tokio::time::sleep_until(agenda.next().into()) => {}
            }
            while let Some(due) = agenda.take(Instant::now()) {
                if due == Due::Leave {
                    return Ok(());
                }
                self.act(due, &mut agenda, rng).await?;
            }
        }
    }

    /// The next event of the media. Dropping the future loses nothing.
    async fn happens(&mut self) -> std::io::Result<Event> {
        let nobody = &mut Sink::None;
        loop {
            match &mut self.sink {
                Sink::None => drop(self.connection.hear(nobody).await?),
                Sink::Udp(reception) => tokio::select! {
                    event = reception.event() => return Ok(event),
                    heard = self.connection.hear(nobody) => drop(heard?),
                },
                Sink::Tcp(interleaved) => {
                    if let Some(event) = interleaved.event() {
                        return Ok(event);
                    }
                    self.connection.hear(interleaved).await?;
                }
            }
        }
    }

    /// Takes note of an event; says whether the title is over.
    fn heard(&mut self, event: Event) -> Result<bool, Failure> {
        match event {
            Event::First(at) => {
                let mut tally = self.common.tally.borrow_mut();
                match (self.described.take(), self.asked.take()) {
                    (Some(described), _) => tally.startup.record(at.saturating_sub(described)),
                    (None, Some(asked)) => tally.resumed.record(at.saturating_sub(asked)),
                    (None, None) => {}
                }
                Ok(false)
            }
            Event::Silent(None) => Err(self.failure(FailureKind::NoMedia, "no packet came")),
            Event::Silent(Some(last)) => self.over(last, "silence"),
            Event::Ended => self.over(self.common.clock.now(), "BYE"),
        }
    }

    /// Returns whether the title ends at the time of the last packet.
    fn over(&self, last: Duration, sign: &str) -> Result<bool, Failure> {
        match self.ends {
            Some(ends) if last + TAIL < ends => {
                let early = ends.saturating_sub(last).as_secs_f64();
                Err(self.failure(FailureKind::Stopped, &format!("{sign} {early:.1} s before the end")))
            }
            _ => Ok(true),
        }
    }

    async fn act(&mut self, due: Due, agenda: &mut Agenda, rng: &mut fastrand::Rng) -> Result<(), Failure> {
        let common = self.common.clone();
        match due {
            Due::Leave => {}
            Due::Look => {
                if let Sink::Tcp(interleaved) = &mut self.sink {
                    for (channel, report) in interleaved.look(common.clock.now()) {
                        self.connection.offer(channel, &report);
                    }
                }
            }
            Due::KeepAlive => {
                let (url, method) = (self.control.clone(), self.sign_of_life.clone());
                self.ask((Step::KeepAlive, method), &url, &[]).await?;
            }
            Due::Resume => {
                self.play(None).await?;
                agenda.plan(Instant::now(), habits::next(&common.options, rng));
            }
            Due::Act(Act::Pause(pause)) => {
                self.pause().await?;
                common.tally.borrow_mut().pauses += 1;
                agenda.stand_still(Instant::now(), pause);
            }
            Due::Act(Act::Seek(to)) => {
                // What has no length, such as a live stream, has no other places.
                if let Some(length) = self.length {
                    // A PLAY while playing would wait for its turn (RFC 2326 10.5).
                    self.pause().await?;
                    self.play(Some(to * length)).await?;
                    common.tally.borrow_mut().seeks += 1;
                }
                agenda.plan(Instant::now(), habits::next(&common.options, rng));
            }
        }
        Ok(())
    }

    /// Stops counting, and tells the server that the session is over. `is_measured` is whether the reply's time counts.
    pub(crate) async fn tear_down(&mut self, is_measured: bool) -> Result<(), Failure> {
        self.sink = Sink::None;
        if self.connection.session.is_none() {
            return Ok(());
        }
        let url = self.control.clone();
        let patience = if is_measured { self.common.options.timeout } else { LEAVING };
        let step = (Step::Teardown, Method::Teardown);
        match self.connection.ask(step, &url, &[], patience, &mut self.sink).await {
            Ok((_, took)) if is_measured => self.common.tally.borrow_mut().took(Step::Teardown, took),
            Err(Refusal { kind, why }) if is_measured => return Err(self.failure(kind, &why)),
            _ => {}
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_playing {
            self.common.counters.stopped();
        }
    }
}
