//! URLs of arguments, and what is wrong with those that are none.

use millpond_logging::escape::without_user;
use url::Url;

/// Parses a URL of one of some schemes. `argument` is named in errors.
///
/// # Errors
/// A sentence with the form that is expected.
pub fn parse(argument: &str, text: &str, schemes: &[&str]) -> Result<Url, String> {
    let url = Url::parse(text).ok();
    if let Some(url) = url.filter(|url| schemes.contains(&url.scheme()) && url.has_host()) {
        return Ok(url);
    }
    let shown = without_user(text);
    let first = schemes.first().unwrap_or(&"http");
    let hint = match text.contains("://") {
        true => String::new(),
        false => format!("; did you mean {first}://{}?", shown.trim_start_matches('/')),
    };
    Err(format!("{argument} {shown:?}: expected a URL of {}, such as {first}://HOST/PATH{hint}", schemes.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_url_is_told_with_one_that_is() {
        assert!(parse("URL", "rtsp://h:8554/a", &["http", "rtsp"]).is_ok());
        let error = parse("--server", "edge:8080", &["http", "https"]).unwrap_err();
        let expected = "--server \"edge:8080\": expected a URL of http, https, such as http://HOST/PATH; did you mean http://edge:8080?";
        assert_eq!(error, expected);
        for text in ["", "films/a.mp4", "ftp://u:hush@h/", "http://", "http://h:x/"] {
            let error = parse("URL", text, &["http"]).unwrap_err();
            assert!(error.contains("expected a URL of http") && !error.contains("hush"), "{error}");
        }
    }
}
