//! The store's planner and meter on the virtual clock: the simulated part of the server's prefetch task.

use super::workload::Visit;
use millpond_store::schedule::{Course, Fetch, Meter, Mode, Planner, SPACING, ViewerId};
use std::collections::HashMap;

/// Calls the planner when the server's prefetch task would: after each change and at the moment that the planner names,
/// with [`SPACING`] between two calls.
pub(super) struct LookAhead {
    planner: Planner,
    pub(super) meter: Meter,
    visits: HashMap<ViewerId, Visit>,
    /// Slices on their way ahead of their viewers.
    under_way: usize,
    /// The last call of the planner.
    last: f64,
    /// The next call of the planner.
    next: Option<f64>,
}

impl LookAhead {
    /// Creates a planner for slices of `slice` bytes.
    pub(super) fn new(mode: Mode, slice: u64) -> Self {
        Self {
            planner: Planner::new(mode, slice),
            meter: Meter::default(),
            visits: HashMap::new(),
            under_way: 0,
            last: f64::NEG_INFINITY,
            next: None,
        }
    }

    /// Adds a viewer.
    pub(super) fn join(&mut self, visit: &Visit) -> ViewerId {
        let id = self.planner.join(visit.object);
        self.visits.insert(id, *visit);
        id
    }

    /// Tells that a viewer reads on from `from`, and asks for its bytes up to `asked`. A change.
    pub(super) fn moves(&mut self, id: ViewerId, from: u64, asked: u64, now: f64) {
        let Some(visit) = self.visits.get(&id) else { return };
        if let Some(viewer) = self.planner.viewer(id) {
            viewer.moves(Course::constant(from, visit.len, visit.rate), asked, now);
        }
    }

    /// Removes a viewer. A change.
    pub(super) fn leave(&mut self, id: ViewerId) {
        self.planner.leave(id);
        self.visits.remove(&id);
    }

    /// Counts a slice that is fetched ahead.
    pub(super) fn fetch_begins(&mut self) {
        self.under_way += 1;
    }

    /// Counts the end of a fetch ahead. A change.
    pub(super) fn fetch_ends(&mut self) {
        self.under_way -= 1;
    }

    /// Moves the next call up to a moment. Returns the moment of that call where it is a new one.
    pub(super) fn call_by(&mut self, at: f64) -> Option<f64> {
        let at = at.max(self.last + SPACING);
        if self.next.is_some_and(|next| next <= at) {
            return None;
        }
        self.next = Some(at);
        self.next
    }

    /// Calls the planner, where a call is due. Returns the slices to fetch, with their objects, and when to call next.
    pub(super) fn call(&mut self, now: f64, here: impl Fn(&Visit, u64) -> bool) -> (Vec<(Visit, u64)>, Option<f64>) {
        if self.next != Some(now) {
            return (Vec::new(), None);
        }
        self.next = None;
        if self.planner.is_empty() {
            return (Vec::new(), None);
        }
        self.last = now;
        let visits = &self.visits;
        let is_here = |id: ViewerId, index: u64| visits.get(&id).is_none_or(|visit| here(visit, index));
        let (fetches, wake) = self.planner.plan(now, self.meter.state(), self.under_way, is_here);
        let of = |Fetch { viewer, index, .. }| Some((*visits.get(&viewer)?, index));
        (fetches.into_iter().filter_map(of).collect(), wake)
    }
}
