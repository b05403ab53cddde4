//! Splits a connection's bytes into messages: RTSP messages, and interleaved binary data (RFC 2326 10.12).

use bytes::{Buf as _, Bytes, BytesMut};
use rtsp_types::{Message, Request, Response};

mod lenient;

/// Longest parts of a message in bytes, and its form.
struct Limits {
    /// Request or status line and headers.
    head: usize,
    body: usize,
    /// Whether heads may violate the form that RFC 2326 demands; see [`lenient`].
    lenient: bool,
}

/// Requests are short: the longest headers are credentials and keys, and no method has a long body.
const REQUEST: Limits = Limits { head: 16 << 10, body: 16 << 10, lenient: false };
/// Replies may contain long descriptions. Heads of cameras have many forms.
const REPLY: Limits = Limits { head: 64 << 10, body: 64 << 10, lenient: true };
/// First bytes of a reply.
const REPLY_BEGINS: &[u8] = b"RTSP/";
/// Longest first word of a message, in bytes.
const WORD: usize = 40;

/// A message from a client.
#[derive(Debug)]
pub enum ClientMessage {
    /// A request.
    Request(Request<Vec<u8>>),
    /// Bytes of an interleaved channel.
    Data(u8, Bytes),
    /// A reply to a request that was never sent; it is ignored.
    Response,
}

/// A message from a server.
#[derive(Debug)]
pub enum ServerMessage {
    /// The reply to a request.
    Response(Response<Vec<u8>>),
    /// Bytes of an interleaved channel.
    Data(u8, Bytes),
    /// A request from the server (RFC 2326 10: ANNOUNCE, SET_PARAMETER, ...).
    Request(Request<Vec<u8>>),
}

/// Invalid bytes, after which the next message can't be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// The bytes are neither a message nor interleaved data.
    #[error("bytes that are no RTSP message")]
    Malformed,
    /// The message is too long.
    #[error("message {part} of more than {most} bytes")]
    TooLong {
        /// `head` or `body`.
        part: &'static str,
        /// Most bytes of that part.
        most: usize,
    },
}

/// Takes the first message of a client from `input`; `None` while it is incomplete.
///
/// # Errors
/// The input is invalid, and the connection must be closed.
pub fn take(input: &mut BytesMut) -> Result<Option<ClientMessage>, FramingError> {
    Ok(split(input, &REQUEST)?.map(|part| match part {
        Part::Data(channel, bytes) => ClientMessage::Data(channel, bytes),
        Part::Message(Message::Request(request)) => ClientMessage::Request(request),
        Part::Message(Message::Data(data)) => ClientMessage::Data(data.channel_id(), data.into_body().into()),
        Part::Message(Message::Response(_)) => ClientMessage::Response,
    }))
}

/// Takes the first message of a server from `input`; `None` while it is incomplete. Lines may end with LF alone, a
/// status line may have no reason, and a name may be followed by spaces.
///
/// # Errors
/// The input is invalid, and the connection must be closed.
pub fn take_reply(input: &mut BytesMut) -> Result<Option<ServerMessage>, FramingError> {
    Ok(split(input, &REPLY)?.map(|part| match part {
        Part::Data(channel, bytes) => ServerMessage::Data(channel, bytes),
        Part::Message(Message::Request(request)) => ServerMessage::Request(request),
        Part::Message(Message::Data(data)) => ServerMessage::Data(data.channel_id(), data.into_body().into()),
        Part::Message(Message::Response(response)) => ServerMessage::Response(response),
    }))
}

/// Skips bytes of a server that are no message, up to what looks like the next packet of one of its channels, or like a reply.
/// Returns their number, which is at least 1 where there are any.
pub(crate) fn skip(input: &mut BytesMut, has_channel: impl Fn(u8) -> bool) -> usize {
    let begins = |at: &usize| match input[*at..] {
        // Packets of RTP and RTCP begin with their version, 2.
        [b'$', channel, _, _, first, ..] => has_channel(channel) && first >> 6 == 2,
        [b'$', channel, ..] => has_channel(channel),
        [b'$'] => true,
        ref rest => rest.starts_with(REPLY_BEGINS) || REPLY_BEGINS.starts_with(rest),
    };
    let count = (1..input.len()).find(begins).unwrap_or(input.len());
    input.advance(count);
    count
}

/// A part of the input. Interleaved data is not copied.
enum Part {
    Data(u8, Bytes),
    Message(Message<Vec<u8>>),
}

fn split(input: &mut BytesMut, limits: &Limits) -> Result<Option<Part>, FramingError> {
    // Line ends are allowed between messages (RFC 2326 4.1).
    while let [b'\r' | b'\n', ..] = input[..] {
        input.advance(1);
    }
    if let [b'$', rest @ ..] = &input[..] {
        let [channel, high, low, ..] = *rest else { return Ok(None) };
        let length = 4 + usize::from(u16::from_be_bytes([high, low]));
        if input.len() < length {
            return Ok(None);
        }
        return Ok(Some(Part::Data(channel, input.split_to(length).freeze().slice(4..))));
    }
    if input.is_empty() {
        return Ok(None);
    }
    // The parser has no state, but runs only once per message, however its bytes arrive.
    let Some(length) = length(input, limits)? else { return Ok(None) };
    if limits.lenient {
        let message = parse(&lenient::regular(&input[..length]))?;
        input.advance(length);
        return Ok(Some(Part::Message(message)));
    }
    let message = parse(&input[..length])?;
    input.advance(length);
    Ok(Some(Part::Message(message)))
}

fn parse(bytes: &[u8]) -> Result<Message<Vec<u8>>, FramingError> {
    match Message::parse(bytes) {
        Ok((message, taken)) if taken == bytes.len() => Ok(message),
        _ => Err(FramingError::Malformed),
    }
}

/// Returns the length of the first message; `None` while it is incomplete.
fn length(input: &[u8], limits: &Limits) -> Result<Option<usize>, FramingError> {
    let most = limits.head;
    let reach = input.get(..most).unwrap_or(input);
    let strict = || reach.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
    let Some(head) = (if limits.lenient { lenient::head(reach) } else { strict() }) else {
        return if input.len() >= most {
            Err(FramingError::TooLong { part: "head", most })
        } else if may_begin(input) {
            Ok(None)
        } else {
            Err(FramingError::Malformed)
        };
    };
    let body = content_length(&input[..head])?;
    if body > limits.body {
        return Err(FramingError::TooLong { part: "body", most: limits.body });
    }
    Ok(Some(head + body).filter(|length| *length <= input.len()))
}

/// Whether the bytes may begin a message, whose first word is a method or a version.
fn may_begin(input: &[u8]) -> bool {
    let word = input.iter().position(|byte| matches!(byte, b' ' | b'/')).unwrap_or(input.len());
    word <= WORD && input[..word].iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Returns the body length that a head announces (RFC 2326 12.14). Two different lengths are an error.
fn content_length(head: &[u8]) -> Result<usize, FramingError> {
    let values = head.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        line[..colon].trim_ascii_end().eq_ignore_ascii_case(b"content-length").then(|| line[colon + 1..].trim_ascii())
    });
    let mut found = None;
    for value in values {
        let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let length = digits.and_then(|digits| digits.parse().ok()).ok_or(FramingError::Malformed)?;
        if found.is_some_and(|other| other != length) {
            return Err(FramingError::Malformed);
        }
        found = Some(length);
    }
    Ok(found.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtsp_types::Method;

    #[test]
    fn messages_come_one_by_one_however_they_are_cut() {
        let text =
            b"\r\nOPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n$\x01\x00\x03abcDESCRIBE rtsp://a/b RTSP/1.0\r\nCSeq: 2\r\n\r\n";
        for step in [1, 3, text.len()] {
            let mut input = BytesMut::new();
            let mut found = Vec::new();
            for part in text.chunks(step) {
                input.extend_from_slice(part);
                while let Some(message) = take(&mut input).unwrap() {
                    found.push(match message {
                        ClientMessage::Request(request) => format!("{:?}", request.method()),
                        ClientMessage::Data(channel, bytes) => format!("{channel} {bytes:?}"),
                        ClientMessage::Response => "response".into(),
                    });
                }
            }
            let options = format!("{:?}", Method::Options);
            let describe = format!("{:?}", Method::Describe);
            assert_eq!(found, [options, "1 b\"abc\"".to_owned(), describe], "{step}");
        }
    }

    #[test]
    fn replies_come_between_the_media() {
        let mut input =
            BytesMut::from(&b"$\0\0\x02ab\r\nRTSP/1.0 200 OK\r\nCSeq: 7\r\nContent-Length: 3\r\n\r\nv=0$\x01"[..]);
        assert!(matches!(take_reply(&mut input), Ok(Some(ServerMessage::Data(0, bytes))) if bytes == "ab"));
        assert!(
            matches!(take_reply(&mut input), Ok(Some(ServerMessage::Response(response))) if response.body() == b"v=0")
        );
        assert!(matches!(take_reply(&mut input), Ok(None)), "the head of an interleaved packet");
        let mut input = BytesMut::from(&b"ANNOUNCE rtsp://a/b RTSP/1.0\r\nCSeq: 1\r\n\r\n"[..]);
        assert!(matches!(take_reply(&mut input), Ok(Some(ServerMessage::Request(_)))));
    }

    #[test]
    fn what_is_no_message_is_found_out() {
        let mut input = BytesMut::from(&b"GET / HTTP/1.1\r\n\r\n"[..]);
        assert_eq!(take(&mut input).unwrap_err(), FramingError::Malformed);
        let mut input = BytesMut::from(&b"\x16\x03\x01"[..]);
        assert_eq!(take(&mut input).unwrap_err(), FramingError::Malformed, "before its end");
        let mut input = BytesMut::from(&[b'A'; 50][..]);
        assert_eq!(take(&mut input).unwrap_err(), FramingError::Malformed, "no method is as long");
    }

    #[test]
    fn long_messages_are_refused_before_they_are_held() {
        let most = REQUEST.head;
        let mut input = BytesMut::from(&b"OPTIONS * RTSP/1.0\r\nX: "[..]);
        input.resize(most - 1, b'a');
        assert!(matches!(take(&mut input), Ok(None)));
        input.resize(most, b'a');
        assert_eq!(take(&mut input).unwrap_err(), FramingError::TooLong { part: "head", most });
        let head = |length: &str| BytesMut::from(&*format!("SET_PARAMETER * RTSP/1.0\r\n{length}\r\n"));
        let error = take(&mut head("Content-Length: 16385\r\n")).unwrap_err();
        assert_eq!(error, FramingError::TooLong { part: "body", most: REQUEST.body });
        assert!(matches!(take(&mut head("Content-Length: 16384\r\n")), Ok(None)));
        for length in ["Content-Length: +1", "Content-Length:", "Content-Length: 1\r\nContent-length: 2"] {
            let mut input = head(&format!("{length}\r\n"));
            input.extend_from_slice(b"ab");
            assert_eq!(take(&mut input).unwrap_err(), FramingError::Malformed, "{length}");
        }
    }
}
