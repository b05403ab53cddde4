//! Room for a stream at the nodes of the view, by what is booked and what is about to be.

use super::Cluster;
use millpond_cluster::{Demand, Expected, Ledger, NodeName, Room, Rooms, View};
use std::{
    sync::{Arc, MutexGuard},
    time::Duration,
};

/// Room for one stream at all nodes, at one moment. The books are locked while it lives.
#[derive(Debug)]
pub(super) struct NodeRooms<'a> {
    ledger: MutexGuard<'a, Ledger>,
    expected: MutexGuard<'a, Expected>,
    view: Arc<View>,
    demand: &'a Demand,
    /// Whether the bandwidth of this node is limited.
    is_bounded: bool,
    /// Time since the Unix epoch, and since the start of the server.
    now: (Duration, Duration),
}

impl Cluster {
    /// Room for a stream of `demand`.
    pub(super) fn rooms<'a>(&'a self, demand: &'a Demand) -> NodeRooms<'a> {
        let (ledger, expected) = (self.bookings.ledger(), self.bookings.expected());
        let (is_bounded, now) = (self.settings.mbps.is_some(), (self.wall.bookings.now(), self.now()));
        NodeRooms { ledger, expected, view: self.view(), demand, is_bounded, now }
    }

    /// Notes that a stream was sent to another node, which is going to book it.
    pub(super) fn expect(&self, name: &NodeName, demand: &Demand) {
        let mut rooms = self.rooms(demand);
        if rooms.ledger.is_bounded() {
            let booked = rooms.room(name).booked;
            rooms.expected.add(name, demand.rate, booked, rooms.now.1);
        }
    }
}

impl NodeRooms<'_> {
    /// The demand of the stream.
    pub(super) fn demand(&self) -> &Demand {
        self.demand
    }

    /// Room at a node.
    fn room(&self, name: &NodeName) -> Room {
        let bound = self.view.node(name.as_str()).and_then(|node| node.bookable(self.is_bounded));
        let room = self.ledger.room(name, bound, self.demand, self.now.0);
        Room { booked: room.booked.max(self.expected.booked(name, self.now.1)), ..room }
    }

    /// Room at some nodes, and at the storages that the stream needs. Empty where nothing is limited.
    pub(super) fn all<'b>(&self, names: impl Iterator<Item = &'b NodeName>) -> Vec<Room> {
        if !self.ledger.is_bounded() {
            return Vec::new();
        }
        names.map(|name| self.room(name)).chain(self.ledger.storage_rooms(self.demand, self.now.0)).collect()
    }
}

impl Rooms for NodeRooms<'_> {
    fn has_room(&self, dispenser: &NodeName) -> bool {
        self.room(dispenser).fits()
    }
}
