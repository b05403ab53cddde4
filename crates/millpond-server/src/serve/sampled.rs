//! Samples of viewers for the statistics of viewing.

use super::Running;
use crate::statistics::{SampledViewer, ViewerSample};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

/// Interval between two samples.
const INTERVAL: Duration = Duration::from_secs(5);

/// Reads the statistics once the process before this one has left, then takes samples until `stop` turns true. The last one is taken then, and
/// the statistics are written.
pub(super) async fn sample(
    running: Arc<Running>,
    left: impl Future<Output = ()> + Send + 'static,
    mut stop: watch::Receiver<bool>,
) {
    left.await;
    let statistics = running.parts.statistics.clone();
    if spawn_blocking(move || statistics.load()).await.is_err() {
        return;
    }
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_last = false;
    while !is_last {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => is_last = true,
            _ = ticks.tick() => {}
        }
        let running = running.clone();
        let taken = spawn_blocking(move || {
            let statistics = &running.parts.statistics;
            statistics.add(&running.viewers());
            if is_last {
                statistics.finish();
            }
        });
        if taken.await.is_err() {
            return;
        }
    }
}

impl Running {
    /// All viewers of this moment, and the rebuffers since the last call.
    fn viewers(&self) -> ViewerSample {
        let mut viewers = Vec::new();
        self.each_viewer(&mut |protocol, number, title| {
            viewers.push(SampledViewer { protocol, number, title: title.to_owned() });
        });
        ViewerSample { viewers, rebuffers: self.parts.audience.take_rebuffers() }
    }
}
