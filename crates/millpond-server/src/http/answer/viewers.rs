//! Viewers, as inferred from requests. The prefetcher learns their positions and fetches what they will need.
//!
//! HTTP has no sessions. Requests with the same address, program, asset and kind of track count as one viewer. A viewer
//! leaves when its last connection closes, or after a time without requests. Several viewers that count as one look
//! like a viewer who seeks: slices are fetched too early or too late, but never wrong ones. A client that reads a file
//! range after range is a viewer too; its rate tells when it needs which bytes.

use crate::{
    http::render::{self, Role},
    library::{Asset, Lazy, Resource, fingerprint},
};
use http::header;
use millpond_connections::proxies::ConnectionKind;
use millpond_http::request::Request;
use millpond_package::Stretch;
use millpond_store::{Object, Store, Watch, schedule::Course};
use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Time without requests after which a viewer has left: longer than the longest segment.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// Most viewers that are followed at once. Nothing is fetched ahead for others.
const CAPACITY: usize = 8192;
/// Interval between removals of idle viewers.
const SWEEP: Duration = Duration::from_secs(10);
/// Least length of a course in seconds and in bytes, and its most segments.
const AHEAD: (f64, u64, u32) = (60.0, 16 << 20, 256);

/// All viewers of the server.
#[derive(Debug)]
pub(crate) struct Viewers {
    /// The lock is taken for each segment of a remote place.
    table: Mutex<Table>,
    connections: AtomicU64,
}

#[derive(Debug)]
struct Table {
    viewers: HashMap<ViewerId, Viewer>,
    /// Time of the last removal of idle viewers.
    swept: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ViewerId {
    address: IpAddr,
    /// Hash of the user agent.
    program: u64,
    /// Identity of the asset or file.
    asset: u64,
    /// First letter of the track's name, which renditions share. [`FILE`] for a file.
    kind: u8,
}

/// Kind of a file. No track's name begins with it.
const FILE: u8 = b'/';

#[derive(Debug)]
struct Viewer {
    watches: Vec<Watch>,
    /// Rate at which it reads a file.
    rate: ReadRate,
    /// Numbers of its connections.
    connections: HashSet<u64>,
    /// Time of the last request.
    seen: Instant,
    /// Number of its requests.
    requests: u64,
}

/// Rate at which a client reads consecutive ranges of a file.
#[derive(Clone, Copy, Debug, Default)]
struct ReadRate {
    /// Start of the last range, time of its request, and its end.
    last: Option<(u64, Instant, u64)>,
    /// Average, in bytes per second.
    rate: Option<f64>,
}

/// The viewers of a connection. When it is dropped, those leave that have no other connection.
#[derive(Debug)]
pub(crate) struct ConnectionViewers {
    viewers: Arc<Viewers>,
    number: u64,
    address: IpAddr,
    kind: ConnectionKind,
    /// The lock is taken for each segment, by requests of one connection.
    ids: Mutex<HashSet<ViewerId>>,
}

/// A segment that is being sent to its viewer. Dropping it reports the end.
#[derive(Debug)]
pub(crate) struct Receipt {
    viewers: Arc<Viewers>,
    id: ViewerId,
    request: u64,
}

/// The client of a request.
#[derive(Clone, Copy)]
pub(super) struct Client<'a> {
    /// User agent.
    program: &'a str,
    /// Its address, where that is not the one of the connection.
    address: Option<IpAddr>,
    /// Whether the connection stays open.
    stays: bool,
}

impl<'a> Client<'a> {
    /// Returns the client of a request.
    pub(super) fn of(request: &'a Request) -> Self {
        Self {
            program: request.header(header::USER_AGENT).unwrap_or_default(),
            address: request.forwarded.map(|forwarded| forwarded.address),
            stays: !request.contains(header::CONNECTION, "close"),
        }
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        let table = self.viewers.lock();
        // A viewer with a later request waits for that one.
        if let Some(viewer) = table.viewers.get(&self.id).filter(|viewer| viewer.requests == self.request) {
            viewer.watches.iter().for_each(Watch::received);
        }
    }
}

impl Viewers {
    /// Creates an empty table of viewers.
    pub(super) fn new() -> Arc<Self> {
        let table = Table { viewers: HashMap::new(), swept: Instant::now() };
        Arc::new(Self { table: Mutex::new(table), connections: AtomicU64::new(0) })
    }

    /// Registers a new connection from an address.
    pub(super) fn connected(self: &Arc<Self>, address: IpAddr, kind: ConnectionKind) -> ConnectionViewers {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionViewers { viewers: self.clone(), number, address, kind, ids: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionViewers {
    /// Returns the address of the connection.
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    /// Tells whether the connection has TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.kind.is_secure()
    }

    /// Tells whether the connection is that of another node, whose certificate was checked.
    pub(super) fn is_of_node(&self) -> bool {
        self.kind == ConnectionKind::Node
    }

    /// Records a request for a segment. The caller drops the receipt after sending it.
    pub(super) fn segment_requested(
        &self,
        store: &Store,
        asset: &Asset,
        resource: &Resource,
        client: Client<'_>,
    ) -> Option<Receipt> {
        let profile = render::profile(resource);
        let (name, number) = (profile.track, profile.number);
        if profile.role() != Role::Segment || !asset.objects.iter().any(|object| store.follows_viewers(object)) {
            return None;
        }
        let track = asset.presentation.track(name)?;
        let own = course(number, |number| track.stretch(number));
        // The first segment makes the layout of the sound. That is heavy work, which this thread must not do.
        let muxed = profile.is_transport_stream() && asset.has_made(name, Lazy::Ts);
        let sound = muxed
            .then(|| course(number, |number| track.muxed_stretch(asset.presentation.of_track(name), number)))
            .flatten();
        let courses: Vec<_> = [own, sound].into_iter().flatten().collect();
        let kind = name.bytes().next().unwrap_or(0);
        self.follow(asset.id, kind, client, |viewer| viewer.follow_courses(store, asset, courses))
    }

    /// Records a request for a range of a file.
    pub(super) fn range_requested(&self, store: &Store, object: &Arc<Object>, range: Range<u64>, client: Client<'_>) {
        if !store.follows_viewers(object) || range.end >= object.meta().len {
            return;
        }
        let name = format!("{}/{}", object.place(), object.path());
        let file = fingerprint(name.as_bytes());
        drop(self.follow(file, FILE, client, |viewer| viewer.follow_reads(store, object, range)));
    }

    /// Records a request of a viewer. `advance` tells the prefetcher.
    fn follow(&self, asset: u64, kind: u8, client: Client<'_>, advance: impl FnOnce(&mut Viewer)) -> Option<Receipt> {
        let program = fingerprint(client.program.as_bytes());
        let address = client.address.unwrap_or(self.address);
        let id = ViewerId { address, program, asset, kind };
        let mut table = self.viewers.lock();
        let left = table.sweep();
        if table.viewers.len() >= CAPACITY && !table.viewers.contains_key(&id) {
            return None;
        }
        let viewer = table.viewers.entry(id.clone()).or_insert_with(|| Viewer {
            watches: Vec::new(),
            rate: ReadRate::default(),
            connections: HashSet::new(),
            seen: Instant::now(),
            requests: 0,
        });
        viewer.seen = Instant::now();
        viewer.requests += 1;
        let request = viewer.requests;
        advance(viewer);
        if client.stays && viewer.connections.insert(self.number) {
            self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        }
        drop(table);
        drop(left);
        Some(Receipt { viewers: self.viewers.clone(), id, request })
    }
}

impl Drop for ConnectionViewers {
    fn drop(&mut self) {
        let ids = std::mem::take(self.ids.get_mut().unwrap_or_else(PoisonError::into_inner));
        if ids.is_empty() {
            return;
        }
        let mut table = self.viewers.lock();
        let mut left = Vec::new();
        for id in ids {
            if let Some(viewer) = table.viewers.get_mut(&id)
                && viewer.connections.remove(&self.number)
                && viewer.connections.is_empty()
            {
                left.extend(table.viewers.remove(&id));
            }
        }
        // Dropping their watches takes other locks.
        drop(table);
        drop(left);
    }
}

impl Table {
    /// Removes idle viewers.
    fn sweep(&mut self) -> Vec<Viewer> {
        if self.swept.elapsed() < SWEEP {
            return Vec::new();
        }
        self.swept = Instant::now();
        self.viewers.extract_if(|_, viewer| viewer.seen.elapsed() > IDLE_LIMIT).map(|(_, viewer)| viewer).collect()
    }
}

impl Viewer {
    /// Moves the watches to the courses, one watch for each. Watches of other objects, such as another rendition, end.
    fn follow_courses(&mut self, store: &Store, asset: &Asset, courses: Vec<ObjectCourse>) {
        let mut old = std::mem::take(&mut self.watches).into_iter();
        for ObjectCourse { object, course, requested } in courses {
            let known = old.next();
            let Some(object) = asset.objects.get(object).filter(|object| object.file().is_none()) else { continue };
            let same = known.filter(|watch| Arc::ptr_eq(watch.object(), object));
            let watch = same.unwrap_or_else(|| store.watch(object));
            watch.moves(course, requested);
            self.watches.push(watch);
        }
    }

    /// Moves the watch of a file. Nothing is fetched ahead before consecutive ranges show the rate.
    fn follow_reads(&mut self, store: &Store, object: &Arc<Object>, range: Range<u64>) {
        let Some(rate) = self.rate.requested(&range, Instant::now()) else { return };
        let known = self.watches.pop().filter(|watch| Arc::ptr_eq(watch.object(), object));
        let watch = known.unwrap_or_else(|| store.watch(object));
        watch.moves(Course::constant(range.start, object.meta().len, rate), range.end);
        self.watches.push(watch);
    }
}

impl ReadRate {
    /// Records a request for a range. Returns the rate in bytes per second, if it is known.
    fn requested(&mut self, range: &Range<u64>, now: Instant) -> Option<f64> {
        let last = self.last.replace((range.start, now, range.end));
        let (start, at, end) = last?;
        if range.start > start && range.start <= end {
            let rate = (range.start - start) as f64 / now.saturating_duration_since(at).as_secs_f64().max(1e-3);
            self.rate = Some(self.rate.map_or(rate, |old| f64::midpoint(old, rate)));
        }
        self.rate
    }
}

/// Byte ranges of one object that a viewer of segments will read, with the times at which they are needed.
struct ObjectCourse {
    /// Index of the object in its asset.
    object: usize,
    /// Times at which its bytes are needed.
    course: Course,
    /// End of the segment that was requested.
    requested: u64,
}

/// Returns the course of the segments from `number` on.
fn course(number: u32, stretch: impl Fn(u32) -> Option<Stretch>) -> Option<ObjectCourse> {
    let first = stretch(number)?;
    let (seconds, bytes, segments) = AHEAD;
    let last = number.saturating_add(segments);
    let following = (number..last).map_while(stretch).take_while(|next| {
        let is_within = next.start - first.end < seconds || next.range.start.saturating_sub(first.range.end) < bytes;
        next.object == first.object && is_within
    });
    let points = following.flat_map(|next| [(next.range.start, next.start), (next.range.end, next.end)]);
    let course = Course::new(points).whole();
    Some(ObjectCourse { object: usize::from(first.object.0), course, requested: first.range.end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_reader_is_that_of_consecutive_ranges() {
        let mut rate = ReadRate::default();
        let began = Instant::now();
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        assert_eq!(rate.requested(&(0..1000), at(0)), None);
        assert_eq!(rate.requested(&(1000..2000), at(10)), Some(100.0));
        assert_eq!(rate.requested(&(2000..3000), at(15)), Some(150.0));
        assert_eq!(rate.requested(&(90_000..91_000), at(16)), Some(150.0), "a seek does not change the rate");
        assert_eq!(rate.requested(&(90_500..91_500), at(26)), Some(100.0), "ranges may overlap");
    }
}
