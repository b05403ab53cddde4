//! Bounds the past of all live streams together.

use millpond_store::ring::SweepLimits;
use millpond_stream::Manager;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};

/// Time between two sweeps.
const INTERVAL: Duration = Duration::from_secs(60);

/// Sweeps the folder at once and then each minute, until `stop` turns true.
pub(crate) async fn sweep(
    manager: Arc<Manager>,
    folder: PathBuf,
    limits: SweepLimits,
    mut stop: watch::Receiver<bool>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            _ = ticks.tick() => {}
        }
        let (manager, folder) = (manager.clone(), folder.clone());
        let swept = tokio::task::spawn_blocking(move || manager.sweep_past(&folder, limits));
        if let Ok(Err(error)) = swept.await {
            tracing::warn!(%error, "the past of streams can't be bounded");
        }
    }
}
