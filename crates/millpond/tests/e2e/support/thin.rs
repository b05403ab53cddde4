//! A thin link: all connections through it share one rate, as over one line.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// Bytes that pass at once.
const PIECE: usize = 4096;

/// Relays connections to a port of the loopback, and passes on this number of bytes a second of all replies together. Returns its port.
pub fn link(server: u16, rate: f64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The moment from which the line is free.
    let free = Arc::new(Mutex::new(Instant::now()));
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            let (to_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let free = free.clone();
            std::thread::spawn(move || pass(client, to_server, |_| ()));
            std::thread::spawn(move || {
                pass(server, to_client, |count| {
                    let mut free = free.lock().unwrap();
                    let begins = (*free).max(Instant::now());
                    *free = begins + Duration::from_secs_f64(count as f64 / rate);
                    let ends = *free;
                    drop(free);
                    std::thread::sleep(ends.saturating_duration_since(Instant::now()));
                });
            });
        }
    });
    port
}

fn pass(mut from: TcpStream, mut to: TcpStream, wait: impl Fn(usize)) {
    let mut bytes = [0; PIECE];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        wait(count);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
