//! Bookings that a node wants to write.

use super::slot::{Line, Slot};
use crate::Shortage;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

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
    pub(super) lines: BTreeMap<Slot, Line>,
    /// When it was made, since the Unix epoch.
    pub(super) at: Duration,
}
