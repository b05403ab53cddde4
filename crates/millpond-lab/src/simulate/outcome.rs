//! The choices of a run, and its results.

use super::LinkModel;
use millpond_store::{policy::PolicyName, schedule::Mode};
use serde::Serialize;

/// The choices of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Bytes of the cache.
    pub cache: u64,
    /// Bytes of a slice.
    pub slice: u32,
    /// When slices are fetched.
    pub mode: Mode,
    /// The eviction policy.
    pub policy: PolicyName,
    /// The link to the origin. The planner measures it, as the server does.
    pub link: LinkModel,
}

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Outcome {
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// Bytes of a slice; 0 where objects are cached whole.
    pub slice_bytes: u64,
    /// The prefetch mode.
    pub mode: String,
    /// The eviction policy.
    pub policy: String,
    /// Visits.
    pub visits: u64,
    /// Bytes that viewers read.
    pub bytes: u64,
    /// Bytes that the origin sent.
    pub server_bytes: u64,
    /// Bytes that viewers read of slices that were cached.
    pub hit_bytes: u64,
    /// Slices that viewers read.
    pub asks: u64,
    /// Slices among them that were cached.
    pub hits: u64,
    /// Bytes fetched ahead of their viewers.
    pub prefetched_bytes: u64,
    /// Bytes among them that no viewer read before their eviction, or before the end of the trace.
    pub false_prefetch_bytes: u64,
    /// Mean seconds from the beginning of a visit to its first byte.
    pub startup_seconds: f64,
    /// Times that playback stopped.
    pub stalls: u64,
    /// Seconds for which it stopped.
    pub stall_seconds: f64,
}

impl Outcome {
    /// Returns the share of the bytes read that were not cached.
    pub fn byte_miss_ratio(&self) -> f64 {
        1.0 - self.hit_bytes as f64 / self.bytes.max(1) as f64
    }
}
