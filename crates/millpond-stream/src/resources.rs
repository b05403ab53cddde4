//! Resources that modules share.

use crate::{
    Counters,
    broadcast::Broadcasts,
    stored::{Intervals, MediaReader},
};
use std::sync::Arc;

/// The means that all modules of an engine share. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Reads media through the store.
    pub(crate) reader: MediaReader,
    /// Blocks that sessions close to each other share.
    pub(crate) intervals: Arc<Intervals>,
    /// Titles that loop in phases.
    pub(crate) broadcasts: Arc<Broadcasts>,
    /// Counts frames, packets and reports.
    pub(crate) counters: Arc<Counters>,
}
