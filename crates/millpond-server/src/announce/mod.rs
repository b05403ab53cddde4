//! Announces the page on the local network, by multicast DNS (RFC 6762) and service discovery (RFC 6763).
//!
//! Browsers of services list the name, and `NAME.local` is the host in the page's URL. The responder has a thread of its own, which
//! wakes for queries, and every 5 seconds to look for other interfaces and addresses. Its events tell the names that the page has got
//! (`events`). It never tells that it has no socket, so the port is tried before (`port`).

mod events;
mod name;
mod page;
mod port;
mod settings;

pub use name::AnnouncedName;
pub(crate) use page::AnnouncedPage;
pub use settings::AnnounceSettings;

use mdns_sd::{IfKind, ServiceDaemon};
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Longest wait for the packets that take a name back.
const FAREWELL: Duration = Duration::from_millis(500);

/// Why the page can't be announced.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnnounceError {
    /// The listener is on the loopback.
    #[error("no other device reaches {0}: set http or https to an address of the network, such as 0.0.0.0:8080")]
    Unreachable(SocketAddr),
    /// Another program has the port for itself.
    #[error(
        "another program has UDP port 5353 and does not share it: `ss -ulpn sport = :5353` names the program. End it, then \
         `millpond reload`"
    )]
    PortTaken,
    /// The system gives no socket.
    #[error("no socket for UDP port 5353: {0}")]
    Socket(#[source] io::Error),
    /// The responder does not start.
    #[error(transparent)]
    Responder(#[from] mdns_sd::Error),
}

/// A page that is announced until [`end`](Self::end). Dropped without it, the page stays announced until the process ends.
pub(crate) struct Announcement {
    daemon: ServiceDaemon,
    page: AnnouncedPage,
    /// Turns true when another device had the name.
    is_renamed: Arc<AtomicBool>,
}

impl Announcement {
    /// Begins to announce a page. The log tells when devices can find it, and by which name. To be called on a serving thread.
    ///
    /// # Errors
    /// The port can't be used, or the system gives no thread.
    pub(crate) fn start(page: AnnouncedPage) -> Result<Self, AnnounceError> {
        let service = page.service()?;
        port::check(page.ip())?;
        let daemon = ServiceDaemon::new()?;
        daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?;
        let events = daemon.monitor()?;
        daemon.register(service)?;
        let is_renamed = Arc::default();
        tokio::spawn(events::tell(page.clone(), events, Arc::clone(&is_renamed)));
        Ok(Self { daemon, page, is_renamed })
    }

    /// The page as it was to be announced.
    pub(crate) fn page(&self) -> &AnnouncedPage {
        &self.page
    }

    /// Takes the name back. Blocks until the packets are sent, half a second at most. Other devices forget the name within a second
    /// after them (RFC 6762 10.1).
    pub(crate) fn end(self) {
        // An error says that the responder has ended.
        if let Ok(ended) = self.daemon.shutdown() {
            let _ = ended.recv_timeout(FAREWELL);
        }
    }

    /// Leaves the name to a process that announces the same page. If `successor` is another page or none, the name is taken back.
    /// Blocks as [`end`](Self::end) does.
    pub(crate) fn hand_over(self, successor: &str) {
        // The other process may get the first name again: then nobody would take the other name back.
        let is_renamed = self.is_renamed.load(Ordering::Relaxed);
        if self.page.to_string() == successor && !is_renamed {
            // Without interfaces, the responder ends silently. Devices keep the name.
            let _ = self.daemon.disable_interface(IfKind::All);
        }
        self.end();
    }
}
