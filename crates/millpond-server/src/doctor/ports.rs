//! Addresses to listen on, and the programs that have them already.

use super::Finding;
use crate::{config::Config, srt, webrtc};
use millpond_connections::{BindError, bind};
use std::{
    fs,
    io::ErrorKind,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

const AREA: &str = "ports";

/// Tables of the sockets of a protocol (proc_net(5)).
pub(super) struct Table {
    files: [&'static str; 2],
    /// State of the sockets that have a port for themselves.
    state: &'static str,
}

pub(super) const TCP: Table = Table { files: ["/proc/net/tcp", "/proc/net/tcp6"], state: "0A" };
const UDP: Table = Table { files: ["/proc/net/udp", "/proc/net/udp6"], state: "07" };

/// The program that has a port.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) name: String,
    pub(super) id: u32,
}

pub(super) fn findings(config: &Config) -> Vec<Finding> {
    let listeners = config.listeners().into_iter().filter_map(|(flag, address)| Some((flag, address?)));
    let mut findings: Vec<_> =
        listeners.map(|(flag, address)| finding((flag, address), bind(flag, address).err(), &TCP)).collect();
    if let Some(address) = config.webrtc.address {
        const FLAG: &str = "webrtc";
        let error = webrtc::open_port(address).err().map(|error| BindError::new(FLAG, address, error));
        findings.push(finding((FLAG, address), error, &UDP));
        findings.push(told(&webrtc::addresses(&config.webrtc.hosts, address)));
    }
    if let Some(address) = config.srt.address {
        const FLAG: &str = "srt";
        let error = srt::open_port(address).err().map(|error| BindError::new(FLAG, address, error));
        findings.push(finding((FLAG, address), error, &UDP));
    }
    findings
}

/// The addresses that viewers by WebRTC are told.
fn told(addresses: &[IpAddr]) -> Finding {
    let list = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let is_here = addresses.iter().all(IpAddr::is_loopback);
    let is_private = !is_here && !addresses.iter().copied().any(is_public);
    let hint = if is_private { ": viewers beyond the local network need webrtc-hosts, a public address" } else { "" };
    Finding::fine(AREA, format!("webrtc tells viewers {list}{hint}"))
}

/// Whether hosts of the internet may reach an address.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        // 100.64.0.0/10 is that of providers who translate addresses (RFC 6598).
        IpAddr::V4(v4) => {
            let is_shared = v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64;
            !(v4.is_private() || v4.is_loopback() || v4.is_link_local() || is_shared)
        }
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local()),
    }
}

/// Returns the finding about the address of a setting. `error` is that of binding a socket to it.
fn finding((flag, address): (&'static str, SocketAddr), error: Option<BindError>, table: &Table) -> Finding {
    let Some(error) = error else {
        return Finding::fine(AREA, format!("{flag} {address} is free"));
    };
    if error.error.kind() != ErrorKind::AddrInUse {
        return Finding::error(AREA, error.to_string(), "change the setting, or the rights of the service");
    }
    match holder(table, address.port()) {
        Some(Holder { name, id }) if name == "millpond" => {
            Finding::fine(AREA, format!("{flag} {address} is in use by a running Millpond (process {id})"))
        }
        Some(Holder { name, id }) => Finding::error(
            AREA,
            format!("{flag} {address} is taken by {name} (process {id})"),
            &format!("stop it, or choose another address: --{flag} ADDRESS"),
        ),
        None => Finding::error(
            AREA,
            format!("{flag} {address} is taken by a program that only root can name"),
            &format!("run this as root to see its name, or choose another address: --{flag} ADDRESS"),
        ),
    }
}

/// Returns the program that has a port, where this user may see it.
pub(super) fn holder(table: &Table, port: u16) -> Option<Holder> {
    let inodes: Vec<_> = table
        .files
        .into_iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .flat_map(|text| having(&text, table.state, port))
        .map(|inode| PathBuf::from(format!("socket:[{inode}]")))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let has = |process: &fs::DirEntry| {
        let files = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|target| inodes.contains(&target))
    };
    let process = processes.filter(|entry| id(entry).is_some()).find(has)?;
    let name = fs::read_to_string(process.path().join("comm")).ok()?;
    Some(Holder { name: name.trim().to_owned(), id: id(&process)? })
}

fn id(process: &fs::DirEntry) -> Option<u32> {
    process.file_name().to_str()?.parse().ok()
}

/// Inodes of the sockets in a state that have a port, in a table such as `/proc/net/tcp` (proc_net(5)).
fn having(table: &str, state: &str, port: u16) -> Vec<u64> {
    let row = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let is_port = u16::from_str_radix(local, 16) == Ok(port);
        (is_port && *fields.get(3)? == state).then(|| fields.get(9)?.parse().ok()).flatten()
    };
    table.lines().skip(1).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    #[test]
    fn tables_name_the_sockets_that_listen() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 4711 1 0 100 0 0 10 0\n\
            1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  0 0 4712 1 0 100 0 0 10 0\n\
            2: 0100007F:2382 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 4713 1 0 100 0 0 10 0\n\
            3: nonsense\n";
        assert_eq!(having(table, TCP.state, 8080), [4711]);
        assert_eq!(having(table, TCP.state, 9090), [4713]);
        assert!(having(table, TCP.state, 80).is_empty());
    }

    #[test]
    fn the_program_that_has_a_port_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(holder(&TCP, address.port()).unwrap().id, std::process::id());
        let found = finding(("http", address), bind("http", address).err(), &TCP);
        assert_eq!(found.severity, Severity::Error);
        assert!(found.text.contains(&format!("(process {})", std::process::id())), "{found:?}");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let error = webrtc::open_port(address).err().map(|error| BindError::new("webrtc", address, error));
        let found = finding(("webrtc", address), error, &UDP);
        assert_eq!(found.severity, Severity::Error);
        assert!(found.text.contains(&format!("(process {})", std::process::id())), "{found:?}");
    }

    #[test]
    fn private_addresses_of_webrtc_are_told() {
        for (addresses, is_private) in [
            (&["192.168.1.5", "10.0.0.7", "fd00::7"][..], true),
            (&["100.64.3.4", "169.254.1.1", "fe80::1", "127.0.0.1", "::ffff:172.16.0.1"], true),
            (&["203.0.113.7", "192.168.1.5"], false),
            (&["192.168.1.5", "2001:db8::7"], false),
            (&["127.0.0.1"], false),
        ] {
            let parsed: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
            let found = told(&parsed);
            assert!(found.severity == Severity::Fine && found.text.contains(addresses[0]), "{found:?}");
            assert_eq!(found.text.contains("webrtc-hosts"), is_private, "{found:?}");
        }
    }
}
