//! Heads of servers that don't follow RFC 2326, brought into its form.

/// Returns the length of a head up to its empty line, whose lines end with CRLF or LF.
pub(super) fn head(input: &[u8]) -> Option<usize> {
    let mut lines = input.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let mut before = lines.next()?;
    for at in lines {
        if matches!(input[before + 1..at], [] | [b'\r']) {
            return Some(at + 1);
        }
        before = at;
    }
    None
}

/// Returns a message with a head that strict parsers accept, followed by the same body. Lines without a header are left out.
/// `Content-Length` is replaced by the length of the body. Bytes that are not UTF-8 are replaced.
pub(super) fn regular(message: &[u8]) -> Vec<u8> {
    let (head, body) = message.split_at(head(message).unwrap_or(message.len()));
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let mut regular = String::with_capacity(head.len() + 32);
    regular.push_str(&first_line(lines.next().unwrap_or_default()));
    for line in lines {
        if line.starts_with([' ', '\t']) {
            // A folded line belongs to the one before (RFC 2326 4.2).
            regular.push(' ');
            regular.push_str(line.trim());
        } else if let Some((name, value)) = line.split_once(':').filter(|(name, _)| is_kept(name.trim_end())) {
            regular.push_str("\r\n");
            regular.push_str(name.trim_end());
            regular.push_str(": ");
            regular.push_str(value.trim());
        }
    }
    if !body.is_empty() {
        regular.push_str(&format!("\r\nContent-Length: {}", body.len()));
    }
    // A single CR inside a line would end it for some readers.
    let mut bytes = regular.replace("\r\n", "\n").replace('\r', " ").replace('\n', "\r\n").into_bytes();
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// Returns a request line unchanged, and a status line with a space before the reason that may be missing.
fn first_line(line: &str) -> String {
    let line = line.trim_end();
    if line.starts_with("RTSP/") && line.matches(' ').count() == 1 { format!("{line} ") } else { line.to_owned() }
}

fn is_kept(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token) && !name.eq_ignore_ascii_case("content-length")
}

#[cfg(test)]
mod tests {
    use super::super::*;

    fn reply(text: &[u8]) -> Response<Vec<u8>> {
        let mut input = BytesMut::from(text);
        let Ok(Some(ServerMessage::Response(reply))) = take_reply(&mut input) else {
            panic!("{}", String::from_utf8_lossy(text))
        };
        assert!(input.is_empty());
        reply
    }

    #[test]
    fn irregular_heads_are_understood() {
        for text in [
            &b"RTSP/1.0 200 OK\nCSeq: 1\nContent-Length: 3\n\nv=0"[..],
            b"RTSP/1.0 200\r\nCSeq:1\r\ncontent-length :3\r\n\r\nv=0",
            b"RTSP/1.0 200 OK\r\nCSeq : 1\r\n\xff\r\nno header\r\n: none\r\nX: \xff\r\nContent-Length: 3\r\n\r\nv=0",
            b"RTSP/1.0 200 OK\r\nContent-Length: 3\r\nCSeq: \r\n 1\r\n\nv=0",
        ] {
            let reply = reply(text);
            let number = reply.header(&rtsp_types::headers::CSEQ).map(|number| number.as_str().trim());
            assert_eq!((u16::from(reply.status()), number), (200, Some("1")), "{}", String::from_utf8_lossy(text));
            assert_eq!(reply.body(), b"v=0");
        }
    }

    #[test]
    fn headers_stay_in_their_lines() {
        let reply =
            reply(b"RTSP/1.0 404 Not\rFound\r\nX: a\rSession: b\r\nWWW-Authenticate: a\nWWW-Authenticate: b\n\n");
        assert_eq!(reply.header(&rtsp_types::headers::SESSION), None);
        let challenges = reply.header(&rtsp_types::headers::WWW_AUTHENTICATE).unwrap();
        assert_eq!((challenges.as_str(), reply.reason_phrase()), ("a, b", "Not Found"));
    }

    #[test]
    fn requests_are_strict() {
        let mut input = BytesMut::from(&b"OPTIONS * RTSP/1.0\nCSeq: 1\n\n"[..]);
        assert!(matches!(take(&mut input), Ok(None)), "no end");
        assert!(matches!(take_reply(&mut input), Ok(Some(ServerMessage::Request(_)))));
    }
}
