//! Listening sockets. They are bound at the start or taken over from another process, and may change while the server runs.

use socket2::{SockRef, Socket};
use std::{
    collections::BTreeMap,
    io,
    net::{SocketAddr, TcpListener as StdListener},
    sync::Arc,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Names of the settings whose addresses are listened on by the serving threads. The admin address has a thread of its own.
pub const SERVED: [&str; 9] =
    ["http", "https", "rtsp", "rtsps", "rtmp", "rtmps", "webrtc-tcp", "cluster-node-listen", "intercept"];

/// State of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shut {
    /// Connections are accepted.
    No,
    /// The socket is closed. Connections that wait in its queue are accepted first.
    Closed,
    /// Another process accepts the connections that wait.
    HandedOver,
}

/// A listening socket, by the setting of its address.
#[derive(Debug)]
pub struct Listener {
    /// The address of the configuration. Its port may be 0.
    configured: SocketAddr,
    socket: Arc<TcpListener>,
    shut: watch::Sender<Shut>,
}

/// A listening socket as the loop sees it that accepts its connections.
#[derive(Debug)]
pub struct Door {
    socket: Arc<TcpListener>,
    shut: watch::Receiver<Shut>,
}

impl Listener {
    /// Binds the address of the setting `flag`, or takes the socket over that another process has bound.
    ///
    /// # Errors
    /// The address can't be listened on.
    pub fn open(flag: &'static str, addr: SocketAddr, inherited: &mut Inherited) -> Result<Self, BindError> {
        let bound = match inherited.take(flag, addr) {
            Some(socket) => socket,
            None => bind(flag, addr)?,
        };
        let failed = |error| BindError { flag, addr, error, hint: "" };
        bound.set_nonblocking(true).map_err(failed)?;
        let socket = TcpListener::from_std(bound).map_err(failed)?;
        Ok(Self { configured: addr, socket: Arc::new(socket), shut: watch::Sender::new(Shut::No) })
    }

    /// The address that it listens on.
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    /// The address of the configuration.
    pub fn configured(&self) -> SocketAddr {
        self.configured
    }

    /// Its accepting side.
    pub fn door(&self) -> Door {
        Door { socket: self.socket.clone(), shut: self.shut.subscribe() }
    }

    /// A second descriptor of the socket.
    ///
    /// # Errors
    /// The system's.
    pub fn duplicate(&self) -> io::Result<StdListener> {
        SockRef::from(&*self.socket).try_clone().map(StdListener::from)
    }

    /// Accepts the connections that wait, and closes the socket.
    pub fn close(&self) {
        self.shut.send_replace(Shut::Closed);
    }

    /// Leaves the connections that wait to another process.
    pub fn hand_over(&self) {
        self.shut.send_replace(Shut::HandedOver);
    }
}

impl Door {
    /// Waits for the next connection; `None` once the socket is shut.
    pub async fn accept(&mut self) -> Option<io::Result<(TcpStream, SocketAddr)>> {
        let shut = *self.shut.borrow_and_update();
        if shut == Shut::No {
            tokio::select! {
                biased;
                accepted = self.socket.accept() => return Some(accepted),
                _ = self.shut.wait_for(|shut| *shut != Shut::No) => {}
            }
        }
        if *self.shut.borrow() == Shut::HandedOver {
            return None;
        }
        // Those that the kernel has connected already are not lost.
        let (stream, peer) = SockRef::from(&*self.socket).accept().ok()?;
        let peer = peer.as_socket()?;
        stream.set_nonblocking(true).ok()?;
        Some(TcpStream::from_std(stream.into()).map(|stream| (stream, peer)))
    }
}

/// Listening sockets that this process got from another one: the service manager, or the server that it takes over from.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: Vec<(Option<String>, StdListener)>,
    is_from_another: bool,
}

impl Inherited {
    /// Sockets, each with the name of its setting where that is known.
    pub fn new(sockets: impl IntoIterator<Item = (Option<String>, StdListener)>) -> Self {
        let sockets: Vec<_> = sockets.into_iter().collect();
        Self { is_from_another: !sockets.is_empty(), sockets }
    }

    /// Whether another process gave sockets.
    pub fn is_from_another(&self) -> bool {
        self.is_from_another
    }

    /// Takes the socket of a setting: the one with its name, else the one with its address, else the one with its port.
    fn take(&mut self, flag: &str, addr: SocketAddr) -> Option<StdListener> {
        let is_named = |(name, _): &(Option<String>, StdListener)| name.as_deref() == Some(flag);
        let local = |socket: &StdListener| socket.local_addr().ok();
        let has_address = |(_, socket): &(Option<String>, StdListener)| local(socket) == Some(addr);
        let has_port = |(_, socket): &(Option<String>, StdListener)| {
            addr.port() != 0 && local(socket).is_some_and(|local| local.port() == addr.port())
        };
        let found = self.sockets.iter().position(is_named).or_else(|| self.sockets.iter().position(has_address));
        let found = found.or_else(|| self.sockets.iter().position(has_port))?;
        let (_, socket) = self.sockets.swap_remove(found);
        let is_moved = local(&socket).is_some_and(|local| addr.port() != 0 && local.port() != addr.port());
        // The configuration may have changed since the other process bound it.
        (!is_moved).then_some(socket)
    }

    /// Addresses of sockets that no setting names, which are closed.
    pub fn rest(&self) -> Vec<SocketAddr> {
        self.sockets.iter().filter_map(|(_, socket)| socket.local_addr().ok()).collect()
    }
}

/// The listening sockets of a server, by the settings of their addresses.
pub type Listeners = BTreeMap<&'static str, Listener>;

/// Why an address can't be listened on.
#[derive(Debug, thiserror::Error)]
#[error("--{flag} {addr}: {error}{hint}")]
pub struct BindError {
    /// The flag that names the address.
    pub flag: &'static str,
    /// The address.
    pub addr: SocketAddr,
    /// Error of the system.
    pub error: io::Error,
    /// Advice, if there is any.
    pub hint: &'static str,
}

impl BindError {
    /// Makes the error of an address, with advice.
    #[must_use]
    pub fn new(flag: &'static str, addr: SocketAddr, error: io::Error) -> Self {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => {
                ": another program listens there; stop it, or choose another address with this flag"
            }
            io::ErrorKind::PermissionDenied if flag == "intercept" => {
                ": interception needs CAP_NET_ADMIN; see docs/handbook/interception.md"
            }
            io::ErrorKind::PermissionDenied => {
                ": ports below 1024 need privileges; choose a higher port with this flag"
            }
            io::ErrorKind::AddrNotAvailable => ": this machine doesn't have that address",
            _ => "",
        };
        Self { flag, addr, error, hint }
    }
}

/// Lets a socket have addresses of other machines (ip(7), `IP_TRANSPARENT`).
///
/// # Errors
/// The process has no `CAP_NET_ADMIN`.
pub fn transparent(socket: &Socket, is_ipv4: bool) -> io::Result<()> {
    if is_ipv4 { socket.set_ip_transparent_v4(true) } else { socket.set_ip_transparent_v6(true) }
}

/// Binds an address, without a runtime.
pub fn bind(flag: &'static str, addr: SocketAddr) -> Result<StdListener, BindError> {
    let open = || -> io::Result<StdListener> {
        let domain = if addr.is_ipv4() { socket2::Domain::IPV4 } else { socket2::Domain::IPV6 };
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        if flag == "intercept" {
            transparent(&socket, addr.is_ipv4())?;
        }
        socket.bind(&addr.into())?;
        socket.listen(4096)?;
        Ok(socket.into())
    };
    open().map_err(|error| BindError::new(flag, addr, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    #[tokio::test]
    async fn connections_that_wait_are_accepted_before_a_socket_closes() {
        let listener = Listener::open("http", here(), &mut Inherited::default()).unwrap();
        let mut door = listener.door();
        let address = listener.address().unwrap();
        let clients = [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
        listener.close();
        for client in &clients {
            let (_, peer) = door.accept().await.unwrap().unwrap();
            assert!(clients.iter().any(|client| client.local_addr().unwrap() == peer), "{client:?}");
        }
        assert!(door.accept().await.is_none());
    }

    #[tokio::test]
    async fn connections_that_wait_are_left_to_the_process_that_takes_over() {
        let listener = Listener::open("http", here(), &mut Inherited::default()).unwrap();
        let address = listener.address().unwrap();
        let second = listener.duplicate().unwrap();
        listener.hand_over();
        let client = TcpStream::connect(address).await.unwrap();
        assert!(listener.door().accept().await.is_none());
        drop(listener);
        let mut inherited = Inherited::new([(Some("http".to_owned()), second)]);
        let next = Listener::open("http", here(), &mut inherited).unwrap();
        assert_eq!(next.address(), Some(address));
        let (_, peer) = next.door().accept().await.unwrap().unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    }

    #[test]
    fn inherited_sockets_are_found_by_name_address_and_port() {
        let socket = || bind("http", here()).unwrap();
        let (named, unnamed, other) = (socket(), socket(), socket());
        let [a, b, c] = [&named, &unnamed, &other].map(|socket| socket.local_addr().unwrap());
        let name = |name: &str| Some(name.to_owned());
        let mut inherited = Inherited::new([(None, unnamed), (name("rtsp"), named), (name("http"), other)]);
        let port = |socket: Option<StdListener>| socket.map(|socket| socket.local_addr().unwrap().port());
        assert_eq!(port(inherited.take("rtsp", here())), Some(a.port()));
        let any: SocketAddr = format!("0.0.0.0:{}", b.port()).parse().unwrap();
        assert_eq!(port(inherited.take("rtmp", any)), Some(b.port()));
        assert_eq!(port(inherited.take("http", "127.0.0.1:9".parse().unwrap())), None, "the configuration has moved");
        assert!(inherited.rest().is_empty(), "{c} is closed");
    }
}
