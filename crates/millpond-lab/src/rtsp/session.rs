//! One client's session: the requests of a player from its connection to TEARDOWN.

use super::{
    agenda::{Agenda, Due},
    clock::until,
    connection::Connection,
    failure::{Failure, FailureKind},
    habits::{self, Act},
    media::{Event, Media},
    options::Transport,
    ports::Ports,
    sink::{Interleaved, Sink},
    thread::Common,
};
use millpond_rtp::{
    client::{
        ClientAction, ClientOptions, ClientTrack, Endpoint, RedirectPolicy, RequestKind, RtspClient, TrackTransport,
    },
    setup::Offer,
};
use std::{
    net::{IpAddr, SocketAddr},
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
/// `User-Agent` of all requests.
const AGENT: &str = "millpond-load";

/// A session, from its connection on.
pub(crate) struct Session {
    common: Rc<Common>,
    /// URL of the title.
    url: String,
    client: RtspClient,
    connection: Connection,
    sink: Sink,
    /// Kept open until the server knows that the session is over, so that its packets don't meet closed ports.
    ports: Vec<Arc<Ports>>,
    /// Duration of the title in seconds, where the server states it.
    length: Option<f64>,
    /// When DESCRIBE was sent, until the first packet arrived.
    described: Option<Duration>,
    /// When the last PLAY was sent, until its first packet arrived.
    asked: Option<Duration>,
    /// When the last packet should arrive, by the reply to PLAY.
    ends: Option<Duration>,
    is_playing: bool,
    /// Whether latencies of replies count for the report.
    is_measured: bool,
}

impl Session {
    /// Connects to the server of a URL.
    pub(crate) async fn connect(common: &Rc<Common>, url: &Url) -> Result<Self, Failure> {
        let options = ClientOptions {
            patience: common.options.timeout,
            most_unanswered: 0,
            falls_back: false,
            redirects: RedirectPolicy::AnyHost,
            ..ClientOptions::new(AGENT)
        };
        let client = RtspClient::new(url.as_str(), options, common.clock.elapsed());
        let mut client = client.map_err(|error| Failure::of_client(url.as_str(), &error))?;
        let Some(ClientAction::Connect(server)) = client.poll() else {
            return Err(Failure::new(FailureKind::Connect, url.as_str(), "no server"));
        };
        let connection = dial(common, url.as_str(), &server).await?;
        client.connected(common.clock.elapsed());
        Ok(Self {
            common: common.clone(),
            url: url.to_string(),
            client,
            connection,
            sink: Sink::None,
            ports: Vec::new(),
            length: None,
            described: None,
            asked: None,
            ends: None,
            is_playing: false,
            is_measured: true,
        })
    }

    /// Gets the description of the title and sets up its tracks.
    pub(crate) async fn open(&mut self) -> Result<(), Failure> {
        let presentation = loop {
            match self.action().await? {
                ClientAction::Described(presentation) => break presentation,
                // A redirect.
                ClientAction::Connect(server) => {
                    self.connection = dial(&self.common, &self.url, &server).await?;
                    self.client.connected(self.common.clock.elapsed());
                }
                _ => {}
            }
        };
        self.length = presentation.range.and_then(|part| Some(part.to? - part.from.unwrap_or(0.0)));
        let mut offers = Vec::new();
        for (stream, media) in presentation.streams.iter().enumerate() {
            if matches!(media.media.as_str(), "video" | "audio") {
                offers.push((stream, self.offer()?));
            }
        }
        if offers.is_empty() {
            return Err(self.failure(FailureKind::Description, "no video and no audio by RTP"));
        }
        self.client.set_up(&offers, self.common.clock.elapsed());
        let tracks = loop {
            if let ClientAction::Opened(tracks) = self.action().await? {
                break tracks;
            }
        };
        let clock_rates: Vec<u32> = tracks.iter().map(|track| presentation.streams[track.stream].clock_rate).collect();
        self.receive(&tracks, &clock_rates)
    }

    fn failure(&self, kind: FailureKind, why: &str) -> Failure {
        Failure::new(kind, &self.url, why)
    }

    /// Waits for the next action that is up to the session itself.
    async fn action(&mut self) -> Result<ClientAction, Failure> {
        loop {
            if let Some(action) = self.carry_out().await? {
                return Ok(action);
            }
            let wake = self.client.wake().map(|wake| self.common.clock.instant(wake));
            tokio::select! {
                heard = self.connection.hear(&mut self.client, &mut self.sink) => {
                    if let Err(error) = heard {
                        self.client.disconnected(&error.to_string());
                    }
                }
                () = until(wake) => self.client.tick(self.common.clock.elapsed()),
            }
        }
    }

    /// Sends the client's requests and takes note of replies. Returns the first other action, if there is one.
    async fn carry_out(&mut self) -> Result<Option<ClientAction>, Failure> {
        while let Some(action) = self.client.poll() {
            match action {
                ClientAction::Send(bytes) => {
                    if let Err(error) = self.connection.send(&bytes).await {
                        self.client.disconnected(&error.to_string());
                    }
                }
                ClientAction::Accepted { request, took } => self.accepted(request, took),
                ClientAction::Failed(error) => return Err(Failure::of_client(&self.url, &error)),
                action => return Ok(Some(action)),
            }
        }
        Ok(None)
    }

    fn accepted(&mut self, request: RequestKind, took: Duration) {
        if request == RequestKind::Describe {
            self.described = Some(self.common.clock.now().saturating_sub(took));
        }
        if self.is_measured {
            self.common.tally.borrow_mut().took(request, took);
        }
    }

    /// Returns the transport to offer for the next track.
    fn offer(&mut self) -> Result<Offer, Failure> {
        if self.common.options.transport == Transport::Tcp {
            return Ok(Offer::Interleaved(None));
        }
        let here = self.connection.stream().local_addr().map(|address| address.ip());
        let ports = here.and_then(|here| match self.common.options.mute {
            true => self.common.unread(here),
            false => Ports::open(here).map(Arc::new),
        });
        let ports = ports.map_err(|error| self.failure(FailureKind::Ports, &error.to_string()))?;
        let offer = Offer::Unicast { ports: ports.numbers, destination: None };
        self.ports.push(ports);
        Ok(offer)
    }

    /// Has the media received.
    fn receive(&mut self, tracks: &[ClientTrack], clock_rates: &[u32]) -> Result<(), Failure> {
        let peer = self.connection.stream().peer_addr();
        let peer = peer.map_err(|error| self.failure(FailureKind::Closed, &error.to_string()))?;
        let (mut channels, mut senders) = (Vec::new(), Vec::new());
        for track in tracks {
            match (self.common.options.transport, track.transport) {
                (Transport::Tcp, TrackTransport::Interleaved { channels: pair }) => channels.push(pair),
                (Transport::Udp, TrackTransport::Unicast { server, source }) => {
                    senders.push(report_address(peer.ip(), server, source));
                }
                (asked, found) => {
                    let why = format!("SETUP: Transport is {found:?}, asked for {}", asked.name());
                    return Err(self.failure(FailureKind::Reply(RequestKind::Setup), &why));
                }
            }
        }
        if self.common.options.mute {
            return Ok(());
        }
        let options = &self.common.options;
        let media = Media::new(clock_rates, (options.timeout, options.silence), options.reports);
        self.sink = match self.common.options.transport {
            Transport::Tcp => Sink::Tcp(Interleaved::new(media, channels, self.common.figures.clone())),
            Transport::Udp => Sink::Udp(self.common.receive(media, self.ports.iter().cloned().zip(senders).collect())),
        };
        Ok(())
    }

    /// Begins to play at a time, or continues after a pause.
    pub(crate) async fn play(&mut self, from: Option<f64>) -> Result<(), Failure> {
        let now = self.common.clock.now();
        self.asked = Some(now);
        self.sink.play(now);
        self.client.play(from, self.common.clock.elapsed());
        let playback = loop {
            if let ClientAction::Playing(playback) = self.action().await? {
                break playback;
            }
        };
        let seconds = playback.range.and_then(|part| Some(part.to? - part.from?));
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
        self.client.pause(self.common.clock.elapsed());
        while self.action().await? != ClientAction::Paused {}
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
        let mut agenda = Agenda::new(Instant::now(), stay);
        agenda.plan(Instant::now(), habits::next(&common.options, rng));
        loop {
            let wake = self.client.wake().map(|wake| common.clock.instant(wake));
            let next = wake.map_or(agenda.next(), |wake| wake.min(agenda.next()));
            tokio::select! {
                happened = self.happens() => match happened {
                    Ok(Some(event)) if self.heard(event)? => return Ok(()),
                    Ok(_) => {}
                    Err(error) => self.client.disconnected(&error.to_string()),
                },
                () = until(Some(next)) => self.client.tick(common.clock.elapsed()),
            }
            // Keep-alives and answers to the server: nothing that the session waits for.
            while let Some(action) = self.carry_out().await? {
                if let ClientAction::Connect(server) = action {
                    let why = format!("REDIRECT to {}:{}", server.host, server.port);
                    return Err(self.failure(FailureKind::Closed, &why));
                }
            }
            while let Some(due) = agenda.take(Instant::now()) {
                if due == Due::Leave {
                    return Ok(());
                }
                self.act(due, &mut agenda, rng).await?;
            }
        }
    }

    /// Waits for the next event of the media, or for messages of the server: `None`. Dropping the future loses nothing.
    async fn happens(&mut self) -> std::io::Result<Option<Event>> {
        let (connection, client, nobody) = (&mut self.connection, &mut self.client, &mut Sink::None);
        loop {
            let has_messages = match &mut self.sink {
                Sink::None => connection.hear(client, nobody).await?,
                Sink::Udp(reception) => tokio::select! {
                    event = reception.event() => return Ok(Some(event)),
                    heard = connection.hear(client, nobody) => heard?,
                },
                Sink::Tcp(interleaved) => {
                    if let Some(event) = interleaved.event() {
                        return Ok(Some(event));
                    }
                    connection.hear(client, interleaved).await?
                }
            };
            if has_messages {
                return Ok(None);
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
        self.is_measured = is_measured;
        self.client.tear_down(self.common.clock.elapsed());
        let closed = async {
            while self.action().await? != ClientAction::Closed {}
            Ok(())
        };
        if is_measured {
            return closed.await;
        }
        // The server may be what failed.
        let _ = timeout(LEAVING, closed).await;
        Ok(())
    }
}

/// Connects to a server, and notes how long that takes.
async fn dial(common: &Common, url: &str, server: &Endpoint) -> Result<Connection, Failure> {
    let failure = |kind, why: &str| Failure::new(kind, url, why);
    let asked = common.clock.elapsed();
    let connecting = TcpStream::connect(format!("{}:{}", server.host, server.port));
    let stream = match timeout(common.options.timeout, connecting).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(failure(FailureKind::Connect, &error.to_string())),
        Err(_) => return Err(failure(FailureKind::Timeout(RequestKind::Connect), "no connection")),
    };
    let took = common.clock.elapsed().saturating_sub(asked);
    common.tally.borrow_mut().took(RequestKind::Connect, took);
    Ok(Connection::new(stream, common.clock, common.scratch.clone()))
}

/// Returns where receiver reports of a track are sent to, if the server states its ports.
fn report_address(peer: IpAddr, server: Option<(u16, u16)>, source: Option<IpAddr>) -> Option<SocketAddr> {
    server.map(|(_, rtcp)| SocketAddr::new(source.unwrap_or(peer), rtcp))
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_playing {
            self.common.counters.stopped();
        }
    }
}
