//! Settings of an engine.

use crate::{
    Bounds, Dropping, Groups, Lateness, RateRule, graph::QueueLimits, notice::NoticeBoard, reception::Upstream,
};
use millpond_utc::WallClock;
use std::{net::IpAddr, sync::Arc, time::Duration};

/// Settings of an engine. [`Manager::reconfigure`](crate::Manager::reconfigure) tells which of them may change while it runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address that packets are sent from.
    pub address: IpAddr,
    /// Number of sending threads.
    pub threads: usize,
    /// Called by each sending thread when it starts.
    pub on_thread_start: fn(),
    /// Limits of admission.
    pub bounds: Bounds,
    /// Time between two rounds of a sending thread: [`ROUND`](crate::ROUND) or longer.
    pub round: Duration,
    /// Caching window of interval caching.
    pub window: Duration,
    /// How far deadlines move after a missed one.
    pub lateness: Lateness,
    /// Longest time by which a stored title starts later, so that no frame is late over a slow link to its origin.
    pub start_wait: Duration,
    /// Rule for the rate of RTP over UDP.
    pub rate_rule: RateRule,
    /// Paths of the assets that play as channels.
    pub channels: Vec<String>,
    /// Most live streams that are known at a time.
    pub max_streams: usize,
    /// Limit of the memory for the frames of one live stream, in bytes. It counts the frames of the window, the frames since the
    /// last key frame, and the frames that wait for viewers. A stream that sends more in 4 s is closed.
    pub stream_memory: u64,
    /// Longest time from the first to the last picture that waits for one viewer of a live stream.
    pub viewer_queue: Duration,
    /// Which frames a viewer of a live stream loses, for whom too many wait.
    pub dropping: Dropping,
    /// The clock by which runs of live streams are numbered: a corrected one where nodes of a cluster follow each other.
    pub clock: WallClock,
    /// The ways to live sources.
    pub upstream: Upstream,
    /// Takes notices of live streams.
    pub notices: Option<Arc<dyn NoticeBoard>>,
    /// Multicast groups of channels.
    pub groups: Option<Groups>,
}

impl Options {
    /// Bounds of the frames of a live stream that wait for a viewer.
    pub(super) fn viewer_limits(&self) -> QueueLimits {
        QueueLimits::viewer(self.viewer_queue, self.dropping)
    }
}
