//! The stream engine of a server: made once, and used by HTTP, RTSP and recordings.

use crate::{
    library::Places,
    limits::LimitSettings,
    priority::{self, Duty},
    rtsp::{RtspMetrics, RtspSettings},
    work::WorkPool,
};
use futures_util::future::BoxFuture;
use millpond_media::Work;
use millpond_store::Store;
use millpond_stream::{HeavyWork, Manager, NoticeBoard, reception::Upstream};
use millpond_utc::WallClock;
use std::{error::Error, fmt, io, sync::Arc};

/// Starts the engine's threads. Heavy work runs on `pool`, `clock` numbers runs of live streams, `upstream` leads to sources, `notices` takes notices of live streams, and
/// `metrics` count.
///
/// # Errors
/// A thread can't be started, or has no ports.
pub(crate) fn start(
    store: Store,
    pool: Arc<WorkPool>,
    places: &Places,
    (settings, limits, clock): (&RtspSettings, &LimitSettings, &WallClock),
    upstream: Upstream,
    notices: Arc<dyn NoticeBoard>,
    metrics: &RtspMetrics,
) -> io::Result<Arc<Manager>> {
    let options = settings.engine(limits, clock.clone(), upstream, Some(notices), || priority::raise(Duty::Sending));
    let names: Vec<_> = places.iter().cloned().collect();
    let manager = Arc::new(Manager::new(store, Arc::new(Heavy(pool)), names, options, &metrics.streams)?);
    metrics.live.set(&manager);
    Ok(manager)
}

/// The server's pool, as the engine sees it.
struct Heavy(Arc<WorkPool>);

impl HeavyWork for Heavy {
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        Box::pin(async move { Ok(self.0.run(&Work::unlimited(), job).await?) })
    }
}

impl fmt::Debug for Heavy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heavy").finish_non_exhaustive()
    }
}
