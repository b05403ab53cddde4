//! URLs of RTSP servers that have the same live streams.

use super::{PlaceError, hosted, shown, without_secrets};
use std::fmt;
use url::Url;

/// Most servers of one place.
const MOST: usize = 16;

/// URLs of one or more RTSP servers with the same streams. `Display` shows no secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct RtspUrls {
    first: Url,
    others: Vec<Url>,
}

impl RtspUrls {
    /// Parses URLs with commas between them, such as `rtsp://a/,rtsp://b/`. Only commas before a scheme of RTSP divide.
    ///
    /// # Errors
    /// A URL is malformed or has no host, or there are too many.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        let mut urls = divided(text).map(hosted);
        // The first part is all of a text without divisions.
        let first = urls.next().unwrap_or_else(|| hosted(text))?;
        let others: Vec<Url> = urls.collect::<Result<_, _>>()?;
        if others.len() >= MOST {
            let detail = format!("more than {MOST} servers");
            return Err(PlaceError::Url { text: shown(divided(text).next().unwrap_or_default()), detail });
        }
        Ok(Self { first, others })
    }

    /// Returns the URL of the preferred server.
    pub fn first(&self) -> &Url {
        &self.first
    }

    /// Returns the URLs of the other servers.
    pub fn others(&self) -> &[Url] {
        &self.others
    }
}

/// Divides a text at commas before schemes of RTSP.
fn divided(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let begins = |at: &usize| ["rtsp://", "rtsps://"].iter().any(|scheme| text[at + 1..].starts_with(scheme));
        let at = text.match_indices(',').map(|(at, _)| at).find(begins);
        rest = at.map(|at| &text[at + 1..]);
        Some(&text[..at.unwrap_or(text.len())])
    })
}

impl fmt::Display for RtspUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_secrets(&self.first))?;
        self.others.iter().try_for_each(|url| write!(f, ",{}", without_secrets(url)))
    }
}

impl fmt::Debug for RtspUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_divided_at_schemes() {
        let urls = RtspUrls::parse("rtsp://u:secret@a/x,y?k=secret,rtsps://b:1/z").unwrap();
        assert_eq!(urls.first().as_str(), "rtsp://u:secret@a/x,y?k=secret");
        assert_eq!(urls.to_string(), "rtsp://a/x,y,rtsps://b:1/z");
        assert_eq!(RtspUrls::parse("rtsp://a/").unwrap().others(), []);
        for text in ["rtsp://a/,rtsp://", "rtsp://secret@,rtsp://a/", &vec!["rtsp://a/"; MOST + 1].join(",")] {
            let error = RtspUrls::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
