//! Clients whose connections to another server were intercepted: they share a live stream of that server.

use super::{Rtsp, connection, inlet::Inlet, shared::SharedStream, signalling::path_of};
use crate::wire::Wire;
use bytes::BytesMut;
use millpond_connections::proxies::ConnectionClient;
use millpond_rtp::{
    framing::{self, ClientMessage},
    message::{
        Method, Request,
        headers::{AUTHORIZATION, PROXY_REQUIRE, REQUIRE},
    },
};
use std::{io, net::SocketAddr, sync::Arc};
use tokio::net::TcpStream;

/// The first request of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FirstRequest {
    /// The beginning of one.
    Partial,
    /// It is about a path that may be a live stream.
    Stream {
        /// The decoded path, without slashes at its ends.
        path: String,
        /// The path as the URL has it.
        target: String,
    },
    /// Anything else. It is the server's.
    Other,
}

/// Classifies the first bytes of a client. Requests with a password, a query or a demand are for the server itself.
pub(crate) fn first_request(bytes: &[u8]) -> FirstRequest {
    let mut input = BytesMut::from(bytes);
    match framing::take(&mut input) {
        Ok(None) => FirstRequest::Partial,
        Ok(Some(ClientMessage::Request(request))) => of(&request).unwrap_or(FirstRequest::Other),
        Ok(Some(_)) | Err(_) => FirstRequest::Other,
    }
}

fn of(request: &Request<Vec<u8>>) -> Option<FirstRequest> {
    let url = request.request_uri()?;
    let demands = [&AUTHORIZATION, &REQUIRE, &PROXY_REQUIRE].iter().any(|name| request.header(name).is_some());
    let is_begin = matches!(request.method(), Method::Options | Method::Describe);
    if demands || !is_begin || url.scheme() != "rtsp" || url.query().is_some() || !request.body().is_empty() {
        return None;
    }
    // Behind `~`, Millpond looks for a token.
    let path = path_of(request).filter(|path| !path.is_empty() && !url.path().starts_with("/~"))?;
    Some(FirstRequest::Stream { path, target: url.path().to_owned() })
}

impl Rtsp {
    /// Serves a client of another server with a live stream of that server, and with nothing else. Its media is sent on the
    /// connection: packets by UDP would come from this machine's address. `input` has the bytes that came already.
    ///
    /// # Errors
    /// The reason why the connection ended, where that was not the client.
    pub(crate) async fn serve_shared(
        self: &Arc<Self>,
        (stream, input): (TcpStream, BytesMut),
        peer: SocketAddr,
        shared: SharedStream,
    ) -> io::Result<()> {
        let wire = Arc::new(Wire::new(stream));
        connection::serve(wire.clone(), Inlet::Shared(wire), (input, Some(shared)), ConnectionClient::plain(peer), self)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_paths_without_demands_may_be_for_streams() {
        let first = |text: &str| first_request(text.as_bytes());
        let stream = |path: &str, target: &str| FirstRequest::Stream { path: path.into(), target: target.into() };
        let line = "rtsp://10.2.0.2:554/a%20b/door/ RTSP/1.0\r\nCSeq: 1\r\n";
        for method in ["OPTIONS", "DESCRIBE"] {
            assert_eq!(first(&format!("{method} {line}\r\n")), stream("a b/door", "/a%20b/door/"));
            assert_eq!(first(&format!("{method} {line}")), FirstRequest::Partial);
            let password = "Authorization: Basic YTpi\r\n";
            assert_eq!(first(&format!("{method} {line}{password}\r\n")), FirstRequest::Other);
            assert_eq!(first(&format!("{method} {line}Require: a.b\r\n\r\n")), FirstRequest::Other);
        }
        for text in [
            &format!("SETUP {line}\r\n"),
            "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n",
            "OPTIONS rtsp://10.2.0.2/ RTSP/1.0\r\nCSeq: 1\r\n\r\n",
            "DESCRIBE rtsp://10.2.0.2/door?channel=1 RTSP/1.0\r\nCSeq: 1\r\n\r\n",
            "DESCRIBE rtsp://10.2.0.2/~abc/door RTSP/1.0\r\nCSeq: 1\r\n\r\n",
            "DESCRIBE rtsps://10.2.0.2/door RTSP/1.0\r\nCSeq: 1\r\n\r\n",
            "GET /door HTTP/1.0\r\n\r\n",
            "\x16\x03\x01 and so on, which is TLS\r\n\r\n",
        ] {
            assert_eq!(first(text), FirstRequest::Other, "{text}");
        }
        assert_eq!(first(""), FirstRequest::Partial);
        assert_eq!(first(&format!("OPTIONS {}", "x".repeat(20_000))), FirstRequest::Other);
    }
}
