//! The `Range` of PLAY (RFC 2326 12.29), with times of the presentation or of the day.

use millpond_rtp::play::{self, NptRange, PlayError};
use std::time::Duration;

/// The range that a PLAY asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::rtsp) enum TimeRange {
    /// None: playing goes on (RFC 2326 10.5).
    Unstated,
    /// `npt=now-`: the live edge.
    Now,
    /// Normal play time (RFC 2326 3.6).
    Npt(NptRange),
    /// Wall times since the Unix epoch (RFC 2326 3.7); `None` for no end.
    Clock(Duration, Option<Duration>),
}

impl TimeRange {
    /// Reads a `Range`; parameters after a semicolon are ignored.
    ///
    /// # Errors
    /// The range is malformed, or in other units.
    pub(super) fn parse(range: &str) -> Result<Self, PlayError> {
        let text = range.split(';').next().unwrap_or(range).trim();
        let Some((_, times)) = text.split_once('=').filter(|(units, _)| units.trim() == "clock") else {
            let npt = play::npt_range(range)?;
            let is_now = text.split_once('=').is_some_and(|(_, times)| times.trim().starts_with("now"));
            return Ok(if is_now && npt.to.is_none() { Self::Now } else { Self::Npt(npt) });
        };
        let malformed = || PlayError::Malformed {
            header: "Range",
            value: range.to_owned(),
            expected: "clock= and a range such as 20261122T100000Z-",
        };
        let (from, to) = times.split_once('-').ok_or_else(malformed)?;
        let time = |text: &str| millpond_utc::parse_basic(text.trim()).ok_or_else(malformed);
        let to = Some(to).filter(|to| !to.trim().is_empty()).map(time).transpose()?;
        Ok(Self::Clock(time(from)?, to))
    }

    /// The times of a title; `None` where they are those of the day.
    pub(in crate::rtsp) fn npt(self) -> Option<NptRange> {
        match self {
            Self::Unstated | Self::Now => Some(NptRange::default()),
            Self::Npt(npt) => Some(npt),
            Self::Clock(..) => None,
        }
    }
}

/// Returns a range of wall times since the Unix epoch, to the millisecond.
pub(in crate::rtsp) fn clock(from: Duration, to: Option<Duration>) -> String {
    let mut text = "clock=".to_owned();
    millpond_utc::push_basic(&mut text, from);
    text.push('-');
    to.into_iter().for_each(|to| millpond_utc::push_basic(&mut text, to));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_in_both_units() {
        let wall = Duration::from_secs(1_795_341_600);
        let npt = |from, to| TimeRange::Npt(NptRange { from, to });
        for (text, expected) in [
            ("clock=20261122T100000Z-", TimeRange::Clock(wall, None)),
            ("clock=20261122T100000.25Z-;time=x", TimeRange::Clock(wall + Duration::from_millis(250), None)),
            ("clock = 20261122T100000Z-20261122T100001Z", TimeRange::Clock(wall, Some(wall + Duration::from_secs(1)))),
            ("npt=now-", TimeRange::Now),
            ("npt=0-", npt(Some(0.0), None)),
            ("npt=-30", npt(None, Some(30.0))),
        ] {
            assert_eq!(TimeRange::parse(text), Ok(expected), "{text}");
        }
        for text in ["clock", "clock=", "clock=-", "clock=-20261122T100000Z", "clock=now-", "clock=20261122T100000Z"] {
            assert!(matches!(TimeRange::parse(text), Err(PlayError::Malformed { .. })), "{text}");
        }
        assert!(matches!(TimeRange::parse("smpte=0:10:20-"), Err(PlayError::Units(_))));
        assert_eq!(TimeRange::parse(&clock(wall, Some(wall))), Ok(TimeRange::Clock(wall, Some(wall))));
    }
}
