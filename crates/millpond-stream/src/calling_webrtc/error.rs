//! Why a server is not, or no longer, connected to.

use millpond_webrtc::{Ended, IdentityError, sdp::AnswerError};
use std::{fmt, io, time::Duration};

/// Why a server is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPurpose {
    /// A stream is pushed to it (WHIP).
    Publish,
    /// One of its streams is pulled (WHEP).
    Play,
}

impl CallPurpose {
    /// A question after another cause, for the error of a server that does not reply.
    fn doubt(self) -> &'static str {
        match self {
            Self::Publish => "",
            // Some servers wait for the publisher before they reply.
            Self::Play => ", and is the stream published there",
        }
    }
}

impl fmt::Display for CallPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Publish => "WHIP",
            Self::Play => "WHEP",
        })
    }
}

/// The refusal of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Purpose of the call.
    pub(crate) purpose: CallPurpose,
    /// Status of the reply.
    pub(crate) status: u16,
    /// The text of the server's reply, without secrets; empty where it says nothing.
    pub(crate) words: String,
    /// Time after which another offer may succeed.
    pub(crate) retry_after: Option<Duration>,
}

/// Why a server is not, or no longer, connected to. The words contain no secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("{0}")]
    Identity(#[from] IdentityError),
    #[error("no random bytes: {0}")]
    Random(getrandom::Error),
    #[error("no reply to the offer: {0}")]
    Request(String),
    #[error(
        "no reply to the offer within {seconds} s: is this the URL of a {0} endpoint{also}?",
        seconds = .1.as_secs_f64(),
        also = .0.doubt()
    )]
    Late(CallPurpose, Duration),
    #[error("{0}")]
    Refused(Refusal),
    #[error("a redirect (status {status}) {fault}")]
    Redirect { status: u16, fault: &'static str },
    #[error("more than {0} redirects")]
    Redirects(usize),
    #[error("the answer has more than {0} bytes, or breaks off")]
    Body(usize),
    #[error("{0}")]
    Answer(#[from] AnswerError),
    #[error("socket: {0}")]
    Socket(#[from] io::Error),
    #[error(
        "no check of ICE was answered by {0}: UDP must reach these addresses, so open the server's port, or let the server \
         state its public address"
    )]
    Unreachable(String),
    #[error(
        "the handshake of DTLS with {0} was not completed: is UDP filtered on the way, or has the server an RSA certificate? \
         DTLS takes ECDSA certificates only"
    )]
    Handshake(String),
    #[error(
        "the certificate of DTLS is not the one of the answer: another server answers at the address, or the server states a \
         wrong a=fingerprint"
    )]
    Certificate,
    #[error("DTLS: {0} (a server with an RSA certificate can't be called: DTLS takes ECDSA certificates only)")]
    Dtls(String),
    #[error("{0}")]
    Peer(Ended),
}

impl From<Ended> for CallError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Certificate => Self::Certificate,
            Ended::Dtls(words) => Self::Dtls(words),
            ended => Self::Peer(ended),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { purpose, status, words, .. } = self;
        let cure = match purpose {
            CallPurpose::Publish => cure_of_publisher(*status),
            CallPurpose::Play => cure_of_player(*status),
        };
        write!(f, "status {status} in reply to the offer: ")?;
        match cure {
            Some(cure) => f.write_str(cure)?,
            None => common_cure(f, *purpose, *status)?,
        }
        if words.is_empty() { Ok(()) } else { write!(f, " (it says: {words})") }
    }
}

/// Tells what an operator who pushes can do about a status. `None` where that is the same for all.
fn cure_of_publisher(status: u16) -> Option<&'static str> {
    Some(match status {
        400 | 422 => {
            "the server can't take the offer, so let the encoder send codecs that it takes, such as H.264 and Opus"
        }
        401 | 403 => {
            "write the server's token before the host: https://TOKEN@HOST/PATH, for Millpond https://NAME:PASSWORD@HOST/PATH"
        }
        404 | 410 => "nothing is at this path, so correct it, or turn WebRTC on at the server",
        406 => "the server takes no application/sdp there, so use the URL of a WHIP endpoint",
        409 => "the name has another publisher, so end that one, or use another name",
        _ => return None,
    })
}

/// The same for an operator who pulls.
fn cure_of_player(status: u16) -> Option<&'static str> {
    Some(match status {
        400 | 422 => {
            "the server can't take the offer: the stream has no codec of it (H.264, HEVC, AV1, VP9, VP8, Opus, G.711), or the \
             server makes offers itself, which this end does not take"
        }
        401 | 403 => {
            "write the server's token before the host: whep+https://TOKEN@HOST/PATH, for Millpond \
             whep+https://NAME:PASSWORD@HOST/PATH"
        }
        404 | 410 => {
            "no stream is at this path, so correct it, wait for its publisher, or turn WebRTC on at the server"
        }
        406 => "the server wants to make the offer itself (a counter-offer), which this end does not take",
        409 => "the stream is not live there now",
        _ => return None,
    })
}

/// Tells what an operator can do about a status, whatever the purpose is.
fn common_cure(f: &mut fmt::Formatter<'_>, purpose: CallPurpose, status: u16) -> fmt::Result {
    match status {
        405 => write!(f, "the server takes no POST there, so use the URL of a {purpose} endpoint"),
        415 => write!(f, "the server takes no application/sdp there, so use the URL of a {purpose} endpoint"),
        429 | 503 => f.write_str("the server has no room now"),
        300..=399 => {
            f.write_str("only redirects with 307 and 308 are followed, so use the URL to which this one leads")
        }
        500..=599 => f.write_str("the server's log should tell more"),
        _ => write!(f, "expected 201, so use the URL of a {purpose} endpoint"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_a_cure() {
        use CallPurpose::{Play, Publish};
        let refusal = |purpose, status, words: &str| {
            CallError::Refused(Refusal { purpose, status, words: words.to_owned(), retry_after: None }).to_string()
        };
        for (status, publisher, player) in [
            (200, "expected 201", "expected 201"),
            (301, "307 and 308", "307 and 308"),
            (400, "codecs", "codec"),
            (401, " https://TOKEN@HOST/PATH", "whep+https://TOKEN@HOST/PATH"),
            (403, " https://TOKEN@HOST/PATH", "whep+https://NAME:PASSWORD@HOST/PATH"),
            (404, "correct it", "wait for its publisher"),
            (405, "WHIP endpoint", "WHEP endpoint"),
            (406, "application/sdp", "counter-offer"),
            (409, "another publisher", "not live"),
            (415, "application/sdp", "application/sdp"),
            (500, "log", "log"),
            (503, "no room", "no room"),
        ] {
            for (purpose, words) in [(Publish, publisher), (Play, player)] {
                let shown = refusal(purpose, status, "");
                assert!(shown.starts_with(&format!("status {status} ")) && shown.contains(words), "{shown}");
            }
        }
        assert!(refusal(Publish, 409, "taken").ends_with(" (it says: taken)"));
        let late = CallError::Late(Play, Duration::from_millis(2500)).to_string();
        assert_eq!(
            late,
            "no reply to the offer within 2.5 s: is this the URL of a WHEP endpoint, and is the stream published there?"
        );
    }
}
