//! Maps failures of the HTTP client to errors.

use std::error::Error;
use std::io;
use std::time::Duration;

pub(crate) use millpond_outbound::chain;
use millpond_outbound::{Excess, SendError};

use crate::error::{At, OriginError, Phase};

/// A request that got no reply.
pub(crate) fn error(at: &At, error: &SendError, connect: Duration) -> OriginError {
    let at = at.clone();
    match error {
        SendError::ConnectTimeout => OriginError::Timeout { at, phase: Phase::Connect, after: connect },
        SendError::Excess(excess) => excessive(at, *excess),
        error => {
            // Below the words of the client library.
            let cause = error.source().and_then(|error| error.source()).unwrap_or(error);
            unreachable_origin(&at, cause)
        }
    }
}

/// A reply that exceeds a bound of HTTP.
pub(crate) fn excessive(at: At, excess: Excess) -> OriginError {
    OriginError::BadReply { at, expected: "a reply".into(), found: excess.to_string() }
}

/// A body that broke; how much of it had arrived is for [`exact`](super::exact) to say.
pub(crate) fn broken(at: &At, detail: String) -> OriginError {
    OriginError::Truncated { at: at.clone(), expected: 0, received: 0, detail }
}

/// Why an origin cannot be reached: name, TLS or connection.
///
/// The resolver and the TLS library hide behind boxed errors of types that are not ours to name, so beside the kinds
/// of I/O errors their texts are looked at; a text not known here is a failed connection.
pub(crate) fn unreachable_origin(at: &At, error: &(dyn Error + 'static)) -> OriginError {
    let detail = chain(error);
    let at = at.clone();
    let says = |words: &[&str]| words.iter().any(|word| detail.contains(word));
    if says(&["dns error", "failed to lookup address"]) {
        return OriginError::Dns { at, detail };
    }
    let invalid_data = {
        let mut cause = Some(error);
        let mut found = false;
        while let Some(error) = cause {
            found |= error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::InvalidData);
            cause = error.source();
        }
        found
    };
    let tls = ["certificate", "fatal alert", "tls handshake", "received corrupt message", "UnknownIssuer"];
    if invalid_data || says(&tls) {
        return OriginError::Tls { at, detail };
    }
    OriginError::Connect { at, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_apart() {
        let at = At::new("https://a.example", "x");
        let dns = io::Error::other("dns error: failed to lookup address information");
        assert!(matches!(unreachable_origin(&at, &dns), OriginError::Dns { .. }));
        let tls = io::Error::new(io::ErrorKind::InvalidData, "received something odd");
        assert!(matches!(unreachable_origin(&at, &tls), OriginError::Tls { .. }));
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert!(matches!(unreachable_origin(&at, &refused), OriginError::Connect { .. }));
    }

    #[test]
    fn a_chain_is_one_line_without_repeats() {
        let inner = io::Error::other("the cause");
        let outer = io::Error::other(inner);
        assert_eq!(chain(&outer), "the cause");
    }
}
