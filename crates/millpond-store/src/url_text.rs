//! Texts of URLs, without passwords and tokens.

use percent_encoding::percent_decode_str;
use url::Url;

/// Returns a URL without user, password and query.
pub fn without_secrets(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}"));
    let path = url.path().trim_end_matches('/');
    format!("{}://{host}{}{path}", url.scheme(), port.unwrap_or_default())
}

/// Returns a text that failed to parse, without possible passwords and tokens. A user may follow one of `schemes` and a colon.
pub fn shown_without_secrets(text: &str, schemes: &[&str]) -> String {
    // A user and password end at the last `@`: a mistyped one may contain anything. Without `://` they follow the scheme.
    let cut = || schemes.iter().find(|scheme| begins_with_scheme(text, scheme)).map_or(0, |scheme| scheme.len() + 1);
    let (begin, end) = match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => (scheme + 3, at + 1),
        (None, Some(at)) => (cut().min(at), at + 1),
        _ => (0, 0),
    };
    let rest = text[end..].split(['?', '#']).next().unwrap_or_default();
    format!("{}{rest}", &text[..begin])
}

/// Returns whether a text begins with a scheme and a colon.
fn begins_with_scheme(text: &str, scheme: &str) -> bool {
    text.split_once(':').is_some_and(|(first, _)| first.eq_ignore_ascii_case(scheme))
}

/// Returns a part of a URL, percent-decoded.
pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_urls_are_shown_without_passwords() {
        for (text, expected) in [
            ("https://u:hush@h/a?token=hush", "https://h/a"),
            ("http://u:hu#sh@h/a", "http://h/a"),
            ("http://u:hu?sh@h", "http://h"),
            ("http:u:hush@h/a", "http:h/a"),
            ("https:\\u:hush@h:bad", "https:h:bad"),
            ("u:hush@h", "h"),
            ("a/b?c", "a/b"),
        ] {
            assert_eq!(shown_without_secrets(text, &["http", "https"]), expected, "{text}");
        }
    }
}
