//! A connection's bytes to messages: RTSP requests, and interleaved binary data (RFC 2326 10.12).

use bytes::{Buf as _, Bytes, BytesMut};
use rtsp_types::{Message, ParseError, Request, Response};

/// The most bytes of one message: its head and its body.
const MESSAGE: usize = 64 * 1024;

/// What a client sends.
#[derive(Debug)]
pub enum Incoming {
    /// A request.
    Request(Request<Vec<u8>>),
    /// Bytes of an interleaved channel.
    Data(u8, Bytes),
    /// A reply to something that was never asked: of no use.
    Response,
}

/// What a server sends.
#[derive(Debug)]
pub enum Reply {
    /// The reply to a request.
    Response(Response<Vec<u8>>),
    /// Bytes of an interleaved channel.
    Data(u8, Bytes),
    /// A request of the server's own (RFC 2326 10: ANNOUNCE, SET_PARAMETER, ...).
    Request(Request<Vec<u8>>),
}

/// Bytes that are no RTSP: what follows them can't be found any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// Neither a message nor interleaved data.
    #[error("bytes that are no RTSP message")]
    Malformed,
    /// A message longer than any sensible one.
    #[error("a message of more than {MESSAGE} bytes")]
    TooLong,
}

/// Takes the first message of a client off; nothing while it is not complete.
///
/// # Errors
/// The connection can't be trusted any further.
pub fn take(input: &mut BytesMut) -> Result<Option<Incoming>, FramingError> {
    Ok(split(input)?.map(|part| match part {
        Part::Data(channel, bytes) => Incoming::Data(channel, bytes),
        Part::Message(Message::Request(request)) => Incoming::Request(request),
        Part::Message(Message::Data(data)) => Incoming::Data(data.channel_id(), data.into_body().into()),
        Part::Message(Message::Response(_)) => Incoming::Response,
    }))
}

/// Takes the first message of a server off; nothing while it is not complete.
///
/// # Errors
/// The connection can't be trusted any further.
pub fn take_reply(input: &mut BytesMut) -> Result<Option<Reply>, FramingError> {
    Ok(split(input)?.map(|part| match part {
        Part::Data(channel, bytes) => Reply::Data(channel, bytes),
        Part::Message(Message::Request(request)) => Reply::Request(request),
        Part::Message(Message::Data(data)) => Reply::Data(data.channel_id(), data.into_body().into()),
        Part::Message(Message::Response(response)) => Reply::Response(response),
    }))
}

/// What is split off: interleaved data is not copied.
enum Part {
    Data(u8, Bytes),
    Message(Message<Vec<u8>>),
}

fn split(input: &mut BytesMut) -> Result<Option<Part>, FramingError> {
    // Line ends between messages (RFC 2326 4.1).
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
    match Message::<Vec<u8>>::parse(&input[..]) {
        Ok((message, length)) => {
            input.advance(length);
            Ok(Some(Part::Message(message)))
        }
        Err(ParseError::Incomplete(_)) if input.len() < MESSAGE => Ok(None),
        Err(ParseError::Incomplete(_)) => Err(FramingError::TooLong),
        Err(ParseError::Error) => Err(FramingError::Malformed),
    }
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
                        Incoming::Request(request) => format!("{:?}", request.method()),
                        Incoming::Data(channel, bytes) => format!("{channel} {bytes:?}"),
                        Incoming::Response => "response".into(),
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
        assert!(matches!(take_reply(&mut input), Ok(Some(Reply::Data(0, bytes))) if bytes == "ab"));
        assert!(matches!(take_reply(&mut input), Ok(Some(Reply::Response(response))) if response.body() == b"v=0"));
        assert!(matches!(take_reply(&mut input), Ok(None)), "the head of an interleaved packet");
        let mut input = BytesMut::from(&b"ANNOUNCE rtsp://a/b RTSP/1.0\r\nCSeq: 1\r\n\r\n"[..]);
        assert!(matches!(take_reply(&mut input), Ok(Some(Reply::Request(_)))));
    }

    #[test]
    fn what_is_no_message_is_found_out() {
        let mut input = BytesMut::from(&b"GET / HTTP/1.1\r\n\r\n"[..]);
        assert_eq!(take(&mut input).unwrap_err(), FramingError::Malformed);
        let mut input = BytesMut::from(&b"OPTIONS * RTSP/1.0\r\nX: "[..]);
        input.resize(MESSAGE + 10, b'a');
        assert_eq!(take(&mut input).unwrap_err(), FramingError::TooLong);
    }
}
