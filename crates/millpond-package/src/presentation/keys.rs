//! Addresses of the keys of encrypted tracks, for HLS players.

use millpond_media::Uuid;

/// Key format of FairPlay Streaming.
const FAIRPLAY: &str = "com.apple.streamingkeydelivery";

/// Template of key addresses (`URI` of RFC 8216 4.3.2.4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyAddress {
    uri: String,
    format: Option<String>,
}

impl KeyAddress {
    /// Creates a template. `{kid}` stands for the key's identifier as 32 hexadecimal digits, and `{uuid}` for the identifier as a
    /// UUID. `format` is the `KEYFORMAT`. The default is FairPlay's for `skd:` addresses, and `identity` for others.
    ///
    /// Returns `None` for texts that playlists can't contain: empty texts, and texts with quotation marks or line breaks.
    #[must_use]
    pub fn new(uri: &str, format: Option<&str>) -> Option<Self> {
        let fits = |text: &str| !text.is_empty() && !text.contains(|c: char| c == '"' || c.is_control());
        if !fits(uri) || !format.is_none_or(fits) {
            return None;
        }
        let implied = uri.starts_with("skd:").then_some(FAIRPLAY);
        Some(Self { uri: uri.to_owned(), format: format.or(implied).map(str::to_owned) })
    }

    /// Returns the address of one key.
    pub(crate) fn of(&self, key: Uuid) -> String {
        self.uri.replace("{kid}", &key.digits()).replace("{uuid}", &key.to_string())
    }

    /// Returns the origin of `http` and `https` addresses: scheme, host and port. `None` for others, and for paths.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        let rest = self.uri.strip_prefix("https://").or_else(|| self.uri.strip_prefix("http://"))?;
        let host = rest.split(['/', '?', '#']).next().filter(|host| !host.contains(['@', '{', ';', ',', ' ']))?;
        self.uri.get(..self.uri.len() - rest.len() + host.len())
    }

    /// Returns the `KEYFORMAT`, unless it is `identity`.
    pub(crate) fn format(&self) -> Option<&str> {
        self.format.as_deref().filter(|format| *format != "identity")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_the_key_and_imply_a_format() {
        let key = Uuid(*b"0123456789abcdef");
        let address = KeyAddress::new("https://keys.example/{kid}?as={uuid}", None).unwrap();
        let digits = "30313233343536373839616263646566";
        let uuid = "30313233-3435-3637-3839-616263646566";
        assert_eq!(address.of(key), format!("https://keys.example/{digits}?as={uuid}"));
        assert_eq!(address.format(), None);
        let origin = |uri: &str| KeyAddress::new(uri, None).unwrap().origin().map(str::to_owned);
        assert_eq!(origin("https://keys.example:8443?{kid}").as_deref(), Some("https://keys.example:8443"));
        assert_eq!((origin("/keys/{kid}"), origin("skd://{kid}"), origin("http://{kid}.example/")), (None, None, None));
        assert_eq!(KeyAddress::new("skd://{kid}", None).unwrap().format(), Some(FAIRPLAY));
        assert_eq!(KeyAddress::new("skd://{kid}", Some("identity")).unwrap().format(), None);
        for (uri, format) in [("", None), ("a\"b", None), ("a\nb", None), ("a", Some("")), ("a", Some("\""))] {
            assert_eq!(KeyAddress::new(uri, format), None, "{uri:?} {format:?}");
        }
    }
}
