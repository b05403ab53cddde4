//! Heavy work of the stream engine, run by the server's pool.

use crate::work::WorkPool;
use futures_util::future::BoxFuture;
use millpond_media::Work;
use millpond_stream::HeavyWork;
use std::{error::Error, fmt, sync::Arc};

/// The server's pool, as the engine sees it.
pub(super) struct Heavy(pub(super) Arc<WorkPool>);

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
