//! The cluster simulator: assignment, admission and interval caching over many nodes, on a virtual clock.
//!
//! It drives the code that serves: `millpond_cluster` for views, assignment, homes and books, and `millpond_store::intervals` for
//! interval caching. [`serve`] is the server of Srinilta and Choudhary: a few dispensers before throttled storages. [`run_fleet`] is
//! a cluster of up to 10,000 nodes with failures, joins, skew and a flash crowd. [`run_regions`] is a cluster over regions, of which one is
//! lost.

mod dispenser;
mod events;
mod fleet;
mod fleet_outcome;
mod fleet_setting;
mod moves;
mod paper;
mod recent;
mod region_caches;
mod regions;
mod regions_outcome;
mod regions_setting;
mod sharded;
mod storages;
mod stream;
#[cfg(test)]
mod tests;

pub use fleet::run_fleet;
pub use fleet_outcome::FleetOutcome;
pub use fleet_setting::FleetSetting;
pub use paper::{PaperOutcome, PaperSetting, serve};
pub use regions::run_regions;
pub use regions_outcome::RegionsOutcome;
pub use regions_setting::RegionsSetting;
