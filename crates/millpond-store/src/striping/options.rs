//! Options of striped objects.

use std::time::Duration;

use super::StripeStore;

/// Stores of striped objects, and how they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripingOptions {
    /// Stores that the maps of striped objects may name.
    pub stores: Vec<StripeStore>,
    /// Units of a striped object that are read at the same time; 0 is twice the number of its stores.
    pub batch: usize,
    /// Longest pause of a store while another copy of its unit is left.
    pub timeout: Duration,
    /// Longest delay of the start of a stream of a striped object.
    pub start: Duration,
    /// Whether damaged units are replaced by a good copy.
    pub repair: bool,
}

impl Default for StripingOptions {
    fn default() -> Self {
        Self {
            stores: Vec::new(),
            batch: 0,
            timeout: Duration::from_secs(1),
            start: Duration::from_secs(5),
            repair: false,
        }
    }
}
