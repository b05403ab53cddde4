//! Whether a server seeks, judged by its reply to a PLAY with a time.

use crate::source_health::SourceErrorKind;
use std::time::Duration;

/// Status code of a time that is not in the title (RFC 2326 11.3.8).
const INVALID_RANGE: u16 = 457;
/// Seconds from the requested to the stated beginning from which on the server plays from elsewhere.
const MISSED: f64 = 40.0;
/// Seconds from the beginning of a title within which a server that was asked for a later time may not have sought.
pub(super) const BEGINNING: f64 = 0.5;

/// The outcome of asking a server to play from a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Seek {
    /// It plays from about there.
    There {
        /// Whether that proves that it can seek.
        is_proof: bool,
    },
    /// It states another beginning, in seconds: it can't seek, or the title ends before the requested time.
    Elsewhere(f64),
    /// It refuses the time: the title ends before, or the server refuses all times.
    OutOfRange,
    /// It refuses to seek.
    Unable,
}

impl Seek {
    /// Judges the beginning that the reply to a PLAY from a time states.
    pub(super) fn of_reply(asked: Duration, begins: Option<f64>) -> Self {
        let asked = asked.as_secs_f64();
        match begins {
            Some(begins) if (asked - begins).abs() >= MISSED => Self::Elsewhere(begins),
            _ => Self::There { is_proof: asked > BEGINNING && begins.is_none_or(|begins| begins > BEGINNING) },
        }
    }

    /// Judges a failure; `None` where it has nothing to do with seeking.
    pub(super) fn of_failure(kind: SourceErrorKind) -> Option<Self> {
        match kind {
            SourceErrorKind::Refused(INVALID_RANGE) => Some(Self::OutOfRange),
            // RFC 2326 11.3.6 and 11.3.7, and servers that do not know the header.
            SourceErrorKind::Refused(455 | 456 | 501) => Some(Self::Unable),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stated_beginning_tells_whether_a_server_has_sought() {
        let (proof, no_proof) = (Seek::There { is_proof: true }, Seek::There { is_proof: false });
        for (asked, begins, expected) in [
            (100, Some(99.0), proof),
            (100, Some(70.0), proof),
            (100, Some(0.0), Seek::Elsewhere(0.0)),
            (100, Some(200.0), Seek::Elsewhere(200.0)),
            (100, None, proof),
            (2, Some(0.0), no_proof),
            (2, Some(1.9), proof),
            (0, Some(0.0), no_proof),
            (0, None, no_proof),
        ] {
            assert_eq!(Seek::of_reply(Duration::from_secs(asked), begins), expected, "{asked} {begins:?}");
        }
    }

    #[test]
    fn status_codes_are_about_the_time_or_about_the_server() {
        let of = |code| Seek::of_failure(SourceErrorKind::Refused(code));
        assert_eq!(of(457), Some(Seek::OutOfRange));
        assert_eq!([455, 456, 501].map(of), [Some(Seek::Unable); 3]);
        assert_eq!([of(453), Seek::of_failure(SourceErrorKind::TimedOut)], [None, None]);
    }
}
