//! Sockets from the service manager, and words to it (sd_listen_fds(3), sd_notify(3)).

use millpond_connections::Inherited;
use sd_notify::NotifyState;

/// Takes the listening sockets that the service manager has bound; none where it has bound none.
pub(super) fn sockets() -> Inherited {
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names: Vec<_> = names.split(':').collect();
    let mut passed = listenfd::ListenFd::from_env();
    let mut sockets = Vec::new();
    for number in 0..passed.len() {
        match passed.take_tcp_listener(number) {
            Ok(Some(socket)) => sockets.push((names.get(number).map(|name| (*name).to_owned()), socket)),
            Ok(None) => {}
            Err(error) => tracing::warn!(number, %error, "a socket of the service manager can't be used"),
        }
    }
    Inherited::new(sockets)
}

/// Tells the service manager, where there is one.
pub(super) fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager is not told");
    }
}

/// Tells that a reload begins.
pub(crate) fn tell_reloading() {
    let now = NotifyState::monotonic_usec_now().ok();
    let states: Vec<_> = [NotifyState::Reloading].into_iter().chain(now).collect();
    tell(&states);
}

/// Tells that a reload has ended.
pub(crate) fn tell_reloaded() {
    tell(&[NotifyState::Ready]);
}

/// Tells that the server stops.
pub(crate) fn tell_stopping() {
    tell(&[NotifyState::Stopping]);
}
