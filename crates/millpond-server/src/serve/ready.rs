//! Whether places answer.

use crate::admin::Readiness;
use millpond_store::{ErrorKind, ObjectPath, OriginError, Store};
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, time::sleep};

/// Asks a place until it answers once: then it is ready.
pub(super) async fn watch_place(
    store: Store,
    place: Arc<str>,
    readiness: Arc<Readiness>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        match ask(&store, &place).await {
            Ok(()) => return readiness.place_answered(&place),
            // A reload has removed it.
            Err(OriginError::NoSuchPlace { .. }) => return,
            Err(error) => tracing::warn!(place = %place, %error, "place does not answer yet"),
        }
        tokio::select! {
            () = sleep(Duration::from_secs(5)) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// A plain web server can't list its root: there, any answer counts, such as that there is no such file.
async fn ask(store: &Store, place: &str) -> Result<(), OriginError> {
    let error = match store.list(place, &ObjectPath::root()).await {
        Ok(_) => return Ok(()),
        Err(OriginError::Unsupported { .. }) => {
            let Ok(path) = ObjectPath::parse("index.html") else { return Ok(()) };
            match store.open(place, &path).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    // An answer that refuses is an answer; silence and credentials that nobody takes are not.
    match error.kind() {
        ErrorKind::NotFound if !matches!(error, OriginError::NoSuchBucket { .. }) => Ok(()),
        ErrorKind::Protocol => Ok(()),
        _ if matches!(error, OriginError::Forbidden { .. }) => Ok(()),
        _ => Err(error),
    }
}
