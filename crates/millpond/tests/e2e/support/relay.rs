//! A relay between an RTSP client and its server that fails as it is told.

use std::{
    collections::HashSet,
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// Payload type of Millpond's retransmissions.
const REPEATS: u8 = 127;

/// Relays connections, and UDP packets of the sessions on them.
pub struct Relay {
    pub port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Connections so far.
    connections: AtomicUsize,
    /// Connections up to this number are cut in the middle of a packet.
    cut: AtomicUsize,
    /// Nothing of the server is passed on to connections up to this number.
    muted: AtomicUsize,
    /// One RTP packet of so many is lost; 0 is none.
    loss: usize,
    packets: AtomicUsize,
    /// Whether retransmissions of Millpond are lost.
    loses_repeats: AtomicBool,
    /// Payloads of lost packets.
    lost: Mutex<HashSet<Vec<u8>>>,
}

impl Relay {
    /// Starts a relay to a port of the loopback. It loses one RTP packet of `loss` by UDP; 0 is none.
    pub fn start(server: u16, loss: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State { loss, ..State::default() });
        let relay = Self { port, state: state.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let number = state.connections.fetch_add(1, Ordering::SeqCst) + 1;
                // Without a server, clients are refused.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                relay_connection(&client, &server, number, &state);
            }
        });
        relay
    }

    /// Cuts all connections in the middle of a packet.
    pub fn cut(&self) {
        self.state.cut.store(self.connections(), Ordering::SeqCst);
    }

    /// Passes nothing more on to the clients that are connected.
    pub fn mute(&self) {
        self.state.muted.store(self.connections(), Ordering::SeqCst);
    }

    /// Loses all retransmissions of Millpond from now on.
    pub fn lose_repeats(&self) {
        self.state.loses_repeats.store(true, Ordering::SeqCst);
    }

    /// Number of connections so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Payloads of the packets that were lost.
    pub fn lost(&self) -> HashSet<Vec<u8>> {
        self.state.lost.lock().unwrap().clone()
    }
}

/// Ports of one track: those of the client and of the server, behind the ports of the relay.
struct Ports {
    relay: u16,
    client: u16,
    /// Bound to the ports of the relay.
    sockets: [UdpSocket; 2],
}

/// Two sockets with an even port and the next one.
pub fn sockets() -> (u16, [UdpSocket; 2]) {
    loop {
        // Both are given to nobody else. They come one after the other: two at a time would stay odd.
        let first = super::free_port();
        let port = if first.is_multiple_of(2) { first } else { super::free_port() };
        if !port.is_multiple_of(2) || super::free_port() != port + 1 {
            continue;
        }
        let bind = |port| {
            let socket = UdpSocket::bind(("127.0.0.1", port))?;
            // A relay that waits for a processor loses nothing that it does not know of.
            let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 4 << 20);
            std::io::Result::Ok(socket)
        };
        if let (Ok(even), Ok(odd)) = (bind(port), bind(port + 1)) {
            return (port, [even, odd]);
        }
    }
}

fn relay_connection(client: &TcpStream, server: &TcpStream, number: usize, state: &Arc<State>) {
    let known = Arc::new(Mutex::new(Vec::<Ports>::new()));
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let ports = known.clone();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            let request = hide_client(&bytes[..read], &ports);
            if to.write_all(&request).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let state = state.clone();
    std::thread::spawn(move || {
        let mut bytes = [0; 1000];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if number <= state.muted.load(Ordering::SeqCst) {
                continue;
            }
            let is_cut = number <= state.cut.load(Ordering::SeqCst);
            let reply = hide_server(&bytes[..if is_cut { read / 2 } else { read }], &known, &state);
            if to.write_all(&reply).is_err() || is_cut {
                break;
            }
        }
        let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
    });
}

/// The first port behind a name in a message.
fn port(message: &str, name: &str) -> Option<u16> {
    message.split(name).nth(1)?.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

fn pair(port: u16) -> String {
    format!("{port}-{}", port + 1)
}

/// Puts ports of the relay in the place of the client's.
fn hide_client(bytes: &[u8], known: &Mutex<Vec<Ports>>) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let Some(client) = port(text, "client_port=") else { return bytes.to_vec() };
    let (relay, sockets) = sockets();
    known.lock().unwrap().push(Ports { relay, client, sockets });
    text.replacen(&pair(client), &pair(relay), 1).into_bytes()
}

/// The same for the server's, and starts to relay packets.
fn hide_server(bytes: &[u8], known: &Mutex<Vec<Ports>>, state: &Arc<State>) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let (Some(relay), Some(server)) = (port(text, "client_port="), port(text, "server_port=")) else {
        return bytes.to_vec();
    };
    let known = known.lock().unwrap();
    let Some(Ports { client, sockets, .. }) = known.iter().find(|ports| ports.relay == relay) else {
        return bytes.to_vec();
    };
    let client = *client;
    for (number, socket) in (0..).zip(sockets) {
        let socket = socket.try_clone().unwrap();
        let (client, server, state) = (client + number, server + number, state.clone());
        std::thread::spawn(move || relay_packets(&socket, client, server, number == 0, &state));
    }
    let hidden = text.replacen(&pair(server), &pair(relay), 1);
    hidden.replacen(&format!("client_port={}", pair(relay)), &format!("client_port={}", pair(client)), 1).into_bytes()
}

fn relay_packets(socket: &UdpSocket, client: u16, server: u16, is_rtp: bool, state: &State) {
    let mut bytes = [0; 2048];
    while let Ok((length, from)) = socket.recv_from(&mut bytes) {
        let packet = &bytes[..length];
        let is_media = is_rtp && from.port() == server;
        if is_media && packet[1] & 0x7f == REPEATS && state.loses_repeats.load(Ordering::SeqCst) {
            continue;
        }
        if is_media && state.loss > 0 {
            let number = state.packets.fetch_add(1, Ordering::SeqCst);
            if number % state.loss == state.loss - 1 {
                state.lost.lock().unwrap().insert(packet[12..].to_vec());
                continue;
            }
        }
        // A client or server that has left refuses it.
        let _ = socket.send_to(packet, ("127.0.0.1", if from.port() == server { client } else { server }));
    }
}
