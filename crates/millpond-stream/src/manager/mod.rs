//! The graph manager: finds a graph for a request, forks it, or builds one (AMPS).
//!
//! [`Manager`] is the face of an engine. It holds the parts, and hands each call to the one that does the work.

mod group;
mod groups;
mod live;
mod metrics;
mod observe;
mod opened;
mod opening;
mod options;
mod phases;
mod senders;
mod stored_titles;
mod subscriber;

pub use group::{Group, GroupAddress};
pub use metrics::LiveCollector;
pub use opened::{Beginning, KeepAlive, Opened, Played, PlayedPart, Playing, Request, Start, Stopped};
pub use options::Options;
pub use phases::Phases;
pub use subscriber::Subscriber;

use crate::{
    Counters, Feed, HeavyWork, StoredMedia,
    admission::{Admission, Origins},
    cannot_open::CannotOpen,
    graph::{LiveMemory, Module},
    live::{Program, Viewing},
    modules::{self, ARCHIVER, AttachableKind, CannotRecord, FilePlan, Pulse, Push, RecordLimits, Recording, Tee},
    reception::Conflict,
    registry::Registry,
    remote::{RemoteTitles, TitleOrigin},
    resources::Resources,
    stored::{Intervals, MediaReader},
    streams::{Attached, CannotAttach, LiveRequest, Means, Streams},
    transmission::{Observer, Progress},
};
use groups::OpenGroups;
use millpond_store::{Cache, Holds, Store};
use observe::Watch;
use opening::Opening;
use senders::Senders;
use std::{
    fmt, io,
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Instant,
};
use stored_titles::StoredTitles;

/// Runs the graphs of an engine.
///
/// [`open`](Self::open) takes a [`Request`] for a [`Subscriber`]. Dropping the returned handle releases the parts that no other
/// session uses.
pub struct Manager {
    /// A lock: written when the configuration changes.
    options: RwLock<Arc<Options>>,
    resources: Resources,
    origins: Origins,
    admission: Arc<Admission>,
    registry: Registry,
    senders: Senders,
    groups: OpenGroups,
    titles: StoredTitles,
    streams: Arc<Streams>,
    remote: Arc<RemoteTitles>,
}

impl Manager {
    /// Starts the sending threads. `places` are the places of titles.
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
        let senders = Senders::start(&options, counters)?;
        let blocks = Cache::of(store.memory(), "frames");
        let intervals = Intervals::new(blocks, options.window, counters.clone());
        let memory = LiveMemory::new(Holds::of(store.memory(), "live"), Arc::default(), options.stream_memory);
        let reader = MediaReader::new(store, heavy);
        let admission = Admission::new(options.bounds, reader.holds.clone());
        let (broadcasts, counters, registry) = (Arc::default(), counters.clone(), Registry::default());
        let resources = Resources { reader, intervals, broadcasts, counters };
        let means = Means::new(&registry, (&options.upstream, options.notices.as_ref()), &resources, memory);
        Ok(Self {
            origins: Origins::new(places, options.bounds.origin_bandwidth),
            admission,
            remote: Arc::new(RemoteTitles::new(options.upstream.connector.clone())),
            streams: Arc::new(Streams::new(means, options.max_streams, options.clock.clone())),
            options: RwLock::new(Arc::new(options)),
            resources,
            registry,
            senders,
            groups: OpenGroups::default(),
            titles: StoredTitles::default(),
        })
    }

    /// Changes settings while the engine runs, and the places that titles come from: limits of admission, lateness, wait of
    /// starts, rule of the rate, channels, and limits of live streams. Playing sessions go on; new sessions and streams get the new values. Address,
    /// threads, rounds, caching window, clock, ways to live sources, board of notices and multicast groups stay as they are.
    ///
    /// A channel that stays keeps its multicast group. A new channel gets the group of a removed channel, or the next group.
    pub fn reconfigure(&self, options: Options, places: impl IntoIterator<Item = Arc<str>>) {
        let Options {
            bounds,
            lateness,
            start_wait,
            rate_rule,
            channels,
            max_streams,
            stream_memory,
            viewer_queue,
            dropping,
            ..
        } = options;
        let mut current = self.options.write().unwrap_or_else(PoisonError::into_inner);
        let channels = self.groups.renumber(&current.channels, channels);
        let fixed = (**current).clone();
        let new = Options {
            bounds,
            lateness,
            start_wait,
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
        self.streams.set_most(max_streams, stream_memory);
    }

    /// Stored titles of RTSP servers.
    pub fn remote_titles(&self) -> &Arc<RemoteTitles> {
        &self.remote
    }

    /// Lets the store read titles of RTSP servers as objects of a place, unless it does.
    pub fn add_remote_place(&self, place: &Arc<str>) {
        let store = &self.resources.reader.store;
        if !store.places().any(|(name, _)| name == **place) {
            store.add_place(place, Arc::new(TitleOrigin::new(place.clone(), self.remote.clone())));
        }
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
        self.senders.clock()
    }

    /// Milliseconds of the engine's clock, which [`Progress::heard`] tells.
    pub fn now(&self) -> u64 {
        self.clock().elapsed().as_millis() as u64
    }

    /// Settings in force.
    pub fn options(&self) -> Arc<Options> {
        self.options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Measures lateness once a second and tells admission, without an end.
    pub async fn observe(&self) {
        let (counters, threads) = (self.counters(), self.senders.threads());
        Watch { counters, threads, admission: &self.admission, origins: &self.origins }.run().await;
    }

    /// The title of an id: the one that is in use, else what `make` gives.
    pub fn stored(&self, id: u64, make: impl FnOnce() -> StoredMedia) -> Arc<StoredMedia> {
        self.titles.find(id, make)
    }

    /// Makes a subscriber without tracks. `observe` gives the observer of its transmission by its number.
    pub fn subscribe(&self, observe: impl FnOnce(u64) -> Option<Arc<dyn Observer>>) -> Subscriber {
        let (id, transmitter) = self.senders.next();
        let progress = Progress::new(observe(id));
        progress.set_heard(self.now());
        Subscriber::new(id, progress, self.options().rate_rule.pace(self.clock()), transmitter)
    }

    /// The parts that requests are opened with.
    fn opening<'a>(&'a self, options: &'a Options) -> Opening<'a> {
        let Self { admission, origins, registry, resources, streams, .. } = self;
        Opening { options, admission, origins, registry, resources, windows: streams.windows() }
    }

    /// Whether a client could be sent tracks of a feed now. `read` is the title from which they must be read. A channel reads its
    /// own titles.
    pub fn has_room(&self, client: IpAddr, feed: &dyn Feed, tracks: &[usize], read: Option<&StoredMedia>) -> bool {
        let mut tracks: Vec<u16> = tracks.iter().map(|track| *track as u16).collect();
        tracks.sort_unstable();
        let rate = feed.rate(tracks.iter().copied());
        let options = self.options();
        let origin = read.and_then(|media| self.opening(&options).read_from(media, &tracks.into(), 0.0));
        self.admission.has_room(client, rate, origin.as_deref())
    }

    /// Opens a request: finds a graph that can be shared, forks it, or builds one. What the subscriber was sent before must have
    /// been [stopped](Playing::stop).
    ///
    /// # Errors
    /// The part is empty, admission refuses it, or the channel has ended.
    pub async fn open(&self, subscriber: &mut Subscriber, request: Request) -> Result<Opened, CannotOpen> {
        self.opening(&self.options()).open(subscriber, request).await
    }

    /// The group of a channel: the group in use, else a new group. `None` if multicast is off, or an earlier run of the channel
    /// still uses its address.
    pub fn group(&self, program: &Program) -> Option<Arc<Group>> {
        self.groups.find(program, &self.options(), || self.senders.next())
    }

    /// Opens a group for one more receiver.
    ///
    /// # Errors
    /// Admission refuses it, or the channel has ended.
    pub async fn open_group(&self, group: &Arc<Group>) -> Result<Opened, CannotOpen> {
        self.opening(&self.options()).open_group(group).await
    }

    /// Returns the frames of a channel or live stream from the last key frame on: another branch of its fork. The channel
    /// runs on. `label` names the reader among others.
    ///
    /// # Errors
    /// The channel has ended, or has no key frame for 10 s.
    pub async fn branch(&self, program: &Program, label: &str) -> Result<Viewing, CannotOpen> {
        Viewing::begin(&self.registry, program, label, self.options().viewer_limits()).await
    }

    /// The kinds of modules of this engine that operators attach.
    pub fn attachable_kinds(&self) -> Vec<Arc<dyn AttachableKind>> {
        let upstream = self.options().upstream.clone();
        vec![Arc::new(Tee::new(self.streams.memory().clone())), Arc::new(Push::new(upstream, self.counters().clone()))]
    }

    /// Attaches a module with one input to a channel or live stream: another branch of its fork. It gets all frames from the last
    /// key frame on. The stream starts, unless it runs, and keeps running until the module ends. `label` names the module among
    /// others. With an `output`, whose source is [`Source::Published`](crate::Source::Published), its frames are published there.
    ///
    /// A module that is slow loses frames. The stream and its viewers never wait for it.
    ///
    /// # Errors
    /// The stream has ended, or has no key frame for long. The output has another publisher, or leads back to the stream.
    pub async fn attach(
        &self,
        program: &Program,
        module: Box<dyn Module>,
        label: &str,
        output: Option<LiveRequest>,
    ) -> Result<Attached, CannotAttach> {
        let output = output.map(|output| (output, Conflict::Refuse));
        self.streams.attach(program, module, (label, output)).await
    }

    /// Publishes the frames of a channel or live stream as another stream, from the last key frame on. It takes the place of the
    /// publisher of that stream, whose viewers stay.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub async fn pass_on(&self, program: &Program, to: LiveRequest) -> Result<Attached, CannotAttach> {
        let label = to.path.clone();
        let tee = Tee::at_once(self.streams.memory());
        self.streams.attach(program, tee, (&label, Some((to, Conflict::Replace)))).await
    }

    /// Tells the arrivals of a channel or live stream to a pulse, until what this returns is dropped or has ended.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub async fn watch(&self, program: &Program, pulse: &Arc<Pulse>) -> Result<Attached, CannotAttach> {
        self.streams.attach(program, modules::pulse(program, pulse.clone()), ("", None)).await
    }

    /// Makes a new file for a channel or live stream, and the module that records into it. It records once it is
    /// [attached](Self::attach).
    ///
    /// # Errors
    /// The file exists or can't be made, or no track can be recorded.
    pub async fn recorder(
        &self,
        program: &Program,
        file: PathBuf,
        limits: RecordLimits,
    ) -> Result<(Recording, Box<dyn Module>), CannotRecord> {
        Recording::begin(self.counters(), program, file, limits).await
    }

    /// Makes the module that records a channel or live stream without an end, into files that a plan names and ends. It records once it
    /// is [attached](Self::attach).
    ///
    /// # Errors
    /// No track can be recorded.
    pub async fn archiver(
        &self,
        program: &Program,
        plan: Box<dyn FilePlan>,
    ) -> Result<(Recording, Box<dyn Module>), CannotRecord> {
        Recording::of_plan(ARCHIVER, self.counters(), program, plan, RecordLimits::NONE).await
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("options", &self.options()).finish_non_exhaustive()
    }
}
