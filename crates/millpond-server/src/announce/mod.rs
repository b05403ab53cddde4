//! Announces the page on the local network, by multicast DNS (RFC 6762) and service discovery (RFC 6763).
//!
//! Browsers of services list the name, and `NAME.local` is the host in the page's URL. The responder has a thread of its own, which
//! wakes for queries, and every 5 seconds to look for other interfaces and addresses.

mod name;
mod settings;

pub use name::AnnouncedName;
pub use settings::AnnounceSettings;

use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};
use std::net::{IpAddr, SocketAddr};

/// Service type of web pages (RFC 6763, IANA's registry of service names).
const SERVICE: &str = "_http._tcp.local.";

/// Why the page can't be announced.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnnounceError {
    /// The listener is on the loopback.
    #[error("no other device reaches {0}: set http to an address of the network, such as 0.0.0.0:8080")]
    Unreachable(SocketAddr),
    /// The responder does not start.
    #[error(transparent)]
    Responder(#[from] mdns_sd::Error),
}

/// A name that is announced until [`end`](Self::end). Dropped without it, the name stays announced until the process ends.
pub(crate) struct Announcement {
    daemon: ServiceDaemon,
    name: AnnouncedName,
    listener: SocketAddr,
}

impl Announcement {
    /// Announces the page that a listener serves.
    ///
    /// # Errors
    /// Other devices can't reach the listener, or the system gives no thread. Errors of sockets are not among them: the thread
    /// opens its sockets later.
    pub(crate) fn start(name: AnnouncedName, listener: SocketAddr) -> Result<Self, AnnounceError> {
        let ip = listener.ip().to_canonical();
        if ip.is_loopback() {
            return Err(AnnounceError::Unreachable(listener));
        }
        let service = service(&name, ip, listener.port())?;
        let daemon = ServiceDaemon::new()?;
        daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?;
        daemon.register(service)?;
        Ok(Self { daemon, name, listener })
    }

    /// Tells whether this announces a name for a listener.
    pub(crate) fn is_of(&self, name: &AnnouncedName, listener: SocketAddr) -> bool {
        (&self.name, self.listener) == (name, listener)
    }

    /// The URL by the host's name.
    pub(crate) fn url(&self) -> String {
        format!("http://{}:{}/", self.name.host().trim_end_matches('.'), self.listener.port())
    }

    /// Takes the name back, and waits for nothing. Other devices forget the name within a second (RFC 6762 10.1).
    pub(crate) fn end(self) {
        // An error says that the responder has ended.
        let _ = self.daemon.shutdown();
    }
}

/// Makes the service of a page. For a listener on all addresses, the responder announces the current addresses of each interface.
fn service(name: &AnnouncedName, ip: IpAddr, port: u16) -> Result<ServiceInfo, mdns_sd::Error> {
    let properties = [("path", "/")];
    let addresses: &[IpAddr] = if ip.is_unspecified() { &[] } else { &[ip] };
    let service = ServiceInfo::new(SERVICE, name.as_str(), &name.host(), addresses, port, &properties[..])?;
    Ok(if ip.is_unspecified() { service.enable_addr_auto() } else { service })
}
