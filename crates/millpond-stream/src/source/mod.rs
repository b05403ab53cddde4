//! What is told of live sources: their failures, and counts of what was received.

mod counts;
mod error;
mod totals;

pub use counts::SourceCounts;
pub use error::{SourceError, SourceErrorKind};
pub(crate) use totals::LiveTotals;
