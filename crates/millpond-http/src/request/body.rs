//! Bodies of HTTP/1.1 requests (RFC 9112 sections 6 and 7.1): from bytes of the connection to those of the body.

use super::{HeadError, framing};
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, header};

/// Most bytes of a chunk's size with its extensions, and of a trailer field.
const MOST_LINE: usize = 4 << 10;
/// Bytes of CRLF.
const LINE_END: usize = 2;
/// Most bytes of all trailer fields, with their line ends.
const MOST_TRAILERS: usize = 16 << 10;
/// Most bytes that are given at a time.
const MOST_PIECE: usize = 64 << 10;

/// Finds the bytes of a body.
#[derive(Debug)]
pub struct BodyDecoder {
    part: Part,
}

/// The part of the body at the current position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// So many bytes up to the end, with `Content-Length`.
    Rest(u64),
    /// The line with a chunk's size.
    Size,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line end after a chunk.
    ChunkEnd,
    /// Trailer fields, after so many bytes of them.
    Trailers(usize),
    Over,
}

/// What the bytes that have arrived give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// Bytes of the body: at least 1, at most 64 KiB.
    Bytes(Bytes),
    /// More bytes are needed.
    Partial,
    /// The body is over. Later bytes belong to the next request.
    Over,
}

impl BodyDecoder {
    /// Creates the decoder of the body that follows a head.
    ///
    /// # Errors
    /// An invalid `Content-Length`.
    pub fn new(headers: &HeaderMap) -> Result<Self, HeadError> {
        let part = if headers.contains_key(header::TRANSFER_ENCODING) {
            Part::Size
        } else {
            match framing::content_length(headers)? {
                None | Some(0) => Part::Over,
                Some(length) => Part::Rest(length),
            }
        };
        Ok(Self { part })
    }

    /// Tells whether the body is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.part == Part::Over
    }

    /// Takes bytes from the start of `input`.
    ///
    /// # Errors
    /// Bytes that are no chunks.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Decoded, HeadError> {
        loop {
            match self.part {
                Part::Over => return Ok(Decoded::Over),
                Part::Rest(left) | Part::Chunk(left) => {
                    let count = input.len().min(MOST_PIECE).min(usize::try_from(left).unwrap_or(MOST_PIECE));
                    if count == 0 {
                        return Ok(Decoded::Partial);
                    }
                    let left = left - count as u64;
                    self.part = match (self.part, left) {
                        (Part::Rest(_), 0) => Part::Over,
                        (Part::Rest(_), _) => Part::Rest(left),
                        (_, 0) => Part::ChunkEnd,
                        _ => Part::Chunk(left),
                    };
                    return Ok(Decoded::Bytes(input.split_to(count).freeze()));
                }
                Part::Size => {
                    let Some(line) = line(input)? else { return Ok(Decoded::Partial) };
                    self.part = match size(&line)? {
                        0 => Part::Trailers(0),
                        size => Part::Chunk(size),
                    };
                }
                Part::ChunkEnd => {
                    let Some(line) = line(input)? else { return Ok(Decoded::Partial) };
                    if !line.is_empty() {
                        return Err(HeadError::bad_request("a chunk is longer than its size"));
                    }
                    self.part = Part::Size;
                }
                Part::Trailers(taken) => {
                    let Some(line) = line(input)? else { return Ok(Decoded::Partial) };
                    let taken = taken + line.len() + LINE_END;
                    if taken > MOST_TRAILERS {
                        return Err(HeadError::bad_request("trailer fields over 16 KiB"));
                    }
                    self.part = if line.is_empty() { Part::Over } else { Part::Trailers(taken) };
                }
            }
        }
    }
}

/// Takes a line without its end; `None` where its end has not arrived.
fn line(input: &mut BytesMut) -> Result<Option<BytesMut>, HeadError> {
    let Some(end) = input.iter().take(MOST_LINE).position(|byte| *byte == b'\n') else {
        let is_long = input.len() >= MOST_LINE;
        return if is_long { Err(HeadError::bad_request("a line of a chunked body over 4 KiB")) } else { Ok(None) };
    };
    let mut line = input.split_to(end);
    input.advance(1);
    if line.last() != Some(&b'\r') {
        return Err(HeadError::bad_request("a line of a chunked body without CRLF"));
    }
    line.truncate(end - 1);
    Ok(Some(line))
}

/// The size of a chunk: hexadecimal digits before any extension.
fn size(line: &[u8]) -> Result<u64, HeadError> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let is_hex = !digits.is_empty() && digits.len() <= 16 && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_hex);
    text.and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or(HeadError::bad_request("a chunk without a size in hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body, the bytes after it, and whether it is over; the input arrives in pieces.
    fn decoded(fields: &[(header::HeaderName, &str)], input: &[u8], step: usize) -> Result<(Vec<u8>, bool), HeadError> {
        let headers = fields.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        let (mut decoder, mut buffer, mut body) = (BodyDecoder::new(&headers)?, BytesMut::new(), Vec::new());
        for piece in input.chunks(step) {
            buffer.extend_from_slice(piece);
            while let Decoded::Bytes(bytes) = decoder.next(&mut buffer)? {
                body.extend_from_slice(&bytes);
            }
        }
        assert!(!decoder.is_over() || decoder.next(&mut buffer)? == Decoded::Over);
        Ok((body, decoder.is_over()))
    }

    #[test]
    fn bodies_are_found_however_they_arrive() {
        let chunked = [(header::TRANSFER_ENCODING, "chunked")];
        let input = b"5\r\nhello\r\n1;a=\"b\"\r\n!\r\n00a \r\n0123456789\r\n0\r\nX: y\r\n\r\n";
        for step in 1..=input.len() {
            assert_eq!(decoded(&chunked, input, step).unwrap(), (b"hello!0123456789".to_vec(), true));
            assert!(!decoded(&chunked, &input[..input.len() - 1], step).unwrap().1);
            let length = [(header::CONTENT_LENGTH, "5")];
            assert_eq!(decoded(&length, b"12345GET /", step).unwrap(), (b"12345".to_vec(), true));
        }
        assert_eq!(decoded(&[], b"GET /", 1).unwrap(), (Vec::new(), true));
    }

    #[test]
    fn broken_chunks_are_refused() {
        let long = format!("1;{}", "a".repeat(MOST_LINE));
        let trailers = format!("0\r\n{}", "a: b\r\n".repeat(MOST_TRAILERS / 4));
        let broken = ["x\r\n", "\r\n", "-1\r\n", "0x5\r\nhello", "11111111111111111\r\n", "2\r\nabc\r\n", "5\nhello"];
        for input in broken.into_iter().chain([long.as_str(), trailers.as_str()]) {
            let result = decoded(&[(header::TRANSFER_ENCODING, "chunked")], input.as_bytes(), 7);
            assert!(result.is_err(), "{input:.20}");
        }
    }
}
