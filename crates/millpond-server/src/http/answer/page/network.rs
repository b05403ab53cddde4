//! Addresses of the server in its network, for QR codes on a page that was opened on the same machine.

use super::super::Context;
use crate::interfaces::reachable;
use http::{HeaderName, header};
use millpond_http::request::Request;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use url::Host;

/// Fields that a proxy adds to the requests it forwards.
const OF_PROXIES: [HeaderName; 6] = [
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
];

/// Field in which a browser tells whose page asks (Fetch Metadata Request Headers, section 2.3).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Addresses that players are served at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// Of plain HTTP; `None` where it is not bound.
    pub(crate) http: Option<SocketAddr>,
    /// Of HTTPS.
    pub(crate) https: Option<SocketAddr>,
    /// Of RTSP.
    pub(crate) rtsp: SocketAddr,
    /// Of RTSP over TLS.
    pub(crate) rtsps: Option<SocketAddr>,
}

/// Returns the hosts by which other devices reach the server, per scheme, the likeliest first, and the port. `None` for clients that
/// are not told: addresses of an inner network are nothing for the internet, and nothing for pages of other origins.
pub(super) fn network(context: &Context<'_>) -> Option<String> {
    let is_told = is_of_this_machine(context.request, context.viewers.address());
    is_told.then(|| authorities(&context.front.served()).to_string())
}

/// Tells whether a request comes from a page that was opened on this machine, by a name of the loopback.
fn is_of_this_machine(request: &Request, peer: IpAddr) -> bool {
    let is_proxied = request.forwarded.is_some() || OF_PROXIES.iter().any(|name| request.headers.contains_key(name));
    // A page of another origin has a field `Origin`, or says that it is one. One whose name leads here (DNS rebinding) has that name.
    let is_cross = request.header(SEC_FETCH_SITE).is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let is_foreign = is_cross || request.headers.contains_key(header::ORIGIN);
    let host = request.header(header::HOST).and_then(|host| host.parse::<http::uri::Authority>().ok());
    let is_local = host.is_some_and(|host| is_loopback(host.host()));
    peer.to_canonical().is_loopback() && is_local && !is_proxied && !is_foreign
}

fn is_loopback(host: &str) -> bool {
    match Host::parse(host) {
        Ok(Host::Domain(name)) => name == "localhost",
        Ok(Host::Ipv4(address)) => address.is_loopback(),
        Ok(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Err(_) => false,
    }
}

fn authorities(served: &Served) -> Value {
    let host = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let of = |listener: Option<SocketAddr>| -> Option<Value> {
        let listener = listener?;
        let hosts: Vec<String> = reachable(listener).iter().map(host).collect();
        Some(json!({ "port": listener.port(), "hosts": hosts }))
    };
    let Served { http, https, rtsp, rtsps } = *served;
    json!({ "http": of(http), "https": of(https), "rtsp": of(Some(rtsp)), "rtsps": of(rtsps) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, Method};

    fn request(fields: &[(&str, &str)]) -> Request {
        let of = |(name, value): &(&str, &str)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let headers: HeaderMap = fields.iter().map(of).collect();
        Request::new(Method::GET, "/.millpond/network".to_owned(), headers)
    }

    #[test]
    fn only_pages_of_this_machine_are_told() {
        let here: IpAddr = "127.0.0.1".parse().unwrap();
        for host in ["localhost:8080", "LOCALHOST", "127.0.0.1:8080", "[::1]:8080"] {
            assert!(is_of_this_machine(&request(&[("host", host)]), here), "{host}");
            assert!(is_of_this_machine(&request(&[("host", host)]), "::ffff:127.0.0.1".parse().unwrap()));
            assert!(!is_of_this_machine(&request(&[("host", host)]), "192.0.2.7".parse().unwrap()), "{host}");
            for field in ["origin", "forwarded", "via", "x-forwarded-for", "x-real-ip"] {
                assert!(!is_of_this_machine(&request(&[("host", host), (field, "http://h")]), here), "{field}");
            }
        }
        let local = ("host", "localhost:8080");
        assert!(is_of_this_machine(&request(&[local, ("sec-fetch-site", "same-origin")]), here));
        assert!(!is_of_this_machine(&request(&[local, ("sec-fetch-site", "cross-site")]), here));
        for host in ["rebound.example:8080", "192.0.2.10:8080", "localhost.example", ""] {
            assert!(!is_of_this_machine(&request(&[("host", host)]), here), "{host}");
        }
        assert!(!is_of_this_machine(&request(&[]), here));
    }

    #[test]
    fn each_listener_has_its_own_addresses() {
        let at = |address: &str| address.parse::<SocketAddr>().unwrap();
        let served =
            Served { http: Some(at("127.0.0.1:8080")), https: None, rtsp: at("[2001:db8::1]:8554"), rtsps: None };
        let expected = json!({
            "http": { "port": 8080, "hosts": [] }, "https": null,
            "rtsp": { "port": 8554, "hosts": ["[2001:db8::1]"] }, "rtsps": null,
        });
        assert_eq!(authorities(&served), expected);
    }
}
