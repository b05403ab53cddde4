//! Reports about live sources: their failures, and counts of received packets and frames.

mod counts;
mod error;
mod totals;

pub use counts::SourceCounts;
pub use error::{SourceError, SourceErrorKind};
pub(crate) use totals::LiveTotals;
