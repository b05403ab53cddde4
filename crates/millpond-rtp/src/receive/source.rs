//! The source that a track follows.

use std::time::Duration;

/// Silence of the followed source after which another one may replace it.
const SILENCE: Duration = Duration::from_secs(2);
/// The same for an announced source that was never heard: some servers announce another one than they use.
const UNHEARD: Duration = Duration::from_millis(300);

/// Chooses one source (SSRC) among the sources that send to a port. Some servers still send an old session, even into a new
/// connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Source {
    followed: Option<Followed>,
    /// Another source, and its next sequence number.
    other: Option<(u32, u16)>,
}

#[derive(Clone, Copy, Debug)]
struct Followed {
    ssrc: u32,
    heard: Duration,
    is_silent: bool,
}

/// Classification of a packet by its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentBy {
    Followed,
    /// From a source that replaces the followed one from now on.
    Replacement,
    Foreign,
}

impl Source {
    /// Follows the source that a server announced, if any, else the first source that sends.
    pub(super) fn announced(ssrc: Option<u32>, now: Duration) -> Self {
        let followed = ssrc.map(|ssrc| Followed { ssrc, heard: now, is_silent: true });
        Self { followed, other: None }
    }

    pub(super) fn ssrc(&self) -> Option<u32> {
        self.followed.map(|followed| followed.ssrc)
    }

    pub(super) fn packet(&mut self, ssrc: u32, sequence: u16, now: Duration) -> SentBy {
        let heard = Followed { ssrc, heard: now, is_silent: false };
        let Some(followed) = &mut self.followed else {
            self.followed = Some(heard);
            return SentBy::Followed;
        };
        if followed.ssrc == ssrc {
            *followed = heard;
            return SentBy::Followed;
        }
        let patience = if followed.is_silent { UNHEARD } else { SILENCE };
        // Two packets in a row, as RFC 3550 A.1 asks of an unknown source.
        let is_steady = self.other.replace((ssrc, sequence.wrapping_add(1))) == Some((ssrc, sequence));
        if is_steady && now.saturating_sub(followed.heard) >= patience {
            *self = Self { followed: Some(heard), other: None };
            return SentBy::Replacement;
        }
        SentBy::Foreign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_source_is_followed_after_silence() {
        let at = Duration::from_millis;
        let mut source = Source::default();
        assert_eq!(source.packet(1, 10, at(0)), SentBy::Followed);
        assert_eq!(source.packet(2, 50, at(1900)), SentBy::Foreign);
        assert_eq!(source.packet(2, 51, at(1950)), SentBy::Foreign);
        assert_eq!(source.packet(2, 53, at(2500)), SentBy::Foreign, "one is missing");
        assert_eq!(source.packet(2, 54, at(2501)), SentBy::Replacement);
        assert_eq!((source.packet(1, 11, at(2502)), source.ssrc()), (SentBy::Foreign, Some(2)));
        let mut source = Source::announced(Some(7), at(0));
        assert_eq!(source.packet(8, 1, at(299)), SentBy::Foreign);
        assert_eq!(source.packet(8, 2, at(300)), SentBy::Replacement);
        assert_eq!(source.packet(7, 2, at(301)), SentBy::Foreign);
    }
}
