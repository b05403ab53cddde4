//! The announcement of a running server on the local network.

use super::{Running, running::Sockets};
use crate::{
    announce::{AnnounceError, AnnouncedPage, Announcement},
    config::Config,
};
use millpond_connections::Listener;
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn_blocking};

impl Running {
    /// Begins to announce the page, once the process before this one has left its name.
    pub(super) fn announce_after(self: &Arc<Self>, left: impl Future<Output = ()> + Send + 'static) {
        let running = self.clone();
        tokio::spawn(async move {
            left.await;
            // Sockets may be locked by a reload, and the announcement starts a thread.
            spawn_blocking(move || running.announce(&mut running.sockets(), &running.generation.load().config));
        });
    }

    /// Announces the page by the name of a configuration. Takes an earlier name back if the name or the listener is another one.
    pub(super) fn announce(&self, sockets: &mut Sockets, config: &Config) {
        if self.is_leaving() {
            return;
        }
        let page = page(sockets, config).transpose().unwrap_or_else(|error| {
            tracing::warn!("mdns-name: the page is not announced: {error}");
            None
        });
        if sockets.announcement.as_ref().map(Announcement::page) == page.as_ref() {
            return;
        }
        if let Some(before) = sockets.announcement.take() {
            before.end();
        }
        let Some(page) = page else { return };
        match Announcement::start(page) {
            Ok(announcement) => sockets.announcement = Some(announcement),
            Err(error) => tracing::warn!("mdns-name: the page is not announced: {error}"),
        }
    }

    /// The page that this process will announce, for the process before it: empty if it announces none.
    pub(super) fn announced_page(&self) -> String {
        let page = page(&self.sockets(), &self.generation.load().config);
        page.and_then(Result::ok).map(|page| page.to_string()).unwrap_or_default()
    }

    /// Takes the announced name back, beside the end of everything else. No name is announced from then on: the server stops.
    pub(super) fn end_announcement(&self) -> Option<JoinHandle<()>> {
        let announcement = self.sockets().announcement.take()?;
        Some(spawn_blocking(|| announcement.end()))
    }
}

/// Returns the page that a configuration announces; `None` without a name.
fn page(sockets: &Sockets, config: &Config) -> Option<Result<AnnouncedPage, AnnounceError>> {
    let address = |name| sockets.listeners.get(name).and_then(Listener::address);
    Some(AnnouncedPage::new(config.announce.name.clone()?, address("http")?, address("https")))
}
