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

/// A stream that wants bandwidth of its node, and of a storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The storage that it reads from; `None` for one that reads from none.
    pub storage: Option<Arc<str>>,
    /// Its bandwidth.
    pub rate: Bitrate,
    /// Time that it plays from now on; `None` for one without an end.
    pub length: Option<Duration>,
}

/// The booking that a stream is part of. [`Ledger::give_back`] takes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    storage: Option<Arc<str>>,
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
    /// Whether its streams have ended.
    fn is_over(&self, now: Duration) -> bool {
        self.until.is_some_and(|until| until <= now.as_secs())
    }
}

/// The bookings of a node and of all others.
#[derive(Debug)]
pub struct Ledger {
    name: NodeName,
    /// Bandwidth of this node; `None` is unbounded.
    capacity: Option<Bitrate>,
    /// Bandwidth of each storage; `None` is unbounded.
    storage: Option<Bitrate>,
    own: BTreeMap<Slot, Line>,
    book: Book,
    /// Names of the bookings of each other node, by the key of its value, with the revision of that.
    others: HashMap<Vec<u8>, (u64, Vec<String>)>,
    /// Whether etcd may have other bookings of this node than it should.
    is_unwritten: bool,
}

/// Bookings that a node wants to write.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The node's bookings, as JSON.
    pub value: String,
    /// Storages of which it takes more than it had. No other node may take of them meanwhile.
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
    /// A ledger without bookings. Of each storage all nodes together may take `storage`; `None` is unbounded.
    pub fn new(name: NodeName, capacity: Option<Bitrate>, storage: Option<Bitrate>) -> Self {
        let mut book = Book::default();
        book.set_capacity(Resource::Node(name.clone()), capacity);
        Self { name, capacity, storage, own: BTreeMap::new(), book, others: HashMap::new(), is_unwritten: false }
    }

    /// Whether anything is bounded. Otherwise nothing needs to be booked.
    pub fn is_bounded(&self) -> bool {
        self.capacity.is_some() || self.storage.is_some()
    }

    /// Takes bandwidth that is booked already; `None` where more has to be booked.
    pub fn take(&mut self, demand: &Demand, now: Duration) -> Option<Slot> {
        let slot = self.slot(demand, now);
        let line = self.own.get_mut(&slot)?;
        let needed = line.needed.saturating_add(demand.rate.bps());
        (needed <= line.written).then(|| line.needed = needed)?;
        Some(slot)
    }

    /// Gives a stream's bandwidth back.
    pub fn give_back(&mut self, slot: &Slot, rate: Bitrate) {
        if let Some(line) = self.own.get_mut(slot) {
            line.needed = line.needed.saturating_sub(rate.bps());
        }
    }

    /// The bookings that make room for demands, as far as they fit, and give back what is not needed.
    pub fn plan(&mut self, demands: &[Demand], now: Duration) -> Plan {
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
        Plan { value, storages, answers, is_changed, lines, at: now }
    }

    /// Notes that a plan was written. Streams that began or ended meanwhile stay counted.
    pub fn written(&mut self, plan: Plan, demands: &[Demand]) {
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

    /// Bandwidth of this node's streams, in all or of one storage.
    pub fn needed(&self, storage: Option<&str>) -> Bitrate {
        let lines = self.own.iter().filter(|(slot, _)| storage.is_none() || slot.storage.as_deref() == storage);
        lines.map(|(_, line)| Bitrate::from_bps(line.needed)).sum()
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
        let slot = self.slot(demand, now);
        let line = lines.get(&slot).copied().unwrap_or(Line { from: now.as_secs(), ..Line::default() });
        let needed = line.needed.saturating_add(demand.rate.bps());
        let block = self.block(&slot);
        let rounded = needed.checked_next_multiple_of(block).unwrap_or(needed);
        let wanted = |written: u64| Line { needed, written: written.max(line.written), ..line };
        // More than is needed only where there is enough.
        let fits = |line: &Line| self.book.fits(&self.booking(&slot, line));
        let new = match fits(&wanted(rounded)) {
            Ok(()) => wanted(rounded),
            Err(_) => fits(&wanted(needed)).map(|()| wanted(needed))?,
        };
        let booking = self.booking(&slot, &new);
        self.bound(&booking);
        self.book.insert(booking);
        lines.insert(slot.clone(), new);
        Ok(slot)
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
                self.book.set_capacity(resource.clone(), self.storage);
            }
        }
    }

    fn slot(&self, demand: &Demand, now: Duration) -> Slot {
        let until = demand.length.filter(|length| *length <= LATEST).map(|length| {
            let period = if length <= LONG { PERIOD } else { LONG_PERIOD };
            now.saturating_add(length).as_secs().next_multiple_of(period.as_secs())
        });
        Slot { storage: demand.storage.clone().filter(|_| self.storage.is_some()), until }
    }

    /// The step in which bookings of a slot grow.
    fn block(&self, slot: &Slot) -> u64 {
        let storage = self.storage.filter(|_| slot.storage.is_some());
        let least = self.capacity.into_iter().chain(storage).min().unwrap_or(Bitrate::from_mbps(1000));
        (least.bps() / BLOCKS).max(1)
    }

    fn booking(&self, slot: &Slot, line: &Line) -> Booking {
        let Slot { storage, until } = slot;
        let storage_hash = storage.as_ref().map_or(0, |storage| hash::bytes(storage.as_bytes()));
        let id = format!("{}:{storage_hash:x}:{}", self.name, until.unwrap_or(0));
        let storages: Vec<_> = storage.iter().cloned().collect();
        let from = Duration::from_secs(line.from);
        let length = until.map(|until| Duration::from_secs(until).saturating_sub(from));
        Booking::new(id, &self.name, &storages, Bitrate::from_bps(line.written), from, length)
    }

    fn value(&self, lines: &BTreeMap<Slot, Line>) -> String {
        let all = lines.iter().filter(|(_, line)| line.written > 0);
        let all: Vec<_> = all.map(|(slot, line)| self.booking(slot, line).to_json()).collect();
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
        Ledger::new(name.parse().unwrap(), rate(node), rate(storage))
    }

    fn film(mbps: u64) -> Demand {
        let length = Some(Duration::from_secs(5000));
        Demand { storage: Some("s3".into()), rate: Bitrate::from_mbps(mbps), length }
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
