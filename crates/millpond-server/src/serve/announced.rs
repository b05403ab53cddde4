//! The announcement of a running server on the local network.

use super::{Running, running::Sockets};
use crate::{announce::Announcement, config::Config};
use millpond_connections::Listener;

impl Running {
    /// Announces the page by the name of a configuration. Takes an earlier name back if the name or the listener is another one.
    pub(super) fn announce(&self, sockets: &mut Sockets, config: &Config) {
        let listener = sockets.listeners.get("http").and_then(Listener::address);
        let wanted = config.announce.name.clone().zip(listener);
        let is_same = match (&sockets.announcement, &wanted) {
            (Some(known), Some((name, listener))) => known.is_of(name, *listener),
            (known, wanted) => known.is_none() && wanted.is_none(),
        };
        if is_same {
            return;
        }
        if let Some(before) = sockets.announcement.take() {
            before.end();
        }
        let Some((name, listener)) = wanted else { return };
        match Announcement::start(name, listener) {
            Ok(announcement) => {
                tracing::info!(url = announcement.url(), "the page is announced on the local network");
                sockets.announcement = Some(announcement);
            }
            Err(error) => tracing::warn!("mdns-name: the page is not announced: {error}"),
        }
    }

    /// Takes the announced name back. After an upgrade the name stays: the other process announces it.
    pub(super) fn end_announcement(&self) {
        if let Some(announcement) = self.sockets().announcement.take()
            && !self.has_handed_over()
        {
            announcement.end();
        }
    }
}
