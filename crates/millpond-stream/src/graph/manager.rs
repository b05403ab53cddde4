//! The graph manager: finds a graph for a request, forks it, or builds one (AMPS).

use super::{
    Closed, LiveMemory, Module, Output, Played, PlayedPart, Playing, QueueLimits,
    group::{Group, Program},
    module::start,
    opened::{Opened, Request, Source, Start},
    pipe::pipe,
    shared::Joined,
};
use crate::{
    Counters, Feed, HeavyWork, Options, StoredMedia, Subscriber,
    admission::{Admission, Full, OriginLoad, Origins},
    cannot_open::CannotOpen,
    live::{Streams, Windows},
    modules::{KeyFrameLoader, KeyFrames, Loader},
    reception::{Connector, Relay},
    registry::Registry,
    resources::Resources,
    stored::{Intervals, MediaReader, Subject, beginnings, cursors, first_due, seek},
    transmission::{Arrival, Epochs, Lateness, Observer, Progress, Transmission, Transmitter},
};
use millpond_store::{Cache, Holds, Store};
use std::{
    collections::HashMap,
    fmt, io,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError, RwLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Blocks between a loader and a transmission, beside the one that is being sent.
const DEPTH: usize = 1;

/// Runs the graphs of an engine.
///
/// [`open`](Self::open) takes a [`Request`] for a [`Subscriber`]. The handle that comes of it releases what nobody else uses.
pub struct Manager {
    /// A lock: written when the configuration changes.
    options: RwLock<Arc<Options>>,
    connector: Arc<dyn Connector>,
    relay: Option<Arc<dyn Relay>>,
    resources: Resources,
    origins: Origins,
    admission: Arc<Admission>,
    registry: Registry,
    transmitters: Vec<Transmitter>,
    /// A lock: taken for a look-up when a channel or a group is opened.
    running: Mutex<Running>,
    /// Titles that are in use, by their ids. A lock: taken for a look-up.
    stored: Mutex<HashMap<u64, Weak<StoredMedia>>>,
    streams: Streams,
    windows: Windows,
    /// The last number that was given.
    last: AtomicU64,
    clock: Instant,
}

/// Graphs that can be shared.
#[derive(Default)]
pub(super) struct Running {
    /// By the number of their channel: each has one address.
    pub(super) groups: HashMap<usize, Weak<Group>>,
}

impl Manager {
    /// Starts the sending threads. `places` are those that titles come from.
    ///
    /// # Errors
    /// A thread can't be started, or has no ports.
    pub fn new(
        store: Store,
        heavy: Arc<dyn HeavyWork>,
        places: impl IntoIterator<Item = Arc<str>>,
        options: Options,
        counters: &Arc<Counters>,
    ) -> io::Result<Self> {
        let clock = Instant::now();
        let way = (options.address, options.groups.map(crate::Groups::ttl));
        let sender =
            |number| Transmitter::start(way, number, counters.clone(), clock, (options.round, options.on_thread_start));
        let transmitters = (0..options.threads.max(1)).map(sender).collect::<io::Result<_>>()?;
        let blocks = Cache::of(store.memory(), "frames");
        let intervals = Intervals::new(blocks, options.window, counters.clone());
        let streams =
            Streams::new(LiveMemory::new(Holds::of(store.memory(), "live"), Arc::default(), options.stream_memory));
        let reader = MediaReader::new(store, heavy);
        Ok(Self {
            connector: options.connector.clone(),
            relay: options.relay.clone(),
            origins: Origins::new(places, options.bounds.origin_bandwidth),
            admission: Admission::new(options.bounds, reader.holds.clone()),
            options: RwLock::new(Arc::new(options)),
            resources: Resources { reader, intervals, counters: counters.clone() },
            registry: Registry::default(),
            transmitters,
            running: Mutex::default(),
            stored: Mutex::default(),
            streams,
            windows: Windows::default(),
            last: AtomicU64::new(0),
            clock,
        })
    }

    /// Changes settings while the engine runs, and the places that titles come from: limits of admission, lateness, rule of the
    /// rate, channels, and limits of live streams. Playing sessions go on; new sessions and streams get the new values. Address,
    /// threads, rounds, caching window, connector, relay and multicast groups stay as they are.
    ///
    /// A channel that stays keeps its multicast group. A new one gets the group of a channel that is gone, or the next one.
    pub fn reconfigure(&self, options: Options, places: impl IntoIterator<Item = Arc<str>>) {
        let Options {
            bounds, lateness, rate_rule, channels, max_streams, stream_memory, viewer_queue, dropping, ..
        } = options;
        let mut current = self.options.write().unwrap_or_else(PoisonError::into_inner);
        let channels = self.running(|running| {
            let is_free = |number: usize| running.groups.get(&number).is_none_or(|group| group.strong_count() == 0);
            with_numbers(&current.channels, channels, is_free)
        });
        let fixed = (**current).clone();
        let new = Options {
            bounds,
            lateness,
            rate_rule,
            channels,
            max_streams,
            stream_memory,
            viewer_queue,
            dropping,
            ..fixed
        };
        *current = Arc::new(new);
        drop(current);
        self.admission.set_bounds(bounds);
        self.origins.replace(places, bounds.origin_bandwidth);
        self.streams.memory().set_most(stream_memory);
    }

    /// Modules and pipes that run.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Admission of sessions.
    pub fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// Counters of the engine.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.resources.counters
    }

    /// The moment from which times of the engine's clock count.
    pub fn clock(&self) -> Instant {
        self.clock
    }

    /// Milliseconds of the engine's clock, which [`Progress::heard`] tells.
    pub fn now(&self) -> u64 {
        self.clock.elapsed().as_millis() as u64
    }

    /// Bounds of the frames of a live stream that wait for a viewer.
    pub(super) fn viewer_limits(&self) -> QueueLimits {
        let options = self.options();
        QueueLimits::viewer(options.viewer_queue, options.dropping)
    }

    /// Settings in force.
    pub fn options(&self) -> Arc<Options> {
        self.options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn connector(&self) -> &Arc<dyn Connector> {
        &self.connector
    }

    pub(crate) fn relay(&self) -> Option<&Arc<dyn Relay>> {
        self.relay.as_ref()
    }

    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    pub(crate) fn live_streams(&self) -> &Streams {
        &self.streams
    }

    pub(crate) fn live_windows(&self) -> &Windows {
        &self.windows
    }

    pub(super) fn origins(&self) -> &Origins {
        &self.origins
    }

    pub(super) fn transmitters(&self) -> &[Transmitter] {
        &self.transmitters
    }

    pub(super) fn running<T>(&self, act: impl FnOnce(&mut Running) -> T) -> T {
        act(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A number that nothing else has, and the sending thread for it.
    pub(super) fn sender(&self) -> (u64, Transmitter) {
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        (id, self.transmitters[id as usize % self.transmitters.len()].clone())
    }

    /// The title of an id: the one that is in use, else what `make` gives.
    pub fn stored(&self, id: u64, make: impl FnOnce() -> StoredMedia) -> Arc<StoredMedia> {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = stored.get(&id).and_then(Weak::upgrade) {
            return known;
        }
        stored.retain(|_, media| media.strong_count() > 0);
        let new = Arc::new(make());
        stored.insert(id, Arc::downgrade(&new));
        new
    }

    /// Makes a subscriber without tracks. `observe` gives the observer of its transmission by its number.
    pub fn subscribe(&self, observe: impl FnOnce(u64) -> Option<Arc<dyn Observer>>) -> Subscriber {
        let (id, transmitter) = self.sender();
        let progress = Progress::new(observe(id));
        progress.set_heard(self.now());
        Subscriber::new(id, progress, self.options().rate_rule.pace(self.clock), transmitter)
    }

    /// Whether a client could be sent tracks of a feed now. `read` is the title that they would have to be read from; those of
    /// a channel are read by the channel.
    pub fn has_room(&self, client: IpAddr, feed: &dyn Feed, tracks: &[usize], read: Option<&StoredMedia>) -> bool {
        let mut tracks: Vec<u16> = tracks.iter().map(|track| *track as u16).collect();
        tracks.sort_unstable();
        let rate = feed.rate(tracks.iter().copied());
        let origin = read.and_then(|media| self.read_from(media, &tracks.into(), 0.0));
        self.admission.has_room(client, rate, origin.as_deref())
    }

    /// Opens a request: finds a graph that can be shared, forks it, or builds one. What the subscriber was sent before must have
    /// been [stopped](Playing::stop).
    ///
    /// # Errors
    /// The part is empty, admission refuses it, or the channel has ended.
    pub async fn open(&self, subscriber: &mut Subscriber, request: Request) -> Result<Opened, CannotOpen> {
        subscriber.recover();
        match request {
            Request::Stored { media, from, to, scale, speed } => {
                self.open_stored(subscriber, media, (from, to), (scale, speed))
            }
            Request::Channel(program) => self.open_channel(subscriber, &program).await,
            Request::Past { program, from, to, speed } => {
                self.open_shifted(subscriber, &program, (from, to), speed).await
            }
        }
    }

    /// Opens a group for one more receiver.
    ///
    /// # Errors
    /// Admission refuses it, or the channel has ended.
    pub async fn open_group(&self, group: &Arc<Group>) -> Result<Opened, CannotOpen> {
        group.play(self).await?;
        let played = Played { part: PlayedPart::Now, scale: 1.0, speed: 1.0, tracks: Vec::new() };
        let (id, transmitter) = (group.id(), group.transmitter().clone());
        let playing = Playing { id, transmitter, source: Some(Source::Group(group.clone())) };
        Ok(Opened { played, transmission: None, playing })
    }

    fn open_stored(
        &self,
        subscriber: &mut Subscriber,
        media: Arc<StoredMedia>,
        (begin, to): (Start, Option<f64>),
        (scale, speed): (f64, f64),
    ) -> Result<Opened, CannotOpen> {
        let duration = media.duration();
        let at = match begin {
            Start::At(at) => at,
            Start::Next(due) => due.as_secs_f64(),
        };
        let end = match to {
            Some(to) => to.min(duration),
            None if scale < 0.0 => 0.0,
            None => duration,
        };
        if at > duration || (scale > 0.0 && at >= end) || (scale < 0.0 && at <= end) {
            return Err(CannotOpen::OutOfRange);
        }
        let tracks = cursors(&subscriber.tracks).0;
        self.book(subscriber, &media, self.read_from(&media, &tracks, at))?;
        let keys = (scale != 1.0).then_some(KeyFrames { from: at, to: end, scale });
        let (from, position) = match (keys, begin) {
            (Some(_), _) => {
                // Key frames have numbers of their own.
                subscriber.tracks.iter_mut().for_each(|sender| sender.begin(0, at));
                (at, Duration::ZERO)
            }
            (None, Start::Next(due)) => (at, due),
            (None, Start::At(at)) => (seek(&media, &mut subscriber.tracks, at), first_due(&media, &subscriber.tracks)),
        };
        let until = to.filter(|_| keys.is_none()).map_or(Duration::MAX, Duration::from_secs_f64);
        let (id, transmitter) = (subscriber.id, subscriber.transmitter.clone());
        let look = {
            let transmitter = transmitter.clone();
            Box::new(move || transmitter.look(id))
        };
        let module: Box<dyn Module> = match (keys, subscriber.video(&media)) {
            (Some(keys), Some(track)) => {
                Box::new(KeyFrameLoader::new(&self.resources, media.clone(), (track, keys), look))
            }
            _ => {
                let (cursors, part) = (cursors(&subscriber.tracks), (position, until));
                Box::new(Loader::new(&self.resources, media.clone(), cursors, part, Some(look)))
            }
        };
        let label = format!("{} {id:x}", media.path());
        let (loading, sending) = (self.registry.add(module.kind(), &label), self.registry.add("transmission", &label));
        let (writer, frames) = pipe(&self.registry, loading.id(), sending.id(), DEPTH);
        let module = start(module, loading, (Vec::new(), Output::Pipe(writer)), media.path());
        let transmission = Transmission {
            id,
            tracks: subscriber.tracks.clone(),
            pace: subscriber.pace(),
            frames,
            position,
            to: until,
            speed,
            lateness: self.options().lateness,
            origin: self.origin_of(&media),
            arrival: None,
            epochs: None,
            progress: subscriber.progress.clone(),
            _node: sending,
        };
        let tracks = beginnings(&media, &subscriber.tracks, from);
        let played = Played { part: PlayedPart::Title(from, end), scale, speed, tracks };
        let source = Source::Loader { _module: module, keys, end: Duration::from_secs_f64(duration) };
        let playing = Playing { id, transmitter, source: Some(source) };
        Ok(Opened { played, transmission: Some(transmission), playing })
    }

    async fn open_channel(&self, subscriber: &mut Subscriber, program: &Program) -> Result<Opened, CannotOpen> {
        if subscriber.booking.is_none() {
            let rate = program.feed.rate(subscriber.tracks.iter().map(|sender| sender.track));
            subscriber.booking = Some(self.admission.book(rate, None)?);
        }
        let shared = program.shared.clone();
        let (id, transmitter) = (subscriber.id, subscriber.transmitter.clone());
        let node = self.registry.add("transmission", format!("{} {id:x}", program.feed.path()));
        let listener = transmitter.listener();
        let way = (node.id(), Some(&listener), self.viewer_limits());
        subscriber.tracks.iter_mut().for_each(|sender| sender.passed = None);
        let joined = shared.join(way, &program.feed).await.map_err(|Closed| CannotOpen::Ended)?;
        for sender in &mut subscriber.tracks {
            sender.begin(joined.first_of(sender.track), joined.from);
        }
        let Joined { frames, begins, span, feed, .. } = joined;
        let from = |sender: &crate::transmission::TrackSender| {
            let name = program.feed.format(sender.track).map(|format| format.name.clone()).unwrap_or_default();
            (name, sender.sequence, sender.timestamp(sender.start))
        };
        let tracks = subscriber.tracks.iter().map(from).collect();
        let transmission = Transmission {
            id,
            tracks: subscriber.tracks.clone(),
            pace: subscriber.pace(),
            frames,
            position: begins,
            to: Duration::MAX,
            speed: 1.0,
            lateness: Lateness::All,
            origin: None,
            arrival: Some(Arrival::new(shared.id(), span)),
            epochs: Some(Epochs::new(feed.clone())),
            progress: subscriber.progress.clone(),
            _node: node,
        };
        let played = Played { part: PlayedPart::Now, scale: 1.0, speed: 1.0, tracks };
        let live = Some((feed.clone(), self.windows.clone()));
        let playing = Playing { id, transmitter, source: Some(Source::Shared { shared, live }) };
        Ok(Opened { played, transmission: Some(transmission), playing })
    }

    /// Books bandwidth of the machine, and of an origin. A subscriber that plays books its origin later too, when it goes where
    /// no frames are in memory.
    fn book(
        &self,
        subscriber: &mut Subscriber,
        media: &StoredMedia,
        origin: Option<Arc<OriginLoad>>,
    ) -> Result<(), Full> {
        let origin = origin.as_ref();
        if let Some(booking) = &mut subscriber.booking {
            let has_it = origin.is_none_or(|origin| booking.add_origin(origin));
            return has_it.then_some(()).ok_or(Full::Origin);
        }
        let feed: &dyn Feed = media;
        let rate = feed.rate(subscriber.tracks.iter().map(|sender| sender.track));
        subscriber.booking = Some(self.admission.book(rate, origin)?);
        Ok(())
    }

    /// The origin of a title; `None` where its files are local.
    fn origin_of(&self, media: &StoredMedia) -> Option<Arc<OriginLoad>> {
        self.origins.of(media.remote_place()?)
    }

    /// The origin that tracks of a title would have to be read from, where that can refuse a session at all: the tracks are
    /// neither local nor read by another session a little ahead.
    fn read_from(&self, media: &StoredMedia, tracks: &Arc<[u16]>, at: f64) -> Option<Arc<OriginLoad>> {
        let origin = self.origin_of(media).filter(|origin| origin.is_scarce())?;
        let subject = Subject::of(media, tracks.clone());
        let position = Duration::try_from_secs_f64(at).unwrap_or_default();
        let objects = tracks.iter().filter_map(|track| media.track(*track)?.object());
        let mut objects = objects.filter_map(|object| media.object(object));
        let Resources { reader, intervals, .. } = &self.resources;
        let reads = !intervals.is_led(&subject, position)
            && objects.any(|object| !reader.store.is_near(object, &(0..object.meta().len)));
        reads.then_some(origin)
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("options", &self.options()).finish_non_exhaustive()
    }
}

/// Gives channels their numbers, which are those of their multicast groups. Channels of `before` keep theirs; the others get one
/// of a channel that is gone and whose group nobody receives any more (`is_free`), or the next. A number without a channel has an
/// empty name.
fn with_numbers(before: &[String], new: Vec<String>, is_free: impl Fn(usize) -> bool) -> Vec<String> {
    let stays = |name: &String| if new.contains(name) { name.clone() } else { String::new() };
    let mut numbers: Vec<_> = before.iter().map(stays).collect();
    let mut next = 0;
    for name in new.into_iter().filter(|name| !before.contains(name)) {
        while next < numbers.len() && !(numbers[next].is_empty() && is_free(next)) {
            next += 1;
        }
        match numbers.get_mut(next) {
            Some(number) => *number = name,
            None => numbers.push(name),
        }
    }
    while numbers.last().is_some_and(String::is_empty) {
        numbers.pop();
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_that_stay_keep_their_numbers() {
        let names = |text: &str| text.split(' ').map(|name| name.trim_matches('-').to_owned()).collect::<Vec<_>>();
        for (before, new, used, expected) in [
            ("a b c", "c a", 9, "a - c"),
            ("a b c", "d c a", 9, "a d c"),
            ("a b c", "d c a", 1, "a - c d"),
            ("a b c", "a", 9, "a"),
            ("a - c", "a c d e", 9, "a d c e"),
        ] {
            assert_eq!(with_numbers(&names(before), names(new), |n| n != used), names(expected), "{before}: {new}");
        }
    }
}
