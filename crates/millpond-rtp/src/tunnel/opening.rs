//! Recognises the first bytes of a connection: RTSP, or one half of a tunnel.

/// Longest HTTP head in bytes.
const HEAD: usize = 8 << 10;
/// Most headers.
const HEADERS: usize = 32;
/// Longest cookie in bytes.
const COOKIE: usize = 128;
/// Media type of both halves.
const TYPE: &str = "application/x-rtsp-tunnelled";

/// Type of a connection, by its first bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// RTSP.
    Rtsp,
    /// One half of a tunnel.
    Tunnel {
        /// Direction of the half.
        half: Half,
        /// Cookie that joins it to the other half: 1 to 128 visible ASCII characters.
        cookie: String,
        /// Length of the head in bytes.
        length: usize,
    },
    /// HTTP that is no tunnel: the status to reply with.
    Refused(&'static str),
}

/// Direction of a tunnel's half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Data from the server.
    Get,
    /// Data from the client.
    Post,
}

/// Recognises the first bytes of a connection; `None` while they are too few. Later bytes never change the result.
#[must_use]
pub fn recognize(input: &[u8]) -> Option<Opening> {
    let methods = [(Half::Get, &b"GET "[..]), (Half::Post, b"POST ")];
    if let Some((half, _)) = methods.iter().find(|(_, method)| input.starts_with(method)) {
        return tunnel(*half, input);
    }
    let may_follow = methods.iter().any(|(_, method)| method.starts_with(input));
    (!may_follow).then_some(Opening::Rtsp)
}

fn tunnel(half: Half, input: &[u8]) -> Option<Opening> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    // Only the first bytes count, however many arrived.
    let length = match request.parse(input.get(..HEAD).unwrap_or(input)) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() < HEAD => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Some(Opening::Refused("431 Request Header Fields Too Large"));
        }
        Err(_) => return Some(Opening::Refused("400 Bad Request")),
    };
    let header = |name: &str| {
        let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok().map(str::trim)
    };
    let accepts = |list: &str| list.split(',').any(|one| one.trim().eq_ignore_ascii_case(TYPE));
    let is_tunnel = half == Half::Post || header("accept").is_some_and(accepts);
    let fits =
        |cookie: &&str| (1..=COOKIE).contains(&cookie.len()) && cookie.bytes().all(|byte| byte.is_ascii_graphic());
    Some(match header("x-sessioncookie").filter(fits) {
        Some(cookie) if is_tunnel => Opening::Tunnel { half, cookie: cookie.to_owned(), length },
        _ => Opening::Refused("400 Bad Request"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtsp_is_recognized_at_once() {
        for text in ["OPTIONS", "GET_PARAMETER", "PLAY", "D", "$\0", "\r\n", "\x16\x03"] {
            assert_eq!(recognize(text.as_bytes()), Some(Opening::Rtsp), "{text:?}");
        }
        for text in ["", "G", "GET", "GET ", "P", "POS", "POST /a HTTP/1.1\r\nx-sessioncookie: 1\r\n"] {
            assert_eq!(recognize(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn halves_of_tunnels_are_recognized() {
        let get = "GET /a.mp4 HTTP/1.0\r\nX-SessionCookie: tD9hKgAA\r\nAccept: application/x-rtsp-tunnelled\r\n\r\n";
        let half = |half, length| Some(Opening::Tunnel { half, cookie: "tD9hKgAA".into(), length });
        assert_eq!(recognize(get.as_bytes()), half(Half::Get, get.len()));
        let post = "POST /a.mp4 HTTP/1.1\r\nx-sessioncookie: tD9hKgAA\r\nContent-Length: 32767\r\n\r\n";
        assert_eq!(recognize(format!("{post}Zm9v").as_bytes()), half(Half::Post, post.len()));
    }

    #[test]
    fn other_http_is_refused() {
        let refused = |text: &str| match recognize(text.as_bytes()) {
            Some(Opening::Refused(status)) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "400 Bad Request");
        assert_eq!(refused("GET / HTTP/1.1\r\nx-sessioncookie: 1\r\n\r\n"), "400 Bad Request");
        assert_eq!(refused("POST / HTTP/1.1\r\n\r\n"), "400 Bad Request");
        assert_eq!(refused("GET nonsense\r\n\r\n"), "400 Bad Request");
        assert_eq!(
            refused(&format!("POST / HTTP/1.1\r\nx-sessioncookie: {}\r\n\r\n", "a".repeat(129))),
            "400 Bad Request"
        );
        let long = format!("GET / HTTP/1.1\r\nx: {}", "a".repeat(HEAD));
        assert_eq!(refused(&long), "431 Request Header Fields Too Large");
        assert_eq!(refused(&format!("{long}\r\n\r\n")), "431 Request Header Fields Too Large", "even where it ends");
        assert_eq!(
            refused(&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(40))),
            "431 Request Header Fields Too Large"
        );
    }
}
