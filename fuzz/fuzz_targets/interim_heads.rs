//! Interim replies of an HTTP/1 server. The counter gives one verdict for all divisions of the bytes into reads, and that of the
//! HTTP client's parser. The first byte is the size of the pieces; then come parts, each with a byte of repetitions and one of length.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_outbound::Excess;
use millpond_outbound::fuzzing::{INTERIM, INTERIM_BYTES, Part, heads};

const MOST: usize = 1 << 17;

/// What the parser of the client makes of the bytes: interim replies, the offset behind them, and that of the reply if it follows.
fn parsed(bytes: &[u8]) -> (u32, usize, Option<usize>) {
    let (mut count, mut at) = (0, 0);
    loop {
        let mut fields = [httparse::EMPTY_HEADER; 100];
        let mut reply = httparse::Response::new(&mut fields);
        match reply.parse(&bytes[at..]) {
            Ok(httparse::Status::Complete(length)) if reply.code.is_some_and(|code| code / 100 == 1) => {
                count += 1;
                at += length;
            }
            Ok(httparse::Status::Complete(_)) => {
                let lines = bytes[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                return (count, at, Some(at + lines));
            }
            Ok(httparse::Status::Partial) | Err(_) => return (count, at, None),
        }
    }
}

fn verdict(bytes: &[u8], size: usize, exchanges: usize) -> Result<(), Excess> {
    let exchange = || std::iter::once(Part::Sent(b"")).chain(bytes.chunks(size).map(Part::Received));
    heads((0..exchanges).flat_map(|_| exchange()))
}

fuzz_target!(|input: &[u8]| {
    let [size, rest @ ..] = input else { return };
    let (mut bytes, mut rest) = (Vec::new(), rest);
    while let [times, length, after @ ..] = rest
        && bytes.len() < MOST
    {
        let (part, after) = after.split_at(usize::from(*length).min(after.len()));
        bytes.extend_from_slice(&part.repeat((*times).into()));
        rest = after;
    }
    bytes.truncate(MOST);
    let verdict = |size, exchanges| verdict(&bytes, size, exchanges);
    let found = verdict(MOST, 1);
    assert_eq!(found, verdict(usize::from(*size) + 1, 1), "the verdict depends on the pieces");
    let (count, interim, reply) = parsed(&bytes);
    match (found, reply) {
        (Ok(()), _) => assert!(count <= INTERIM && interim <= INTERIM_BYTES, "{count} replies of {interim} bytes"),
        (Err(Excess::Interim), Some(_)) => assert!(count > INTERIM, "{count} replies"),
        // The status line of the reply counts up to the class of its status.
        (Err(_), Some(at)) => assert!(at + 10 > INTERIM_BYTES, "{at} bytes"),
        // Bytes that the client refuses anyway.
        (Err(_), None) => {}
    }
    // Each request begins anew.
    if reply.is_some() {
        assert_eq!(found, verdict(MOST, 3));
    }
});
