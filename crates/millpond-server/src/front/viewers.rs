//! Who watches what, as far as requests tell: the cache is told where viewers are, to have ready what they will need.
//!
//! HTTP knows no sessions. Requests for segments of one asset from one address and program, of one kind of track, are
//! taken for one viewer; when the last connection that it asked over closes, or it asks for nothing for long, it is
//! gone. Where several are taken for one, slices are sent for as for somebody who seeks: too early or too late, never
//! wrongly. Who reads a file as it is, range after range, is a viewer too: its own pace tells when it needs what.

use crate::library::{Asset, Lazy, Resource};
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
    /// The asset, or the file.
    asset: u64,
    /// The first letter of the track's name: who changes the rendition is the same viewer. [`FILE`] for a file.
    kind: u8,
}

/// No track's name begins so.
const FILE: u8 = b'/';

#[derive(Debug)]
struct Viewer {
    watches: Vec<Watch>,
    pace: Pace,
    visits: HashSet<u64>,
    seen: Instant,
    /// How many segments it has asked for.
    asked: u64,
}

/// How fast somebody reads a file by one range after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// The first byte of the last range, when it was asked for, and the byte behind it.
    last: Option<(u64, Instant, u64)>,
    /// Bytes a second.
    rate: Option<f64>,
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

/// A segment on its way to its viewer: dropped when it is there.
#[derive(Debug)]
pub(crate) struct Receipt {
    viewers: Arc<Viewers>,
    key: Key,
    asked: u64,
}

impl Drop for Receipt {
    fn drop(&mut self) {
        let all = self.viewers.lock();
        // Who has asked for more since is waiting for that.
        if let Some(viewer) = all.viewers.get(&self.key).filter(|viewer| viewer.asked == self.asked) {
            viewer.watches.iter().for_each(Watch::received);
        }
    }
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
    /// A segment is asked for; `program` names the client's software, `stays` says whether the connection does. What
    /// comes back is to be dropped when it was sent.
    pub(crate) fn asks(
        &self,
        store: &Store,
        asset: &Asset,
        resource: &Resource,
        program: &str,
        stays: bool,
    ) -> Option<Receipt> {
        let (name, number, muxed) = match resource {
            Resource::Segment(name, number) => (name, *number, false),
            Resource::TsSegment(name, number) => (name, *number, true),
            _ => return None,
        };
        if !asset.objects.iter().any(|object| store.follows_viewers(object)) {
            return None;
        }
        let track = asset.presentation.track(name)?;
        let own = course(number, |number| track.stretch(number));
        // Where the sound lies is worked out with the first segment; that is heavy work, and not for here.
        let muxed = muxed && asset.has_made(name, Lazy::Ts);
        let sound = muxed.then(|| course(number, |number| track.muxed_stretch(&asset.presentation, number))).flatten();
        let courses: Vec<_> = [own, sound].into_iter().flatten().collect();
        let kind = name.bytes().next().unwrap_or(0);
        self.follow(asset.id, kind, program, stays, |viewer| viewer.moves(store, asset, courses))
    }

    /// A range of a file is asked for, as it is.
    pub(crate) fn reads(&self, store: &Store, object: &Arc<Object>, part: Range<u64>, program: &str, stays: bool) {
        if !store.follows_viewers(object) || part.end >= object.meta().len {
            return;
        }
        let name = format!("{}/{}", object.place(), object.path());
        let file = crate::library::fingerprint(name.as_bytes());
        drop(self.follow(file, FILE, program, stays, |viewer| viewer.reads(store, object, part)));
    }

    fn follow(
        &self,
        asset: u64,
        kind: u8,
        program: &str,
        stays: bool,
        goes_on: impl FnOnce(&mut Viewer),
    ) -> Option<Receipt> {
        let program = crate::library::fingerprint(program.as_bytes());
        let key = Key { address: self.address, program, asset, kind };
        let mut all = self.viewers.lock();
        let gone = all.sweep();
        if all.viewers.len() >= MOST && !all.viewers.contains_key(&key) {
            return None;
        }
        let viewer = all.viewers.entry(key.clone()).or_insert_with(|| Viewer {
            watches: Vec::new(),
            pace: Pace::default(),
            visits: HashSet::new(),
            seen: Instant::now(),
            asked: 0,
        });
        viewer.seen = Instant::now();
        viewer.asked += 1;
        let asked = viewer.asked;
        goes_on(viewer);
        if stays && viewer.visits.insert(self.number) {
            self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        }
        drop(all);
        drop(gone);
        Some(Receipt { viewers: self.viewers.clone(), key, asked })
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

impl Viewer {
    /// Once it reads on where it was, its pace is known; before, nothing is sent for ahead.
    fn reads(&mut self, store: &Store, object: &Arc<Object>, part: Range<u64>) {
        let Some(rate) = self.pace.asks(&part, Instant::now()) else { return };
        let known = self.watches.pop().filter(|watch| Arc::ptr_eq(watch.object(), object));
        let watch = known.unwrap_or_else(|| store.watch(object));
        watch.moves(Course::constant(part.start, object.meta().len, rate), part.end);
        self.watches.push(watch);
    }
}

impl Pace {
    /// A range is asked for; says at how many bytes a second, if that is known.
    fn asks(&mut self, part: &Range<u64>, now: Instant) -> Option<f64> {
        let last = self.last.replace((part.start, now, part.end));
        let (start, at, end) = last?;
        if part.start > start && part.start <= end {
            let rate = (part.start - start) as f64 / now.saturating_duration_since(at).as_secs_f64().max(1e-3);
            self.rate = Some(self.rate.map_or(rate, |old| f64::midpoint(old, rate)));
        }
        self.rate
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_of_a_reader_is_that_of_ranges_that_follow_each_other() {
        let mut pace = Pace::default();
        let began = Instant::now();
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        assert_eq!(pace.asks(&(0..1000), at(0)), None);
        assert_eq!(pace.asks(&(1000..2000), at(10)), Some(100.0));
        assert_eq!(pace.asks(&(2000..3000), at(15)), Some(150.0));
        assert_eq!(pace.asks(&(90_000..91_000), at(16)), Some(150.0), "a seek says nothing of the pace");
        assert_eq!(pace.asks(&(90_500..91_500), at(26)), Some(100.0), "ranges may overlap");
    }
}
