//! The question whether a server speaks RTSP.

use super::Upstream;
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

/// Longest wait for the server's answer. Where a firewall drops the packets, or the port accepts connections and stays silent, the first
/// request waits for it.
const PROBE: Duration = Duration::from_secs(2);
/// Beginning of each reply of RTSP (RFC 2326 7.1).
const REPLY: &[u8; 5] = b"RTSP/";

/// Tells whether a server answers OPTIONS (RFC 2326 10.1) in time, with any status. `authority` is its address in URLs.
pub(super) async fn speaks_rtsp(upstream: &Upstream, server: SocketAddr, authority: &str) -> bool {
    let asked = timeout(PROBE.min(upstream.limit), ask(upstream, server, authority)).await;
    matches!(asked, Ok(Ok(true)))
}

async fn ask(upstream: &Upstream, server: SocketAddr, authority: &str) -> io::Result<bool> {
    let mut stream = upstream.connect(server, None).await?;
    let agent = concat!("millpond/", env!("CARGO_PKG_VERSION"));
    let request = format!("OPTIONS rtsp://{authority}/ RTSP/1.0\r\nCSeq: 1\r\nUser-Agent: {agent}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut first = [0; REPLY.len()];
    stream.read_exact(&mut first).await?;
    Ok(first == *REPLY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{net::TcpListener, time::Instant};

    /// Asks a server that accepts one connection and sends `reply` to its request. It stays silent with `None`.
    async fn asked(reply: Option<&'static str>) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            match reply {
                Some(reply) => stream.write_all(reply.as_bytes()).await.unwrap(),
                // Until the other side has closed the connection.
                None => drop(stream.read(&mut [0]).await),
            }
            String::from_utf8(request).unwrap()
        });
        let upstream = Upstream { mark: None, limit: Duration::from_millis(500) };
        let answer = speaks_rtsp(&upstream, server, "192.0.2.1").await;
        let request = serving.await.unwrap();
        assert!(request.starts_with("OPTIONS rtsp://192.0.2.1/ RTSP/1.0\r\nCSeq: 1\r\n"), "{request}");
        answer
    }

    #[tokio::test]
    async fn a_reply_of_rtsp_tells_whatever_its_status_is() {
        assert!(asked(Some("RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n")).await);
        assert!(asked(Some("RTSP/1.0 401 Unauthorized\r\nCSeq: 1\r\n\r\n")).await);
        assert!(!asked(Some("HTTP/1.1 400 Bad Request\r\n\r\n")).await);
        assert!(!asked(Some("RT")).await, "it closes the connection");
    }

    #[tokio::test]
    async fn a_port_that_stays_silent_has_no_rtsp() {
        let began = Instant::now();
        assert!(!asked(None).await);
        assert!(began.elapsed() < PROBE);
    }
}
