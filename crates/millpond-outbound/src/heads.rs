//! The interim replies of an HTTP/1 connection.

use crate::error::Excess;

/// Most interim replies before a reply.
pub(crate) const MOST_INTERIM: u32 = 32;

/// Most bytes of interim replies before a reply.
pub(crate) const MOST_BYTES: usize = 64 << 10;

/// The first bytes of an interim reply's status line. The `?` is any digit of the version.
const INTERIM: &[u8] = b"HTTP/1.? 1";

/// Counter of the interim replies on a connection (RFC 9112 4, RFC 9110 15.2).
///
/// The bytes that arrive are given to [`read`](Self::read), and requests are announced by [`wrote`](Self::wrote).
#[derive(Debug, Default)]
pub(crate) struct Heads {
    state: State,
    interim: u32,
    bytes: usize,
}

#[derive(Debug, Default)]
enum State {
    /// In the status line; this many bytes are those of [`INTERIM`].
    Line(usize),
    /// In an interim reply; whether the line so far is empty.
    Interim { is_empty: bool },
    /// After the status line of the reply.
    #[default]
    Reply,
}

impl Heads {
    /// Takes notice of a request, or of a part of one.
    pub(crate) fn wrote(&mut self) {
        // Parts of a long request's body restart nothing.
        if matches!(self.state, State::Reply) {
            *self = Self { state: State::Line(0), interim: 0, bytes: 0 };
        }
    }

    /// Takes notice of bytes that arrived.
    ///
    /// # Errors
    /// They exceed a bound.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Excess> {
        for byte in bytes {
            match &mut self.state {
                State::Reply => return Ok(()),
                // Parsers skip empty lines before a status line.
                State::Line(0) if matches!(byte, b'\r' | b'\n') => {}
                State::Line(at) => match INTERIM.get(*at) {
                    Some(expected) if expected == byte || (*expected == b'?' && byte.is_ascii_digit()) => {
                        *at += 1;
                        if *at == INTERIM.len() {
                            self.interim += 1;
                            self.state = State::Interim { is_empty: false };
                        }
                    }
                    _ => self.state = State::Reply,
                },
                State::Interim { is_empty } => match byte {
                    b'\n' if *is_empty => self.state = State::Line(0),
                    b'\n' => *is_empty = true,
                    b'\r' => {}
                    _ => *is_empty = false,
                },
            }
            self.bytes += 1;
            if self.interim > MOST_INTERIM {
                return Err(Excess::Interim);
            }
            if self.bytes > MOST_BYTES {
                return Err(Excess::Bytes);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

    fn after_request() -> Heads {
        let mut heads = Heads::default();
        heads.wrote();
        heads
    }

    #[test]
    fn a_few_interim_replies_are_fine_before_each_reply() {
        let mut heads = Heads::default();
        for _ in 0..100 {
            heads.wrote();
            for _ in 0..MOST_INTERIM {
                heads.read(CONTINUE).unwrap();
                heads.wrote();
            }
            heads.read(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            heads.read(&CONTINUE.repeat(100)).unwrap();
        }
    }

    #[test]
    fn endless_interim_replies_are_an_excess_however_they_are_cut() {
        let hints = b"HTTP/1.1 103 Early Hints\nlink: </a>\n\n\r\n".repeat(40);
        for length in [1, 2, 7, 1000, hints.len()] {
            let mut heads = after_request();
            let results: Vec<_> = hints.chunks(length).map(|piece| heads.read(piece)).collect();
            assert!(results.contains(&Err(Excess::Interim)), "pieces of {length}");
        }
    }

    #[test]
    fn one_endless_interim_reply_is_an_excess() {
        let mut heads = after_request();
        heads.read(b"HTTP/1.0 199 x\r\n").unwrap();
        let line = b"a: b\r\n";
        assert!((0..MOST_BYTES).any(|_| heads.read(line) == Err(Excess::Bytes)));
        let mut blank = after_request();
        assert!((0..=MOST_BYTES).any(|_| blank.read(b"\n") == Err(Excess::Bytes)));
    }
}
