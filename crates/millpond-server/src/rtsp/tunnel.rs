//! RTSP tunnels through HTTP: two connections of a client that act as one.
//!
//! Replies and packets are sent on the connection of the GET, which owns the tunnel. The tunnel is listed under its
//! cookie while that connection lives, and receives each POST of that cookie. A client may end one POST and continue
//! with another.

use crate::wire::Wire;
use bytes::BytesMut;
use millpond_connections::{Slot, Tallied};
use millpond_rtp::tunnel::Decoder;
use millpond_stream::ClientAddress;
use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Reply to a GET. RTSP follows it.
pub(super) const OPENED: &[u8] =
    b"HTTP/1.0 200 OK\r\nServer: millpond\r\nConnection: close\r\nCache-Control: no-store\r\n\
    Pragma: no-cache\r\nContent-Type: application/x-rtsp-tunnelled\r\n\r\n";

/// Open tunnels by their cookies.
///
/// Their number is at most that of connections with a GET: a tunnel ends with its connection.
#[derive(Debug, Default)]
pub(super) struct Tunnels {
    /// A lock: taken when tunnels open and close, and for each POST.
    open: Mutex<HashMap<String, Open>>,
}

/// A tunnel that accepts POSTs from the address of its GET.
#[derive(Debug)]
struct Open {
    client: IpAddr,
    posts: Sender<Post>,
}

/// The connection of a POST, with its permit of the connection limit.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) wire: Arc<Wire>,
    /// Bytes that arrived behind the request head.
    pub(super) input: BytesMut,
    pub(super) _slot: Slot,
    /// Counts the connection among those of its client.
    pub(super) _counted: Option<Tallied<ClientAddress>>,
}

/// The receiving side of a tunnel.
#[derive(Debug)]
pub(super) struct Tunnel {
    tunnels: Arc<Tunnels>,
    cookie: String,
    get: Arc<Wire>,
    posts: Receiver<Post>,
    post: Option<Post>,
    decoder: Decoder,
}

impl Tunnels {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a tunnel on the connection of a GET. Returns `None` if its cookie is in use.
    pub(super) fn get(self: &Arc<Self>, cookie: &str, client: IpAddr, get: Arc<Wire>) -> Option<Tunnel> {
        let mut open = self.open();
        if open.contains_key(cookie) {
            return None;
        }
        let (sender, posts) = mpsc::channel(1);
        open.insert(cookie.to_owned(), Open { client: client.to_canonical(), posts: sender });
        drop(open);
        let (tunnels, cookie) = (self.clone(), cookie.to_owned());
        Some(Tunnel { tunnels, cookie, get, posts, post: None, decoder: Decoder::default() })
    }

    /// Hands a client's POST to its tunnel. Returns the POST as the error if the client has no tunnel that waits for
    /// one.
    pub(super) fn post(&self, cookie: &str, client: IpAddr, post: Post) -> Result<(), Post> {
        let open = self.open();
        let Some(tunnel) = open.get(cookie).filter(|open| open.client == client.to_canonical()) else {
            return Err(post);
        };
        tunnel.posts.try_send(post).map_err(mpsc::error::TrySendError::into_inner)
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.tunnels.open().remove(&self.cookie);
    }
}

impl Tunnel {
    /// Waits for bytes of POSTs and appends them, decoded. Returns their number, 0 when the GET has ended. Cancel safe.
    ///
    /// # Errors
    /// The connection of the GET failed, or the bytes of a POST are not base64.
    pub(super) async fn read(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        let before = input.len();
        loop {
            self.decode(input)?;
            if input.len() > before {
                return Ok(input.len() - before);
            }
            let mut nothing = BytesMut::new();
            tokio::select! {
                read = self.get.read(&mut nothing) => match read? {
                    0 => return Ok(0),
                    _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "bytes behind the GET of a tunnel")),
                },
                Some(post) = self.posts.recv() => {
                    self.post = Some(post);
                    // The next POST begins a new base64 text; an incomplete group of the last one is dropped.
                    self.decoder = Decoder::default();
                }
                is_over = more(self.post.as_mut()) => if is_over {
                    self.post = None;
                },
            }
        }
    }

    fn decode(&mut self, input: &mut BytesMut) -> io::Result<()> {
        let Some(Post { input: text, .. }) = &mut self.post else { return Ok(()) };
        let decoded = self.decoder.decode(text, input);
        text.clear();
        decoded.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// Reads more of a POST. Returns `true` at its end. Never returns without a POST.
async fn more(post: Option<&mut Post>) -> bool {
    match post {
        Some(Post { wire, input, .. }) => !wire.read(input).await.is_ok_and(|count| count > 0),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_connections::Slots;
    use tokio::{
        io::AsyncWriteExt as _,
        net::{TcpListener, TcpStream},
    };

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    /// Returns the two ends of a connection: the client's and the server's.
    async fn pair() -> (TcpStream, Arc<Wire>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, Arc::new(Wire::new(listener.accept().await.unwrap().0)))
    }

    async fn post(slots: &Arc<Slots>, input: &[u8]) -> (TcpStream, Post) {
        let (client, wire) = pair().await;
        let slot = slots.take().unwrap();
        (client, Post { wire, input: input.into(), _slot: slot, _counted: None })
    }

    #[tokio::test]
    async fn posts_of_a_cookie_follow_each_other() {
        let (tunnels, slots) = (Arc::new(Tunnels::default()), Slots::new(3));
        let (client, get) = pair().await;
        let mut tunnel = tunnels.get("a", CLIENT, get.clone()).unwrap();
        assert!(tunnels.get("a", CLIENT, get).is_none(), "taken");
        let (_other, stranger) = post(&slots, b"").await;
        assert!(tunnels.post("b", CLIENT, stranger).is_err(), "no such cookie");
        let (_thief, stolen) = post(&slots, b"").await;
        let stolen = tunnels.post("a", IpAddr::from([192, 0, 2, 2]), stolen);
        assert!(stolen.is_err(), "a cookie of another address");
        drop(stolen);
        let (mut first, begun) = post(&slots, b"Zm9v").await;
        tunnels.post("a", CLIENT, begun).unwrap();
        let mut input = BytesMut::new();
        assert_eq!(tunnel.read(&mut input).await.unwrap(), 3);
        first.write_all(b"YmFyZm").await.unwrap();
        assert_eq!(tunnel.read(&mut input).await.unwrap(), 3);
        drop(first);
        let (_second, next) = post(&slots, b"Zm9v").await;
        tunnels.post("a", CLIENT, next).unwrap();
        assert_eq!(tunnel.read(&mut input).await.unwrap(), 3);
        assert_eq!(input, "foobarfoo");
        assert_eq!(slots.taken(), 1, "those that ended hold no place");
        drop(client);
        assert_eq!(tunnel.read(&mut input).await.unwrap(), 0, "over with its GET");
        drop(tunnel);
        assert_eq!(slots.taken(), 0);
        assert!(tunnels.open().is_empty());
    }

    #[tokio::test]
    async fn what_is_no_base64_ends_it() {
        let (tunnels, slots) = (Arc::new(Tunnels::default()), Slots::new(1));
        let (_client, get) = pair().await;
        let mut tunnel = tunnels.get("a", CLIENT, get).unwrap();
        let (_other, post) = post(&slots, b"Zm9v?").await;
        tunnels.post("a", CLIENT, post).unwrap();
        let error = tunnel.read(&mut BytesMut::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "byte 4: found 0x3f, expected base64");
    }
}
