//! Profiles of H.264 (RFC 6184 8.1).

/// Profile of a stream, or one that a peer can decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AvcProfile {
    /// Constrained Baseline: what all decoders know.
    ConstrainedBaseline,
    /// Baseline.
    Baseline,
    /// Main.
    Main,
    /// Extended.
    Extended,
    /// Constrained High.
    ConstrainedHigh,
    /// High.
    High,
    /// Another one, by its `profile_idc`.
    Other(u8),
}

impl AvcProfile {
    /// Returns the profile of `profile_idc` and the constraint flags (RFC 6184 8.1, table 5).
    pub(super) fn of(number: u8, flags: u8) -> Self {
        let has = |flag: u8| flags & (0x80 >> flag) != 0;
        match number {
            66 if has(1) => Self::ConstrainedBaseline,
            66 => Self::Baseline,
            77 if has(0) => Self::ConstrainedBaseline,
            77 => Self::Main,
            88 if has(0) && has(1) => Self::ConstrainedBaseline,
            88 if has(0) => Self::Baseline,
            88 => Self::Extended,
            100 if has(4) && has(5) => Self::ConstrainedHigh,
            100 => Self::High,
            _ => Self::Other(number),
        }
    }

    /// Reads a `profile-level-id`: six hexadecimal digits.
    pub(super) fn read(text: &str) -> Option<Self> {
        let is_whole = text.len() == 6 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u32::from_str_radix(text, 16).ok().filter(|_| is_whole)?;
        let [_, profile, flags, _] = number.to_be_bytes();
        Some(Self::of(profile, flags))
    }

    /// Whether its decoders decode a stream of another profile.
    pub(super) fn decodes(self, stream: Self) -> bool {
        /// High 10, High 4:2:2 and High 4:4:4 Predictive: each has the one before.
        const HIGHER: [AvcProfile; 3] = [AvcProfile::Other(110), AvcProfile::Other(122), AvcProfile::Other(244)];
        let rank = |profile: Self| HIGHER.iter().position(|higher| *higher == profile);
        match (self, stream) {
            _ if self == stream => true,
            (Self::Other(_), Self::Other(_)) => rank(self).zip(rank(stream)).is_some_and(|(own, other)| own > other),
            (Self::Other(_), Self::ConstrainedBaseline | Self::Main | Self::ConstrainedHigh | Self::High) => {
                rank(self).is_some()
            }
            (Self::High, Self::ConstrainedBaseline | Self::Main | Self::ConstrainedHigh) => true,
            (Self::Extended, Self::ConstrainedBaseline | Self::Baseline) => true,
            (Self::Baseline | Self::Main | Self::ConstrainedHigh, Self::ConstrainedBaseline) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AvcProfile::{self, *};

    #[test]
    fn one_profile_has_several_names() {
        for (text, expected) in [
            ("42e01f", ConstrainedBaseline),
            ("42C01E", ConstrainedBaseline),
            ("4d8015", ConstrainedBaseline),
            ("58c01e", ConstrainedBaseline),
            ("42001f", Baseline),
            ("58801e", Baseline),
            ("4d001f", Main),
            ("4D401F", Main),
            ("58001e", Extended),
            ("640c1f", ConstrainedHigh),
            ("640028", High),
            ("f4001f", Other(244)),
        ] {
            assert_eq!(AvcProfile::read(text), Some(expected), "{text}");
        }
        for text in ["", "42e0", "42e01f00", "+2e01f", "42é1f"] {
            assert_eq!(AvcProfile::read(text), None, "{text}");
        }
    }

    #[test]
    fn higher_profiles_decode_lower_ones() {
        for (own, stream) in [
            (High, Main),
            (High, ConstrainedBaseline),
            (Main, ConstrainedBaseline),
            (Other(244), High),
            (Other(244), Other(110)),
        ] {
            assert!(own.decodes(stream) && !stream.decodes(own), "{own:?} {stream:?}");
        }
        assert!(Main.decodes(Main) && Other(83).decodes(Other(83)));
        for (own, stream) in [(High, Baseline), (Main, Extended), (Other(83), Main), (Other(110), Other(83))] {
            assert!(!own.decodes(stream), "{own:?} {stream:?}");
        }
    }
}
