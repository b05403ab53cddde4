//! The program between two real namespaces: needs root.

use millpond_link::direction::{Direction, Fate};
use nix::sched::{CloneFlags, setns};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

const SEED: u64 = 42;
const PACKETS: u32 = 1000;

/// The longest wait for anything.
const LONG: Duration = Duration::from_secs(30);

/// A running program and the names of its namespaces.
struct Program {
    child: Child,
    names: [String; 2],
}

impl Program {
    /// Starts the program; `None`, noted as skipped, where the machine doesn't permit it.
    fn start(ab: &str, ba: &str) -> Option<Self> {
        let names = ["a", "b"].map(|end| format!("mplinktest{}{end}", std::process::id()));
        let mut child = Command::new(env!("CARGO_BIN_EXE_millpond-link"))
            .args([format!("{}=10.99.0.1/24", names[0]), format!("{}=10.99.0.2/24", names[1])])
            .args(["--ab", ab, "--ba", ba, "--seed", &SEED.to_string(), "--stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.trim() != "ready" {
            let mut error = String::new();
            child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
            child.wait().unwrap();
            let is_forbidden =
                ["not permitted", "denied", "No such file", "No such device"].iter().any(|text| error.contains(text));
            assert!(is_forbidden, "{error}");
            skip(&format!("a link between namespaces can't be made: {}", error.trim()));
            return None;
        }
        Some(Self { child, names })
    }

    /// Opens a socket in a namespace.
    fn socket(&self, end: usize, port: u16) -> UdpSocket {
        let namespace = File::open(format!("/run/netns/{}", self.names[end])).unwrap();
        // A thread of its own, because a thread belongs to one namespace.
        let made = thread::spawn(move || -> io::Result<UdpSocket> {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            UdpSocket::bind((format!("10.99.0.{}", end + 1), port))
        });
        let socket = made.join().unwrap().unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        socket
    }

    /// Ends the program and returns its counters.
    fn end(mut self) -> Value {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(self.names.iter().all(|name| !std::path::Path::new("/run/netns").join(name).exists()));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn skip(why: &str) {
    let line = format!("SKIPPED: {}: {why}", thread::current().name().unwrap_or("a test"));
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("MILLPOND_TEST_SKIPS") {
        writeln!(OpenOptions::new().append(true).create(true).open(path).unwrap(), "{line}").unwrap();
    }
}

/// Sends packets that an echo returns. The times of return, by packet; the last packet is sent until it returns.
fn echoed(program: &Program) -> BTreeMap<u32, Duration> {
    let (near, far) = (program.socket(0, 5000), program.socket(1, 5000));
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 64];
            loop {
                let (length, from) = far.recv_from(&mut buffer).unwrap();
                far.send_to(&buffer[..length], from).unwrap();
                if number(&buffer) >= PACKETS {
                    break;
                }
            }
        });
        let times = scope.spawn(|| {
            let mut times = BTreeMap::new();
            let mut buffer = [0; 64];
            while times.last_key_value().is_none_or(|(last, _)| *last < PACKETS) {
                near.recv(&mut buffer).unwrap();
                let sent = Duration::from_micros(u64::from_be_bytes(buffer[4..12].try_into().unwrap()));
                times.insert(number(&buffer), start.elapsed() - sent);
            }
            times
        });
        for number in 0u32.. {
            if times.is_finished() {
                break;
            }
            let mut packet = number.to_be_bytes().to_vec();
            packet.extend_from_slice(&(start.elapsed().as_micros() as u64).to_be_bytes());
            // The echo ends at the first packet behind the last one, and its port then refuses.
            let _ = near.send_to(&packet, "10.99.0.2:5000");
            thread::sleep(Duration::from_millis(1));
        }
        times.join().unwrap()
    })
}

fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[..4].try_into().unwrap())
}

#[test]
fn packets_are_late_and_lost_as_the_seed_decides() {
    let Some(program) = Program::start("delay=20ms,loss=5%", "delay=10ms") else { return };
    let times = echoed(&program);
    let report = program.end();
    let mut direction = Direction::new("delay=20ms,loss=5%".parse().unwrap(), SEED);
    for packet in 0..PACKETS {
        let is_delivered = matches!(direction.arrive(Duration::ZERO, 40), Fate::Delivered { .. });
        assert_eq!(times.contains_key(&packet), is_delivered, "packet {packet}");
    }
    let shortest = times.values().min().unwrap();
    assert!(*shortest >= Duration::from_millis(30), "{shortest:?}");
    assert!((30..80).contains(&direction.tally().lost), "{}", direction.tally().lost);
    let ab = &report["ab"];
    assert!(ab["lost"].as_u64() >= Some(direction.tally().lost), "{report}");
    assert_eq!((&ab["overflowed"], &ab["unread"]), (&0.into(), &0.into()), "{report}");
}
