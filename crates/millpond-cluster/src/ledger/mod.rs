//! The bandwidth that a node books: its streams, gathered into few bookings, beside the bookings of the other nodes.
//!
//! Streams of one storage that end within the same period are one booking. A booking has a little more bandwidth than its streams, so
//! that most streams start without asking etcd. Nodes write all their bookings as one value.

mod demand;
mod plan;
mod room;
mod slot;

pub use demand::{Demand, Limits};
pub use plan::BookingPlan;
pub use room::Room;
pub use slot::Slot;

use super::{Bitrate, Book, Booking, NodeName, Resource, Shortage, hash};
use slot::Line;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
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
            let end = now.saturating_add(length);
            // A second that has begun counts: the booking does not end before the stream.
            let seconds = end.as_secs().saturating_add(u64::from(end.subsec_nanos() > 0));
            seconds.next_multiple_of(period.as_secs())
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
mod tests;
