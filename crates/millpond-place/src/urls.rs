//! URLs of places, with errors that show no secrets.

use crate::{PlaceError, kind::schemes};
use millpond_store::shown_without_secrets;
use url::Url;

/// Parses a URL with a host.
pub(crate) fn hosted(text: &str) -> Result<Url, PlaceError> {
    let url = url(text)?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(PlaceError::Url { text: shown(text), detail: "expected a host".to_owned() });
    }
    Ok(url)
}

/// Parses a URL.
pub(crate) fn url(text: &str) -> Result<Url, PlaceError> {
    let wrong = |detail: String| PlaceError::Url { text: shown(text), detail };
    let scheme = text.split(':').next().unwrap_or_default();
    let url = Url::parse(text)
        .map_err(|error| wrong(format!("expected {scheme}://HOST:PORT/PATH, found an error: {error}")))?;
    if url.fragment().is_some() {
        return Err(wrong("expected no fragment (#...)".into()));
    }
    Ok(url)
}

/// Returns a text that failed to parse, without possible passwords and tokens.
pub(crate) fn shown(text: &str) -> String {
    let schemes: Vec<_> = schemes().collect();
    shown_without_secrets(text, &schemes)
}

/// Returns the scheme of a text such as `http:/host`, which is no URL for want of a slash.
pub(crate) fn cut_scheme(text: &str) -> Option<&'static str> {
    let (scheme, _) = text.split_once(':')?;
    schemes().find(|known| known.eq_ignore_ascii_case(scheme))
}
