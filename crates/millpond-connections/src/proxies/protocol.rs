//! The PROXY protocol: a proxy's first bytes on a connection name its client. Its two versions are those of
//! <https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt>.

use super::{ConnectionClient, ConnectionKind};
use std::{
    io,
    net::{IpAddr, SocketAddr},
};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// First bytes of version 2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes by which versions are told apart. No header is shorter.
const FIRST: usize = 8;
/// Bytes of version 2 before the addresses; the last two are the length of the rest.
const FIXED: usize = 16;
/// Longest line of version 1 (section 2.1 of the protocol).
const LINE: usize = 107;
/// Longest rest of version 2 that is read: addresses, and a proxy's remarks.
const REST: usize = 2048;

/// Type of the remark that the client's connection to the proxy has TLS (section 2.2.5), and the bit of its first byte that says so.
const SSL_REMARK: u8 = 0x20;
const HAS_SSL: u8 = 0x01;

/// Reads the header of a connection, and not a byte more. Returns the client; `None` where the proxy speaks for itself, or names no
/// address of IP.
///
/// # Errors
/// The connection's, or the bytes are no header.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<ConnectionClient>> {
    let mut header = vec![0; FIRST];
    stream.read_exact(&mut header).await?;
    if header.starts_with(b"PROXY ") {
        while !header.ends_with(b"\r\n") {
            if header.len() == LINE {
                return Err(invalid("a line that is too long"));
            }
            header.push(stream.read_u8().await?);
        }
    } else if SIGNATURE.starts_with(&header) {
        header.resize(FIXED, 0);
        stream.read_exact(&mut header[FIRST..]).await?;
        let rest = usize::from(u16::from_be_bytes([header[FIXED - 2], header[FIXED - 1]]));
        if rest > REST {
            return Err(invalid("a header that is too long"));
        }
        header.resize(FIXED + rest, 0);
        stream.read_exact(&mut header[FIXED..]).await?;
    } else {
        return Err(invalid("no header"));
    }
    client(&header)
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// The client that a complete header names.
fn client(header: &[u8]) -> io::Result<Option<ConnectionClient>> {
    let found = match header.starts_with(&SIGNATURE) {
        true => of_version_2(header),
        false => std::str::from_utf8(header).ok().and_then(of_version_1),
    };
    found.ok_or_else(|| invalid("a malformed header"))
}

/// Parses a line such as `PROXY TCP4 192.0.2.7 10.0.0.1 4711 443` (section 2.1). The outer `None` is a malformed one.
fn of_version_1(line: &str) -> Option<Option<ConnectionClient>> {
    let mut words = line.strip_prefix("PROXY ")?.strip_suffix("\r\n")?.split(' ');
    let is_v4 = match words.next()? {
        "TCP4" => true,
        "TCP6" => false,
        "UNKNOWN" => return Some(None),
        _ => return None,
    };
    let words: [&str; 4] = words.collect::<Vec<_>>().try_into().ok()?;
    let (client, server): (IpAddr, IpAddr) = (words[0].parse().ok()?, words[1].parse().ok()?);
    let (port, _): (u16, u16) = (words[2].parse().ok()?, words[3].parse().ok()?);
    (client.is_ipv4() == is_v4 && server.is_ipv4() == is_v4)
        .then(|| Some(ConnectionClient::plain(SocketAddr::new(client.to_canonical(), port))))
}

/// Parses a binary header (section 2.2). The outer `None` is a malformed one.
fn of_version_2(header: &[u8]) -> Option<Option<ConnectionClient>> {
    /// The proxy speaks for itself, to see whether the server lives.
    const LOCAL: u8 = 0x20;
    const PROXIED: u8 = 0x21;
    let (&[command, family, ..], rest) = (header.get(SIGNATURE.len()..FIXED)?, header.get(FIXED..)?) else {
        return None;
    };
    let port = |at: usize| Some(u16::from_be_bytes(rest.get(at..at + 2)?.try_into().ok()?));
    let client = |address: IpAddr, port, remarks| {
        Some(Some(ConnectionClient {
            address: SocketAddr::new(address, port),
            kind: ConnectionKind::of_client(has_tls(remarks)),
        }))
    };
    match (command, family >> 4) {
        (LOCAL, _) => Some(None),
        (PROXIED, 1) => {
            let address: [u8; 4] = rest.get(..4)?.try_into().ok()?;
            client(address.into(), port(8)?, rest.get(12..)?)
        }
        (PROXIED, 2) => {
            let address: [u8; 16] = rest.get(..16)?.try_into().ok()?;
            client(IpAddr::from(address).to_canonical(), port(32)?, rest.get(36..)?)
        }
        // No address of IP.
        (PROXIED, 0 | 3) => Some(None),
        _ => None,
    }
}

/// Whether the remarks after the addresses (type, length, value; section 2.2.1) say that the client is connected by TLS. Remarks that end early
/// say nothing.
fn has_tls(mut remarks: &[u8]) -> bool {
    while let [kind, high, low, rest @ ..] = remarks {
        let Some((value, others)) = rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low]))) else {
            return false;
        };
        if *kind == SSL_REMARK {
            return value.first().is_some_and(|bits| bits & HAS_SSL != 0);
        }
        remarks = others;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn of(bytes: &[u8]) -> (Result<Option<String>, String>, usize) {
        let mut rest = bytes;
        let read = read(&mut rest).await;
        let told = |client: ConnectionClient| {
            format!("{}{}", client.address, if client.kind.is_secure() { " by TLS" } else { "" })
        };
        (read.map(|client| client.map(told)).map_err(|error| error.to_string()), rest.len())
    }

    fn v2_header(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
        let mut header = SIGNATURE.to_vec();
        header.extend([0x20 | command, family]);
        header.extend((addresses.len() as u16).to_be_bytes());
        header.extend(addresses);
        header
    }

    #[tokio::test]
    async fn headers_of_both_versions_are_read_and_no_more() {
        let v4 = [192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 0x01, 0xbb];
        let mut with_remarks = v4.to_vec();
        with_remarks.extend([0x04, 0, 2, 0, 0]);
        // HAProxy's remark of TLS: its bits, the result of the check of the client's certificate, and the version.
        let remark = |bits| [&with_remarks[..], &[0x20, 0, 15, bits, 0, 0, 0, 0, 0x21, 0, 7], b"TLSv1.3"].concat();
        let early = [&with_remarks[..], &[0x20, 0, 9, 1]].concat();
        for (header, client) in [
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n".to_vec(), Some("192.0.2.7:4711")),
            (b"PROXY TCP6 2001:db8::1 ::1 4711 443\r\n".to_vec(), Some("[2001:db8::1]:4711")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (v2_header(1, 0x11, &v4), Some("192.0.2.7:4711")),
            (v2_header(1, 0x11, &with_remarks), Some("192.0.2.7:4711")),
            (v2_header(1, 0x11, &remark(1)), Some("192.0.2.7:4711 by TLS")),
            (v2_header(1, 0x11, &remark(0)), Some("192.0.2.7:4711")),
            (v2_header(1, 0x11, &early), Some("192.0.2.7:4711")),
            (v2_header(0, 0, &[]), None),
            (v2_header(0, 0x11, &v4), None),
        ] {
            let request = b"GET / HTTP/1.1\r\n";
            let (found, rest) = of(&[&header[..], request].concat()).await;
            assert_eq!((found, rest), (Ok(client.map(str::to_owned)), request.len()), "{header:?}");
        }
    }

    #[tokio::test]
    async fn other_bytes_are_refused() {
        let long = format!("PROXY TCP4 {}", "1".repeat(200));
        let huge = [&SIGNATURE[..], &[0x21, 0x11, 0xff, 0xff]].concat();
        for bytes in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"PROXY",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 4711\r\n",
            b"PROXY TCP4 nobody 10.0.0.1 1 2\r\n",
            long.as_bytes(),
            &huge,
            &v2_header(1, 0x11, &[1, 2, 3]),
            &v2_header(9, 0x11, &[0; 12]),
            &v2_header(1, 0x21, &[0; 12]),
            b"PROXY TCP6 192.0.2.7 10.0.0.1 1 2\r\n",
            &SIGNATURE[..],
        ] {
            assert!(of(bytes).await.0.is_err(), "{bytes:?}");
        }
    }
}
