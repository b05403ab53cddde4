//! The addresses by which a node is reached.

use super::ClusterSettings;
use millpond_cluster::Addresses;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _, UdpSocket},
    sync::Arc,
};
use url::Url;

/// The addresses of a node that listens for HTTP and RTSP at these. Settings override them.
pub(crate) fn addresses(settings: &ClusterSettings, http: SocketAddr, rtsp: SocketAddr) -> Addresses {
    let of = |given: &Option<Url>, scheme: &str, listener: SocketAddr| -> Arc<str> {
        match given {
            Some(url) => url.as_str().trim_end_matches('/').into(),
            None => format!("{scheme}://{}", reachable(settings, listener)).into(),
        }
    };
    Addresses { http: Some(of(&settings.http, "http", http)), rtsp: Some(of(&settings.rtsp, "rtsp", rtsp)) }
}

/// The address of a listener; where that is any address, the one from which this machine reaches etcd.
fn reachable(settings: &ClusterSettings, listener: SocketAddr) -> SocketAddr {
    if !listener.ip().is_unspecified() {
        return listener;
    }
    let found = settings.etcd.iter().find_map(|member| towards(member).ok());
    SocketAddr::new(found.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), listener.port())
}

/// The own address of the way to a member. Nothing is sent.
fn towards(member: &Url) -> io::Result<IpAddr> {
    let host = member.host_str().unwrap_or("").trim_matches(['[', ']']).to_owned();
    let port = member.port_or_known_default().unwrap_or(2379);
    let to = (host, port).to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
    let socket = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_settings::{Host, Settings as _, machine::Machine};

    #[test]
    fn a_listener_on_any_address_has_the_one_towards_etcd() {
        let host = Host { machine: Machine::detect(), variable: &|_| None };
        let mut settings = ClusterSettings::defaults(&host);
        settings.etcd = vec!["http://127.0.0.1:2379".parse().unwrap()];
        settings.rtsp = Some("rtsp://edge1.example.org".parse().unwrap());
        let found = addresses(&settings, "0.0.0.0:8080".parse().unwrap(), "0.0.0.0:8554".parse().unwrap());
        assert_eq!(found.http.as_deref(), Some("http://127.0.0.1:8080"));
        assert_eq!(found.rtsp.as_deref(), Some("rtsp://edge1.example.org"));
        let found = addresses(&settings, "10.1.2.3:80".parse().unwrap(), "[::1]:554".parse().unwrap());
        assert_eq!(found.http.as_deref(), Some("http://10.1.2.3:80"));
    }
}
