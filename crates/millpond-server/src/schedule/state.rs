//! The state of a schedule: its timetable, the part on the air, and its assets.

use super::{
    ScheduleLine,
    guide::{Guide, Programme},
    timetable::{Content, Entry, Lengths, Slot, Timetable},
};
use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

/// Time for which programmes are listed.
const AHEAD: Duration = Duration::from_secs(7 * 86_400);
/// Most programmes of a list.
const MOST: usize = 1000;
/// Time after which a list is made again.
const FRESH: Duration = Duration::from_secs(60);

/// The state of a schedule. The task that plays it tells; the EPG and the admin API ask.
#[derive(Debug)]
pub(crate) struct ScheduleState {
    line: ScheduleLine,
    /// Changes when the file does.
    timetable: watch::Sender<Arc<Timetable>>,
    /// A lock: held for look-ups, and while a list is made once a minute.
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    assets: HashMap<Key, Known>,
    on_air: OnAirReport,
    /// Why the file could not be taken when it changed last.
    fault: Option<String>,
    /// The list that was made last, and when.
    list: Option<(Duration, Arc<[Programme]>)>,
}

/// An asset, and the time at which it begins to play.
type Key = (String, Duration);

/// The state of an asset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Time from its beginning to its end; `None` where it can't be played, or has no known end.
    pub(super) length: Option<Duration>,
    /// Title in the file's tags.
    pub(super) title: Option<String>,
    /// Why it can't be played.
    pub(super) fault: Option<String>,
}

/// The source that the stream of a schedule plays, for the admin API.
#[derive(Clone, Debug, Default)]
pub(crate) struct OnAirReport {
    /// Path of the asset or stream; `None` before the first one.
    pub(crate) plays: Option<String>,
    /// Whether it is the filler.
    pub(crate) is_filler: bool,
    /// Since when.
    pub(crate) since: Option<Duration>,
    /// Why the entry that is due does not play.
    pub(crate) why: Option<String>,
}

impl Lengths for HashMap<Key, Known> {
    fn of(&self, entry: &Entry) -> Option<Duration> {
        self.get(&(entry.content.path().to_owned(), entry.from))?.length
    }
}

impl ScheduleState {
    /// Makes that of a schedule whose file was not read yet.
    pub(super) fn new(line: ScheduleLine) -> Self {
        Self { line, timetable: watch::Sender::default(), inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Path of the stream.
    pub(crate) fn stream(&self) -> &str {
        &self.line.to
    }

    /// The file.
    pub(crate) fn file(&self) -> &Path {
        &self.line.file
    }

    /// Number of entries.
    pub(crate) fn entries(&self) -> usize {
        self.timetable.borrow().entries().len()
    }

    /// Why the file could not be taken when it changed last.
    pub(crate) fn fault(&self) -> Option<String> {
        self.lock().fault.clone()
    }

    /// The source that the stream plays now.
    pub(crate) fn on_air(&self) -> OnAirReport {
        self.lock().on_air.clone()
    }

    /// The timetable, with its changes.
    pub(super) fn timetable(&self) -> watch::Receiver<Arc<Timetable>> {
        self.timetable.subscribe()
    }

    /// Takes a new timetable, or tells why the earlier one stays.
    pub(super) fn take(&self, read: Result<Timetable, String>) {
        let mut inner = self.lock();
        match read {
            Ok(timetable) => {
                let is_named = |(path, from): &Key| {
                    timetable.entries().iter().any(|entry| entry.content.path() == path && entry.from == *from)
                };
                inner.assets.retain(|key, _| is_named(key));
                (inner.fault, inner.list) = (None, None);
                drop(inner);
                self.timetable.send_replace(Arc::new(timetable));
            }
            Err(why) => inner.fault = Some(why),
        }
    }

    /// Tells what an asset is that begins at a time. Returns whether that is news.
    pub(super) fn learn(&self, path: &str, from: Duration, known: Known) -> bool {
        let mut inner = self.lock();
        let before = inner.assets.insert((path.to_owned(), from), known.clone());
        let is_new = before.is_none_or(|before| before != known);
        if is_new {
            inner.list = None;
        }
        is_new
    }

    /// Tells after what time an asset ended whose end was not known.
    pub(super) fn learn_end(&self, path: &str, from: Duration, lasted: Duration) {
        let mut inner = self.lock();
        if let Some(known) = inner.assets.get_mut(&(path.to_owned(), from)) {
            known.length.get_or_insert(lasted);
            inner.list = None;
        }
    }

    /// Tells what is on the air: since now, where that is a change.
    pub(super) fn tell(&self, on_air: OnAirReport, is_change: bool) {
        let mut inner = self.lock();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let since = if is_change { now } else { inner.on_air.since };
        inner.on_air = OnAirReport { since, ..on_air };
    }

    /// Tells why neither what is due nor the filler plays; `None` where one of them does. It is logged once.
    pub(super) fn explain(&self, why: Option<&str>) {
        let mut inner = self.lock();
        if inner.on_air.why.as_deref() != why {
            if let Some(why) = why {
                tracing::warn!(stream = self.line.to, why, "a schedule has nothing to play");
            }
            inner.on_air.why = why.map(str::to_owned);
        }
    }

    /// Returns what plays at a time since the Unix epoch.
    pub(super) fn plan(&self, timetable: &Timetable, now: Duration) -> Slot {
        timetable.plan(&self.lock().assets, now)
    }

    /// Title of an entry: its own, that of the file's tags, or the name of the file or stream.
    pub(super) fn title(&self, entry: &Entry) -> String {
        title(&self.lock().assets, entry)
    }

    /// The entries that play from a time on.
    pub(super) fn ahead(&self, timetable: &Timetable, now: Duration) -> Vec<Slot> {
        timetable.slots(&self.lock().assets, (now, now + AHEAD), MOST)
    }

    /// The guide that viewers may see now.
    pub(crate) fn guide(&self) -> Guide {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let timetable = self.timetable.borrow().clone();
        let mut inner = self.lock();
        let known = inner.list.as_ref().filter(|(made, _)| now.abs_diff(*made) < FRESH);
        let list = match known {
            Some((_, list)) => list.clone(),
            None => {
                let slots = timetable.slots(&inner.assets, (now, now + AHEAD), MOST);
                let programme = |slot: &Slot| Some(Programme::new(slot, timetable.entry(slot)?, &inner.assets));
                let list: Arc<[_]> = slots.iter().filter_map(programme).collect();
                inner.list = Some((now, list.clone()));
                list
            }
        };
        let title = timetable.title.clone().unwrap_or_else(|| self.line.to.clone());
        Guide::new(self.line.to.clone(), title, &list, now)
    }
}

impl Programme {
    fn new(slot: &Slot, entry: &Entry, assets: &HashMap<Key, Known>) -> Self {
        let (title, description) = (title(assets, entry), entry.description.clone());
        let is_live = matches!(entry.content, Content::Stream(_));
        Self { at: slot.at, until: slot.until, title, description, is_live }
    }
}

/// Title of an entry.
fn title(assets: &HashMap<Key, Known>, entry: &Entry) -> String {
    let path = entry.content.path();
    let tag = || assets.get(&(path.to_owned(), entry.from))?.title.clone();
    let name = || {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        if stem.is_empty() { name.to_owned() } else { stem.to_owned() }
    };
    entry.title.clone().or_else(tag).unwrap_or_else(name)
}
