//! Events of the responder: the names that the page has got, for the log.

use super::AnnouncedPage;
use crate::interfaces::has_multicast;
use mdns_sd::{DaemonEvent, Receiver};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{select, time::sleep};

/// Time after which a page that no device can find is warned about. A name is checked for a second, and again after each conflict.
const PATIENCE: Duration = Duration::from_secs(5);

/// Names that were announced on an interface.
#[derive(Debug, PartialEq, Eq)]
struct Announced<'a> {
    name: String,
    host: &'a str,
    interface: &'a str,
}

/// Logs the names of a page until the responder ends. `is_renamed` turns true if another device had a name.
pub(super) async fn tell(page: AnnouncedPage, events: Receiver<DaemonEvent>, is_renamed: Arc<AtomicBool>) {
    let mut told: Vec<(String, String)> = Vec::new();
    let mut late = pin!(sleep(PATIENCE));
    let mut is_awaited = true;
    loop {
        let event = select! {
            event = events.recv_async() => event,
            () = &mut late, if is_awaited => {
                is_awaited = false;
                tracing::warn!("mdns-name: the page is not announced: {}", obstacle());
                continue;
            }
        };
        match event {
            Ok(DaemonEvent::Error(error)) => tracing::warn!(%error, "mdns-name"),
            Ok(DaemonEvent::Announce(service, at)) => {
                let Some(announced) = announced(&page.service_type(), &service, &at) else { continue };
                is_awaited = false;
                if announced.is_renamed(&page) {
                    is_renamed.store(true, Ordering::Relaxed);
                }
                let names = (announced.name.clone(), announced.host.to_owned());
                if !told.contains(&names) {
                    told.push(names);
                    announced.log(&page);
                }
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// Reads the names of an announcement: `service` such as `Films._http._tcp.local.`, and `at` such as `films.local.:eth0`.
fn announced<'a>(service_type: &str, service: &str, at: &'a str) -> Option<Announced<'a>> {
    let escaped = service.strip_suffix(service_type)?.strip_suffix('.')?;
    let mut name = String::new();
    let mut letters = escaped.chars();
    while let Some(letter) = letters.next() {
        name.push(if letter == '\\' { letters.next()? } else { letter });
    }
    let (host, interface) = at.split_once(':')?;
    Some(Announced { name, host, interface })
}

impl Announced<'_> {
    fn is_renamed(&self, page: &AnnouncedPage) -> bool {
        let (name, host) = page.names();
        (&*self.name, self.host) != (name, &*host)
    }

    fn log(&self, page: &AnnouncedPage) {
        let Self { name, host, interface } = self;
        let url = page.url(host);
        if self.is_renamed(page) {
            let (wanted, wanted_host) = page.names();
            let wanted_host = wanted_host.trim_end_matches('.');
            tracing::warn!(
                url,
                name,
                interface,
                "the page is announced on the local network by another name: another device has {wanted:?} or {wanted_host}"
            );
        } else {
            tracing::info!(url, "the page is announced on the local network");
        }
    }
}

/// Tells why no interface has announced the page.
fn obstacle() -> &'static str {
    if has_multicast() {
        "no interface could join the multicast group within 5 s. The limit may be reached: sysctl net.ipv4.igmp_max_memberships"
    } else {
        "no network interface with multicast is up. Connect the machine, or give the container the host's network"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::announce::AnnouncedName;

    #[test]
    fn names_of_an_announcement_are_read() {
        let read = |service, at| announced("_http._tcp.local.", service, at);
        let films = |name: &str, host| Some(Announced { name: name.to_owned(), host, interface: "eth0" });
        assert_eq!(read("Films._http._tcp.local.", "films.local.:eth0"), films("Films", "films.local."));
        let dotted = read("Films\\. And \\\\ (2)._http._tcp.local.", "films-2.local.:eth0");
        assert_eq!(dotted, films("Films. And \\ (2)", "films-2.local."));
        for (service, at) in [("Films._https._tcp.local.", "films.local.:eth0"), ("Films._http._tcp.local.", "eth0")] {
            assert_eq!(read(service, at), None);
        }
    }

    #[test]
    fn another_name_or_host_is_a_new_name() {
        let page = AnnouncedPage::new(AnnouncedName::new("Films").unwrap(), ([0, 0, 0, 0], 80).into(), None).unwrap();
        let is_renamed = |name: &str, host| Announced { name: name.to_owned(), host, interface: "" }.is_renamed(&page);
        assert!(!is_renamed("Films", "films.local."));
        assert!(is_renamed("Films (2)", "films.local.") && is_renamed("Films", "films-2.local."));
    }
}
