//! Admission for the whole playback (Srinilta and Choudhary 2.2): a stream starts only if its node and its storages have its
//! bandwidth until it ends.
//!
//! The book is a copy of the bookings in etcd. A node asks it whether a stream fits, and writes the booking in a transaction.
//! That fails where another booking of the same resources came first. Then the node reads that booking and asks again.

use super::{Bitrate, Booking, Resource};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// How much longer a booking of another node counts, before it begins and after it ends: clocks may differ by as much.
pub const CLOCKS_DIFFER: Duration = Duration::from_secs(5 * 60);

/// The bookings of a cluster, and the capacities that they share.
#[derive(Clone, Debug)]
pub struct Book {
    differ: Duration,
    bookings: HashMap<String, Booking>,
    resources: BTreeMap<Resource, Usage>,
}

/// Bandwidth that is booked of a resource, over time.
#[derive(Clone, Debug, Default)]
struct Usage {
    /// `None` is unbounded.
    capacity: Option<Bitrate>,
    /// Changes of the sum, in bits per second.
    changes: BTreeMap<Duration, Change>,
}

/// The change of the booked bandwidth at a time. It stays while bookings begin or end there, even where their changes are 0 together: without one of them
/// they are not.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    by: i128,
    /// Number of bookings that begin or end there.
    bookings: i128,
}

/// Why a stream does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{resource}: {wanted} wanted, {free} free{}", when(*.after))]
pub struct Shortage {
    /// The resource that lacks bandwidth.
    pub resource: Resource,
    /// Bandwidth that the stream needs of it.
    pub wanted: Bitrate,
    /// Bandwidth that is free when least is.
    pub free: Bitrate,
    /// When that is, after the stream begins.
    pub after: Duration,
}

/// Describes when least is free; nothing where that is at once.
fn when(after: Duration) -> String {
    match after.as_secs() + u64::from(after.subsec_nanos() > 0) {
        0 => String::new(),
        seconds @ 1..=120 => format!(" after {seconds} s"),
        seconds => format!(" after {} min", seconds.div_ceil(60)),
    }
}

impl Default for Book {
    fn default() -> Self {
        Self::new(CLOCKS_DIFFER)
    }
}

impl Book {
    /// A book without bookings, for clocks that differ by at most `differ`.
    pub fn new(differ: Duration) -> Self {
        Self { differ, bookings: HashMap::new(), resources: BTreeMap::new() }
    }

    /// Changes the capacity of a resource. A resource without one is unbounded.
    pub fn set_capacity(&mut self, resource: Resource, capacity: Option<Bitrate>) {
        self.resources.entry(resource).or_default().capacity = capacity;
    }

    /// Whether a stream fits all its resources until it ends. A booking of the same name does not count: it is the stream's own.
    ///
    /// # Errors
    /// The first resource that lacks bandwidth.
    pub fn fits(&self, booking: &Booking) -> Result<(), Shortage> {
        let own = self.bookings.get(&booking.id);
        for (resource, wanted) in &booking.shares {
            let Some(usage) = self.resources.get(resource) else { continue };
            let Some(capacity) = usage.capacity else { continue };
            let (from, until) = (booking.from, booking.until.unwrap_or(Duration::MAX));
            let own = own.map(|own| (self.span(own), own.share(resource)));
            let (peak, at) = usage.peak(from, until, own);
            let free = i128::from(capacity.bps()).saturating_sub(peak).max(0);
            if i128::from(wanted.bps()) > free {
                let free = Bitrate::from_bps(u64::try_from(free).unwrap_or(u64::MAX));
                let after = at.saturating_sub(from);
                return Err(Shortage { resource: resource.clone(), wanted: *wanted, free, after });
            }
        }
        Ok(())
    }

    /// Adds a booking, in place of one of the same name.
    pub fn insert(&mut self, booking: Booking) {
        self.remove(&booking.id.clone());
        self.apply(&booking, 1);
        self.bookings.insert(booking.id.clone(), booking);
    }

    /// Removes a booking: the stream has ended, or the lease of its node has.
    pub fn remove(&mut self, id: &str) -> Option<Booking> {
        let booking = self.bookings.remove(id)?;
        self.apply(&booking, -1);
        Some(booking)
    }

    /// Removes bookings that ended before `now`, a time since the Unix epoch, and returns their number.
    pub fn expire(&mut self, now: Duration) -> usize {
        let ended = |booking: &&Booking| self.span(booking).1 <= now;
        let ids: Vec<_> = self.bookings.values().filter(ended).map(|booking| booking.id.clone()).collect();
        ids.iter().for_each(|id| drop(self.remove(id)));
        ids.len()
    }

    /// Bandwidth that is booked of a resource at a time.
    pub fn booked(&self, resource: &Resource, at: Duration) -> Bitrate {
        let peak = self.resources.get(resource).map_or(0, |usage| usage.peak(at, at, None).0);
        Bitrate::from_bps(u64::try_from(peak).unwrap_or(0))
    }

    /// The most that is booked of a resource from a time until another one, `None` without an end.
    pub fn most(&self, resource: &Resource, from: Duration, until: Option<Duration>) -> Bitrate {
        let most = self.resources.get(resource).map(|usage| usage.peak(from, until.unwrap_or(Duration::MAX), None).0);
        Bitrate::from_bps(u64::try_from(most.unwrap_or(0)).unwrap_or(0))
    }

    /// The bookings, in no order.
    pub fn bookings(&self) -> impl Iterator<Item = &Booking> {
        self.bookings.values()
    }

    /// When a booking counts, with the differences of clocks.
    fn span(&self, booking: &Booking) -> (Duration, Duration) {
        let until = booking.until.map_or(Duration::MAX, |until| until.saturating_add(self.differ));
        (booking.from.saturating_sub(self.differ), until)
    }

    fn apply(&mut self, booking: &Booking, sign: i128) {
        let (from, until) = self.span(booking);
        for (resource, rate) in &booking.shares {
            let usage = self.resources.entry(resource.clone()).or_default();
            let rate = i128::from(rate.bps());
            usage.change(from, rate, sign);
            usage.change(until, -rate, sign);
            if usage.capacity.is_none() && usage.changes.is_empty() {
                self.resources.remove(resource);
            }
        }
    }
}

impl Usage {
    /// Adds a change of the sum. `sign` is 1 to make it and -1 to unmake it.
    fn change(&mut self, at: Duration, by: i128, sign: i128) {
        // An end that never comes changes nothing.
        if at == Duration::MAX {
            return;
        }
        let change = self.changes.entry(at).or_default();
        change.by += sign * by;
        change.bookings += sign;
        if change.bookings == 0 {
            self.changes.remove(&at);
        }
    }

    /// The largest sum from `from` to before `until`, and when it begins. `own` is the span and the rate of a booking that does not
    /// count.
    fn peak(&self, from: Duration, until: Duration, own: Option<((Duration, Duration), Bitrate)>) -> (i128, Duration) {
        let own_at = |at: Duration| match own {
            Some(((begin, end), rate)) if begin <= at && at < end => i128::from(rate.bps()),
            _ => 0,
        };
        let mut sum: i128 = self.changes.range(..=from).map(|(_, change)| change.by).sum();
        let mut most = (sum - own_at(from), from);
        if from < until {
            for (at, change) in self.changes.range((std::ops::Bound::Excluded(from), std::ops::Bound::Excluded(until)))
            {
                sum += change.by;
                if sum - own_at(*at) > most.0 {
                    most = (sum - own_at(*at), *at);
                }
            }
        }
        most
    }
}
