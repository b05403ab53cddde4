//! Host names of the admin address.
//!
//! The owner of a web page can let the page's host name resolve to this address (DNS rebinding), and the page could then read
//! the replies. Its requests carry that name. So names are refused that are not this server's. Addresses can't be rebound.

use crate::problem::Problem;
use http::{Request, StatusCode, Version, header, uri::Authority};
use std::net::SocketAddr;
use url::Host;

/// Names that clients may use for the admin address.
#[derive(Clone, Debug)]
pub(crate) struct AllowedHosts {
    loopback_only: bool,
    any: bool,
    names: Vec<Host>,
}

impl AllowedHosts {
    /// For a listener bound to `address`: the loopback's addresses where it is one of them, else every address;
    /// `localhost`, and the `configured` names, where `*` stands for all.
    pub(crate) fn new(address: SocketAddr, configured: &[String]) -> Self {
        let localhost = std::iter::once("localhost");
        Self {
            loopback_only: address.ip().to_canonical().is_loopback(),
            any: configured.iter().any(|name| name == "*"),
            names: localhost.chain(configured.iter().map(String::as_str)).filter_map(host).collect(),
        }
    }

    /// Checks a request. The error is the problem to answer with.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let problem = |status, why: &str| Err(Problem::new(status).detail(why));
        let mut fields = request.headers().get_all(header::HOST).iter();
        let field = fields.next();
        // RFC 9112 section 3.2: exactly one in HTTP/1.1, even beside a target in absolute form.
        if fields.next().is_some() || (field.is_none() && request.version() >= Version::HTTP_11) {
            return problem(StatusCode::BAD_REQUEST, "expected one Host header field");
        }
        let Ok(said) = field.map(|value| Authority::try_from(value.as_bytes())).transpose() else {
            return problem(StatusCode::BAD_REQUEST, "the Host header field is not a host and a port");
        };
        // A target in absolute form says it instead (section 3.2.2). HTTP/1.0 needs neither, and no browser speaks it.
        if let Some(authority) = request.uri().authority().or(said.as_ref())
            && !self.allows(authority)
        {
            let why = format!("{:?} is not a name of this address; admin-hosts allows names", authority.host());
            return problem(StatusCode::MISDIRECTED_REQUEST, &why);
        }
        Ok(())
    }

    /// The port is not checked: tunnels and port maps change it, and it doesn't tell a page's name from ours.
    fn allows(&self, authority: &Authority) -> bool {
        if authority.as_str().contains('@') {
            return false;
        }
        let Some(host) = host(authority.host()) else { return false };
        let is_address = match &host {
            Host::Ipv4(ip) => ip.is_loopback() || !self.loopback_only,
            Host::Ipv6(ip) => ip.to_canonical().is_loopback() || !self.loopback_only,
            Host::Domain(_) => false,
        };
        is_address || self.any || self.names.contains(&host)
    }
}

/// A host in its one form: lower case, without the dot of the root.
fn host(text: &str) -> Option<Host> {
    Host::parse(text.strip_suffix('.').unwrap_or(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(hosts: &AllowedHosts, request: http::request::Builder) -> u16 {
        hosts.check(&request.body(()).unwrap()).map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    fn with_host(hosts: &AllowedHosts, name: &str) -> u16 {
        status(hosts, Request::get("/metrics").header("host", name))
    }

    #[test]
    fn names_of_others_are_refused() {
        let none: &[String] = &[];
        let named = &["edge1.internal".to_owned()][..];
        let loopback = "127.0.0.1:8380".parse().unwrap();
        let anywhere = "0.0.0.0:8380".parse().unwrap();
        for (address, names, host, expected) in [
            (loopback, none, "127.0.0.1:8380", 200),
            (loopback, none, "localhost:8380", 200),
            (loopback, none, "LOCALHOST.", 200),
            (loopback, none, "[::1]:8380", 200),
            (loopback, none, "127.0.0.1:9999", 200),
            (loopback, none, "rebound.example:8380", 421),
            (loopback, none, "localhost.rebound.example", 421),
            (loopback, none, "192.0.2.1:8380", 421),
            (loopback, none, "127.0.0.1.rebound.example", 421),
            (loopback, none, "localhost@rebound.example", 421),
            (loopback, none, "", 400),
            (loopback, none, "a b", 400),
            (loopback, named, "edge1.internal:8380", 200),
            (loopback, named, "Edge1.Internal", 200),
            (loopback, named, "edge2.internal", 421),
            (anywhere, none, "192.0.2.1:8380", 200),
            (anywhere, none, "[2001:db8::1]:8380", 200),
            (anywhere, none, "localhost", 200),
            (anywhere, none, "rebound.example", 421),
            (anywhere, named, "edge1.internal", 200),
            (anywhere, &["*".to_owned()], "rebound.example", 200),
        ] {
            assert_eq!(with_host(&AllowedHosts::new(address, names), host), expected, "{address} {names:?} {host:?}");
        }
    }

    #[test]
    fn a_request_names_its_host_once() {
        let hosts = AllowedHosts::new("[::1]:8380".parse().unwrap(), &[]);
        assert_eq!(status(&hosts, Request::get("/livez")), 400);
        assert_eq!(status(&hosts, Request::get("/livez").version(Version::HTTP_10)), 200);
        let twice = Request::get("/livez").header("host", "localhost").header("host", "localhost");
        assert_eq!(status(&hosts, twice), 400);
        assert_eq!(status(&hosts, Request::get("http://rebound.example/livez").header("host", "localhost")), 421);
        assert_eq!(status(&hosts, Request::get("http://localhost/livez").header("host", "rebound.example")), 200);
    }
}
