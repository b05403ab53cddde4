//! The page that is announced: its name, and the listener that serves it.

use super::{AnnounceError, AnnouncedName};
use mdns_sd::ServiceInfo;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

/// A page of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncedPage {
    name: AnnouncedName,
    /// `http` or `https`: also the name of the service (IANA's registry of service names).
    scheme: &'static str,
    listener: SocketAddr,
}

impl AnnouncedPage {
    /// Makes the page of a name. Plain HTTP is announced if other devices reach its listener, else HTTPS.
    ///
    /// # Errors
    /// Other devices reach no listener.
    pub(crate) fn new(name: AnnouncedName, http: SocketAddr, https: Option<SocketAddr>) -> Result<Self, AnnounceError> {
        let listeners = [("http", Some(http)), ("https", https)];
        let mut listeners = listeners.into_iter().filter_map(|(scheme, listener)| Some((scheme, listener?)));
        let reached = listeners.find(|(_, listener)| !listener.ip().to_canonical().is_loopback());
        let (scheme, listener) = reached.ok_or(AnnounceError::Unreachable(http))?;
        Ok(Self { name, scheme, listener })
    }

    /// The address that the listener is bound to.
    pub(super) fn ip(&self) -> IpAddr {
        self.listener.ip().to_canonical()
    }

    /// The name as it was given, and the host name that is made from it.
    pub(super) fn names(&self) -> (&str, String) {
        (self.name.as_str(), self.name.host())
    }

    /// The type of the service, as names of services end.
    pub(super) fn service_type(&self) -> String {
        format!("_{}._tcp.local.", self.scheme)
    }

    /// The URL by a host name.
    pub(super) fn url(&self, host: &str) -> String {
        format!("{}://{}:{}/", self.scheme, host.trim_end_matches('.'), self.listener.port())
    }

    /// Makes the service. For a listener on all addresses, the responder announces the current addresses of each interface.
    pub(super) fn service(&self) -> Result<ServiceInfo, mdns_sd::Error> {
        let (ip, port) = (self.ip(), self.listener.port());
        let (name, host) = self.names();
        let addresses: &[IpAddr] = if ip.is_unspecified() { &[] } else { &[ip] };
        let service = ServiceInfo::new(&self.service_type(), name, &host, addresses, port, &[("path", "/")][..])?;
        Ok(if ip.is_unspecified() { service.enable_addr_auto() } else { service })
    }
}

/// A line by which two processes find out whether they announce the same page.
impl fmt::Display for AnnouncedPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.scheme, self.listener, self.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(http: &str, https: Option<&str>) -> Result<AnnouncedPage, AnnounceError> {
        let https = https.map(|address| address.parse().unwrap());
        AnnouncedPage::new(AnnouncedName::new("Films").unwrap(), http.parse().unwrap(), https)
    }

    #[test]
    fn https_is_announced_where_no_device_reaches_plain_http() {
        let told = |http, https| page(http, https).unwrap().to_string();
        assert_eq!(told("0.0.0.0:80", Some("0.0.0.0:443")), "http 0.0.0.0:80 Films");
        assert_eq!(told("127.0.0.1:80", Some("192.0.2.1:443")), "https 192.0.2.1:443 Films");
        let secure = page("[::1]:80", Some("[::]:443")).unwrap();
        assert_eq!(secure.service().unwrap().get_fullname(), "Films._https._tcp.local.");
        assert_eq!(secure.url("films-2.local."), "https://films-2.local:443/");
    }

    #[test]
    fn a_page_on_the_loopback_is_refused() {
        for https in [None, Some("[::ffff:127.0.0.1]:443")] {
            let error = page("127.0.0.1:80", https).unwrap_err().to_string();
            assert!(error.contains("set http or https"), "{error}");
        }
    }
}
