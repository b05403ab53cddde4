//! Captions within pictures (CEA-608 and CEA-708): the channels that a track carries.

mod cc_data;
mod search;

pub use search::CaptionSearch;

use serde::{Deserialize, Serialize};
use std::fmt;

/// Channels of CEA-608.
const CHANNELS: u8 = 4;
/// Services of CEA-708: six standard ones, then extended ones.
const SERVICES: u8 = 63;

/// One channel of captions within pictures. Its display is the name that HLS gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaptionChannel {
    /// A channel of CEA-608, 1 to 4.
    Cea608(u8),
    /// A service of CEA-708, 1 to 63.
    Cea708(u8),
}

impl CaptionChannel {
    /// Returns the channel of a name: `CC1` to `CC4`, `SERVICE1` to `SERVICE63` (`INSTREAM-ID`, RFC 8216 4.3.4.1).
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let number = |digits: &str, most: u8| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
            digits.parse::<u8>().ok().filter(|number| is_plain && (1..=most).contains(number))
        };
        match (name.strip_prefix("CC"), name.strip_prefix("SERVICE")) {
            (Some(digits), _) => number(digits, CHANNELS).map(Self::Cea608),
            (None, Some(digits)) => number(digits, SERVICES).map(Self::Cea708),
            (None, None) => None,
        }
    }
}

impl fmt::Display for CaptionChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cea608(number) => write!(f, "CC{number}"),
            Self::Cea708(number) => write!(f, "SERVICE{number}"),
        }
    }
}

/// A set of channels of captions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptionChannels {
    /// Bit 0 stands for `CC1`.
    cea608: u8,
    /// Bit 0 stands for `SERVICE1`.
    cea708: u64,
}

impl CaptionChannels {
    /// Whether there is no channel.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns the channels: those of CEA-608, then the services of CEA-708.
    pub fn iter(self) -> impl Iterator<Item = CaptionChannel> {
        let channels = (1..=CHANNELS).filter(move |number| self.cea608 >> (number - 1) & 1 == 1);
        let services = (1..=SERVICES).filter(move |number| self.cea708 >> (number - 1) & 1 == 1);
        channels.map(CaptionChannel::Cea608).chain(services.map(CaptionChannel::Cea708))
    }

    /// Returns the channels of several pieces of video together. `None` stands for a piece whose channels are not known. If another
    /// piece has channels, these are the result.
    #[must_use]
    pub fn joined(pieces: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let (mut all, mut are_known) = (Self::default(), true);
        for piece in pieces {
            are_known &= piece.is_some();
            let Self { cea608, cea708 } = piece.unwrap_or_default();
            all.cea608 |= cea608;
            all.cea708 |= cea708;
        }
        (are_known || !all.is_empty()).then_some(all)
    }

    /// Adds a channel. A number that no channel has changes nothing.
    fn insert(&mut self, channel: CaptionChannel) {
        match channel {
            CaptionChannel::Cea608(number @ 1..=CHANNELS) => self.cea608 |= 1 << (number - 1),
            CaptionChannel::Cea708(number @ 1..=SERVICES) => self.cea708 |= 1 << (number - 1),
            _ => {}
        }
    }
}

impl FromIterator<CaptionChannel> for CaptionChannels {
    fn from_iter<T: IntoIterator<Item = CaptionChannel>>(channels: T) -> Self {
        let mut all = Self::default();
        channels.into_iter().for_each(|channel| all.insert(channel));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_hls() {
        for name in ["CC1", "CC4", "SERVICE1", "SERVICE9", "SERVICE63"] {
            assert_eq!(CaptionChannel::named(name).unwrap().to_string(), name);
        }
        for other in ["", "CC", "CC0", "CC5", "CC01", "CC+1", "cc1", "SERVICE", "SERVICE0", "SERVICE64", "SERVICE300"] {
            assert_eq!(CaptionChannel::named(other), None, "{other}");
        }
    }

    #[test]
    fn sets_keep_numbers_that_exist() {
        use CaptionChannel::{Cea608, Cea708};
        let all: CaptionChannels =
            [Cea708(63), Cea608(3), Cea708(1), Cea608(0), Cea608(5), Cea708(64)].into_iter().collect();
        assert_eq!(all.iter().collect::<Vec<_>>(), [Cea608(3), Cea708(1), Cea708(63)]);
        assert!(!all.is_empty() && CaptionChannels::default().is_empty());
    }

    #[test]
    fn unknown_pieces_hide_only_that_there_are_none() {
        let none = CaptionChannels::default();
        let one: CaptionChannels = [CaptionChannel::Cea608(1)].into_iter().collect();
        let two: CaptionChannels = [CaptionChannel::Cea708(2)].into_iter().collect();
        assert_eq!(CaptionChannels::joined([Some(none), Some(none)]), Some(none));
        assert_eq!(CaptionChannels::joined([Some(none), None]), None);
        assert_eq!(CaptionChannels::joined([None, Some(one)]), Some(one));
        let both = CaptionChannels::joined([Some(one), Some(two)]).unwrap();
        assert_eq!(both.iter().map(|channel| channel.to_string()).collect::<Vec<_>>(), ["CC1", "SERVICE2"]);
    }
}
