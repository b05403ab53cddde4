//! Who watches what, as far as requests tell: the cache is told where viewers are, to have ready what they will need.
//!
//! HTTP knows no sessions. Requests for segments of one asset from one address and program, of one kind of track, are
//! taken for one viewer; when the last connection that it asked over closes, or it asks for nothing for long, it is
//! gone. Where several are taken for one, slices are sent for as for somebody who seeks: too early or too late, never
//! wrongly.

use crate::library::{Asset, Resource};
use millpond_package::Stretch;
use millpond_store::{
    Store, Watch,
    schedule::{Course, Mode},
};
use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Who asks for nothing for this long has left: longer than the longest segment.
const PATIENCE: Duration = Duration::from_secs(90);
/// So many are followed at once; of more, nothing is sent for ahead.
const MOST: usize = 8192;
/// How often it is looked for such viewers.
const SWEEP: Duration = Duration::from_secs(10);
/// A course goes on for so many seconds and at least so many bytes, but not over more segments than that.
const AHEAD: (f64, u64, u32) = (60.0, 16 << 20, 256);

/// All viewers of a server.
#[derive(Debug)]
pub(crate) struct Viewers {
    /// A lock: taken for each segment of a remote place.
    all: Mutex<All>,
    visits: AtomicU64,
}

#[derive(Debug)]
struct All {
    viewers: HashMap<Key, Viewer>,
    swept: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    address: IpAddr,
    program: u64,
    asset: u64,
    /// The first letter of the track's name: who changes the rendition is the same viewer.
    kind: u8,
}

#[derive(Debug)]
struct Viewer {
    watches: Vec<Watch>,
    visits: HashSet<u64>,
    seen: Instant,
}

/// A connection: the viewers that ask over it are gone when it is dropped, unless they ask over another one too.
#[derive(Debug)]
pub(crate) struct Visit {
    viewers: Arc<Viewers>,
    number: u64,
    address: IpAddr,
    /// A lock: taken for each segment, by requests of one connection.
    keys: Mutex<HashSet<Key>>,
}

impl Viewers {
    pub(crate) fn new() -> Arc<Self> {
        let all = All { viewers: HashMap::new(), swept: Instant::now() };
        Arc::new(Self { all: Mutex::new(all), visits: AtomicU64::new(0) })
    }

    /// Somebody connects.
    pub(crate) fn visit(self: &Arc<Self>, address: IpAddr) -> Visit {
        let number = self.visits.fetch_add(1, Ordering::Relaxed);
        Visit { viewers: self.clone(), number, address, keys: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visit {
    /// A segment is asked for; `program` names the client's software, `stays` says whether the connection does.
    pub(crate) fn asks(&self, store: &Store, asset: &Asset, resource: &Resource, program: &str, stays: bool) {
        let (name, number, muxed) = match resource {
            Resource::Segment(name, number) => (name, *number, false),
            Resource::TsSegment(name, number) => (name, *number, true),
            _ => return,
        };
        if store.prefetch_mode() == Mode::OnDemand || asset.objects.iter().all(|object| object.file().is_some()) {
            return;
        }
        let Some(track) = asset.presentation.track(name) else { return };
        let own = course(number, |number| track.stretch(number));
        let sound = course(number, |number| track.muxed_stretch(&asset.presentation, number).filter(|_| muxed));
        let courses: Vec<_> = [own, sound].into_iter().flatten().collect();
        let kind = name.bytes().next().unwrap_or(0);
        let program = crate::library::fingerprint(program.as_bytes());
        let key = Key { address: self.address, program, asset: asset.id, kind };
        let mut all = self.viewers.lock();
        let gone = all.sweep();
        if all.viewers.len() >= MOST && !all.viewers.contains_key(&key) {
            return;
        }
        let viewer = all.viewers.entry(key.clone()).or_insert_with(|| Viewer {
            watches: Vec::new(),
            visits: HashSet::new(),
            seen: Instant::now(),
        });
        viewer.seen = Instant::now();
        viewer.moves(store, asset, courses);
        if stays && viewer.visits.insert(self.number) {
            self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        }
        drop(all);
        drop(gone);
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let keys = std::mem::take(self.keys.get_mut().unwrap_or_else(PoisonError::into_inner));
        if keys.is_empty() {
            return;
        }
        let mut all = self.viewers.lock();
        let mut gone = Vec::new();
        for key in keys {
            if let Some(viewer) = all.viewers.get_mut(&key)
                && viewer.visits.remove(&self.number)
                && viewer.visits.is_empty()
            {
                gone.extend(all.viewers.remove(&key));
            }
        }
        // Their wishes end outside of the lock.
        drop(all);
        drop(gone);
    }
}

impl All {
    /// Takes out those who have not been seen for long.
    fn sweep(&mut self) -> Vec<Viewer> {
        if self.swept.elapsed() < SWEEP {
            return Vec::new();
        }
        self.swept = Instant::now();
        self.viewers.extract_if(|_, viewer| viewer.seen.elapsed() > PATIENCE).map(|(_, viewer)| viewer).collect()
    }
}

impl Viewer {
    /// Each run of bytes that is read has a watch of its own; those of others, such as another rendition's, go.
    fn moves(&mut self, store: &Store, asset: &Asset, courses: Vec<(usize, Course, u64)>) {
        let mut old = std::mem::take(&mut self.watches).into_iter();
        for (object, course, asked) in courses {
            let known = old.next();
            let Some(object) = asset.objects.get(object).filter(|object| object.file().is_none()) else { continue };
            let same = known.filter(|watch| Arc::ptr_eq(watch.object(), object));
            let watch = same.unwrap_or_else(|| store.watch(object));
            watch.moves(course, asked);
            self.watches.push(watch);
        }
    }
}

/// The object that segments from `number` on are read from, when each of their bytes is, and up to where the first of
/// them goes.
fn course(number: u32, stretch: impl Fn(u32) -> Option<Stretch>) -> Option<(usize, Course, u64)> {
    let first = stretch(number)?;
    let (seconds, bytes, segments) = AHEAD;
    let last = number.saturating_add(segments);
    let following = (number..last).map_while(stretch).take_while(|next| {
        let goes_on = next.start - first.end < seconds || next.range.start.saturating_sub(first.range.end) < bytes;
        next.object == first.object && goes_on
    });
    let points = following.flat_map(|next| [(next.range.start, next.start), (next.range.end, next.end)]);
    Some((usize::from(first.object.0), Course::new(points).whole(), first.range.end))
}
