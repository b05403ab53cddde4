//! The first bytes of an intercepted connection: whether they are a request that may become a stream.

use http::{HeaderMap, Method, header};
use millpond_http::request::head::{self, ParsedHead, RequestHead};
use millpond_package::hls::Container;

/// Protocol of the first bytes of a client.
#[derive(Debug)]
pub(super) enum First {
    /// The beginning of a GET.
    Partial,
    /// A GET that may be for a stream.
    Get(Box<RequestHead>),
    /// Anything else. It is none of our business.
    Other,
}

/// Classifies the first bytes of a client. Requests with a body, for another protocol or with a password are for the HTTP server.
pub(super) fn classify(bytes: &[u8]) -> First {
    const GET: &[u8] = b"GET ";
    let known = bytes.len().min(GET.len());
    if bytes[..known] != GET[..known] {
        return First::Other;
    }
    match head::parse(bytes) {
        ParsedHead::Partial => First::Partial,
        ParsedHead::Request(head) if is_plain(&head) => First::Get(head),
        ParsedHead::Request(_) | ParsedHead::Http2Preface | ParsedHead::Invalid(_) => First::Other,
    }
}

fn is_plain(head: &RequestHead) -> bool {
    let headers = &head.request.headers;
    let is_other = [header::UPGRADE, header::AUTHORIZATION].iter().any(|name| headers.contains_key(name));
    head.request.method == Method::GET && !head.has_body && !is_other && head.request.target.starts_with('/')
}

/// Returns the container of the response: by the extension of the path, else by `Accept`, else fragmented MP4.
pub(super) fn container(path: &str, headers: &HeaderMap) -> Container {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    if ["ts", "m2ts", "mts"].iter().any(|of| extension.eq_ignore_ascii_case(of)) {
        return Container::Ts;
    }
    if ["mp4", "m4v", "mov"].iter().any(|of| extension.eq_ignore_ascii_case(of)) {
        return Container::Fmp4;
    }
    let accepted = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let types =
        accepted.flat_map(|value| value.split(',')).map(|part| part.split(';').next().unwrap_or_default().trim());
    let known = |text: &str| match text.to_ascii_lowercase().as_str() {
        "video/mp2t" => Some(Container::Ts),
        "video/mp4" | "audio/mp4" => Some(Container::Fmp4),
        _ => None,
    };
    types.into_iter().find_map(known).unwrap_or(Container::Fmp4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_plain_gets_may_become_streams() {
        let head = "GET /door?a=b HTTP/1.1\r\nHost: h\r\n\r\n";
        for end in 1..head.len() {
            assert!(matches!(classify(&head.as_bytes()[..end]), First::Partial), "{end}");
        }
        let First::Get(get) = classify(head.as_bytes()) else { panic!("a GET") };
        assert_eq!(get.request.target, "/door?a=b");
        for other in [
            "P",
            "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na",
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na",
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Basic YTpi\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "\x16\x03\x01",
        ] {
            assert!(matches!(classify(other.as_bytes()), First::Other), "{other:?}");
        }
    }

    #[test]
    fn containers_are_those_of_extension_and_accept() {
        let accepts = |value: &'static str| HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(value))]);
        for (path, accept, container_) in [
            ("/door", "*/*", Container::Fmp4),
            ("/door.ts", "video/mp4", Container::Ts),
            ("/door.MP4", "video/mp2t", Container::Fmp4),
            ("/door", "text/html, Video/MP2T;q=0.9, video/mp4", Container::Ts),
            ("/a.b/door", "audio/mp4", Container::Fmp4),
        ] {
            assert_eq!(container(path, &accepts(accept)), container_, "{path} {accept}");
        }
    }
}
