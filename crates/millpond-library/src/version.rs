//! Versions of assets in URLs.
//!
//! Everything made of a track lies below the asset's version (`film.mp4/~0123456789abcdef/v1/12.m4s`). The bytes of such a
//! URL never change, so that caches may keep them for ever. Multivariant playlists and MPDs name the version; a path
//! without one means the current version.

use std::fmt;

/// First character of a version in a path.
const MARK: char = '~';

/// One version of an asset: the same on all servers that make the same bytes of the same objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AssetVersion(pub(crate) u64);

impl AssetVersion {
    /// Parses a component of a path: `~` and sixteen lower-case hexadecimal digits.
    #[must_use]
    pub fn parse(component: &str) -> Option<Self> {
        let digits = component.strip_prefix(MARK)?;
        let plain = digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        u64::from_str_radix(digits, 16).ok().filter(|_| plain).map(Self)
    }
}

impl fmt::Display for AssetVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_each() {
        for number in [0, 0xa1, u64::MAX] {
            let version = AssetVersion(number);
            assert_eq!(AssetVersion::parse(&version.to_string()), Some(version));
        }
        for other in
            ["", "~", "~0123", "0123456789abcdef0", "~0123456789ABCDEF", "~+123456789abcdef", "~é12345678abcde"]
        {
            assert_eq!(AssetVersion::parse(other), None, "{other}");
        }
    }
}
