//! One viewer: the request sequence of a player from its manifest to leaving.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::future::{try_join, try_join_all};
use url::Url;

use crate::abr::Ladder;
use crate::client::{Client, Meter};
use crate::library::Library;
use crate::llhls::{Checker, KnownPlaylists};
use crate::options::LoadOptions;
use crate::player::{Action, Playout};
use crate::tally::{Ending, ErrorKind, Failure, RequestKind};
use crate::title::{Media, Rendition, Title, Track};

/// State that the viewers of a thread share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) options: Rc<LoadOptions>,
    pub(crate) meter: Rc<Meter>,
    pub(crate) library: Library,
    /// Checker of live playlists, while no viewer has it.
    pub(crate) checker: RefCell<Option<Checker>>,
    pub(crate) playlists: KnownPlaylists,
}

/// One viewer's session.
pub(crate) struct Viewer<'a> {
    common: &'a Common,
    client: &'a Client,
    began: Instant,
    /// Where in the title it starts, 0 to 1.
    start: f64,
    /// How much of the rest it watches, 0 to 1.
    watch: f64,
    /// Filled when the title is known; the streams take turns with it and never hold it over a wait.
    session: RefCell<Option<Session>>,
    /// Server of the title that it plays from.
    server: Cell<usize>,
    /// Number of times that it went on at another server.
    moves: Cell<u64>,
}

/// Playback of a title that is known.
#[derive(Debug)]
struct Session {
    playout: Playout,
    ladder: Ladder,
}

/// One stream of a player: the ladder or a single audio rendition, and its buffer.
struct TrackPlayback<'t> {
    index: usize,
    title: &'t Title,
    /// Its place in [`Title::audio`]; without it the rendition is the ladder's choice.
    audio: Option<usize>,
    /// By server and rendition.
    tracks: HashMap<(usize, usize), Rc<Track>>,
    /// Init segments at hand, by server, rendition and index.
    inits: HashSet<(usize, usize, usize)>,
}

impl<'a> Viewer<'a> {
    pub(crate) fn new(common: &'a Common, client: &'a Client, rng: &mut fastrand::Rng) -> Self {
        let LoadOptions { start_within, mean_watch, .. } = *common.options;
        Self {
            common,
            client,
            began: Instant::now(),
            start: rng.f64() * start_within,
            // x^k of a uniform x has the mean 1 / (k + 1).
            watch: rng.f64().powf(1.0 / mean_watch - 1.0),
            session: RefCell::new(None),
            server: Cell::new(0),
            moves: Cell::new(0),
        }
    }

    /// Plays until the viewer leaves; a failure has been counted already.
    pub(crate) async fn watch(&self) -> Result<(), Failure> {
        let title = self.open().await?;
        let rungs = title.ladder.iter().map(|rendition| rendition.bandwidth).collect();
        let ladder = Ladder::new(self.common.options.abr, rungs);
        let rung = ladder.current();
        let Some(rendition) = title.ladder.get(rung) else { return Ok(()) };
        let mut video = TrackPlayback::new(0, &title, None);
        let mut streams = Vec::new();
        let track = match rendition.audio {
            None => self.first(&mut video, rung).await?,
            Some(_) => {
                let mut stream = TrackPlayback::new(1, &title, rendition.audio);
                let (track, _) = try_join(self.first(&mut video, rung), self.first(&mut stream, 0)).await?;
                streams.push(stream);
                track
            }
        };
        streams.insert(0, video);

        let from = self.start * track.end();
        let from = track.at(from).map_or(0.0, |(_, segment)| segment.start);
        let to = from + self.watch * (track.end() - from);
        let playout = Playout::new(self.common.options.pace, streams.len(), from, to);
        self.session.replace(Some(Session { playout, ladder }));
        try_join_all(streams.into_iter().map(|stream| self.play(stream))).await?;
        Ok(())
    }

    /// Writes down what the viewer saw.
    pub(crate) fn leave(&self, ending: Ending) {
        let mut tally = self.common.meter.tally.borrow_mut();
        tally.ended(ending);
        tally.moves += self.moves.get();
        if let Some(session) = self.session.borrow_mut().as_mut() {
            tally.watched(session.playout.outcome(self.now()), session.ladder.switches());
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// With the session, which is there while streams play.
    fn with<T>(&self, otherwise: T, act: impl FnOnce(&mut Session, Duration) -> T) -> T {
        let now = self.now();
        self.session.borrow_mut().as_mut().map_or(otherwise, |session| act(session, now))
    }

    async fn open(&self) -> Result<Rc<Title>, Failure> {
        let url = &self.common.options.url;
        let (body, location) = self.client.manifest(url).await?;
        let document = self.common.library.read(body, location);
        document.map(|document| document.title()).map_err(|error| self.not_playable(url, &error))
    }

    fn not_playable(&self, url: &Url, error: &crate::title::TitleError) -> Failure {
        let failure = Failure { kind: ErrorKind::Manifest, detail: format!("{url}: {error}") };
        self.client.count(&failure);
        failure
    }

    /// The segments of a rendition, from any server of the title.
    async fn first(&self, stream: &mut TrackPlayback<'_>, rung: usize) -> Result<Rc<Track>, Failure> {
        let mut tries = 1;
        loop {
            let server = self.server.get();
            match self.track(stream, rung).await {
                Err(_) if tries < stream.title.servers() => self.leave_server(stream.title, server),
                result => return result,
            }
            tries += 1;
        }
    }

    /// Goes on at the next server, unless the other stream has left this one already.
    fn leave_server(&self, title: &Title, server: usize) {
        if self.server.get() == server {
            self.server.set((server + 1) % title.servers());
            self.moves.set(self.moves.get() + 1);
        }
    }

    /// The segments of a rendition, whose playlist is fetched the first time.
    async fn track(&self, stream: &mut TrackPlayback<'_>, rung: usize) -> Result<Rc<Track>, Failure> {
        let server = self.server.get();
        if let Some(track) = stream.tracks.get(&(server, rung)) {
            return Ok(track.clone());
        }
        let track = match stream.rendition(server, rung).map(|rendition| &rendition.media) {
            None => Rc::default(),
            Some(Media::Track(track)) => track.clone(),
            Some(Media::Playlist(url)) => {
                let (body, location) = self.client.manifest(url).await?;
                let document = self.common.library.read(body, location);
                document.and_then(|document| document.track()).map_err(|error| self.not_playable(url, &error))?
            }
        };
        stream.tracks.insert((server, rung), track.clone());
        Ok(track)
    }

    /// Fetches a stream's segments one after the other, when the playout asks for them.
    async fn play(&self, mut stream: TrackPlayback<'_>) -> Result<(), Failure> {
        let index = stream.index;
        loop {
            match self.with(Action::Done, |session, now| session.playout.next(index, now)) {
                Action::Done => return Ok(()),
                Action::WaitUntil(time) => tokio::time::sleep_until((self.began + time).into()).await,
                Action::Fetch(from) => self.any_segment(&mut stream, from).await?,
            }
        }
    }

    /// Fetches a segment from this server, or else from others.
    async fn any_segment(&self, stream: &mut TrackPlayback<'_>, from: f64) -> Result<(), Failure> {
        let mut tries = 1;
        loop {
            let server = self.server.get();
            match self.segment(stream, from).await {
                Err(_) if tries < stream.title.servers() => self.leave_server(stream.title, server),
                result => return result,
            }
            tries += 1;
        }
    }

    async fn segment(&self, stream: &mut TrackPlayback<'_>, from: f64) -> Result<(), Failure> {
        let (index, server, is_adaptive) = (stream.index, self.server.get(), stream.audio.is_none());
        let rung = if is_adaptive {
            self.with(0, |session, now| {
                let ahead = session.playout.ahead(index, now);
                session.ladder.choose(ahead)
            })
        } else {
            0
        };
        let track = self.track(stream, rung).await?;
        let Some((_, segment)) = track.at(from) else {
            self.with((), |session, now| session.playout.ran_out(index, now));
            return Ok(());
        };
        if let Some(init) = segment.init
            && !stream.inits.contains(&(server, rung, init))
            && let Some(resource) = track.inits.get(init)
        {
            self.client.resource(RequestKind::Init, resource).await?;
            stream.inits.insert((server, rung, init));
        }
        let answered = self.client.resource(RequestKind::Segment, &segment.resource).await?;
        self.with((), |session, now| {
            if is_adaptive {
                session.ladder.sample(answered.bytes, answered.total);
            }
            session.playout.arrived(index, segment.end, now);
        });
        Ok(())
    }
}

impl<'t> TrackPlayback<'t> {
    fn new(index: usize, title: &'t Title, audio: Option<usize>) -> Self {
        Self { index, title, audio, tracks: HashMap::new(), inits: HashSet::new() }
    }

    fn rendition(&self, server: usize, rung: usize) -> Option<&'t Rendition> {
        let title = self.title.at(server);
        match self.audio {
            None => title.ladder.get(rung),
            Some(audio) => title.audio.get(audio),
        }
    }
}
