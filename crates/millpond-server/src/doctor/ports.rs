//! Addresses to listen on, and the programs that have them already.

use super::Finding;
use crate::config::Config;
use millpond_connections::bind;
use std::{fs, io::ErrorKind, net::SocketAddr, path::PathBuf};

const AREA: &str = "ports";

/// State of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The program that has a port.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) name: String,
    pub(super) id: u32,
}

pub(super) fn findings(config: &Config) -> Vec<Finding> {
    let listeners = config.listeners().into_iter().filter_map(|(flag, address)| Some((flag, address?)));
    listeners.map(|(flag, address)| finding(flag, address)).collect()
}

fn finding(flag: &'static str, address: SocketAddr) -> Finding {
    let Err(error) = bind(flag, address) else {
        return Finding::fine(AREA, format!("{flag} {address} is free"));
    };
    if error.error.kind() != ErrorKind::AddrInUse {
        return Finding::error(AREA, error.to_string(), "change the setting, or the rights of the service");
    }
    match holder(address.port()) {
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

/// Returns the program that listens on a port, where this user may see it.
pub(super) fn holder(port: u16) -> Option<Holder> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inodes: Vec<_> = tables
        .into_iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|text| listening(&text, port))
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

/// Inodes of the sockets that listen on a port, in a table such as `/proc/net/tcp` (proc_net(5)).
fn listening(table: &str, port: u16) -> Vec<u64> {
    let row = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let is_port = u16::from_str_radix(local, 16) == Ok(port);
        (is_port && *fields.get(3)? == LISTEN).then(|| fields.get(9)?.parse().ok()).flatten()
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
        assert_eq!(listening(table, 8080), [4711]);
        assert_eq!(listening(table, 9090), [4713]);
        assert!(listening(table, 80).is_empty());
    }

    #[test]
    fn the_program_that_has_a_port_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(holder(address.port()).unwrap().id, std::process::id());
        let found = finding("http", address);
        assert_eq!(found.severity, Severity::Error);
        assert!(found.text.contains(&format!("(process {})", std::process::id())), "{found:?}");
    }
}
