//! The bandwidth that a node books: its streams, gathered into few bookings, beside the bookings of the other nodes.
//!
//! Streams of one storage that end within the same period are one booking. A booking has a little more bandwidth than its streams, so
//! that most streams start without asking etcd. Nodes write all their bookings as one value.

use super::{Bitrate, Book, Booking, NodeName, Resource, Shortage, hash};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

/// Length of a period: streams that end within the same one have one booking.
const PERIOD: Duration = Duration::from_secs(5 * 60);
/// Playback after which periods are as long as [`LONG_PERIOD`].
const LONG: Duration = Duration::from_secs(3600);
/// Length of later periods.
const LONG_PERIOD: Duration = Duration::from_secs(3600);
/// Latest end. Longer streams have no end.
const LATEST: Duration = Duration::from_secs(24 * 3600);
/// A booking is rounded up to this part of its scarcest resource.
const BLOCKS: u64 = 64;
/// Most bytes of a value.
const LONGEST: usize = 256 << 10;
/// Most bookings of a value.
const MOST: usize = 1024;
/// Bookings of this node beyond which a stream in a new period gets none with an end: other nodes must be able to read the value.
const MANY: usize = MOST / 2;

/// Bandwidth that can be booked; `None` is unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// That of this node.
    pub node: Option<Bitrate>,
    /// That of each storage, which all nodes share.
    pub storage: Option<Bitrate>,
    /// That of each store of a striping group, which all nodes share.
    pub store: Option<Bitrate>,
}

/// A stream that wants bandwidth of its node, and of a storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The storage that it reads from; `None` for one that reads from none.
    pub storage: Option<Arc<str>>,
    /// The stores of that storage's striping group that hold its units; each gives an equal part of it. Empty where one link carries it.
    pub stores: BTreeSet<Arc<str>>,
    /// Its bandwidth.
    pub rate: Bitrate,
    /// Time that it plays from now on; `None` for one without an end.
    pub length: Option<Duration>,
    /// Whether it needs its storage only: what a node reads and doesn't send.
    pub is_read_only: bool,
}

/// The booking that a stream is part of. [`Ledger::give_back`] takes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    storage: Option<Arc<str>>,
    stores: BTreeSet<Arc<str>>,
    /// Whether it has nothing of the node.
    is_read_only: bool,
    /// End in seconds since the Unix epoch.
    until: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// Bandwidth of its streams.
    needed: u64,
    /// Bandwidth that etcd has.
    written: u64,
    /// When it begins, in seconds since the Unix epoch.
    from: u64,
}

impl Slot {
    /// Whether the booking has ended.
    pub fn is_over(&self, now: Duration) -> bool {
        self.until.is_some_and(|until| until <= now.as_secs())
    }

    /// About the length of its booking as JSON.
    fn length(&self) -> usize {
        let share = |name: &str| name.len() + 64;
        share("") + self.storage.iter().chain(&self.stores).map(|name| share(name)).sum::<usize>()
    }
}

/// Room for a stream at a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// The resource.
    pub resource: Resource,
    /// Bandwidth that the stream needs of it.
    pub wanted: Bitrate,
    /// The most that is booked of it until the stream ends.
    pub booked: Bitrate,
    /// Bandwidth that can be booked of it; `None` is unbounded.
    pub bound: Option<Bitrate>,
}

impl Room {
    /// Bandwidth that is free; `None` is unbounded.
    pub fn free(&self) -> Option<Bitrate> {
        self.bound.map(|bound| bound.minus(self.booked))
    }

    /// Whether the stream fits.
    pub fn fits(&self) -> bool {
        self.free().is_none_or(|free| self.wanted <= free)
    }
}

/// The bookings of a node and of all others.
#[derive(Debug)]
pub struct Ledger {
    name: NodeName,
    limits: Limits,
    own: BTreeMap<Slot, Line>,
    book: Book,
    /// Names of the bookings of each other node, by the key of its value, with the revision of that.
    others: HashMap<Vec<u8>, (u64, Vec<String>)>,
    /// Whether etcd may have other bookings of this node than it should.
    is_unwritten: bool,
}

/// Bookings that a node wants to write.
#[derive(Clone, Debug)]
pub struct BookingPlan {
    /// The node's bookings, as JSON.
    pub value: String,
    /// Storages of which, or of whose stores, it takes more than it had. No other node may take of them meanwhile.
    pub storages: BTreeSet<Arc<str>>,
    /// The booking of each demand, or why it gets none.
    pub answers: Vec<Result<Slot, Shortage>>,
    /// Whether there is anything to write.
    pub is_changed: bool,
    lines: BTreeMap<Slot, Line>,
    /// When it was made, since the Unix epoch.
    at: Duration,
}

impl Ledger {
    /// A ledger without bookings.
    pub fn new(name: NodeName, limits: Limits) -> Self {
        let mut book = Book::default();
        book.set_capacity(Resource::Node(name.clone()), limits.node);
        Self { name, limits, own: BTreeMap::new(), book, others: HashMap::new(), is_unwritten: false }
    }

    /// Whether anything is bounded. Otherwise nothing needs to be booked.
    pub fn is_bounded(&self) -> bool {
        self.limits != Limits::default()
    }

    /// Whether storages, or stores of striping groups, are bounded.
    pub fn bounds_storages(&self) -> bool {
        self.limits.storage.is_some() || self.limits.store.is_some()
    }

    /// Takes bandwidth that is booked already; `None` where more has to be booked.
    pub fn take(&mut self, demand: &Demand, now: Duration) -> Option<Slot> {
        let slot = self.slot(demand, now);
        let line = self.own.get_mut(&slot)?;
        let needed = line.needed.saturating_add(demand.rate.bps());
        (needed <= line.written).then(|| line.needed = needed)?;
        Some(slot)
    }

    /// Whether a booking lasts as long as a demand that begins now.
    pub fn lasts(&self, slot: &Slot, demand: &Demand, now: Duration) -> bool {
        slot.until.is_none_or(|end| self.slot(demand, now).until.is_some_and(|wanted| wanted <= end))
    }

    /// Gives a stream's bandwidth back.
    pub fn give_back(&mut self, slot: &Slot, rate: Bitrate) {
        if let Some(line) = self.own.get_mut(slot) {
            line.needed = line.needed.saturating_sub(rate.bps());
        }
    }

    /// The bookings that make room for demands, as far as they fit, and give back what is not needed.
    pub fn plan(&mut self, demands: &[Demand], now: Duration) -> BookingPlan {
        let mut lines: BTreeMap<Slot, Line> = BTreeMap::new();
        for (slot, line) in &self.own {
            let (block, most) = (self.block(slot), line.needed.saturating_add(2 * self.block(slot)));
            let written = if line.written > most { line.needed.saturating_add(block) } else { line.written };
            if !slot.is_over(now) && (line.needed > 0 || written > block) {
                lines.insert(slot.clone(), Line { written: written.max(line.needed), ..*line });
            }
        }
        self.replace(&lines);
        let answers: Vec<_> = demands.iter().map(|demand| self.admit(demand, &mut lines, now)).collect();
        let grows = |(slot, line): &(&Slot, &Line)| {
            self.is_unwritten || line.written > self.own.get(*slot).map_or(0, |known| known.written)
        };
        let storages = lines.iter().filter(grows).filter_map(|(slot, _)| slot.storage.clone()).collect();
        let written = |lines: &BTreeMap<Slot, Line>| -> Vec<(Slot, u64)> {
            lines.iter().map(|(slot, line)| (slot.clone(), line.written)).filter(|(_, written)| *written > 0).collect()
        };
        let is_changed = self.is_unwritten || written(&lines) != written(&self.own);
        let value = self.value(&lines);
        // Until it is written, what etcd has counts.
        let own = self.own.clone();
        self.replace(&own);
        BookingPlan { value, storages, answers, is_changed, lines, at: now }
    }

    /// Notes that a plan was written. Streams that began or ended meanwhile stay counted.
    pub fn written(&mut self, plan: BookingPlan, demands: &[Demand]) {
        let mut lines = plan.lines;
        for (slot, line) in &mut lines {
            line.needed = self.own.get(slot).map_or(0, |own| own.needed);
        }
        for (answer, demand) in plan.answers.iter().zip(demands) {
            if let Some(line) = answer.as_ref().ok().and_then(|slot| lines.get_mut(slot)) {
                line.needed = line.needed.saturating_add(demand.rate.bps());
            }
        }
        for (slot, own) in std::mem::take(&mut self.own) {
            if own.needed > 0 && !slot.is_over(plan.at) {
                lines.entry(slot).or_insert(Line { written: 0, ..own });
            }
        }
        self.own = lines;
        let own = self.own.clone();
        self.replace(&own);
    }

    /// Notes whether etcd has what [`written`](Self::written) was told: it does not where it did not answer, or the lease is over.
    pub fn set_written(&mut self, is_written: bool) {
        self.is_unwritten = !is_written;
    }

    /// Replaces the bookings of another node by those of a value that was last changed at `revision`. Tells whether the value can be read.
    pub fn set_other(&mut self, key: &[u8], revision: u64, value: &[u8]) -> bool {
        if self.others.get(key).is_some_and(|(known, _)| *known >= revision) {
            return true;
        }
        self.remove_other(key);
        let Some(bookings) = read(value) else {
            self.others.insert(key.to_vec(), (revision, Vec::new()));
            return false;
        };
        let mut ids = Vec::new();
        for booking in bookings {
            // Names of two nodes may be the same.
            let booking = Booking { id: format!("{:x}/{}", hash::bytes(key), booking.id), ..booking };
            self.bound(&booking);
            ids.push(booking.id.clone());
            self.book.insert(booking);
        }
        self.others.insert(key.to_vec(), (revision, ids));
        true
    }

    /// Removes the bookings of the nodes whose keys are not among `keys`.
    pub fn keep_others(&mut self, keys: &BTreeSet<&[u8]>) {
        let gone: Vec<_> = self.others.keys().filter(|key| !keys.contains(key.as_slice())).cloned().collect();
        gone.iter().for_each(|key| self.remove_other(key));
    }

    /// Bandwidth that is booked of a node.
    pub fn booked(&self, node: &NodeName, now: Duration) -> Bitrate {
        self.book.booked(&Resource::Node(node.clone()), now)
    }

    /// Bandwidth that is needed of this node, or by this node of a storage.
    pub fn needed(&self, storage: Option<&str>) -> Bitrate {
        let is_of = |slot: &Slot| match storage {
            None => !slot.is_read_only,
            storage => slot.storage.as_deref() == storage,
        };
        let lines = self.own.iter().filter(|(slot, _)| is_of(slot));
        lines.map(|(_, line)| Bitrate::from_bps(line.needed)).sum()
    }

    /// Room for a stream at a node. `bound` is the bandwidth of a node that is not this one.
    pub fn room(&self, node: &NodeName, bound: Option<Bitrate>, demand: &Demand, now: Duration) -> Room {
        let bound = if *node == self.name { self.limits.node } else { bound };
        self.room_at(Resource::Node(node.clone()), (demand.rate, bound), demand.length, now)
    }

    /// Room for a stream at the storages that it needs.
    pub fn storage_rooms(&self, demand: &Demand, now: Duration) -> Vec<Room> {
        let slot = Slot { until: None, is_read_only: true, ..self.slot(demand, now) };
        let needed = Line { written: demand.rate.bps(), ..Line::default() };
        let shares = self.booking(&slot, &needed).shares.into_iter();
        shares
            .map(|(resource, wanted)| {
                let bound = self.limit(&resource);
                self.room_at(resource, (wanted, bound), demand.length, now)
            })
            .collect()
    }

    fn room_at(
        &self,
        resource: Resource,
        (wanted, bound): (Bitrate, Option<Bitrate>),
        length: Option<Duration>,
        now: Duration,
    ) -> Room {
        let until = length.map(|length| now.saturating_add(length));
        Room { booked: self.book.most(&resource, now, until), resource, wanted, bound }
    }

    /// Each resource of which something is booked, with its bandwidth.
    pub fn all_booked(&self, now: Duration) -> BTreeMap<Resource, Bitrate> {
        let resources: BTreeSet<_> =
            self.book.bookings().flat_map(|booking| booking.shares.iter().map(|(resource, _)| resource)).collect();
        resources.into_iter().map(|resource| (resource.clone(), self.book.booked(resource, now))).collect()
    }

    fn remove_other(&mut self, key: &[u8]) {
        for id in self.others.remove(key).map(|(_, ids)| ids).unwrap_or_default() {
            self.book.remove(&id);
        }
    }

    /// Adds a demand to the lines, if it fits.
    fn admit(&mut self, demand: &Demand, lines: &mut BTreeMap<Slot, Line>, now: Duration) -> Result<Slot, Shortage> {
        let mut slot = self.slot(demand, now);
        let is_long = || lines.len() >= MANY || lines.keys().map(Slot::length).sum::<usize>() >= LONGEST / 2;
        if !lines.contains_key(&slot) && is_long() {
            slot.until = None;
        }
        let line = lines.get(&slot).copied().unwrap_or(Line { from: now.as_secs(), ..Line::default() });
        let needed = line.needed.saturating_add(demand.rate.bps());
        let block = self.block(&slot);
        let rounded = needed.checked_next_multiple_of(block).unwrap_or(needed);
        let wanted = |written: u64| Line { needed, written: written.max(line.written), ..line };
        self.bound(&self.booking(&slot, &wanted(needed)));
        // More than is needed only where there is enough: else no line has more than it needs.
        let new = match self.book.fits(&self.booking(&slot, &wanted(rounded))) {
            Ok(()) => wanted(rounded),
            Err(_) => {
                self.round_down(lines);
                let exact = Line { needed, written: needed, ..line };
                self.book.fits(&self.booking(&slot, &exact)).map(|()| exact)?
            }
        };
        self.book.insert(self.booking(&slot, &new));
        lines.insert(slot.clone(), new);
        Ok(slot)
    }

    /// Takes what lines have and do not need. No stream [takes](Self::take) it any more.
    fn round_down(&mut self, lines: &mut BTreeMap<Slot, Line>) {
        for (slot, line) in lines.iter_mut().filter(|(_, line)| line.written > line.needed) {
            line.written = line.needed;
            if let Some(own) = self.own.get_mut(slot).filter(|own| own.written > line.written) {
                (own.written, self.is_unwritten) = (line.written, true);
            }
            let booking = self.booking(slot, line);
            match line.written {
                0 => drop(self.book.remove(&booking.id)),
                _ => self.book.insert(booking),
            }
        }
    }

    /// Replaces the node's own bookings in the book.
    fn replace(&mut self, lines: &BTreeMap<Slot, Line>) {
        let prefix = format!("{}:", self.name);
        let own: Vec<_> =
            self.book.bookings().map(|booking| &booking.id).filter(|id| id.starts_with(&prefix)).cloned().collect();
        own.iter().for_each(|id| drop(self.book.remove(id)));
        for (slot, line) in lines.iter().filter(|(_, line)| line.written > 0) {
            let booking = self.booking(slot, line);
            self.bound(&booking);
            self.book.insert(booking);
        }
    }

    /// Bounds the storages of a booking.
    fn bound(&mut self, booking: &Booking) {
        for (resource, _) in &booking.shares {
            if matches!(resource, Resource::Storage(_)) {
                self.book.set_capacity(resource.clone(), self.limit(resource));
            }
        }
    }

    /// Bandwidth that can be booked of this node, or of a storage.
    fn limit(&self, resource: &Resource) -> Option<Bitrate> {
        match resource {
            Resource::Node(_) => self.limits.node,
            Resource::Storage(_) if resource.is_store() => self.limits.store,
            Resource::Storage(_) => self.limits.storage,
        }
    }

    fn slot(&self, demand: &Demand, now: Duration) -> Slot {
        let until = demand.length.filter(|length| *length <= LATEST).map(|length| {
            let period = if length <= LONG { PERIOD } else { LONG_PERIOD };
            now.saturating_add(length).as_secs().next_multiple_of(period.as_secs())
        });
        let stores = if self.limits.store.is_some() { demand.stores.clone() } else { BTreeSet::new() };
        let has_storage = self.limits.storage.is_some() || !stores.is_empty();
        let storage = demand.storage.clone().filter(|_| has_storage);
        Slot { storage, stores, is_read_only: demand.is_read_only, until }
    }

    /// The step in which bookings of a slot grow.
    fn block(&self, slot: &Slot) -> u64 {
        let storage = self.limits.storage.filter(|_| slot.storage.is_some());
        let stores = self.limits.store.filter(|_| !slot.stores.is_empty());
        let stores = stores.map(|store| Bitrate::from_bps(store.bps().saturating_mul(slot.stores.len() as u64)));
        let node = self.limits.node.filter(|_| !slot.is_read_only);
        let least = node.into_iter().chain(storage).chain(stores).min().unwrap_or(Bitrate::from_mbps(1000));
        (least.bps() / BLOCKS).max(1)
    }

    fn booking(&self, slot: &Slot, line: &Line) -> Booking {
        let Slot { storage, stores, is_read_only, until } = slot;
        let storages: Vec<_> = storage.iter().cloned().collect();
        let names: Vec<&str> = storage.iter().chain(stores).map(|name| &**name).collect();
        let names_hash = if names.is_empty() { 0 } else { hash::bytes(names.join("\n").as_bytes()) };
        let kind = if *is_read_only { ":r" } else { "" };
        let id = format!("{}:{names_hash:x}:{}{kind}", self.name, until.unwrap_or(0));
        let from = Duration::from_secs(line.from);
        let length = until.map(|until| Duration::from_secs(until).saturating_sub(from));
        let mut booking = Booking::new(id, &self.name, &storages, Bitrate::from_bps(line.written), from, length);
        let part = Bitrate::from_bps(line.written.div_ceil(stores.len().max(1) as u64));
        let place = storage.as_deref().unwrap_or_default();
        booking.shares.retain(|(resource, _)| !is_read_only || matches!(resource, Resource::Storage(_)));
        booking.shares.extend(stores.iter().map(|store| (Resource::store(place, store), part)));
        booking
    }

    fn value(&self, lines: &BTreeMap<Slot, Line>) -> String {
        let all = lines.iter().filter(|(_, line)| line.written > 0).map(|(slot, line)| self.booking(slot, line));
        // One that only reads has nothing where its storage has no limit.
        let all: Vec<_> = all.filter(|booking| !booking.shares.is_empty()).map(|booking| booking.to_json()).collect();
        format!("[{}]", all.join(","))
    }
}

/// Reads the bookings of a node.
fn read(value: &[u8]) -> Option<Vec<Booking>> {
    if value.len() > LONGEST {
        return None;
    }
    let all: Vec<serde_json::Value> = serde_json::from_slice(value).ok()?;
    if all.len() > MOST {
        return None;
    }
    all.into_iter().map(|booking| Booking::from_json(booking.to_string().as_bytes()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_790_000_000);

    fn ledger(name: &str, node: u64, storage: u64) -> Ledger {
        let rate = |mbps| (mbps > 0).then(|| Bitrate::from_mbps(mbps));
        Ledger::new(name.parse().unwrap(), Limits { node: rate(node), storage: rate(storage), store: None })
    }

    fn film(mbps: u64) -> Demand {
        let length = Some(Duration::from_secs(5000));
        Demand { storage: Some("s3".into()), rate: Bitrate::from_mbps(mbps), length, ..Demand::default() }
    }

    /// A film whose units are on stores with names of a letter.
    fn striped(mbps: u64, stores: &str) -> Demand {
        Demand { stores: stores.chars().map(|name| name.to_string().into()).collect(), ..film(mbps) }
    }

    /// A ledger of a node where only the stores of striping groups are bounded.
    fn of_stores(name: &str, store: u64) -> Ledger {
        let store = Some(Bitrate::from_mbps(store));
        Ledger::new(name.parse().unwrap(), Limits { store, ..Limits::default() })
    }

    fn book(ledger: &mut Ledger, demands: &[Demand], now: Duration) -> Vec<Result<Slot, Shortage>> {
        let plan = ledger.plan(demands, now);
        let answers = plan.answers.clone();
        ledger.written(plan, demands);
        answers
    }

    #[test]
    fn many_streams_are_few_bookings_and_few_writes() {
        let mut ledger = ledger("a", 1000, 0);
        let (mut writes, mut admitted) = (0, 0);
        for stream in 0..300 {
            let demand = Demand { storage: None, ..film(4) };
            let now = NOW + Duration::from_secs(stream);
            let is_in = ledger.take(&demand, now).is_some() || {
                writes += 1;
                book(&mut ledger, std::slice::from_ref(&demand), now)[0].is_ok()
            };
            admitted += usize::from(is_in);
        }
        assert_eq!(admitted, 250, "all that fit");
        assert!(writes < 120, "{writes} writes, of which 50 are refusals");
        let plan = ledger.plan(&[], NOW);
        assert!(plan.value.len() < 500 && !plan.is_changed, "{}", plan.value);
    }

    #[test]
    fn streams_that_fit_are_admitted_whenever_they_end() {
        for seconds in [1, 60, 400, 1000] {
            let mut ledger = ledger("a", 29, 29);
            let admitted = (0..20).filter(|stream| {
                let now = NOW + Duration::from_secs(stream * seconds);
                let demand =
                    Demand { rate: Bitrate::from_bps(2_055_400), length: Some(Duration::from_secs(30_000)), ..film(0) };
                ledger.take(&demand, now).is_some() || book(&mut ledger, &[demand], now)[0].is_ok()
            });
            assert_eq!(admitted.count(), 14, "one each {seconds} s: bookings that are rounded up leave no room unused");
        }
    }

    #[test]
    fn two_nodes_do_not_take_the_same_bandwidth_of_a_storage() {
        let (mut a, mut b) = (ledger("a", 0, 100), ledger("b", 0, 100));
        let plan = a.plan(&[film(60)], NOW);
        assert_eq!(plan.storages.iter().map(|name| &**name).collect::<Vec<_>>(), ["s3"]);
        // Both plan at once; only one is written. The other one reads it and plans again.
        let late = b.plan(&[film(60)], NOW);
        assert!(late.answers[0].is_ok());
        let value = plan.value.clone();
        a.written(plan, &[film(60)]);
        assert!(b.set_other(b"/book/a/1", 5, value.as_bytes()));
        let again = b.plan(&[film(60), film(30)], NOW);
        let shortage = again.answers[0].as_ref().unwrap_err();
        assert_eq!((&shortage.resource, shortage.wanted), (&Resource::Storage("s3".into()), Bitrate::from_mbps(60)));
        assert!(again.answers[1].is_ok());
        // The node is gone with its lease.
        b.keep_others(&BTreeSet::new());
        assert!(b.plan(&[film(60)], NOW).answers[0].is_ok());
        assert!(!b.set_other(b"/book/c/1", 6, b"[{}]") && b.set_other(b"/book/c/1", 6, b"x"), "the same again");
    }

    #[test]
    fn each_store_of_a_striped_film_gives_an_equal_part() {
        let mut a = of_stores("a", 10);
        assert!(a.is_bounded());
        let demands = [striped(16, "ab"), striped(8, "cb"), striped(30, "cd"), striped(12, "cd")];
        let plan = a.plan(&demands, NOW);
        let refused = |index: usize| plan.answers[index].as_ref().unwrap_err().clone();
        assert_eq!((refused(1).resource.to_string(), refused(1).wanted.bps()), ("storage:s3/b".to_owned(), 4_000_000));
        assert_eq!(
            refused(2).resource.to_string(),
            "storage:s3/c",
            "more than a store has, of a store without bookings"
        );
        assert!(plan.answers[0].is_ok() && plan.answers[3].is_ok());
        assert_eq!(plan.storages.len(), 1, "two nodes that take of stores of one place decide one after the other");
        let value = plan.value.clone();
        a.written(plan, &demands);

        // Another node reads the parts.
        let mut b = of_stores("b", 10);
        assert!(b.set_other(b"/book/a/1", 5, value.as_bytes()), "{value}");
        let booked = b.all_booked(NOW);
        let of = |store: &str| booked[&Resource::store("s3", store)].bps();
        assert!(of("a") == of("b") && (8_000_000..=8_500_000).contains(&of("a")), "{booked:?}");
        assert!(of("c") == of("d") && (6_000_000..=6_500_000).contains(&of("c")), "{booked:?}");
        let plan = b.plan(&[striped(8, "cb"), striped(6, "cd")], NOW);
        assert_eq!(plan.answers[0].as_ref().unwrap_err().resource, Resource::store("s3", "b"));
        assert!(plan.answers[1].is_ok());
        // A film that is not striped needs none of them.
        assert!(b.plan(&[film(1000)], NOW).answers[0].is_ok());
    }

    #[test]
    fn stores_without_a_limit_are_not_booked() {
        let mut ledger = ledger("a", 100, 100);
        let plan = ledger.plan(&[striped(60, "ab")], NOW);
        assert!(plan.answers[0].is_ok() && !plan.value.contains("s3/"), "{}", plan.value);
    }

    #[test]
    fn the_room_of_a_stream_is_that_of_its_node_and_its_storages() {
        let mut ledger = ledger("a", 100, 50);
        ledger.limits.store = Some(Bitrate::from_mbps(20));
        let mbps = Bitrate::from_mbps;
        book(&mut ledger, &[striped(32, "ab")], NOW)[0].as_ref().unwrap();
        let shown = |node: &str, bound| -> Vec<_> {
            let room = ledger.room(&node.parse().unwrap(), bound, &striped(10, "ab"), NOW);
            let rooms = ledger.storage_rooms(&striped(10, "ab"), NOW);
            std::iter::once(room)
                .chain(rooms)
                .map(|room| (room.resource.to_string(), room.wanted, room.bound, room.fits()))
                .collect()
        };
        let stores = || ["storage:s3/a", "storage:s3/b"].map(|name| (name.to_owned(), mbps(5), Some(mbps(20)), false));
        let storage = ("storage:s3".to_owned(), mbps(10), Some(mbps(50)), true);
        let own = ("node:a".to_owned(), mbps(10), Some(mbps(100)), true);
        assert_eq!(shown("a", None), [&[own, storage.clone()][..], &stores()].concat());
        let other = |bound, fits| ("node:b".to_owned(), mbps(10), bound, fits);
        assert_eq!(shown("b", None), [&[other(None, true), storage.clone()][..], &stores()].concat());
        assert_eq!(shown("b", Some(mbps(5)))[0], other(Some(mbps(5)), false));
        // Bookings that end before the stream begins do not count.
        let later = NOW + Duration::from_secs(4 * 3600);
        let room = ledger.room(&"a".parse().unwrap(), None, &striped(40, "ab"), later);
        let rooms = [&[room][..], &ledger.storage_rooms(&striped(40, "ab"), later)].concat();
        assert!(rooms.iter().all(|room| room.booked == Bitrate::ZERO && room.fits()), "{rooms:?}");
    }

    #[test]
    fn a_stream_that_needs_more_than_a_storage_has_is_refused() {
        assert!(ledger("a", 0, 30).plan(&[film(60)], NOW).answers[0].is_err());
    }

    #[test]
    fn bookings_of_the_only_place_can_be_read() {
        let mut one = ledger("a", 0, 100);
        let plan = one.plan(&[Demand { storage: Some("".into()), ..film(6) }], NOW);
        assert!(ledger("b", 0, 100).set_other(b"/m/book/nodes/a/1", 1, plan.value.as_bytes()), "{}", plan.value);
    }

    #[test]
    fn what_is_given_back_is_free_again_and_ends_are_kept() {
        let mut ledger = ledger("a", 100, 0);
        let slots: Vec<_> = book(&mut ledger, &[film(50), film(50)], NOW).into_iter().map(Result::unwrap).collect();
        assert!(book(&mut ledger, &[film(1)], NOW)[0].is_err());
        ledger.give_back(&slots[0], Bitrate::from_mbps(50));
        assert!(ledger.take(&film(50), NOW).is_some(), "it is still booked");
        for slot in &slots {
            ledger.give_back(slot, Bitrate::from_mbps(50));
        }
        let plan = ledger.plan(&[], NOW);
        assert!(plan.is_changed && plan.value == "[]", "{}", plan.value);
        ledger.written(plan, &[]);
        assert_eq!(ledger.booked(&"a".parse().unwrap(), NOW), Bitrate::ZERO);
        // Streams that nobody gives back end.
        assert!(book(&mut ledger, &[film(100)], NOW)[0].is_ok());
        assert!(book(&mut ledger, &[film(100)], NOW + Duration::from_secs(3000))[0].is_err());
        assert!(book(&mut ledger, &[film(100)], NOW + Duration::from_secs(9000))[0].is_ok());
    }

    #[test]
    fn the_bookings_of_many_storages_can_be_read() {
        let mut one = ledger("a", 0, 1_000_000);
        let stream = |number: u64| Demand {
            storage: Some(format!("storage-{}", number % 200).into()),
            rate: Bitrate::from_mbps(1),
            length: Some(Duration::from_secs(number * 10)),
            ..Demand::default()
        };
        let demands: Vec<_> = (0..8000).map(stream).collect();
        let plan = one.plan(&demands, NOW);
        assert!(plan.answers.iter().all(Result::is_ok));
        let mut other = ledger("b", 0, 1_000_000);
        assert!(other.set_other(b"/m/book/nodes/a/1", 1, plan.value.as_bytes()));
        let booked: Bitrate = other
            .all_booked(NOW)
            .into_iter()
            .filter(|(name, _)| matches!(name, Resource::Storage(_)))
            .map(|(_, rate)| rate)
            .sum();
        assert!(booked >= Bitrate::from_mbps(8000), "{booked}");
    }

    #[test]
    fn a_booking_lasts_until_its_period_ends() {
        let mut ledger = ledger("a", 1000, 0);
        let demand = Demand { storage: None, ..film(4) };
        let slot = book(&mut ledger, std::slice::from_ref(&demand), NOW).remove(0).unwrap();
        let later = NOW + Duration::from_secs(4 * 3600);
        assert!(ledger.lasts(&slot, &demand, NOW) && !ledger.lasts(&slot, &demand, later));
        assert!(!slot.is_over(NOW) && slot.is_over(later));
        let endless = Demand { length: None, ..demand };
        assert!(!ledger.lasts(&slot, &endless, NOW));
        let slot = book(&mut ledger, std::slice::from_ref(&endless), NOW).remove(0).unwrap();
        assert!(ledger.lasts(&slot, &endless, later) && !slot.is_over(later));
    }

    #[test]
    fn what_is_read_and_not_sent_is_booked_of_the_storage_alone() {
        let mut ledger = ledger("a", 100, 100);
        let read = Demand { is_read_only: true, length: None, ..film(80) };
        let demands = [film(15), read.clone()];
        assert!(book(&mut ledger, &demands, NOW).iter().all(Result::is_ok));
        let mbps = Bitrate::from_mbps;
        assert_eq!((ledger.needed(None), ledger.needed(Some("s3"))), (mbps(15), mbps(95)));
        let booked = ledger.all_booked(NOW);
        let of = |resource: &str| booked[&resource.parse().unwrap()];
        assert!(of("node:a") <= mbps(17) && of("storage:s3") >= mbps(95), "{booked:?}");
        // Without a limit of storages it is nothing that other nodes would have to read.
        let mut of_node = self::ledger("b", 100, 0);
        let plan = of_node.plan(&[read], NOW);
        assert_eq!((plan.value.as_str(), plan.answers[0].is_ok()), ("[]", true));
    }

    #[test]
    fn a_lost_lease_is_written_again() {
        let mut ledger = ledger("a", 100, 0);
        book(&mut ledger, &[film(50)], NOW);
        assert!(!ledger.plan(&[], NOW).is_changed);
        ledger.set_written(false);
        let plan = ledger.plan(&[], NOW);
        assert!(plan.is_changed && plan.value.contains("node:a"), "{}", plan.value);
        ledger.written(plan, &[]);
        ledger.set_written(true);
        assert!(!ledger.plan(&[], NOW).is_changed);
    }
}
